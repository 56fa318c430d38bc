//! Call tree as a table: top down from the roots, or bottom up from functions with self samples.

use super::words;
use crate::present::document::Value;
use crate::present::functions::NOBODY;
use crate::present::names::region_name;
use crate::present::numbers::{count, percent, ratio};
use crate::present::shorten::Name;
use crate::queries::branches::{Branch, Branches, Key, Row};
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Column, Piece, Room, Rows, Sort, SortKey};
use crate::tui::widgets::search::Finder;
use vmscope_symbolizer::calls::{Function, FunctionId};
use vmscope_symbolizer::{Id, IndexVec};

/// Width of a bar.
const BAR: usize = 8;

const DEPTH: usize = 0;
const TOTAL: usize = 1;
const BARS: usize = 2;
const SELF: usize = 3;
const SAMPLES: usize = 4;
const SELF_SAMPLES: usize = 5;
const REGION: usize = 6;
const FUNCTION: usize = 7;

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub branches: &'a Branches,
    /// Search match by function; may be empty.
    pub fits: &'a IndexVec<FunctionId, bool>,
    /// Denominator of shares.
    pub all: u64,
    pub is_native: bool,
}

impl Page<'_> {
    fn is_found(&self, branch: Branch) -> bool {
        let function = branch.function;
        function.is_some_and(|function| self.fits.get(function) == Some(&true))
    }
}

impl Rows for Page<'_> {
    type Row = Row;
    type Key = Key;

    fn columns(&self, _width: u16) -> Vec<Column> {
        let function = match self.branches.is_up() {
            true => "function, with its callers",
            false => "function, with its callees",
        };
        let shown = if self.branches.is_up() { SELF } else { TOTAL };
        vec![
            Column::right("", "depth", 0),
            Column::right("total", "total", 7).sort(Sort::Down),
            Column::left("", "", BAR).rank(3).sort(Sort::Like(shown)),
            Column::right("self", "self", 7).sort(Sort::Down),
            Column::right("samples", "samples", 9)
                .rank(2)
                .sort(Sort::Like(shown)),
            Column::right("", "self samples", 0),
            Column::left("", "region", 1),
            Column::left(function, "function", 34).sort(Sort::Up),
        ]
    }

    fn stretch(&self) -> usize {
        FUNCTION
    }

    fn sorts(&self) -> Vec<usize> {
        match self.branches.is_up() {
            true => vec![SELF, TOTAL, FUNCTION],
            false => vec![TOTAL, SELF, FUNCTION],
        }
    }

    fn is_tree(&self) -> bool {
        true
    }

    fn indent(&self) -> usize {
        1
    }

    fn children(&self, parent: Option<Row>) -> Vec<Row> {
        match parent {
            None => self.branches.roots().to_vec(),
            Some(row) => self.branches.children_of(row),
        }
    }

    fn can_open(&self, row: Row) -> bool {
        !self.branches.branch(row).leaf
    }

    fn key(&self, row: Row) -> Key {
        self.branches.branch(row).key
    }

    fn value(&self, row: Row, column: usize) -> Value {
        let branch = self.branches.branch(row);
        let function = self.branches.function(row);
        let share = |samples: u64| Value::Share(ratio(samples, self.all));
        match column {
            DEPTH => Value::Count(self.branches.depth(row)),
            TOTAL => branch.total.map_or(Value::Empty, share),
            SELF => share(branch.own),
            SAMPLES => branch.total.map_or(Value::Empty, Value::Count),
            SELF_SAMPLES => Value::Count(branch.own),
            REGION => {
                let region = function.map(|one| {
                    one.region
                        .map_or("thread", |region| region_name(region, self.is_native))
                });
                Value::Text(region.unwrap_or_default().to_owned())
            }
            FUNCTION => {
                let name = |function: &Function| {
                    let inlined = if function.inlined { " (inlined)" } else { "" };
                    format!("{}{inlined}", words::full(function))
                };
                Value::Text(function.map_or_else(|| NOBODY.to_owned(), name))
            }
            _ => Value::Empty,
        }
    }

    fn sort_key(&self, row: Row, column: usize) -> SortKey {
        let branch = self.branches.branch(row);
        SortKey::Number(match column {
            TOTAL => branch.total.unwrap_or(branch.own),
            SELF => branch.own,
            // Function ids follow names; NOBODY is last.
            _ => branch
                .function
                .map_or(u64::MAX, |function| function.number().into()),
        })
    }

    fn name(&self, row: Row, _columns: &[usize]) -> Option<Name<'_>> {
        self.branches.name(row)
    }

    fn cell(&self, row: Row, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let branch = self.branches.branch(row);
        let function = self.branches.function(row);
        let samples = self.branches.samples(row);
        let top = self.branches.first();
        let top = top.map_or(0, |first| self.branches.samples(first));
        let heat = |samples: u64| Role::Heat(ratio(samples, top));
        let share = |samples: u64| percent(ratio(samples, self.all));
        let (role, text) = match column {
            TOTAL => match branch.total {
                Some(total) => (heat(total), share(total)),
                None => (Role::Dim, String::new()),
            },
            BARS => (heat(samples), room.theme.bar(ratio(samples, self.all), BAR)),
            SELF if branch.own == 0 => (heat(0), String::new()),
            SELF => (heat(branch.own), share(branch.own)),
            SAMPLES => (Role::Text, count(samples)),
            REGION => (
                function.map_or(Role::Dim, words::role),
                function
                    .map_or(' ', |one| words::letter(one, self.is_native))
                    .to_string(),
            ),
            _ => {
                let role = match self.is_found(branch) {
                    true => Role::Match,
                    false => Role::Text,
                };
                let name = match function {
                    Some(_) => room.label,
                    None => NOBODY,
                };
                (role, name.to_owned())
            }
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: Row, _text: &mut Finder) -> bool {
        self.is_found(self.branches.branch(row))
    }

    fn searched(&self, _row: Row) -> Vec<Row> {
        // The view searches the call tree for collapsed rows.
        Vec::new()
    }
}
