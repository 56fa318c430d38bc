//! Tree-table widget of every view. A view's data implements [`Rows`]: columns, rows, one value per
//! cell. Screen text, sort key and exported cell derive from that value. [`DataTable`] is the
//! widget's state: order, expanded rows, selection, search. It formats visible rows only: some
//! lists have 100,000 rows.

mod drawn;
mod input;
mod rows;
#[cfg(test)]
mod tests;

use super::list::ListState;
use super::search::{Search, next_match};
use crate::present::document::{Column as Exported, Table, each};
use crate::tui::keys::Command;
use crate::tui::views::Find;
use drawn::fitted;
pub use drawn::{above_footer, footer};
pub use input::Clicked;
use ratatui::layout::Rect;
pub use rows::{Column, Piece, Room, Rows, RowsOf, Sort, SortKey};
use rustc_hash::FxHashSet;
use std::hash::Hash;
use vmscope_symbolizer::Stop;

/// Minimum share of all samples that makes a row hot.
pub const HOT: f64 = 0.01;

/// A row outside collapsed rows.
#[derive(Clone, Copy, Debug)]
struct Visible<Row> {
    row: Row,
    depth: usize,
    /// Expanded or collapsed; `None` for a row without children.
    open: Option<bool>,
}

/// State of a table.
#[derive(Clone, Debug)]
pub struct DataTable<Row, Key> {
    /// Sort column, and whether the order is reversed; `None` for the initial order.
    sort: Option<(usize, bool)>,
    /// Rows expanded against [`Rows::is_open_at_first`], or collapsed against it.
    turned: FxHashSet<Key>,
    rows: Vec<Visible<Row>>,
    list: ListState,
    /// Keys of the row that the user selected and of its ancestors, innermost first. After new data
    /// the first key still present is selected.
    chosen: Vec<Key>,
    search: Search<Option<Key>>,
}

impl<Row, Key> Default for DataTable<Row, Key> {
    fn default() -> Self {
        DataTable {
            sort: None,
            turned: FxHashSet::default(),
            rows: Vec::new(),
            list: ListState::default(),
            chosen: Vec::new(),
            search: Search::default(),
        }
    }
}

impl<Row: Copy, Key: Clone + Eq + Hash> DataTable<Row, Key> {
    /// Number of rows that fit an area: its lines without the heading.
    pub fn height(area: Rect) -> usize {
        usize::from(area.height.saturating_sub(1))
    }

    /// Whether the table has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The selected row.
    pub fn selected(&self) -> Option<Row> {
        let at = self.list.selected().min(self.rows.len().saturating_sub(1));
        self.rows.get(at).map(|row| row.row)
    }

    /// Whether a row is expanded.
    pub fn is_expanded(&self, data: &impl RowsOf<Row, Key>, row: Row) -> bool {
        data.can_open(row) && self.is_open(data, row)
    }

    /// Position of a column on a screen: distance from the left, width. `None` for a column left
    /// out.
    pub fn place_of(
        data: &impl RowsOf<Row, Key>,
        column: usize,
        width: u16,
    ) -> Option<(usize, usize)> {
        let mut on = fitted(data, width).into_iter();
        let found = on.find(|(at, ..)| *at == column);
        found.map(|(_, from, width)| (from, width))
    }

    /// Rows on the screen.
    pub fn on_screen(&self, height: usize) -> impl Iterator<Item = Row> {
        let top = self.list.top(self.rows.len(), height);
        self.rows.iter().skip(top).take(height).map(|row| row.row)
    }

    /// Rows outside collapsed rows.
    pub fn visible(&self) -> impl ExactSizeIterator<Item = Row> {
        self.rows.iter().map(|row| row.row)
    }

    /// Sort column, and whether the order is reversed. Columns that new data can't be sorted by
    /// give way to the initial order.
    pub fn sorted(&self, data: &impl RowsOf<Row, Key>) -> (usize, bool) {
        let chosen = self.sort.filter(|(column, _)| {
            let columns = data.columns(u16::MAX);
            (columns.get(*column)).is_some_and(|column| column.sort != Sort::No)
        });
        let first = || (data.sorts().first().copied().unwrap_or(0), false);
        chosen.unwrap_or_else(first)
    }

    /// Breadcrumb text for the order; empty for the initial order.
    pub fn crumb(&self, data: &impl RowsOf<Row, Key>) -> String {
        let (column, reversed) = self.sorted(data);
        if !reversed && data.sorts().first() == Some(&column) {
            return String::new();
        }
        let columns = data.columns(u16::MAX);
        let name = columns.get(column).map_or("", |column| &column.name);
        let reversed = if reversed { ", reversed" } else { "" };
        format!("sorted by {name}{reversed}")
    }

    /// Sorts new data, or the same data in a new order; the selection stays.
    pub fn arrange(&mut self, data: &impl RowsOf<Row, Key>, height: usize) {
        let mut rows = Vec::new();
        self.walk(data, |row| self.is_open(data, row), |row| rows.push(row));
        self.rows = rows;
        let mut chosen = self.chosen.iter();
        let at = chosen.find_map(|key| place_of(&self.rows, data, key));
        self.list.keep(at, self.rows.len(), height);
    }

