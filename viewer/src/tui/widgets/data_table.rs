//! The table of every view: flat or a tree, sorted, searched, copied and exported.
//!
//! A view's data implements [`Rows`]: its columns, its rows, and one value for each cell.
//! The text on the screen, the sort key and the exported cell derive from that value.
//! [`DataTable`] is the state of one such table: order, expanded rows, selection, search.
//! Only rows on the screen are formatted: a list may have a hundred thousand.

use super::list::ListState;
use super::search::{Finder, Search, next_match};
use super::text;
use crate::tui::document::{Cell as Value, Column as Exported, Table, each};
use crate::tui::keys::Command;
use crate::tui::theme::{Role, Theme};
use crate::tui::views::{Choice, Click, Find, Press};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use rustc_hash::FxHashSet;
use std::hash::Hash;
use vmscope_symbolizer::Stop;

/// Rows with at least this share of all samples are hot.
pub const HOT: f64 = 0.01;

/// Whether and how a column sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// It does not.
    No,
    /// The smallest first.
    Up,
    /// The greatest first.
    Down,
    /// As the column with this index does: both show the same figure.
    Like(usize),
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading on the screen.
    pub title: &'static str,
    /// Name in exports and in the palette; empty for a column that is only drawn.
    pub name: &'static str,
    /// Width in columns of the terminal, the least for a column that stretches; 0 for a column
    /// that is only exported.
    pub width: usize,
    /// Whether its cells are set flush right.
    pub right: bool,
    /// Narrow screens leave out the columns with the greatest rank first, those of rank 0 never.
    pub rank: u8,
    /// How it sorts.
    pub sort: Sort,
}

impl Column {
    /// A column that is set flush left, on every screen, and does not sort.
    pub const fn left(title: &'static str, name: &'static str, width: usize) -> Self {
        Column {
            title,
            name,
            width,
            right: false,
            rank: 0,
            sort: Sort::No,
        }
    }

    /// The same, set flush right.
    pub const fn right(title: &'static str, name: &'static str, width: usize) -> Self {
        Column {
            right: true,
            ..Column::left(title, name, width)
        }
    }

    /// The same, left out of narrow screens by its rank.
    pub const fn rank(self, rank: u8) -> Self {
        Column { rank, ..self }
    }

    /// The same, sorting.
    pub const fn sort(self, sort: Sort) -> Self {
        Column { sort, ..self }
    }
}

/// What rows are ordered by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// A number, or the rank of a text among all texts of its column.
    Number(u64),
    /// A text, of tables with few rows.
    Text(String),
}

impl SortKey {
    /// The key of a number that is not whole.
    pub fn of_float(value: f64) -> Self {
        let bits = value.to_bits();
        // The order of floats as integers, by their sign (IEEE 754 totalOrder).
        let sign = 1 << 63;
        SortKey::Number(if bits & sign == 0 { bits | sign } else { !bits })
    }

    /// The key of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Empty => SortKey::Number(0),
            Value::Count(number) | Value::Bytes(number) => SortKey::Number(*number),
            Value::Share(number) | Value::Seconds(number) => Self::of_float(*number),
            Value::Text(text) => SortKey::Text(text.clone()),
        }
    }
}

/// A piece of a cell, in one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text.
    pub text: String,
    /// How it is drawn.
    pub role: Role,
}

impl Piece {
    /// A cell of one piece: its text is cut or padded to the column.
    pub fn cell(role: Role, text: impl Into<String>) -> Vec<Self> {
        vec![Piece {
            text: text.into(),
            role,
        }]
    }
}

/// Where a cell is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// Columns of the terminal that the cell has; in the tree column those behind the sign.
    pub width: usize,
    /// The columns of the table that are on the screen.
    pub columns: &'a [usize],
}

impl Room<'_> {
    /// Whether a column of the table is on the screen: then others need not repeat it.
    pub fn has(&self, column: usize) -> bool {
        self.columns.contains(&column)
    }
}

/// The data of a table.
pub trait Rows {
    /// A row of this data.
    type Row: Copy;
    /// What a row is called in every answer to the same question: it stays selected and
    /// expanded by this.
    type Key: Clone + Eq + Hash;

