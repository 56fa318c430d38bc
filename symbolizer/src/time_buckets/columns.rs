//! Counts by equal columns of time, for charts.

use super::{OfThread, Piece, Selection, Stop, TimeBucket};
use crate::ids::{Id, IndexVec, SpotId, ThreadId};
use crate::profile::{Profile, Region};
use crate::summary::Filter;
use std::ops::Range;
use vmscope_records::TimeNs;

/// The groups of each column.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// Threads; groups are their indices in [`crate::Trace::threads`].
    Threads,
    /// Regions; groups are as [`Region::ALL`] orders them.
    Regions,
    /// Rows of threads, each by region. The group is the row times the number of regions, plus
    /// the region's index.
    Rows {
        /// Rows; other values than `0..rows` exclude the thread.
        of_thread: &'a IndexVec<ThreadId, u32>,
        /// The number of rows.
        rows: u32,
    },
}

/// The columns of a chart.
#[derive(Clone, Copy, Debug)]
pub struct ColumnsOf<'a> {
    /// The left edge of the first column, and the right edge of the last one.
    pub window: (TimeNs, TimeNs),
    /// The number of columns, of equal time.
    pub columns: usize,
    /// The groups.
    pub by: By<'a>,
}

/// Samples by column and group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The number of groups in each column.
    pub groups: usize,
    /// Counts by column and group.
    pub samples: Vec<u64>,
}

impl ColumnsOf<'_> {
    /// The left edge of a column; for the index after the last column, the right edge of all.
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
    /// Counts the kept samples of `filter` ([`super::TimeBuckets::kept_from`]) by column; `None`
    /// if `stop` came first.
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

    /// Counts all samples of `filter` by group, dropped ones included; `None` if `stop` came
    /// first.
    #[must_use]
    pub fn total(profile: &Profile, by: By, filter: &Filter, stop: &Stop) -> Option<Vec<u64>> {
        let selection = Selection::new(profile, filter);
        Grouping::new(profile, &selection, by).count(profile, selection.range.clone(), stop)
    }

    /// Sums the groups up to `groups` ones: group n is the sum of all groups equal to n modulo
    /// `groups`.
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

    /// The groups of a column; empty for an unknown column.
    #[must_use]
    pub fn column(&self, column: usize) -> &[u64] {
        let from = column.saturating_mul(self.groups);
        let to = from.saturating_add(self.groups);
        self.samples.get(from..to).unwrap_or_default()
    }
}

const _: () = assert!(Region::ALL.len() < Grouping::ROOM);

/// The group of a sample: its thread's first group plus its spot's group.
struct Grouping<'a> {
    selection: &'a Selection,
    /// The first group of each thread; [`Self::NOWHERE`] for threads without a group.
    of_thread: IndexVec<ThreadId, u32>,
    /// The number of groups of a thread.
    width: usize,
    /// Groups by spot within a thread; [`Self::NONE`] for spots without a group.
    of_spot: IndexVec<SpotId, u8>,
    /// The number of groups.
    groups: usize,
}

impl<'a> Grouping<'a> {
    const NOWHERE: u32 = u32::MAX;
    const NONE: u8 = u8::MAX;
    /// Room for a thread's groups and for samples without a group.
    const ROOM: usize = 16;

    fn new(profile: &Profile, selection: &'a Selection, by: By) -> Self {
        let threads = &profile.trace.threads;
        let regions = Region::ALL.len();
        let (width, rows) = match by {
            By::Threads => (1, u32::try_from(threads.len()).unwrap_or(u32::MAX)),
            By::Regions => (regions, 1),
            By::Rows { rows, .. } => (regions, rows),
        };
        let row_of = |thread: ThreadId| match by {
            By::Threads => Some(thread.number()),
            By::Regions => Some(0),
            // The profile may have grown.
            By::Rows { of_thread, .. } => of_thread.get(thread).copied(),
        };
        let first_of = |thread: ThreadId| {
            let row = row_of(thread).filter(|_| selection.takes_thread(thread));
            let first = row.filter(|row| *row < rows)?.checked_mul(width as u32);
            first.filter(|first| *first < Self::NOWHERE)
        };
        let of_spot = |id: SpotId, region: Region| match selection.takes_spot(id) {
            false => Self::NONE,
            true if width == 1 => 0,
            true => region as u8,
        };
        Grouping {
            selection,
            of_thread: threads.map(|thread, _| first_of(thread).unwrap_or(Self::NOWHERE)),
            width,
            of_spot: profile
                .time_buckets
                .by_spot(|id, spot| of_spot(id, spot.region)),
            groups: (rows as usize).saturating_mul(width),
        }
    }

    /// Counts a range of samples; `None` if `stop` came first.
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

    /// A thread's groups; `None` without any.
    fn of<'b>(&self, thread: ThreadId, counts: &'b mut [u64]) -> Option<&'b mut [u64]> {
        let first = self.of_thread[thread] as usize;
        counts.get_mut(first..first.checked_add(self.width)?)
    }

    /// Counts a sample of a thread at a spot.
    fn put(&self, thread: ThreadId, spot: SpotId, counts: &mut [u64]) {
        if let Some(counts) = self.of(thread, counts)
            && let Some(slot) = counts.get_mut(usize::from(self.of_spot[spot]))
        {
            *slot += 1;
        }
    }

    /// Counts the selected samples of a time bucket.
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
        // An extra slot for samples without a group saves one branch per cell.
        let mut sums = [0u32; Self::ROOM];
        let mut add = |spot: SpotId, count: u32| {
            sums[usize::from(self.of_spot[spot]) % Self::ROOM] += count;
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
