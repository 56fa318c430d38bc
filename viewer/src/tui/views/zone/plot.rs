//! State of the plot: selection, included ranges, zoom.

mod act;
mod shown;

use super::ranges::Table;
use crate::queries::address_columns::{Columns, Wanted};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::jobs::Fetched;
use crate::tui::views::Act;
use crate::tui::widgets::search::Search;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::addresses::{Owner, Stretch};

/// All addresses.
const ALL: (u64, u64) = (0, u64::MAX);

#[derive(Clone, Debug)]
pub struct Plot {
    left_out: Vec<Owner>,
    range: (u64, u64),
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
    /// Address of the cursor's column; `None` for the hottest column.
    at: Option<u64>,
    /// Start address of a selection.
    mark: Option<u64>,
    dragged: bool,
    search: Search,
    /// Selected stretch of the list; `None` for the cursor's stretch.
    listed: Option<Owner>,
    /// Order of the list.
    pub(super) table: Table,
    pub(super) fetched: Fetched<Wanted, (ZoneSamples, Columns)>,
}

impl Default for Plot {
    fn default() -> Self {
        Plot {
            left_out: Vec::new(),
            range: ALL,
            before: Vec::new(),
            after: Vec::new(),
            at: None,
            mark: None,
            dragged: false,
            search: Search::default(),
            listed: None,
            table: Table::default(),
            fetched: Fetched::default(),
        }
    }
}

impl Plot {
    /// Columns of the newest answer.
    pub fn columns(&self) -> Option<&Columns> {
        self.fetched.get().map(|(_, columns)| columns)
    }

    /// The cursor's column.
    pub fn cursor(&self) -> Option<usize> {
        let columns = self.columns()?;
        let at = self.at.and_then(|at| columns.column_of(at));
        at.or_else(|| columns.hottest())
    }

    /// First and last selected column.
    pub fn selection(&self) -> Option<(usize, usize)> {
        let columns = self.columns()?;
        let (mark, cursor) = (columns.column_of(self.mark?)?, self.cursor()?);
        Some((mark.min(cursor), mark.max(cursor)))
    }

    pub fn includes(&self, owner: Owner) -> bool {
        !self.left_out.contains(&owner)
    }

    pub fn is_zoomed(&self) -> bool {
        self.range != ALL
    }

    /// Index of the stretch selected in the list.
    pub fn listed(&self, ground: &ZoneSamples) -> Option<usize> {
        let stretches = &ground.addresses.stretches;
        let listed = self.listed.and_then(|owner| {
            let is_it = |stretch: &Stretch| stretch.owner == owner;
            stretches.iter().position(is_it)
        });
        listed.or_else(|| {
            let columns = self.columns()?;
            let bar = columns.bars.get(self.cursor()?)?.as_ref()?;
            columns.pieces.get(bar.piece).map(|piece| piece.stretch)
        })
    }

    /// Hottest entry in the cursor's column.
    fn entry(&self) -> Option<EntryId> {
        let bar = self.columns()?.bars.get(self.cursor()?)?.as_ref()?;
        bar.top.map(|(entry, _)| entry)
    }

    fn go_to(&mut self, column: usize) {
        let bar = self
            .columns()
            .and_then(|columns| columns.bars.get(column)?.as_ref());
        if let Some(start) = bar.map(|bar| bar.start) {
            self.at = Some(start);
            self.listed = None;
        }
    }

    /// Moves to the nearest column with a bar that `fits` accepts.
    fn step(&mut self, back: bool, fits: impl Fn(u64) -> bool) {
        let Some((columns, now)) = self.columns().zip(self.cursor()) else {
            return;
        };
        let is_fit = |column: &usize| {
            let bar = columns.bars.get(*column).and_then(Option::as_ref);
            bar.is_some_and(|bar| fits(bar.samples))
        };
        let found = if back {
            (0..now).rev().find(is_fit)
        } else {
            (now + 1..columns.bars.len()).find(is_fit)
        };
        if let Some(found) = found {
            self.go_to(found);
        }
    }

    fn zoom_to(&mut self, range: (u64, u64)) {
        if range != self.range && range.0 < range.1 {
            self.before.push(self.range);
            self.after.clear();
            self.range = range;
        }
        self.mark = None;
    }

    /// Address range of columns.
    fn addresses(&self, (from, to): (usize, usize)) -> Option<(u64, u64)> {
        let bars = &self.columns()?.bars;
        let mut bars = bars.get(from..=to)?.iter().flatten();
        let first = bars.next()?;
        let last = bars.last().unwrap_or(first);
        Some((first.start, last.end))
    }

    fn zoom_in(&mut self) -> Vec<Act> {
        let around = || {
            let width = self.columns()?.bars.len();
            let cursor = self.cursor()?;
            let half = (width / 8).max(1);
            let columns = self.columns()?;
            let piece = columns.bars.get(cursor)?.as_ref()?.piece;
            // First zoom to the stretch, then to parts.
            let piece = columns.pieces.get(piece)?;
            if columns.pieces.len() > 1 {
                return Some((piece.start, piece.end));
            }
            let last = piece.column + piece.width.saturating_sub(1);
            self.addresses((cursor.saturating_sub(half), (cursor + half).min(last)))
        };
        let selected = self.selection();
        let range = match selected {
            Some(selection) => self.addresses(selection),
            None => around(),
        };
        if let Some((start, end)) = range.filter(|(start, end)| start < end) {
            self.zoom_to((start, end));
            return Vec::new();
        }
        vec![Act::Say("no further zoom".to_owned())]
    }
}