    /// The columns of a screen with so many columns. Their number and order are the same for
    /// every width.
    fn columns(&self, width: u16) -> Vec<Column>;

    /// The column that takes the room that the others leave.
    fn stretch(&self) -> usize;

    /// The columns to sort by, in the order in which a key goes through them; the first one is
    /// the order at the beginning.
    fn sorts(&self) -> Vec<usize>;

    /// The column of the name, with indent and sign in a tree.
    fn tree_column(&self) -> usize {
        self.stretch()
    }

    /// The rows below a row, or the outermost ones, in the order of what is equal.
    fn children(&self, parent: Option<Self::Row>) -> Vec<Self::Row>;

    /// Whether a row has rows below it.
    fn can_open(&self, _row: Self::Row) -> bool {
        false
    }

    /// Whether any row can have rows below it.
    fn is_tree(&self) -> bool {
        false
    }

    /// Whether rows are expanded before anybody collapses them.
    fn is_open_at_first(&self) -> bool {
        false
    }

    /// Whether the rows below this one keep their order, whatever the table is sorted by.
    fn keeps_order(&self, _parent: Self::Row) -> bool {
        false
    }

    /// A row's key.
    fn key(&self, row: Self::Row) -> Self::Key;

    /// A cell's value.
    fn value(&self, row: Self::Row, column: usize) -> Value;

    /// What a row is ordered by.
    fn sort_key(&self, row: Self::Row, column: usize) -> SortKey {
        SortKey::of(&self.value(row, column))
    }

    /// A cell on the screen. One piece is cut or padded to the room; several are drawn as they
    /// are.
    fn cell(&self, row: Self::Row, column: usize, room: &Room<'_>) -> Vec<Piece>;

    /// Whether a row has what is searched for.
    fn fits(&self, row: Self::Row, text: &mut Finder) -> bool;

    /// The rows below a collapsed row that a search goes through.
    fn searched(&self, row: Self::Row) -> Vec<Self::Row> {
        self.children(Some(row))
    }

    /// A row's share of all samples, 0 to 1.
    fn share(&self, _row: Self::Row) -> f64 {
        0.0
    }
}

/// A row that is not hidden in a collapsed one.
#[derive(Clone, Copy, Debug)]
struct Visible<Row> {
    row: Row,
    depth: usize,
    /// Whether it is expanded; `None` where it can't be.
    open: Option<bool>,
}

/// What a click did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clicked {
    /// It was in no row, or is used up.
    Nothing,
    /// It selected a row.
    Row {
        /// The column of the table, where it is on one.
        column: Option<usize>,
        /// Whether it was a double click.
        twice: bool,
    },
}

/// The state of a table.
#[derive(Clone, Debug)]
pub struct DataTable<Row, Key> {
    /// The column and whether its order is reversed; `None` before anybody chose.
    sort: Option<(usize, bool)>,
    /// Rows that are not as all are at first: see [`Rows::is_open_at_first`].
    turned: FxHashSet<Key>,
    rows: Vec<Visible<Row>>,
    list: ListState,
    /// The row that was selected by its user: it stays so when the order changes.
    chosen: Option<Key>,
    search: Search<Option<Key>>,
}

impl<Row, Key> Default for DataTable<Row, Key> {
    fn default() -> Self {
        DataTable {
            sort: None,
            turned: FxHashSet::default(),
            rows: Vec::new(),
            list: ListState::default(),
            chosen: None,
            search: Search::default(),
        }
    }
}

impl<Row: Copy, Key: Clone + Eq + Hash> DataTable<Row, Key> {
    /// How many rows an area shows: all lines but the heading.
    pub fn height(area: Rect) -> usize {
        usize::from(area.height.saturating_sub(1))
    }

    /// How many rows are not hidden.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row that is selected.
    pub fn selected(&self) -> Option<Row> {
        let at = self.list.selected().min(self.rows.len().saturating_sub(1));
        self.rows.get(at).map(|row| row.row)
    }

    /// Whether a row is expanded.
    pub fn is_expanded<D: Rows<Row = Row, Key = Key>>(&self, data: &D, row: Row) -> bool {
        data.can_open(row) && self.is_open(data, row)
    }

