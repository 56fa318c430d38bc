//! Data of a table: columns, rows, cells.

use crate::present::document::Value;
use crate::present::shorten::Name;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::search::Finder;
use std::borrow::Cow;
use std::hash::Hash;

/// Sort direction of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Not sortable.
    No,
    /// Smallest value first.
    Up,
    /// Greatest value first.
    Down,
    /// Sorts by another column, given by index, that shows the same figure.
    Like(usize),
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading on the screen.
    pub title: Cow<'static, str>,
    /// Name in exports and palette; empty for a screen-only column.
    pub name: Cow<'static, str>,
    /// Width in terminal columns (minimum width of the stretched column); 0 for an export-only
    /// column.
    pub width: usize,
    /// Right alignment.
    pub right: bool,
    /// Narrow screens drop all columns of the highest rank first, rank 0 never.
    pub rank: u8,
    /// Sort direction.
    pub sort: Sort,
}

impl Column {
    /// Left-aligned column without sorting, shown on every screen.
    pub const fn left(title: &'static str, name: &'static str, width: usize) -> Self {
        Column {
            title: Cow::Borrowed(title),
            name: Cow::Borrowed(name),
            width,
            right: false,
            rank: 0,
            sort: Sort::No,
        }
    }

    /// Right-aligned column without sorting, shown on every screen.
    pub const fn right(title: &'static str, name: &'static str, width: usize) -> Self {
        let mut column = Column::left(title, name, width);
        column.right = true;
        column
    }

    /// Sets the rank.
    pub const fn rank(mut self, rank: u8) -> Self {
        self.rank = rank;
        self
    }

    /// Sets the sort direction.
    pub const fn sort(mut self, sort: Sort) -> Self {
        self.sort = sort;
        self
    }
}

/// Sort key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SortKey {
    /// Number, or rank of a text among all texts of the column.
    Number(u64),
    /// Text, for tables with few rows.
    Text(String),
}

impl SortKey {
    /// Key of a floating-point number.
    pub fn of_float(value: f64) -> Self {
        let bits = value.to_bits();
        // Integer with the same order as the float (IEEE 754 totalOrder).
        let sign = 1 << 63;
        SortKey::Number(if bits & sign == 0 { bits | sign } else { !bits })
    }

    /// Key of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Empty => SortKey::Number(0),
            Value::Count(number) | Value::Bytes(number) => SortKey::Number(*number),
            Value::Share(number) | Value::Seconds(number) => Self::of_float(*number),
            Value::Text(text) => SortKey::Text(text.clone()),
        }
    }
}

/// Part of a cell, in one style.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Text.
    pub text: String,
    /// Style.
    pub role: Role,
}

impl Piece {
    /// Cell of one piece; the table cuts or pads it to the column.
    pub fn cell(role: Role, text: impl Into<String>) -> Vec<Self> {
        vec![Piece {
            text: text.into(),
            role,
        }]
    }
}

/// Space for a cell on the screen.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// Terminal capabilities.
    pub theme: &'a Theme,
    /// Width in terminal columns, without a tree's indent and sign.
    pub width: usize,
    /// Whether lines of the row's children follow.
    pub is_expanded: bool,
    /// The row's [`Rows::name`], shortened to the width.
    pub label: &'a str,
}

/// Data of a table.
pub trait Rows {
    /// Handle of a row, valid for this data.
    type Row: Copy;
    /// Identity of a row across answers: selection and expansion go by it.
    type Key: Clone + Eq + Hash;

    /// Columns for a screen of `width` terminal columns. Count and order never depend on the width.
    fn columns(&self, width: u16) -> Vec<Column>;

    /// Index of the column that takes spare width.
    fn stretch(&self) -> usize;

    /// Sortable columns in the order of key presses; the first defines the initial order.
    fn sorts(&self) -> Vec<usize>;

    /// Index of the name column; a tree shows indent and sign there.
    fn tree_column(&self) -> usize {
        self.stretch()
    }

    /// Children of a row, or top-level rows; the order breaks ties.
    fn children(&self, parent: Option<Self::Row>) -> Vec<Self::Row>;

    /// Whether a row has children.
    fn can_open(&self, _row: Self::Row) -> bool {
        false
    }

    /// Whether any row has children.
    fn is_tree(&self) -> bool {
        false
    }

    /// Indent per tree level, in terminal columns.
    fn indent(&self) -> usize {
        2
    }

    /// Whether a row starts expanded.
    fn is_open_at_first(&self, _row: Self::Row) -> bool {
        false
    }

    /// Whether children of this row ignore the sort column.
    fn keeps_order(&self, _parent: Self::Row) -> bool {
        false
    }

    /// Key of a row.
    fn key(&self, row: Self::Row) -> Self::Key;

    /// Value of a cell.
    fn value(&self, row: Self::Row, column: usize) -> Value;

    /// Sort key of a row.
    fn sort_key(&self, row: Self::Row, column: usize) -> SortKey {
        SortKey::of(&self.value(row, column))
    }

    /// Name of a row that is a function, in [`Rows::tree_column`]: the table shortens it, and tells
    /// equal ones on the screen apart. `columns`: indices of visible columns, whose facts the name
    /// need not repeat.
    fn name(&self, _row: Self::Row, _columns: &[usize]) -> Option<Name<'_>> {
        None
    }

    /// Cell on the screen. A single piece is cut or padded to the width; several pieces are drawn
    /// unchanged.
    fn cell(&self, row: Self::Row, column: usize, room: &Room<'_>) -> Vec<Piece>;

    /// Whether a row matches a search.
    fn fits(&self, row: Self::Row, text: &mut Finder) -> bool;

    /// Children of a collapsed row that a search visits.
    fn searched(&self, row: Self::Row) -> Vec<Self::Row> {
        self.children(Some(row))
    }

    /// Share of all samples, 0 to 1.
    fn share(&self, _row: Self::Row) -> f64 {
        0.0
    }
}

/// Data with given row and key types.
pub trait RowsOf<Row, Key>: Rows<Row = Row, Key = Key> {}

impl<D: Rows> RowsOf<D::Row, D::Key> for D {}