    /// All rows in table order, with children of collapsed rows.
    pub fn all(&self, data: &impl RowsOf<Row, Key>) -> Vec<Row> {
        let mut rows = Vec::new();
        self.walk(data, |_| true, |row| rows.push(row.row));
        rows
    }

    fn is_open(&self, data: &impl RowsOf<Row, Key>, row: Row) -> bool {
        let is_turned = !self.turned.is_empty() && self.turned.contains(&data.key(row));
        data.is_open_at_first(row) != is_turned
    }

    /// Visits rows in table order.
    fn walk(
        &self,
        data: &impl RowsOf<Row, Key>,
        is_open: impl Fn(Row) -> bool,
        mut put: impl FnMut(Visible<Row>),
    ) {
        let mut levels = vec![self.ordered(data, None).into_iter()];
        while let Some(level) = levels.last_mut() {
            let Some(row) = level.next() else {
                levels.pop();
                continue;
            };
            let open = data.can_open(row).then(|| is_open(row));
            let inner = (open == Some(true)).then(|| self.ordered(data, Some(row)));
            // Lazy data learns about missing children when they are asked for.
            let open = open.filter(|_| data.can_open(row));
            let depth = levels.len() - 1;
            put(Visible { row, depth, open });
            levels.extend(inner.map(Vec::into_iter));
        }
    }

