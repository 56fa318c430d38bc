//! Counting by equal columns of time: what charts show.

use super::{OfThread, Piece, Selection, Stop, TimeBucket};
use crate::profile::{Profile, Region};
use crate::summary::Filter;
use std::ops::Range;
use vmscope_records::TimeNs;

/// What to count in each column.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// Threads; groups are their indices in [`crate::Trace::threads`].
    Threads,
    /// Regions; groups are as [`Region::ALL`] orders them.
    Regions,
    /// Rows of threads, each by region: a group is its row's number times as many as there
    /// are regions, plus the region's.
    Rows {
        /// The row of each thread of [`crate::Trace::threads`]; what is not below `rows` is
        /// left out.
        of_thread: &'a [u32],
        /// How many rows there are.
        rows: u32,
    },
}

/// What a chart shows.
#[derive(Clone, Copy, Debug)]
pub struct ColumnsOf<'a> {
    /// The time from the first column's left to the last one's right edge.
    pub window: (TimeNs, TimeNs),
    /// How many columns of equal time.
    pub columns: usize,
    /// What is counted.
    pub by: By<'a>,
}

/// Samples by column and group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// How many groups each column has.
    pub groups: usize,
    /// Column by column, each with all its groups.
    pub samples: Vec<u64>,
}

impl ColumnsOf<'_> {
    /// The time of a column's left edge; of the one behind the last, its right edge.
    #[must_use]
    pub fn edge(&self, column: usize) -> TimeNs {
        let span = u128::from(self.window.1.since(self.window.0).0);
        let part = span * column as u128 / (self.columns as u128).max(1);
        TimeNs(
            self.window
                .0
                .0
                .saturating_add(u64::try_from(part).unwrap_or(u64::MAX)),
        )
    }
}

impl Columns {
    /// Counts what `filter` takes, too, of the samples that are kept
    /// ([`super::TimeBuckets::kept_from`]); `None` when `stop` came before the end.
    #[must_use]
    pub fn of(profile: &Profile, what: &ColumnsOf, filter: &Filter, stop: &Stop) -> Option<Self> {
        let time_buckets = &profile.time_buckets;
        let samples = &profile.trace.samples;
        let selection = Selection::new(profile, filter);
        let grouping = Grouping::new(profile, &selection, what.by);
        let groups = grouping.groups;
        let mut columns = Columns {
            groups,
            samples: Vec::with_capacity(groups.saturating_mul(what.columns)),
        };
        let taken = &selection.range;
        let at = |column| {
            let edge = time_buckets.edge(samples, what.edge(column));
            edge.clamp(taken.start, taken.end)
        };
        let mut from = at(0);
        for column in 0..what.columns {
            let to = at(column + 1).max(from);
            columns
                .samples
                .extend(grouping.count(profile, from..to, stop)?);
            from = to;
        }
        Some(columns)
    }

    /// Counts all samples that `filter` takes, also those that are not kept, by group; `None`
    /// when `stop` came before the end.
    #[must_use]
    pub fn total(profile: &Profile, by: By, filter: &Filter, stop: &Stop) -> Option<Vec<u64>> {
        let selection = Selection::new(profile, filter);
        Grouping::new(profile, &selection, by).count(profile, selection.range.clone(), stop)
    }

    /// With so many groups in place of all: the first of each so many summed up, and so on.
    #[must_use]
    pub fn summed(&self, groups: usize) -> Self {
        let mut samples = Vec::new();
        for column in self.samples.chunks(self.groups.max(1)) {
            let mut sums = vec![0u64; groups];
            for row in column.chunks(groups.max(1)) {
                for (sum, count) in sums.iter_mut().zip(row) {
                    *sum += count;
                }
            }
            samples.extend(sums);
        }
        Columns { groups, samples }
    }

    /// The groups of a column; empty where there is no such column.
    #[must_use]
    pub fn column(&self, column: usize) -> &[u64] {
        let from = column.saturating_mul(self.groups);
        let to = from.saturating_add(self.groups);
        self.samples.get(from..to).unwrap_or_default()
    }
}

const _: () = assert!(Region::ALL.len() < Grouping::ROOM);

/// Which group a sample counts in: that of its thread, plus that of its spot.
struct Grouping<'a> {
    selection: &'a Selection,
    /// The first group of each thread's; [`Self::NOWHERE`] where it counts in none.
    of_thread: Vec<u32>,
    /// How many groups a thread has.
    width: usize,
    /// The group of each spot among a thread's; [`Self::NONE`] where it counts in none.
    of_spot: Vec<u8>,
    /// How many groups there are.
    groups: usize,
}

