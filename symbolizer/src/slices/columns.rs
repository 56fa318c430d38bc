//! Counting by equal columns of time: what charts show.

use super::{Piece, Selection, Stop};
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
    /// slice counts whole where its middle lies.
    pub decided_whole: u64,
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
        // The first group of a thread's row; `None` where it is in no row.
        let first_group = |thread: u32| match what.by {
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
        };
        let groups_of_row = match what.by {
            By::Threads => groups,
            By::Groups { groups, .. } | By::Rows { groups, .. } => usize::from(groups),
        };
        let mut columns = Columns {
            groups,
            samples: Vec::with_capacity(groups.saturating_mul(what.columns)),
            decided_whole: 0,
        };
        let mut decided = Vec::new();
        let mut at = |column| {
            let edge = slices.edge(samples, what.edge(column));
            decided.extend(edge.decided);
            edge.index.clamp(selection.range.start, selection.range.end)
        };
        let mut from = at(0);
        for column in 0..what.columns {
            let to = at(column + 1).max(from);
            // One more, for what is in no group.
            let mut counts = vec![0u64; groups + 1];
            let mut add = |thread: u32, spot: u32, count: u32| {
                let group = match &group_of_spot {
                    Some(groups) => groups.get(spot as usize).map(|&group| usize::from(group)),
                    None => Some(thread as usize),
                };
                let group = group.filter(|&group| group < groups_of_row);
                let group = group.and_then(|group| Some(first_group(thread)? + group));
                if let Some(slot) = counts.get_mut(group.unwrap_or(groups)) {
                    *slot += u64::from(count);
                }
            };
            slices.pieces(from..to, &mut |piece| {
                match piece {
                    Piece::Slice(slice, _) => {
                        for (run, cells) in slice.runs() {
                            let is_in = first_group(run.thread).is_some();
                            if !is_in || !selection.takes_thread(run.thread) {
                                continue;
                            }
                            if group_of_spot.is_none() && selection.spots.is_none() {
                                add(run.thread, 0, run.samples);
                                continue;
                            }
                            selection.each_cell(cells, |cell| {
                                add(run.thread, cell.spot, cell.count);
                            });
                        }
                    }
                    Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                        if selection.takes_thread(thread) && selection.takes_spot(spot) {
                            add(thread, spot, 1);
                        }
                    }),
                }
                (!stop.is_stopped()).then_some(())
            })?;
            columns.samples.extend(counts.iter().take(groups));
            from = to;
        }
        decided.sort_unstable();
        decided.dedup();
        columns.decided_whole = decided.into_iter().map(|(_, samples)| samples).sum();
        Some(columns)
    }

    /// The groups of a column; empty where there is no such column.
    #[must_use]
    pub fn column(&self, column: usize) -> &[u64] {
        let from = column.saturating_mul(self.groups);
        let to = from.saturating_add(self.groups);
        self.samples.get(from..to).unwrap_or_default()
    }
}
