//! What a table shows: columns, rows, cells.

use crate::present::document::Value;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::search::Finder;
use std::hash::Hash;

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

    /// Columns of the terminal that a level of a tree is set in.
    fn indent(&self) -> usize {
        2
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

/// The data of a table with rows and keys of these types.
pub trait RowsOf<Row, Key>: Rows<Row = Row, Key = Key> {}

impl<D: Rows> RowsOf<D::Row, D::Key> for D {}
