//! The matrix: which way it stands, and what of it is selected.

use super::way::Way;
use crate::present::document::{Column, Table, Value, each};
use crate::present::numbers::ratio;
use crate::queries::matrix::Matrix;
use crate::tui::keys::Command;
use crate::tui::widgets::list::ListState;
use vmscope_symbolizer::Stop;

/// Lines above the rows: two of headings, and the sums.
pub const HEAD: u16 = 3;

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GridBy {
    /// Their sums.
    #[default]
    Sum,
    /// The selected column.
    Column,
    /// Their names.
    Name,
}

/// Which way the matrix stands, and what of it is selected. Column 0 is the sums.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// Whether the categories are the rows.
    pub turned: bool,
    /// What its rows are sorted by, and whether the other way round.
    pub by: GridBy,
    /// See `by`.
    pub reversed: bool,
    /// The row.
    pub list: ListState,
    /// The column.
    pub column: usize,
    /// Rows, by their indices in the matrix.
    pub(super) rows: Vec<u32>,
}

impl Grid {
    /// One with its first cell selected.
    pub fn standing(turned: bool) -> Self {
        Grid {
            turned,
            ..Grid::default()
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many columns beside the sums.
    pub(super) fn columns(&self, matrix: &Matrix) -> usize {
        self.way(matrix).turned().len()
    }

    /// A row's item.
    pub fn item_of(&self, row: usize) -> Option<u32> {
        self.rows.get(row).copied()
    }

    /// Where a row's item stands.
    pub fn place_of(&self, item: u32) -> Option<usize> {
        self.rows.iter().position(|one| *one == item)
    }

    /// The selected row's item and the selected column's; `None` for its sums.
    pub fn selected(&self) -> Option<(u32, Option<u32>)> {
        let last = self.rows.len().saturating_sub(1);
        let row = self.item_of(self.list.selected().min(last))?;
        let column = self.column.checked_sub(1);
        Some((row, column.and_then(|at| u32::try_from(at).ok())))
    }

    /// The matrix, the way that it stands.
    pub fn way<'a>(&self, matrix: &'a Matrix) -> Way<'a> {
        Way {
            matrix,
            turned: self.turned,
        }
    }

    /// The name and the samples of a row's item.
    pub fn row<'a>(&self, matrix: &'a Matrix, item: u32) -> (&'a str, u64) {
        let way = self.way(matrix);
        (way.name(item), way.samples(item))
    }

    pub(super) fn column_item<'a>(&self, matrix: &'a Matrix, item: u32) -> (&'a str, u64) {
        let way = self.way(matrix).turned();
        (way.name(item), way.samples(item))
    }

    pub(super) fn cell(&self, matrix: &Matrix, row: u32, column: u32) -> u64 {
        self.way(matrix).cell(row, column)
    }

    /// Sorts the rows anew, and keeps what is selected.
    pub fn arrange(&mut self, matrix: &Matrix, height: usize) {
        let selected = self.selected().map(|(row, _)| row);
        self.column = self.column.min(self.columns(matrix));
        let way = self.way(matrix);
        let mut rows: Vec<u32> = (0u32..).take(way.len()).collect();
        let column = self
            .column
            .checked_sub(1)
            .and_then(|at| u32::try_from(at).ok());
        match (self.by, column) {
            (GridBy::Name, _) => rows.sort_by_cached_key(|&row| (way.rank(row), row)),
            (GridBy::Column, Some(column)) => rows.sort_by_cached_key(|&row| {
                let cell = self.cell(matrix, row, column);
                (std::cmp::Reverse(cell), row)
            }),
            _ => rows.sort_by_cached_key(|&row| {
                let (_, samples) = self.row(matrix, row);
                (std::cmp::Reverse(samples), row)
            }),
        }
        if self.reversed {
            rows.reverse();
        }
        self.rows = rows;
        // Who looks at the top goes on to look at it.
        if self.list.selected() > 0 {
            let found = selected.and_then(|row| self.rows.iter().position(|one| *one == row));
            let row = found.unwrap_or(self.list.selected());
            self.list.select(row, self.rows.len(), height);
        }
    }

    /// Turns it round: what was selected stays so.
    pub fn turn(&mut self, matrix: &Matrix, height: usize) {
        let selected = self.selected();
        self.turned = !self.turned;
        self.by = GridBy::default();
        self.reversed = false;
        self.column = selected.map_or(0, |(row, _)| row as usize + 1);
        self.list = ListState::default();
        self.rows.clear();
        self.arrange(matrix, height);
        if let Some((_, Some(column))) = selected {
            let row = self.rows.iter().position(|row| *row == column);
            self.list.select(row.unwrap_or(0), self.rows.len(), height);
        }
    }

    /// Moves as a command says; whether it is one that moves.
    pub fn act(&mut self, command: Command, matrix: &Matrix, height: usize) -> bool {
        match command {
            Command::Left => self.column = self.column.saturating_sub(1),
            Command::Right => self.column = (self.column + 1).min(self.columns(matrix)),
            _ => return self.list.act(command, self.rows.len(), height),
        }
        if self.by == GridBy::Column {
            self.arrange(matrix, height);
        }
        true
    }

    /// The next cell, or the one before, with at least a tenth of the greatest one's samples:
    /// row by row, round at the ends.
    pub fn select_hot(&mut self, matrix: &Matrix, back: bool, height: usize) {
        let columns = self.columns(matrix);
        let all = self.rows.len() * columns;
        if all == 0 {
            return;
        }
        let row_now = self.list.selected().min(self.rows.len() - 1);
        let now = row_now * columns + self.column.saturating_sub(1);
        let cells = matrix.cells.all().iter();
        let hot = cells.filter(|cell| cell.samples * 10 >= matrix.most);
        let mut place_of_row = vec![0; self.rows.len()];
        for (place, &row) in self.rows.iter().enumerate() {
            if let Some(slot) = place_of_row.get_mut(row as usize) {
                *slot = place;
            }
        }
        let places = hot.filter_map(|cell| {
            let (row, column) = if self.turned {
                (cell.column, cell.row)
            } else {
                (cell.row, cell.column)
            };
            Some(place_of_row.get(row as usize)? * columns + column as usize)
        });
        // How far away, the way that one goes.
        let away = |place: usize| {
            let way = if back {
                now + all - place
            } else {
                place + all - now
            } % all;
            if way == 0 { all } else { way }
        };
        if let Some(place) = places.min_by_key(|place| away(*place)) {
            self.column = place % columns + 1;
            self.list.select(place / columns, self.rows.len(), height);
        }
    }

    /// All of it, for export; `None` where it was stopped.
    pub fn table(&self, matrix: &Matrix, stop: &Stop) -> Option<Table> {
        let first = self.way(matrix).title();
        let mut table = Table::new("", &[first, ">samples", ">share"]);
        let columns: Vec<u32> = (0u32..).take(self.columns(matrix)).collect();
        table.columns.extend(columns.iter().map(|&item| Column {
            name: self.column_item(matrix, item).0.to_owned(),
            right: true,
        }));
        each(self.rows.iter(), stop, |&row| {
            let (name, samples) = self.row(matrix, row);
            let mut cells = vec![
                Value::Text(name.to_owned()),
                Value::Count(samples),
                Value::Share(ratio(samples, matrix.total)),
            ];
            cells.extend(
                columns
                    .iter()
                    .map(|&column| match self.cell(matrix, row, column) {
                        0 => Value::Empty,
                        samples => Value::Count(samples),
                    }),
            );
            table.rows.push(cells);
        })?;
        Some(table)
    }
}
