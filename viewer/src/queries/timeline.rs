//! Samples over time, by region and by thread.

use super::by_region::GROUPS;
use super::time_grid::Grid;
use vmscope_symbolizer::summary::promised_by_column;
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Id, IndexVec, Profile, Stop, ThreadId};

/// Maximum number of counts by thread for all threads; above it, only visible threads are counted.
const MOST_COUNTS: usize = 1 << 19;

/// Samples by column and region.
#[derive(Debug)]
pub struct Activity {
    /// Columns of time.
    pub grid: Grid,
    /// Samples by region.
    pub columns: Columns,
    /// Samples by thread and region; `None` with too many threads.
    of_threads: Option<Columns>,
    /// Promised samples by column; `None` without CPU times.
    pub promised: Option<Vec<f64>>,
}

/// Samples of some threads by column and region.
#[derive(Debug)]
pub struct Rows {
    /// Columns of time.
    pub grid: Grid,
    pub threads: Vec<ThreadId>,
    /// Samples by thread and region.
    pub columns: Columns,
}

impl Activity {
    /// Whether an [`Activity`] of this size counts every thread.
    pub fn has_threads(profile: &Profile, grid: Grid) -> bool {
        let counts = profile.trace.threads.len().checked_mul(GROUPS);
        let counts = counts.and_then(|counts| counts.checked_mul(grid.columns));
        counts.is_some_and(|counts| counts <= MOST_COUNTS)
    }

    /// Counts samples; `None` after a stop.
    pub fn of(profile: &Profile, grid: Grid, filter: &Filter, stop: &Stop) -> Option<Self> {
        let (columns, of_threads) = if Self::has_threads(profile, grid) {
            let all = profile.trace.threads.map(|thread, _| thread.number());
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

    /// Samples by region of a thread in a column of `grid`; `None` without counts by thread.
    pub fn of_thread(&self, grid: &Grid, thread: ThreadId, column: usize) -> Option<&[u64]> {
        let all = self.of_threads.as_ref()?;
        let column = grid.column_in(&self.grid, column);
        let column = column.map_or(&[][..], |column| all.column(column));
        Some(row(column, thread.index()))
    }
}

/// Samples by region of one row in a column.
fn row(column: &[u64], row: usize) -> &[u64] {
    let regions = row
        .checked_mul(GROUPS)
        .and_then(|first| column.get(first..));
    let regions = regions.and_then(|regions| regions.get(..GROUPS));
    regions.unwrap_or_default()
}

/// Counts by row and region; `of_thread` holds each thread's row, `rows` their number.
fn by_rows(
    profile: &Profile,
    grid: Grid,
    (of_thread, rows): (&IndexVec<ThreadId, u32>, usize),
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
    /// Counts samples; `None` after a stop.
    pub fn of(
        profile: &Profile,
        grid: Grid,
        threads: Vec<ThreadId>,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Self> {
        let mut of_thread = profile.trace.threads.with_each(u32::MAX);
        for (&thread, row) in threads.iter().zip(0..) {
            of_thread[thread] = row;
        }
        let rows = (&of_thread, threads.len());
        let columns = by_rows(profile, grid, rows, filter, stop)?;
        Some(Rows {
            grid,
            threads,
            columns,
        })
    }

    /// Samples by region of a thread in a column of `grid`.
    pub fn at(&self, grid: &Grid, thread: ThreadId, column: usize) -> &[u64] {
        let at = self.threads.iter().position(|one| *one == thread);
        let counts = at.and_then(|at| {
            let column = grid.column_in(&self.grid, column)?;
            Some(row(self.columns.column(column), at))
        });
        counts.unwrap_or_default()
    }
}

/// Threads with samples, included threads first, busiest first.
#[derive(Debug, Default)]
pub struct Listed {
    /// Threads with samples over the whole recording.
    pub threads: Vec<(ThreadId, u64)>,
    /// Number of included threads.
    pub included: usize,
}

impl Listed {
    /// Lists threads; `None` after a stop. The filter's window bounds the end of counting only.
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        let counts = Columns::total(profile, By::Threads, &filter.of_all_threads(), stop)?;
        let is_in = |thread: ThreadId| filter.takes_thread(thread);
        let threads = profile.trace.threads.ids().zip(counts);
        let mut threads: Vec<(ThreadId, u64)> =
            threads.filter(|(_, samples)| *samples > 0).collect();
        threads
            .sort_by_key(|&(thread, samples)| (!is_in(thread), std::cmp::Reverse(samples), thread));
        let included = threads.partition_point(|&(thread, _)| is_in(thread));
        Some(Listed { threads, included })
    }
}
