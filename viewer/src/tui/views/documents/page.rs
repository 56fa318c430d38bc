//! A document's table as a table of the screen.

use crate::present::document::{self, Table, Value};
use crate::present::encode::short_cell;
use crate::present::text::width;
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use std::borrow::Cow;

/// Rows that decide on the widths of columns.
const MEASURED: usize = 1000;

/// Greatest width of a column for its heading: figures of the selected row show it whole.
const HEADING: usize = 18;

/// Least and greatest width of names on narrow screens.
const NAME: (usize, usize) = (16, 40);

/// A table; rows are indices into it. Its first, hidden column is its order.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub table: &'a Table,
    /// By column.
    pub widths: &'a [usize],
}

/// Widths of columns, for their headings and first cells.
pub fn widths(table: &Table) -> Vec<usize> {
    let of_column = |(at, column): (usize, &document::Column)| {
        let cells = table.rows.iter().take(MEASURED);
        let cells = cells.filter_map(|row| row.get(at));
        let cells = cells
            .map(|value| width(&short_cell(value)))
            .max()
            .unwrap_or(0);
        match at {
            0 => cells.clamp(NAME.0, NAME.1),
            // The mark of the order takes a column.
            _ => cells.max((width(&column.name) + 1).min(HEADING)),
        }
    };
    table.columns.iter().enumerate().map(of_column).collect()
}

impl Rows for Page<'_> {
    type Row = usize;
    type Key = usize;

    fn columns(&self, _width: u16) -> Vec<Column> {
        let order = Column::left("", "the table's order", 0);
        let columns = self
            .table
            .columns
            .iter()
            .zip(self.widths)
            .zip(0u8..=u8::MAX);
        let columns = columns.map(|((column, &width), rank)| Column {
            title: Cow::Owned(column.name.clone()),
            name: Cow::Owned(column.name.clone()),
            width,
            right: column.right,
            // Narrow screens drop the last columns.
            rank,
            sort: match column.right {
                true => Sort::Down,
                false => Sort::Up,
            },
        });
        std::iter::once(order).chain(columns).collect()
    }

    fn stretch(&self) -> usize {
        1
    }

    fn sorts(&self) -> Vec<usize> {
        (0..=self.table.columns.len()).collect()
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        match parent {
            None => (0..self.table.rows.len()).collect(),
            Some(_) => Vec::new(),
        }
    }

    fn key(&self, row: usize) -> usize {
        row
    }

    fn value(&self, row: usize, column: usize) -> Value {
        let row = self.table.rows.get(row);
        let value = row.and_then(|row| row.get(column.checked_sub(1)?));
        value.cloned().unwrap_or(Value::Empty)
    }

    fn sort_key(&self, row: usize, column: usize) -> SortKey {
        match self.value(row, column) {
            // Means with decimals.
            Value::Text(text) => text.parse().map_or(SortKey::Text(text), SortKey::of_float),
            value => SortKey::of(&value),
        }
    }

    fn cell(&self, row: usize, column: usize, _room: &Room<'_>) -> Vec<Piece> {
        let value = self.value(row, column);
        let role = match value {
            Value::Share(share) => Role::Heat(share),
            _ => Role::Text,
        };
        Piece::cell(role, short_cell(&value))
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        let cells = self.table.rows.get(row).into_iter().flatten();
        let mut words = cells.filter_map(|value| match value {
            Value::Text(word) => Some(word),
            _ => None,
        });
        words.any(|word| text.is_in(word))
    }
}
