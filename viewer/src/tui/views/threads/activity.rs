//! Activity of visible threads over time.

use super::page::Key;
use crate::queries::by_region::{self, GROUPS};
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Piece, Room};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Stop, ThreadId};

/// Question about rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Visible rows with their threads; expanded groups have no threads here.
    pub rows: Vec<(Key, Arc<[ThreadId]>)>,
    pub columns: usize,
    pub window: (TimeNs, TimeNs),
    pub everybody: Filter,
}

impl Asked {
    /// Counts samples by row, region and column of time.
    pub fn count(&self, profile: &Profile, stop: &Stop) -> Option<Columns> {
        let mut of_thread = profile.trace.threads.with_each(u32::MAX);
        for ((_, threads), row) in self.rows.iter().zip(0u32..) {
            for &thread in threads.iter() {
                of_thread[thread] = row;
            }
        }
        let what = ColumnsOf {
            window: self.window,
            columns: self.columns,
            by: By::Rows {
                of_thread: &of_thread,
                rows: u32::try_from(self.rows.len()).unwrap_or(0),
            },
        };
        Columns::of(profile, &what, &self.everybody, stop)
    }
}

/// Activity of visible rows.
#[derive(Clone, Copy, Debug)]
pub struct Activity<'a> {
    asked: &'a Asked,
    columns: &'a Columns,
    period_ns: u64,
    /// Maximum share of a column's time, the scale of all rows; 1 without activity.
    pub busiest: f64,
}

impl<'a> Activity<'a> {
    pub fn of(profile: &Profile, asked: &'a Asked, columns: &'a Columns) -> Self {
        let mut activity = Activity {
            asked,
            columns,
            period_ns: by_region::period_ns(profile),
            busiest: 1.0,
        };
        let rows = asked.rows.iter().enumerate();
        let shares = rows.flat_map(|(row, (_, threads))| {
            (0..asked.columns).map(move |column| activity.share(row, column, threads.len()).0)
        });
        let busiest = shares.fold(0.0, f64::max);
        if busiest > 0.0 {
            activity.busiest = busiest;
        }
        activity
    }

    /// Share of a column's time with activity, for a row of `threads` threads, and the column's
    /// samples by region.
    fn share(&self, row: usize, column: usize, threads: usize) -> (f64, &'a [u64]) {
        let (from, to) = self.asked.window;
        let column_ns = (to.since(from).0 / self.asked.columns.max(1) as u64).max(1);
        // A collapsed group is full if all of its threads run.
        let column_ns = column_ns.saturating_mul(threads.max(1) as u64);
        let counts = &self.columns.column(column)[row * GROUPS..][..GROUPS];
        let samples = counts.iter().sum();
        (
            by_region::activity(samples, self.period_ns, column_ns),
            counts,
        )
    }

    /// Cells of a row, scaled to the busiest row.
    pub fn cells(&self, key: &Key, threads: usize, room: &Room<'_>) -> Vec<Piece> {
        let Some(row) = self.asked.rows.iter().position(|(one, _)| one == key) else {
            return Vec::new();
        };
        let cells = (0..self.asked.columns.min(room.width)).map(|column| {
            let (share, counts) = self.share(row, column, threads);
            let role = by_region::dominant(counts).map_or(Role::Dim, Role::Region);
            Piece {
                text: room.theme.column(share / self.busiest).to_string(),
                role,
            }
        });
        cells.collect()
    }
}
