//! A matrix, one way round: whichever side is in its rows.

use super::matrix::{Axis, Category, Matrix, Who};

/// What may be in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Thing {
    /// Of whom samples are.
    Who(Who),
    /// Where they fell.
    Category(Category),
}

/// A matrix, one way round.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The matrix.
    pub matrix: &'a Matrix,
    /// Whether the categories are in the rows.
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
            true => self.matrix.categories.len(),
            false => self.matrix.who.len(),
        }
    }

    /// What a row is called.
    pub fn name(self, row: u32) -> &'a str {
        if !self.turned {
            return self.matrix.name_of_who(row);
        }
        let item = self.matrix.categories.get(row as usize);
        let name = item.and_then(|item| item.name.as_deref());
        name.unwrap_or_default()
    }

    /// A row's samples.
    pub fn samples(self, row: u32) -> u64 {
        let at = row as usize;
        let samples = match self.turned {
            true => self.matrix.categories.get(at).map(|item| item.samples),
            false => self.matrix.who.get(at).map(|item| item.samples),
        };
        samples.unwrap_or(0)
    }

    /// A row's place by name.
    pub fn by_name(self, row: u32) -> u32 {
        let at = row as usize;
        let place = match self.turned {
            true => self.matrix.categories.get(at).map(|item| item.by_name),
            false => self.matrix.who.get(at).map(|item| item.by_name),
        };
        place.unwrap_or(u32::MAX)
    }

    /// What a row is.
    pub fn thing(self, row: u32) -> Option<Thing> {
        let at = row as usize;
        match self.turned {
            true => {
                let item = self.matrix.categories.get(at)?;
                Some(Thing::Category(item.what.clone()))
            }
            false => Some(Thing::Who(self.matrix.who.get(at)?.what.clone())),
        }
    }

    /// The row of a thing.
    pub fn find(self, thing: &Thing) -> Option<u32> {
        let at = match (thing, self.turned) {
            (Thing::Category(category), true) => {
                let mut all = self.matrix.categories.iter();
                all.position(|item| item.what == *category)
            }
            (Thing::Who(who), false) => {
                let mut all = self.matrix.who.iter();
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

    /// The error of the share of a row, or of a cell, where it is known.
    pub fn error(self, row: u32, column: Option<u32>) -> Option<f64> {
        let errors = self.matrix.errors.as_ref()?;
        match (column, self.turned) {
            (None, true) => errors.categories.get(row as usize).copied(),
            (None, false) => errors.who.get(row as usize).copied(),
            (Some(column), true) => self.matrix.error(column, row),
            (Some(column), false) => self.matrix.error(row, column),
        }
    }

    /// The columns in which a row has samples, most first.
    pub fn inner(self, row: u32) -> Vec<u32> {
        if self.turned {
            let inner = self.matrix.who_of_category.get(row as usize);
            return inner.cloned().unwrap_or_default();
        }
        let all = (0u32..).take(self.matrix.categories.len());
        let mut inner: Vec<u32> = all.filter(|&column| self.cell(row, column) > 0).collect();
        inner.sort_by_key(|&column| (std::cmp::Reverse(self.cell(row, column)), column));
        inner
    }

    /// The samples of the greatest cell of a row.
    pub fn most_inner(self, row: u32) -> u64 {
        if self.turned {
            let inner = self.matrix.who_of_category.get(row as usize);
            let first = inner.and_then(|inner| inner.first());
            return first.map_or(0, |&first| self.cell(row, first));
        }
        let all = (0u32..).take(self.matrix.categories.len());
        all.map(|column| self.cell(row, column)).max().unwrap_or(0)
    }

    /// What rows are.
    pub fn title(self) -> &'static str {
        match (self.turned, self.matrix.shape.axis) {
            (true, _) => "category",
            (false, Axis::Methods) => "method",
            (false, Axis::Threads) => "thread",
        }
    }
}
