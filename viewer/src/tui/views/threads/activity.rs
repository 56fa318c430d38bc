//! How busy the threads on the screen were over time.

use super::page::Key;
use crate::queries::by_region::{self, GROUPS};
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Piece, Room};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Stop};

/// What the activity of some rows was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The rows on the screen, each with its threads; none for expanded groups.
    pub rows: Vec<(Key, Arc<[u32]>)>,
    pub columns: usize,
    pub window: (TimeNs, TimeNs),
    pub everybody: Filter,
}

impl Asked {
    /// Counts samples by row, region and column of time.
    pub fn count(&self, profile: &Profile, stop: &Stop) -> Option<Columns> {
        let mut of_thread = vec![u32::MAX; profile.trace.threads.len()];
        for ((_, threads), row) in self.rows.iter().zip(0u32..) {
            for &thread in threads.iter() {
                of_thread[thread as usize] = row;
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

/// The activity of the rows on the screen.
#[derive(Clone, Copy, Debug)]
pub struct Activity<'a> {
    asked: &'a Asked,
    columns: &'a Columns,
    period_ns: u64,
    /// The share of its time that the busiest row ran in its busiest column; 1 where none ran.
    pub busiest: f64,
}

impl<'a> Activity<'a> {
    /// Of an answer.
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

    /// The share of a column's time that a row of so many threads ran, and its samples there.
    fn share(&self, row: usize, column: usize, threads: usize) -> (f64, &'a [u64]) {
        let (from, to) = self.asked.window;
        let column_ns = (to.since(from).0 / self.asked.columns.max(1) as u64).max(1);
        // A collapsed group is full when all of its threads run.
        let column_ns = column_ns.saturating_mul(threads.max(1) as u64);
        let counts = &self.columns.column(column)[row * GROUPS..][..GROUPS];
        let samples = counts.iter().sum();
        (
            by_region::activity(samples, self.period_ns, column_ns),
            counts,
        )
    }

    /// A row's cells, against the busiest.
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