impl<'a> Grouping<'a> {
    const NOWHERE: u32 = u32::MAX;
    const NONE: u8 = u8::MAX;
    /// What a thread's counts fit into, with room for those of no group.
    const ROOM: usize = 16;

    fn new(profile: &Profile, selection: &'a Selection, by: By) -> Self {
        let threads = u32::try_from(profile.trace.threads.len()).unwrap_or(u32::MAX);
        let regions = Region::ALL.len();
        let (width, rows) = match by {
            By::Threads => (1, threads),
            By::Regions => (regions, 1),
            By::Rows { rows, .. } => (regions, rows),
        };
        let row_of = |thread: u32| match by {
            By::Threads => Some(thread),
            By::Regions => Some(0),
            By::Rows { of_thread, .. } => of_thread.get(thread as usize).copied(),
        };
        let first_of = |thread: u32| {
            let row = row_of(thread).filter(|_| selection.takes_thread(thread));
            let first = row.filter(|row| *row < rows)?.checked_mul(width as u32);
            first.filter(|first| *first < Self::NOWHERE)
        };
        let of_spot = |id: u32, region: Region| match selection.takes_spot(id) {
            false => Self::NONE,
            true if width == 1 => 0,
            true => region as u8,
        };
        let of_thread = (0..threads).map(|thread| first_of(thread).unwrap_or(Self::NOWHERE));
        Grouping {
            selection,
            of_thread: of_thread.collect(),
            width,
            of_spot: profile
                .time_buckets
                .by_spot(|id, spot| of_spot(id, spot.region)),
            groups: (rows as usize).saturating_mul(width),
        }
    }

    /// Counts a range of samples; `None` when `stop` came before the end.
    fn count(&self, profile: &Profile, range: Range<u64>, stop: &Stop) -> Option<Vec<u64>> {
        let mut counts = vec![0u64; self.groups];
        profile.time_buckets.pieces(range, &mut |piece| {
            match piece {
                Piece::TimeBucket(bucket, _) => self.add(bucket, &mut counts),
                Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                    self.put(thread, spot, &mut counts);
                }),
            }
            (!stop.is_stopped()).then_some(())
        })?;
        Some(counts)
    }

    /// A thread's groups; `None` where it counts in none.
    fn of<'b>(&self, thread: u32, counts: &'b mut [u64]) -> Option<&'b mut [u64]> {
        let first = *self.of_thread.get(thread as usize)? as usize;
        counts.get_mut(first..first.checked_add(self.width)?)
    }

    /// Counts a sample of a thread at a spot.
    fn put(&self, thread: u32, spot: u32, counts: &mut [u64]) {
        let group = self.of_spot.get(spot as usize).copied();
        if let Some(counts) = self.of(thread, counts)
            && let Some(slot) = counts.get_mut(usize::from(group.unwrap_or(Self::NONE)))
        {
            *slot += 1;
        }
    }

    /// Counts what is taken of a time bucket.
    fn add(&self, bucket: &TimeBucket, counts: &mut [u64]) {
        for run in bucket.runs() {
            if let Some(counts) = self.of(run.thread, counts) {
                self.add_run(&run, counts);
            }
        }
    }

    fn add_run(&self, run: &OfThread, counts: &mut [u64]) {
        if self.selection.is_of_regions() {
            self.selection.each_region(run, |region, count| {
                let group = if self.width == 1 { 0 } else { region as usize };
                if let Some(slot) = counts.get_mut(group) {
                    *slot += u64::from(count);
                }
            });
            return;
        }
        // What counts in no group has a place of its own: nothing is to be asked of a cell.
        let mut sums = [0u32; Self::ROOM];
        let mut add = |spot: u32, count: u32| {
            let group = self.of_spot.get(spot as usize).copied();
            let group = usize::from(group.unwrap_or(Self::NONE));
            sums[group % Self::ROOM] += count;
        };
        if self.selection.is_few_among(run.cells.len()) {
            self.selection
                .each_cell(run.cells, |cell| add(cell.spot, cell.count));
        } else {
            run.cells.iter().for_each(|cell| add(cell.spot, cell.count));
        }
        for (slot, sum) in counts.iter_mut().zip(sums) {
            *slot += u64::from(sum);
        }
    }
}
