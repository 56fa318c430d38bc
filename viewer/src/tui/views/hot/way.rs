//! A matrix, one way round: either side may be the rows.

use crate::queries::matrix::{Category, Item, Matrix};
use std::cmp::Reverse;
use vmscope_symbolizer::matrix::{Axis, Row as Counted};

/// A stable key for rows and columns across answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    /// A method or a thread.
    Who(Counted),
    /// A category.
    Category(Category),
}

/// A matrix, one way round.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The matrix.
    pub matrix: &'a Matrix,
    /// Whether the categories are the rows.
    pub turned: bool,
}

impl<'a> Way<'a> {
    /// The other way round.
    pub fn turned(self) -> Way<'a> {
        Way {
            turned: !self.turned,
            ..self
        }
    }

    /// How many rows there are.
    pub fn len(self) -> usize {
        match self.turned {
            true => self.matrix.columns.len(),
            false => self.matrix.rows.len(),
        }
    }

    /// Reads a field of either side's item.
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

    /// A row's name.
    pub fn name(self, row: u32) -> &'a str {
        self.of_row(row, |item| &*item.name, |item| &*item.name)
    }

    /// A row's samples.
    pub fn samples(self, row: u32) -> u64 {
        self.of_row(row, |item| item.samples, |item| item.samples)
    }

    /// The rank of a row's name.
    pub fn rank(self, row: u32) -> u32 {
        self.of_row(row, |item| item.rank, |item| item.rank)
    }

    /// A row, as every matrix knows it.
    pub fn thing(self, row: u32) -> Thing {
        self.of_row(
            row,
            |item| Thing::Who(item.what.clone()),
            |item| Thing::Category(item.what.clone()),
        )
    }

    /// Finds a key's row, if present.
    pub fn find(self, thing: &Thing) -> Option<u32> {
        let at = match (thing, self.turned) {
            (Thing::Category(category), true) => {
                let mut all = self.matrix.columns.iter();
                all.position(|item| item.what == *category)
            }
            (Thing::Who(who), false) => {
                let mut all = self.matrix.rows.iter();
                all.position(|item| item.what == *who)
            }
            _ => None,
        };
        at.and_then(|at| u32::try_from(at).ok())
    }

    /// The samples of a cell.
    pub fn cell(self, row: u32, column: u32) -> u64 {
        match self.turned {
            true => self.matrix.cell(column, row),
            false => self.matrix.cell(row, column),
        }
    }

    /// 95 % half-width of a row's or cell's share, if estimated.
    pub fn error(self, row: u32, column: Option<u32>) -> Option<f64> {
        let errors = self.matrix.errors.as_ref()?;
        match (column, self.turned) {
            (None, true) => Some(errors.columns[row as usize]),
            (None, false) => Some(errors.rows[row as usize]),
            (Some(column), true) => self.matrix.error(column, row),
            (Some(column), false) => self.matrix.error(row, column),
        }
    }

    /// The columns with samples in a row, most samples first.
    pub fn inner(self, row: u32) -> Vec<u32> {
        if self.turned {
            return self.matrix.rows_of_column[row as usize].clone();
        }
        let mut cells = self.matrix.cells.of_row(row).to_vec();
        cells.sort_by_key(|cell| (Reverse(cell.samples), cell.column));
        cells.into_iter().map(|cell| cell.column).collect()
    }

    /// The samples of the largest row.
    pub fn most(self) -> u64 {
        let all = (0u32..).take(self.len());
        all.map(|row| self.samples(row)).max().unwrap_or(0)
    }

    /// The samples of the largest cell of a row.
    pub fn most_inner(self, row: u32) -> u64 {
        if self.turned {
            let first = self.matrix.rows_of_column[row as usize].first();
            return first.map_or(0, |&first| self.cell(row, first));
        }
        let cells = self.matrix.cells.of_row(row).iter();
        cells.map(|cell| cell.samples).max().unwrap_or(0)
    }

    /// What the rows are.
    pub fn title(self) -> &'static str {
        match (self.turned, self.matrix.shape.axis) {
            (true, _) => "category",
            (false, Axis::Methods) => "method",
            (false, Axis::Threads) => "thread",
        }
    }
}
