//! Samples over time: by region, and by thread.

use super::by_region::GROUPS;
use super::time_grid::Grid;
use vmscope_symbolizer::summary::promised_by_column;
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Stop};

/// So many counts by thread are made together with those of all; where there are more, only
/// of the threads that are on the screen.
const MOST_COUNTS: usize = 1 << 19;

/// Samples by column and region.
#[derive(Debug)]
pub struct Activity {
    /// The columns.
    pub grid: Grid,
    /// By region.
    pub columns: Columns,
    /// By thread and region, unless there are too many threads.
    of_threads: Option<Columns>,
    /// Samples promised by the threads' CPU time, where known.
    pub promised: Option<Vec<f64>>,
}

/// The same of some threads.
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
    /// Whether that of a profile has each thread's.
    pub fn has_threads(profile: &Profile, grid: Grid) -> bool {
        let counts = profile.trace.threads.len().checked_mul(GROUPS);
        let counts = counts.and_then(|counts| counts.checked_mul(grid.columns));
        counts.is_some_and(|counts| counts <= MOST_COUNTS)
    }

    /// Counts.
    pub fn of(profile: &Profile, grid: Grid, filter: &Filter, stop: &Stop) -> Option<Self> {
        let (columns, of_threads) = if Self::has_threads(profile, grid) {
            let all: Vec<u32> = (0..).take(profile.trace.threads.len()).collect();
            let of_threads = by_rows(profile, grid, (&all, all.len()), filter, stop)?;
            (of_threads.summed(GROUPS), Some(of_threads))
        } else {
            let columns = Columns::of(profile, &grid.by(By::Regions), filter, stop)?;
            (columns, None)
        };
        let promised = promised_by_column(profile, filter, &grid.edges(), stop);
        Some(Activity {
            grid,
            columns,
            of_threads,
            promised,
        })
    }

    /// The regions of a thread in a column of `grid`; `None` where those of all threads are
    /// not there.
    pub fn of_thread(&self, grid: &Grid, thread: u32, column: usize) -> Option<&[u64]> {
        let all = self.of_threads.as_ref()?;
        let column = grid.column_in(&self.grid, column);
        let column = column.map_or(&[][..], |column| all.column(column));
        Some(row(column, thread as usize))
    }
}

/// A row's regions in a column of several rows.
fn row(column: &[u64], row: usize) -> &[u64] {
    let regions = row
        .checked_mul(GROUPS)
        .and_then(|first| column.get(first..));
    let regions = regions.and_then(|regions| regions.get(..GROUPS));
    regions.unwrap_or_default()
}

/// Counts by row and region; `of_thread`: the row of each thread, and how many rows there are.
fn by_rows(
    profile: &Profile,
    grid: Grid,
    (of_thread, rows): (&[u32], usize),
    filter: &Filter,
    stop: &Stop,
) -> Option<Columns> {
    let rows = u32::try_from(rows).unwrap_or(u32::MAX);
    let by = By::Rows { of_thread, rows };
    Columns::of(profile, &grid.by(by), filter, stop)
}

impl Grid {
    fn by(self, by: By<'_>) -> ColumnsOf<'_> {
        ColumnsOf {
            window: (self.from, self.to),
            columns: self.columns,
            by,
        }
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
        let rows = (&of_thread[..], threads.len());
        let columns = by_rows(profile, grid, rows, filter, stop)?;
        Some(Rows {
            grid,
            threads,
            columns,
        })
    }

    /// The regions of a thread in a column of `grid`.
    pub fn at(&self, grid: &Grid, thread: u32, column: usize) -> &[u64] {
        let at = self.threads.iter().position(|one| *one == thread);
        let counts = at.and_then(|at| {
            let column = grid.column_in(&self.grid, column)?;
            Some(row(self.columns.column(column), at))
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
        let counts = Columns::total(profile, By::Threads, &filter.of_all_threads(), stop)?;
        let is_in = |thread: u32| filter.takes_thread(thread);
        let threads = (0u32..).zip(counts);
        let mut threads: Vec<(u32, u64)> = threads.filter(|(_, samples)| *samples > 0).collect();
        threads
            .sort_by_key(|&(thread, samples)| (!is_in(thread), std::cmp::Reverse(samples), thread));
        let included = threads.partition_point(|&(thread, _)| is_in(thread));
        Some(Listed { threads, included })
    }
}
