//! Counting by equal columns of time: what charts show.

use super::{Piece, Selection, Slice, Stop};
use crate::profile::Profile;
use crate::summary::Filter;
use vmscope_records::TimeNs;

/// What to count in each column.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// Threads; groups are their indices in [`crate::Trace::threads`].
    Threads,
    /// Rows of threads, each in groups of sites: a group is its row's number times
    /// `groups`, plus the site's.
    Rows {
        /// The row of each thread of [`crate::Trace::threads`]; what is not below `rows` is
        /// left out.
        of_thread: &'a [u32],
        /// How many rows there are.
        rows: u32,
        /// The group of each site; what is not below `groups` is left out.
        of_site: &'a [u16],
        /// How many groups there are.
        groups: u16,
    },
    /// Groups of sites.
    Groups {
        /// The group of each site; what is not below `groups` is left out.
        of_site: &'a [u16],
        /// How many groups there are.
        groups: u16,
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
    /// Samples in slices without single samples on which an edge of a column falls: each
    /// group of such a slice counts as if it were spread evenly over its time.
    pub spread: u64,
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
    /// Counts what `filter` takes, too; `None` when `stop` was wished before it was done.
    #[must_use]
    pub fn of(profile: &Profile, what: &ColumnsOf, filter: &Filter, stop: &Stop) -> Option<Self> {
        let slices = &profile.slices;
        let samples = &profile.trace.samples;
        let selection = Selection::new(profile, filter);
        let group_of_spot: Option<Vec<u16>> = match what.by {
            By::Threads => None,
            By::Groups { of_site, groups }
            | By::Rows {
                of_site, groups, ..
            } => Some({
                let of_spot = |(spot, id): (&super::Spot, u32)| {
                    let group = of_site.get(spot.site as usize).copied();
                    let group = group.filter(|_| selection.takes_spot(id));
                    group.unwrap_or(groups).min(groups)
                };
                slices.spots.iter().zip(0..).map(of_spot).collect()
            }),
        };
        let groups = match what.by {
            By::Threads => profile.trace.threads.len(),
            By::Groups { groups, .. } => usize::from(groups),
            By::Rows { rows, groups, .. } => (rows as usize).saturating_mul(usize::from(groups)),
        };
        let grouping = Grouping {
            by: what.by,
            selection: &selection,
            of_spot: group_of_spot,
            groups,
        };
        let mut columns = Columns {
            groups,
            samples: Vec::with_capacity(groups.saturating_mul(what.columns)),
            spread: 0,
        };
        let taken = &selection.range;
        let mut cut: Vec<&Slice> = Vec::new();
        // Up to which sample and from which on: between the two, an edge cuts a slice.
        let mut at = |column| {
            let edge = slices.edge(samples, what.edge(column));
            let whole = edge
                .decided
                .and_then(|(first, _)| slices.smallest_at(first));
            cut.extend(whole);
            let (to, from) = whole.map_or((edge.index, edge.index), |cut| (cut.first, cut.end));
            (
                to.clamp(taken.start, taken.end),
                from.clamp(taken.start, taken.end),
            )
        };
        let (_, mut from) = at(0);
        for column in 0..what.columns {
            let (to, next) = at(column + 1);
            // One more, for what is in no group.
            let mut counts = vec![0u64; groups + 1];
            slices.pieces(from..to.max(from), &mut |piece| {
                match piece {
                    Piece::Slice(slice, _) => grouping.add(slice, &mut counts),
                    Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                        if selection.takes_thread(thread) && selection.takes_spot(spot) {
                            grouping.put(thread, spot, 1, &mut counts);
                        }
                    }),
                }
                (!stop.is_stopped()).then_some(())
            })?;
            columns.samples.extend(counts.iter().take(groups));
            from = next.max(from);
        }
        // Several edges may cut one.
        cut.dedup_by_key(|slice| slice.first);
        for slice in cut {
            if taken.start <= slice.first && slice.end <= taken.end {
                let mut counts = vec![0u64; groups + 1];
                grouping.add(slice, &mut counts);
                columns.spread(what, slice, &counts);
            }
        }
        Some(columns)
    }

    /// Adds the groups of a slice of which only sums are known, as if each were spread evenly
    /// over its time.
    fn spread(&mut self, what: &ColumnsOf, slice: &Slice, counts: &[u64]) {
        self.spread += slice.samples();
        let span = u128::from(slice.to.since(slice.from).0) + 1;
        // How many of `count` are before a time, to the nearest.
        let before = |time: TimeNs, count: u64| {
            let part = u128::from(time.since(slice.from).0).min(span);
            u64::try_from((u128::from(count) * part * 2 + span) / (span * 2)).unwrap_or(count)
        };
        for column in 0..what.columns {
            let (from, to) = (what.edge(column), what.edge(column + 1));
            if to <= slice.from || from > slice.to {
                continue;
            }
            let first = column.saturating_mul(self.groups);
            let slots = self.samples.iter_mut().skip(first).take(self.groups);
            for (slot, &count) in slots.zip(counts) {
                *slot += before(to, count) - before(from, count);
            }
        }
    }

    /// The groups of a column; empty where there is no such column.
    #[must_use]
    pub fn column(&self, column: usize) -> &[u64] {
        let from = column.saturating_mul(self.groups);
        let to = from.saturating_add(self.groups);
        self.samples.get(from..to).unwrap_or_default()
    }
}

/// Which group a sample counts in.
struct Grouping<'a> {
    by: By<'a>,
    selection: &'a Selection,
    /// The group of each spot; `None` where threads are the groups.
    of_spot: Option<Vec<u16>>,
    groups: usize,
}

impl Grouping<'_> {
    /// The first group of a thread's row; `None` where it is in no row.
    fn first(&self, thread: u32) -> Option<usize> {
        match self.by {
            By::Threads | By::Groups { .. } => Some(0),
            By::Rows {
                of_thread,
                rows,
                groups,
                ..
            } => {
                let row = of_thread.get(thread as usize).copied();
                row.filter(|&row| row < rows)
                    .map(|row| row as usize * usize::from(groups))
            }
        }
    }

    /// Counts samples of a thread at a spot; what is in no group, behind all groups.
    fn put(&self, thread: u32, spot: u32, count: u32, counts: &mut [u64]) {
        let groups_of_row = match self.by {
            By::Threads => self.groups,
            By::Groups { groups, .. } | By::Rows { groups, .. } => usize::from(groups),
        };
        let group = match &self.of_spot {
            Some(groups) => groups.get(spot as usize).map(|&group| usize::from(group)),
            None => Some(thread as usize),
        };
        let group = group.filter(|&group| group < groups_of_row);
        let group = group.and_then(|group| Some(self.first(thread)? + group));
        if let Some(slot) = counts.get_mut(group.unwrap_or(self.groups)) {
            *slot += u64::from(count);
        }
    }

    /// Counts what is taken of a slice.
    fn add(&self, slice: &Slice, counts: &mut [u64]) {
        for (run, cells) in slice.runs() {
            if self.first(run.thread).is_none() || !self.selection.takes_thread(run.thread) {
                continue;
            }
            if self.of_spot.is_none() && self.selection.spots.is_none() {
                self.put(run.thread, 0, run.samples, counts);
                continue;
            }
            self.selection.each_cell(cells, |cell| {
                self.put(run.thread, cell.spot, cell.count, counts);
            });
        }
    }
}