    /// How wide a column is on a screen; `None` where it is left out.
    pub fn width_of<D: Rows<Row = Row, Key = Key>>(
        data: &D,
        column: usize,
        width: u16,
    ) -> Option<usize> {
        let mut on = fitted(data, width).into_iter();
        let found = on.find(|(at, ..)| *at == column);
        found.map(|(.., width)| width)
    }

    /// The rows on the screen.
    pub fn on_screen(&self, height: usize) -> impl Iterator<Item = Row> {
        let top = self.list.top(self.rows.len(), height);
        self.rows.iter().skip(top).take(height).map(|row| row.row)
    }

    /// The rows that are not hidden.
    pub fn visible(&self) -> impl ExactSizeIterator<Item = Row> {
        self.rows.iter().map(|row| row.row)
    }

    /// The column that the table is sorted by, and whether that order is reversed.
    pub fn sorted<D: Rows<Row = Row, Key = Key>>(&self, data: &D) -> (usize, bool) {
        let first = || (data.sorts().first().copied().unwrap_or(0), false);
        self.sort.unwrap_or_else(first)
    }

    /// What the breadcrumb says of the order; empty for that of the beginning.
    pub fn crumb<D: Rows<Row = Row, Key = Key>>(&self, data: &D) -> String {
        let (column, reversed) = self.sorted(data);
        if !reversed && data.sorts().first() == Some(&column) {
            return String::new();
        }
        let columns = data.columns(u16::MAX);
        let name = columns.get(column).map_or("", |column| column.name);
        let reversed = if reversed { ", reversed" } else { "" };
        format!("sorted by {name}{reversed}")
    }