    /// Children of a row, sorted.
    fn ordered(&self, data: &impl RowsOf<Row, Key>, parent: Option<Row>) -> Vec<Row> {
        let rows = data.children(parent);
        if parent.is_some_and(|parent| data.keeps_order(parent)) {
            return rows;
        }
        let (column, reversed) = self.sorted(data);
        let columns = data.columns(u16::MAX);
        let sort = columns.get(column).map_or(Sort::No, |column| column.sort);
        if sort == Sort::No {
            return rows;
        }
        let falls = (sort == Sort::Down) != reversed;
        let numbers = rows.iter().map(|row| match data.sort_key(*row, column) {
            SortKey::Number(number) => Some(number),
            SortKey::Text(_) => None,
        });
        if let Some(numbers) = numbers.collect::<Option<Vec<u64>>>() {
            // A hundred thousand rows: small keys, and the index keeps ties in order.
            let numbers = numbers.into_iter();
            let keys = numbers.map(|number| if falls { !number } else { number });
            let mut order: Vec<(u64, u32)> = keys.zip(0..).collect();
            order.sort_unstable();
            return order.into_iter().map(|(_, at)| rows[at as usize]).collect();
        }
        let keyed = rows
            .into_iter()
            .map(|row| (data.sort_key(row, column), row));
        let mut keyed: Vec<(SortKey, Row)> = keyed.collect();
        // The sort is stable: equal rows keep the data's order.
        if !falls {
            keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        } else {
            keyed.sort_by(|(a, _), (b, _)| b.cmp(a));
        }
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    fn select(&mut self, data: &impl RowsOf<Row, Key>, at: usize, height: usize) {
        self.list.select(at, self.rows.len(), height);
        self.note_chosen(data);
    }

    fn note_chosen(&mut self, data: &impl RowsOf<Row, Key>) {
        let at = self.list.selected().min(self.rows.len().saturating_sub(1));
        let up_to = self.rows.get(..=at).unwrap_or_default();
        let mut depth = usize::MAX;
        let around = up_to.iter().rev().filter(|row| {
            let is_around = row.depth < depth;
            depth = depth.min(row.depth);
            is_around
        });
        self.chosen = around.map(|row| data.key(row.row)).collect();
    }

    /// Expands all rows of a path except the last, and selects the last.
    pub fn reveal(&mut self, data: &impl RowsOf<Row, Key>, path: &[Row], height: usize) {
        if let Some((last, around)) = path.split_last() {
            around.iter().for_each(|row| self.turn(data, *row, true));
            self.chosen = vec![data.key(*last)];
            self.arrange(data, height);
            self.note_chosen(data);
        }
    }

    /// Selects a visible row by key.
    pub fn select_key(&mut self, data: &impl RowsOf<Row, Key>, key: &Key, height: usize) {
        if let Some(at) = place_of(&self.rows, data, key) {
            self.select(data, at, height);
        }
    }

    /// Key of the row that the user selected.
    pub fn chosen(&self) -> Option<&Key> {
        self.chosen.first()
    }

    /// Selects a row by key, once the data contains it.
    pub fn expect(&mut self, key: Key) {
        self.chosen = vec![key];
    }

    /// Sorts by a column.
    pub fn sort_by(
        &mut self,
        data: &impl RowsOf<Row, Key>,
        (column, reversed): (usize, bool),
        height: usize,
    ) {
        self.sort = Some((column, reversed));
        self.arrange(data, height);
    }

    /// Executes a table command: move, sort, expand, collapse, next hot row. Returns `false` for
    /// other commands.
    pub fn act(&mut self, command: Command, data: &impl RowsOf<Row, Key>, height: usize) -> bool {
        if self.list.act(command, self.rows.len(), height) {
            self.note_chosen(data);
            self.search.forget_origin();
            return true;
        }
        let (column, reversed) = self.sorted(data);
        match command {
            Command::Sort => {
                let sorts = data.sorts();
                let at = sorts.iter().position(|other| *other == column);
                let next = at.map_or(0, |at| (at + 1) % sorts.len());
                if let Some(&next) = sorts.get(next) {
                    self.sort_by(data, (next, false), height);
                }
            }
            Command::Reverse => self.sort_by(data, (column, !reversed), height),
            Command::Left => self.close(data, height),
            Command::Right => self.open(data, height),
            Command::NextHot => self.select_hot(data, Find::Next, height),
            Command::PreviousHot => self.select_hot(data, Find::Previous, height),
            _ => return false,
        }
        true
    }

    /// Expands or collapses the selected row; returns `false` for a row without children.
    pub fn toggle(&mut self, data: &impl RowsOf<Row, Key>, height: usize) -> bool {
        let open = self.selected_visible().and_then(|row| row.open);
        if let Some(open) = open {
            self.set_open(data, !open, height);
        }
        open.is_some()
    }

    fn selected_visible(&self) -> Option<Visible<Row>> {
        let at = self.list.selected().min(self.rows.len().saturating_sub(1));
        self.rows.get(at).copied()
    }

    fn set_open(&mut self, data: &impl RowsOf<Row, Key>, open: bool, height: usize) {
        let Some(row) = self.selected_visible() else {
            return;
        };
        if row.open == Some(!open) {
            self.note_chosen(data);
            self.turn(data, row.row, open);
            self.arrange(data, height);
        }
    }

    fn turn(&mut self, data: &impl RowsOf<Row, Key>, row: Row, open: bool) {
        let key = data.key(row);
        if open == data.is_open_at_first(row) {
            self.turned.remove(&key);
        } else {
            self.turned.insert(key);
        }
    }

    /// Expands the selected row; moves into an expanded row.
    fn open(&mut self, data: &impl RowsOf<Row, Key>, height: usize) {
        match self.selected_visible().and_then(|row| row.open) {
            Some(true) => self.select(data, self.list.selected() + 1, height),
            _ => self.set_open(data, true, height),
        }
    }

    /// Collapses the selected row; moves from a collapsed row to its parent.
    fn close(&mut self, data: &impl RowsOf<Row, Key>, height: usize) {
        let Some(row) = self.selected_visible() else {
            return;
        };
        if row.open == Some(true) {
            return self.set_open(data, false, height);
        }
        let at = self.list.selected().min(self.rows.len() - 1);
        let before = self.rows.iter().take(at);
        if let Some(parent) = before.rev().position(|other| other.depth < row.depth) {
            self.select(data, at - 1 - parent, height);
        }
    }

    /// Expands rows with at least `share` ([`Rows::share`]) and collapses all others; `None`
    /// collapses every row.
    pub fn set_all(&mut self, data: &impl RowsOf<Row, Key>, share: Option<f64>, height: usize) {
        if self.chosen.is_empty() {
            self.note_chosen(data);
        }
        self.turned.clear();
        let mut turned = FxHashSet::default();
        let opens = |row: Row| share.is_some_and(|share| data.share(row) >= share);
        self.walk(data, opens, |row| {
            if row
                .open
                .is_some_and(|open| open != data.is_open_at_first(row.row))
            {
                turned.insert(data.key(row.row));
            }
        });
        self.turned = turned;
        self.arrange(data, height);
    }

    fn select_hot(&mut self, data: &impl RowsOf<Row, Key>, find: Find, height: usize) {
        let now = self.list.selected().min(self.rows.len().saturating_sub(1));
        let is_hot = |at: usize| {
            let row = self.rows.get(at);
            row.is_some_and(|row| data.share(row.row) >= HOT)
        };
        if let Some(at) = next_match(self.rows.len(), now, now, find, is_hot) {
            self.select(data, at, height);
        }
    }

    /// Table of rows for copying and exporting; `None` after a stop.
    pub fn export(
        data: &impl RowsOf<Row, Key>,
        rows: impl ExactSizeIterator<Item = Row>,
        stop: &Stop,
    ) -> Option<Table> {
        let columns = data.columns(u16::MAX);
        let exported = columns.iter().enumerate();
        let exported = exported.filter(|(_, column)| !column.name.is_empty());
        let exported: Vec<(usize, &Column)> = exported.collect();
        let names = exported.iter().map(|(_, column)| Exported {
            name: column.name.clone().into_owned(),
            right: column.right,
        });
        let mut table = Table {
            columns: names.collect(),
            ..Table::default()
        };
        each(rows, stop, |row| {
            let cells = exported.iter().map(|(at, _)| data.value(row, *at));
            table.rows.push(cells.collect());
        })?;
        Some(table)
    }
}

fn place_of<D: Rows>(rows: &[Visible<D::Row>], data: &D, key: &D::Key) -> Option<usize> {
    rows.iter().position(|row| data.key(row.row) == *key)
}
