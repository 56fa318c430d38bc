//! Orientation of a matrix: either side can be the rows.

use crate::queries::matrix::{Category, Item, Matrix};
use std::cmp::Reverse;
use vmscope_symbolizer::matrix::{Axis, Row as Counted};

/// Identity of a row or column across answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ItemKey {
    /// Method or thread.
    Row(Counted),
    Category(Category),
}

/// Matrix with an orientation.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub matrix: &'a Matrix,
    /// Categories as rows.
    pub turned: bool,
}

impl<'a> Side<'a> {
    /// Same matrix, other orientation.
    pub fn other(self) -> Side<'a> {
        Side {
            turned: !self.turned,
            ..self
        }
    }

    pub fn len(self) -> usize {
        match self.turned {
            true => self.matrix.columns.len(),
            false => self.matrix.rows.len(),
        }
    }

    fn of_row<T>(
        self,
        row: u32,
        who: impl FnOnce(&'a Item<Counted>) -> T,
        category: impl FnOnce(&'a Item<Category>) -> T,
    ) -> T {
        match self.turned {
            true => category(&self.matrix.columns[row as usize]),
            false => who(&self.matrix.rows[row as usize]),
        }
    }

    pub fn name(self, row: u32) -> &'a str {
        self.of_row(row, |item| &*item.name, |item| &*item.name)
    }

    pub fn samples(self, row: u32) -> u64 {
        self.of_row(row, |item| item.samples, |item| item.samples)
    }

    pub fn rank(self, row: u32) -> u32 {
        self.of_row(row, |item| item.rank, |item| item.rank)
    }

    pub fn key(self, row: u32) -> ItemKey {
        self.of_row(
            row,
            |item| ItemKey::Row(item.what.clone()),
            |item| ItemKey::Category(item.what.clone()),
        )
    }

    pub fn find(self, key: &ItemKey) -> Option<u32> {
        let at = match (key, self.turned) {
            (ItemKey::Category(category), true) => {
                let mut all = self.matrix.columns.iter();
                all.position(|item| item.what == *category)
            }
            (ItemKey::Row(who), false) => {
                let mut all = self.matrix.rows.iter();
                all.position(|item| item.what == *who)
            }
            _ => None,
        };
        at.and_then(|at| u32::try_from(at).ok())
    }

    pub fn cell(self, row: u32, column: u32) -> u64 {
        match self.turned {
            true => self.matrix.cell(column, row),
            false => self.matrix.cell(row, column),
        }
    }

    /// 95 % half-width of a row's or cell's share.
    pub fn error(self, row: u32, column: Option<u32>) -> Option<f64> {
        let errors = self.matrix.errors.as_ref()?;
        match (column, self.turned) {
            (None, true) => Some(errors.columns[row as usize]),
            (None, false) => Some(errors.rows[row as usize]),
            (Some(column), true) => self.matrix.error(column, row),
            (Some(column), false) => self.matrix.error(row, column),
        }
    }

    /// Columns with samples in a row, most samples first.
    pub fn inner(self, row: u32) -> Vec<u32> {
        if self.turned {
            return self.matrix.rows_of_column[row as usize].clone();
        }
        let mut cells = self.matrix.cells.of_row(row).to_vec();
        cells.sort_by_key(|cell| (Reverse(cell.samples), cell.column));
        cells.into_iter().map(|cell| cell.column).collect()
    }

    /// Samples of the largest row.
    pub fn most(self) -> u64 {
        let all = (0u32..).take(self.len());
        all.map(|row| self.samples(row)).max().unwrap_or(0)
    }

    /// Samples of the largest cell in a row.
    pub fn most_inner(self, row: u32) -> u64 {
        if self.turned {
            let first = self.matrix.rows_of_column[row as usize].first();
            return first.map_or(0, |&first| self.cell(row, first));
        }
        let cells = self.matrix.cells.of_row(row).iter();
        cells.map(|cell| cell.samples).max().unwrap_or(0)
    }

    pub fn title(self) -> &'static str {
        match (self.turned, self.matrix.shape.axis) {
            (true, _) => "category",
            (false, Axis::Methods) => "method",
            (false, Axis::Threads) => "thread",
        }
    }
}
