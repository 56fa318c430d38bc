//! Search, mouse and palette lines of a table.

use super::drawn::fitted;
use super::{DataTable, Rows, RowsOf, Sort, place_of};
use crate::tui::views::{Choice, Click, Find, Press};
use crate::tui::widgets::search::{Finder, next_match};
use ratatui::layout::Rect;
use std::hash::Hash;

/// Effect of a click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clicked {
    /// No row was selected.
    Nothing,
    /// A row was selected.
    Row {
        /// Column index; `None` beside all columns.
        column: Option<usize>,
        /// Double click.
        twice: bool,
    },
}

impl<Row: Copy, Key: Clone + Eq + Hash> DataTable<Row, Key> {
    /// Searches all rows and expands ancestors of the match. Returns `false` without a match; an
    /// empty pattern ends the search, [`Find::Restore`] also selects its origin.
    pub fn find(
        &mut self,
        pattern: &str,
        find: Find,
        data: &impl RowsOf<Row, Key>,
        height: usize,
    ) -> bool {
        let count = self.rows.len();
        let now = self.list.selected().min(count.saturating_sub(1));
        if find == Find::Restore {
            let origin = self.search.cancel().flatten();
            if let Some(at) = origin.and_then(|key| place_of(&self.rows, data, &key)) {
                self.select(data, at, height);
            }
            return true;
        }
        let here = self.selected().map(|row| data.key(row));
        let Some((origin, finder)) = self.search.begin(pattern, here) else {
            return true;
        };
        let origin = origin.and_then(|key| place_of(&self.rows, data, &key));
        let origin = origin.unwrap_or(now);
        let mut path = Vec::new();
        let found = next_match(count, origin, now, find, |at| {
            path.clear();
            self.rows.get(at).is_some_and(|row| {
                let is_closed = row.open == Some(false);
                data.fits(row.row, finder)
                    || (is_closed && hidden(data, row.row, finder, &mut path))
            })
        });
        let Some(at) = found else {
            return false;
        };
        self.select(data, at, height);
        // `path` runs from the match up to the collapsed row.
        if !path.is_empty() {
            let closed = self.selected().into_iter();
            let path: Vec<Row> = closed.chain(path.into_iter().rev()).collect();
            self.reveal(data, &path, height);
        }
        true
    }

    /// Handles a mouse event; `area` is the table's area.
    pub fn click(&mut self, click: Click, data: &impl RowsOf<Row, Key>, area: Rect) -> Clicked {
        let height = Self::height(area);
        let x = usize::from(click.at.x.saturating_sub(area.x));
        let on = fitted(data, area.width);
        let at = on
            .iter()
            .find(|(_, from, width)| (*from..=from + width).contains(&x));
        let Some(line) = click.at.y.checked_sub(area.y + 1).map(usize::from) else {
            // The second press of a double click would reverse the order again.
            if let (Press::Down, Some((column, ..))) = (click.what, at) {
                self.click_heading(data, *column, height);
            }
            return Clicked::Nothing;
        };
        let is_press = matches!(click.what, Press::Down | Press::Double);
        if line >= height && is_press {
            return Clicked::Nothing;
        }
        let is_row = self.list.press(click.what, line, self.rows.len(), height);
        self.note_chosen(data);
        if !is_row {
            return Clicked::Nothing;
        }
        let row = self.selected_visible();
        let sign = row
            .filter(|row| row.open.is_some())
            .map(|row| data.indent() * row.depth);
        if let (Some((column, from, _)), Some(sign)) = (at, sign)
            && *column == data.tree_column()
            && (from + sign..from + sign + 2).contains(&x)
        {
            if click.what == Press::Down {
                self.toggle(data, height);
            }
            return Clicked::Nothing;
        }
        Clicked::Row {
            column: at.map(|(column, ..)| *column),
            twice: click.what == Press::Double,
        }
    }

    fn click_heading(&mut self, data: &impl RowsOf<Row, Key>, column: usize, height: usize) {
        let columns = data.columns(u16::MAX);
        let column = match columns.get(column).map(|column| column.sort) {
            Some(Sort::Like(other)) => other,
            Some(Sort::Up | Sort::Down) => column,
            Some(Sort::No) | None => return,
        };
        let (now, reversed) = self.sorted(data);
        self.sort_by(data, (column, now == column && !reversed), height);
    }

    /// Palette lines for sort columns, numbered from `first`.
    pub fn choices(data: &impl RowsOf<Row, Key>, first: u16) -> Vec<Choice> {
        let columns = data.columns(u16::MAX);
        let sorts = data.sorts().into_iter().zip(first..);
        let lines = sorts.map(|(at, number)| Choice {
            text: format!(
                "sort by {}",
                columns.get(at).map_or("", |column| &column.name)
            ),
            number,
        });
        lines.collect()
    }

    /// Executes a palette line, given by index in [`DataTable::choices`].
    pub fn choose(&mut self, data: &impl RowsOf<Row, Key>, line: u16, height: usize) {
        if let Some(&column) = data.sorts().get(usize::from(line)) {
            self.sort_by(data, (column, false), height);
        }
    }
}

/// Searches below a collapsed row; `path` receives the match and its ancestors, innermost first.
fn hidden<D: Rows>(data: &D, row: D::Row, text: &mut Finder, path: &mut Vec<D::Row>) -> bool {
    for inner in data.searched(row) {
        if data.fits(inner, text) {
            path.push(inner);
            return true;
        }
        if data.can_open(inner) && hidden(data, inner, text, path) {
            path.push(inner);
            return true;
        }
    }
    false
}