    /// Takes new data, or the same after a change of order: sorts, and keeps what is selected.
    pub fn arrange<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, height: usize) {
        let mut rows = Vec::new();
        self.walk(data, |row| self.is_open(data, row), |row| rows.push(row));
        self.rows = rows;
        let chosen = self.chosen.as_ref();
        let at = chosen.and_then(|key| self.rows.iter().position(|row| data.key(row.row) == *key));
        self.list.keep(at, self.rows.len(), height);
    }

    /// All rows in their order, expanded or not.
    pub fn all<D: Rows<Row = Row, Key = Key>>(&self, data: &D) -> Vec<Row> {
        let mut rows = Vec::new();
        self.walk(data, |_| true, |row| rows.push(row.row));
        rows
    }

    fn is_open<D: Rows<Row = Row, Key = Key>>(&self, data: &D, row: Row) -> bool {
        let is_turned = !self.turned.is_empty() && self.turned.contains(&data.key(row));
        data.is_open_at_first() != is_turned
    }

    /// Goes through the rows in their order.
    fn walk<D: Rows<Row = Row, Key = Key>>(
        &self,
        data: &D,
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
            let depth = levels.len() - 1;
            put(Visible { row, depth, open });
            if open == Some(true) {
                levels.push(self.ordered(data, Some(row)).into_iter());
            }
        }
    }

    /// The rows below a row, sorted.
    fn ordered<D: Rows<Row = Row, Key = Key>>(&self, data: &D, parent: Option<Row>) -> Vec<Row> {
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
        let keyed = rows
            .into_iter()
            .map(|row| (data.sort_key(row, column), row));
        let mut keyed: Vec<(SortKey, Row)> = keyed.collect();
        // What is equal keeps its order.
        if (sort == Sort::Down) == reversed {
            keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        } else {
            keyed.sort_by(|(a, _), (b, _)| b.cmp(a));
        }
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    fn select<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, at: usize, height: usize) {
        self.list.select(at, self.rows.len(), height);
        self.note_chosen(data);
    }

    fn note_chosen<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D) {
        self.chosen = self.selected().map(|row| data.key(row));
    }

    /// Selects the row of that key, where it is not hidden.
    pub fn select_key<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        data: &D,
        key: &Key,
        height: usize,
    ) {
        let at = self.rows.iter().position(|row| data.key(row.row) == *key);
        if let Some(at) = at {
            self.select(data, at, height);
        }
    }

    /// Sorts by a column.
    pub fn sort_by<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        data: &D,
        (column, reversed): (usize, bool),
        height: usize,
    ) {
        self.sort = Some((column, reversed));
        self.arrange(data, height);
    }

    /// Does what a command asks for, where it is one that tables know: moving, sorting,
    /// expanding, the next hot row. Whether it is.
    pub fn act<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        command: Command,
        data: &D,
        height: usize,
    ) -> bool {
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
            Command::Right => self.set_open(data, true, height),
            Command::NextHot => self.select_hot(data, Find::Next, height),
            Command::PreviousHot => self.select_hot(data, Find::Previous, height),
            _ => return false,
        }
        true
    }

    /// Expands or collapses the selected row; whether it can be.
    pub fn toggle<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, height: usize) -> bool {
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

    fn set_open<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, open: bool, height: usize) {
        let Some(row) = self.selected_visible() else {
            return;
        };
        if row.open == Some(!open) {
            self.note_chosen(data);
            self.turn(data, row.row, open);
            self.arrange(data, height);
        }
    }

    fn turn<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, row: Row, open: bool) {
        let key = data.key(row);
        if open == data.is_open_at_first() {
            self.turned.remove(&key);
        } else {
            self.turned.insert(key);
        }
    }

    /// Collapses the selected row, or selects the one that it is in.
    fn close<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, height: usize) {
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

    /// Collapses all rows, and expands those that are hot where `share` is given: see
    /// [`Rows::share`].
    pub fn set_all<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        data: &D,
        share: Option<f64>,
        height: usize,
    ) {
        if self.chosen.is_none() {
            self.note_chosen(data);
        }
        self.turned.clear();
        let mut turned = FxHashSet::default();
        let opens = |row: Row| share.is_some_and(|share| data.share(row) >= share);
        self.walk(data, opens, |row| {
            if row.open.is_some_and(|open| open != data.is_open_at_first()) {
                turned.insert(data.key(row.row));
            }
        });
        self.turned = turned;
        self.arrange(data, height);
    }

    fn select_hot<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, find: Find, height: usize) {
        let now = self.list.selected().min(self.rows.len().saturating_sub(1));
        let is_hot = |at: usize| {
            let row = self.rows.get(at);
            row.is_some_and(|row| data.share(row.row) >= HOT)
        };
        if let Some(at) = next_match(self.rows.len(), now, now, find, is_hot) {
            self.select(data, at, height);
        }
    }

    /// Searches in all rows, and expands what hides the one that is found. Whether there is
    /// one; an empty pattern ends the search.
    pub fn find<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        pattern: &str,
        find: Find,
        data: &D,
        height: usize,
    ) -> bool {
        let count = self.rows.len();
        let now = self.list.selected().min(count.saturating_sub(1));
        let here = self.selected().map(|row| data.key(row));
        let Some((origin, finder)) = self.search.begin(pattern, here) else {
            return true;
        };
        let is_origin = |key: &Key| self.rows.iter().position(|row| data.key(row.row) == *key);
        let origin = origin.as_ref().and_then(is_origin).unwrap_or(now);
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
        // The path goes from what was found up to the row that is collapsed.
        if let Some(&inside) = path.first() {
            let closed = self.selected().into_iter();
            let outer: Vec<Row> = closed.chain(path.into_iter().skip(1)).collect();
            for row in outer {
                self.turn(data, row, true);
            }
            self.chosen = Some(data.key(inside));
            self.arrange(data, height);
        }
        true
    }

    /// Takes the mouse; `area` is that of the table.
    pub fn click<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        click: Click,
        data: &D,
        area: Rect,
    ) -> Clicked {
        let height = Self::height(area);
        let x = usize::from(click.at.x.saturating_sub(area.x));
        let on = fitted(data, area.width);
        let at = on
            .iter()
            .find(|(_, from, width)| (*from..=from + width).contains(&x));
        let Some(line) = click.at.y.checked_sub(area.y + 1).map(usize::from) else {
            // The second press of a double click would turn the order back.
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
            .map(|row| 2 * row.depth);
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

    fn click_heading<D: Rows<Row = Row, Key = Key>>(
        &mut self,
        data: &D,
        column: usize,
        height: usize,
    ) {
        let columns = data.columns(u16::MAX);
        let column = match columns.get(column).map(|column| column.sort) {
            Some(Sort::Like(other)) => other,
            Some(Sort::Up | Sort::Down) => column,
            Some(Sort::No) | None => return,
        };
        let (now, reversed) = self.sorted(data);
        self.sort_by(data, (column, now == column && !reversed), height);
    }

    /// The palette's lines for the order, each with its column; `first` is the number of the
    /// first one.
    pub fn choices<D: Rows<Row = Row, Key = Key>>(data: &D, first: u16) -> Vec<Choice> {
        let columns = data.columns(u16::MAX);
        let sorts = data.sorts().into_iter().zip(first..);
        let lines = sorts.map(|(at, number)| Choice {
            text: format!(
                "sort by {}",
                columns.get(at).map_or("", |column| column.name)
            ),
            number,
        });
        lines.collect()
    }

    /// Does what the palette's line of that place in [`DataTable::choices`] says.
    pub fn choose<D: Rows<Row = Row, Key = Key>>(&mut self, data: &D, line: u16, height: usize) {
        if let Some(&column) = data.sorts().get(usize::from(line)) {
            self.sort_by(data, (column, false), height);
        }
    }

    /// Rows as a table for copying and exporting; `None` where it was stopped.
    pub fn export<D: Rows<Row = Row, Key = Key>>(
        data: &D,
        rows: impl ExactSizeIterator<Item = Row>,
        stop: &Stop,
    ) -> Option<Table> {
        let columns = data.columns(u16::MAX);
        let exported = columns.iter().enumerate();
        let exported = exported.filter(|(_, column)| !column.name.is_empty());
        let exported: Vec<(usize, &Column)> = exported.collect();
        let names = exported.iter().map(|(_, column)| Exported {
            name: column.name.to_owned(),
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

    /// Draws it.
    pub fn draw<D: Rows<Row = Row, Key = Key>>(
        &self,
        data: &D,
        theme: &Theme,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        if area.height == 0 {
            return;
        }
        let columns = data.columns(area.width);
        let on = fitted(data, area.width);
        let shown: Vec<usize> = on.iter().map(|(column, ..)| *column).collect();
        let marked = self.marked(data, &columns, &shown);
        let mut heads = Vec::new();
        for &(at, _, width) in &on {
            let Some(column) = columns.get(at) else {
                continue;
            };
            let arrow = match marked {
                Some((marked, down)) if marked == at => match down {
                    true => theme.sign("▾", "v"),
                    false => theme.sign("▴", "^"),
                },
                _ => "",
            };
            let head = set(&format!("{}{arrow}", column.title), width, column.right);
            heads.push(Span::styled(head, theme.style(Role::Title)));
            heads.push(Span::raw(" "));
        }
        let line = |y: u16| Rect {
            y,
            height: 1,
            ..area
        };
        frame.render_widget(Line::from(heads), line(area.y));
        let top = self.list.top(self.rows.len(), Self::height(area));
        let selected = self.list.selected().min(self.rows.len().saturating_sub(1));
        let rows = self.rows.iter().enumerate().skip(top);
        for ((index, row), y) in rows.zip(area.y + 1..area.bottom()) {
            let base = match index == selected {
                true => theme.style(Role::Selected),
                false => Style::new(),
            };
            let mut spans = Vec::new();
            for &(at, _, width) in &on {
                let Some(column) = columns.get(at) else {
                    continue;
                };
                let prefix = match at == data.tree_column() && data.is_tree() {
                    true => prefix(row.depth, row.open, width, theme),
                    false => String::new(),
                };
                let room = Room {
                    theme,
                    width: width.saturating_sub(text::width(&prefix)),
                    columns: &shown,
                };
                let mut cell = data.cell(row.row, at, &room);
                if let [one] = cell.as_mut_slice() {
                    one.text = set(&format!("{prefix}{}", one.text), width, column.right);
                }
                let used: usize = cell.iter().map(|piece| text::width(&piece.text)).sum();
                // What is selected is marked as a whole, whatever its pieces are.
                let styled = cell.into_iter().map(|piece| {
                    let style = theme.style(piece.role);
                    let style = if index == selected {
                        style.patch(base)
                    } else {
                        style
                    };
                    Span::styled(piece.text, style)
                });
                spans.extend(styled);
                spans.push(Span::styled(
                    " ".repeat((width + 1).saturating_sub(used)),
                    base,
                ));
            }
            frame.render_widget(Line::from(spans).style(base), line(y));
        }
    }

    /// The column on the screen that shows what the table is sorted by, and whether the
    /// heading's arrow points down.
    fn marked<D: Rows<Row = Row, Key = Key>>(
        &self,
        data: &D,
        columns: &[Column],
        shown: &[usize],
    ) -> Option<(usize, bool)> {
        let (column, reversed) = self.sorted(data);
        let is_like = |at: &usize| {
            let other = columns.get(*at);
            *at == column || other.is_some_and(|other| other.sort == Sort::Like(column))
        };
        let itself = shown.iter().find(|at| **at == column);
        let at = itself.or_else(|| shown.iter().find(|at| is_like(at)))?;
        Some((*at, !reversed))
    }
}

/// Looks in the rows below a collapsed one; `path` is what was found and the rows around it,
/// innermost first.
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

/// The columns on a screen: index, distance from the left, width.
fn fitted<D: Rows>(data: &D, width: u16) -> Vec<(usize, usize, usize)> {
    let mut from = 0;
    let columns = data.columns(width);
    let fitting = fitting(&columns, data.stretch(), usize::from(width));
    let placed = fitting.into_iter().map(|(at, width)| {
        let place = (at, from, width);
        from += width + 1;
        place
    });
    placed.collect()
}

/// The columns that fit, with their widths; `stretch` takes the room that is left.
fn fitting(columns: &[Column], stretch: usize, room: usize) -> Vec<(usize, usize)> {
    let on_screen = columns.iter().enumerate();
    let on_screen = on_screen.filter(|(_, column)| column.width > 0);
    let mut kept: Vec<(usize, &Column)> = on_screen.collect();
    let needed = |kept: &[(usize, &Column)]| -> usize {
        kept.iter().map(|(_, column)| column.width + 1).sum()
    };
    while needed(&kept) > room + 1 {
        let last = kept.iter().map(|(at, column)| (column.rank, *at)).max();
        match last.filter(|(rank, _)| *rank > 0) {
            Some((_, last)) => kept.retain(|(at, _)| *at != last),
            None => break,
        }
    }
    let left = (room + 1).saturating_sub(needed(&kept));
    let widths = kept.into_iter().map(|(at, column)| {
        let more = if at == stretch { left } else { 0 };
        (at, column.width + more)
    });
    widths.collect()
}

/// What stands before a name in a tree: its depth, and whether it is expanded.
fn prefix(depth: usize, open: Option<bool>, room: usize, theme: &Theme) -> String {
    let sign = match open {
        Some(true) => theme.sign("▾ ", "- "),
        Some(false) => theme.sign("▸ ", "+ "),
        None => "  ",
    };
    let blanks = 2 * depth;
    if blanks <= room / 3 {
        return format!("{}{sign}", " ".repeat(blanks));
    }
    // Where there is no room for the indent, the depth stands as a number.
    let depth = depth.to_string();
    let blanks = (room / 3).saturating_sub(depth.len() + 1);
    format!("{}{depth}:{sign}", " ".repeat(blanks))
}

fn set(text: &str, width: usize, right: bool) -> String {
    if right {
        text::right(text, width)
    } else {
        text::name(text, width)
    }
}

/// Draws a line about what is selected below a table, and returns the table's area.
pub fn footer(words: &str, theme: &Theme, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let words = text::line(&format!(" {words}"), usize::from(area.width));
    let bottom = Rect {
        y: area.bottom().saturating_sub(1),
        height: area.height.min(1),
        ..area
    };
    frame.render_widget(Line::styled(words, theme.style(Role::Dim)), bottom);
    above_footer(area)
}

/// The area of a table that has a line below it.
pub fn above_footer(area: Rect) -> Rect {
    Rect {
        height: area.height.saturating_sub(1),
        ..area
    }
}

#[cfg(test)]
mod tests;
