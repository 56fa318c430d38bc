//! What the timeline asks for: counts by column.

use super::grid::Grid;
use crate::tui::jobs::Stop;
use crate::tui::views::by_region::{self, GROUPS};
use vmscope_symbolizer::slices::{By, Columns, ColumnsOf, Counts};
use vmscope_symbolizer::summary::promised_by_column;
use vmscope_symbolizer::{Filter, Profile};

/// Samples by column and region.
#[derive(Debug)]
pub struct Activity {
    /// The columns.
    pub grid: Grid,
    /// By region.
    pub columns: Columns,
    /// Samples promised by the threads' CPU time, where known.
    pub promised: Option<Vec<f64>>,
}

/// The same by thread.
#[derive(Debug)]
pub struct Rows {
    /// The columns.
    pub grid: Grid,
    /// The threads.
    pub threads: Vec<u32>,
    /// By thread and region.
    pub columns: Columns,
}

impl Activity {
    /// Counts.
    pub fn of(profile: &Profile, grid: Grid, filter: &Filter, stop: &Stop) -> Option<Self> {
        let what = ColumnsOf {
            window: (grid.from, grid.to),
            columns: grid.columns,
            by: By::Groups {
                of_site: &by_region::of_sites(profile),
                groups: GROUPS,
            },
        };
        let columns = Columns::of(profile, &what, filter, stop)?;
        let promised = promised_by_column(profile, filter, &grid.edges(), stop);
        Some(Activity {
            grid,
            columns,
            promised,
        })
    }
}

impl Rows {
    /// Counts.
    pub fn of(
        profile: &Profile,
        grid: Grid,
        threads: Vec<u32>,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Self> {
        let mut of_thread = vec![u32::MAX; profile.trace.threads.len()];
        for (&thread, row) in threads.iter().zip(0..) {
            if let Some(slot) = of_thread.get_mut(thread as usize) {
                *slot = row;
            }
        }
        let what = ColumnsOf {
            window: (grid.from, grid.to),
            columns: grid.columns,
            by: By::Rows {
                of_thread: &of_thread,
                rows: u32::try_from(threads.len()).unwrap_or(0),
                of_site: &by_region::of_sites(profile),
                groups: GROUPS,
            },
        };
        let columns = Columns::of(profile, &what, filter, stop)?;
        Some(Rows {
            grid,
            threads,
            columns,
        })
    }

    /// The regions of a thread in a column of `grid`.
    pub fn at(&self, grid: &Grid, thread: u32, column: usize) -> &[u64] {
        let row = self.threads.iter().position(|one| *one == thread);
        let counts = row.and_then(|row| {
            let column = grid.column_in(&self.grid, column)?;
            let first = row * usize::from(GROUPS);
            let counts = self.columns.column(column);
            counts.get(first..first + usize::from(GROUPS))
        });
        counts.unwrap_or_default()
    }
}

/// Threads with samples, busiest first: those that the filter includes, then the others.
#[derive(Debug, Default)]
pub struct Listed {
    /// With their samples in the whole recording.
    pub threads: Vec<(u32, u64)>,
    /// How many of them are included.
    pub included: usize,
}

impl Listed {
    /// Lists them. The filter is without the window: it says only until when is counted.
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        let counts = Counts::of(profile, &filter.of_all_threads(), stop)?;
        let is_in = |thread: u32| filter.takes_thread(thread);
        let threads = (0u32..).zip(counts.threads);
        let mut threads: Vec<(u32, u64)> = threads.filter(|(_, samples)| *samples > 0).collect();
        threads
            .sort_by_key(|&(thread, samples)| (!is_in(thread), std::cmp::Reverse(samples), thread));
        let included = threads.partition_point(|&(thread, _)| is_in(thread));
        Some(Listed { threads, included })
    }
}
