//! Samples by category and method, or by category and thread.
//!
//! Rows are methods or threads. A sample outside any method counts for the method on whose
//! behalf it ran ([`crate::attribution`]). The caller assigns each entry a column, its category.

mod cells;

pub use cells::{Cell, Cells};

use crate::attribution::{Owner, owner_errors, owners};
use crate::ids::{IndexVec, ThreadId};
use crate::methods::{MethodId, Methods};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::{Stop, by_thread};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::sync::Arc;

/// No row yet.
const NONE: u32 = u32::MAX;

/// The meaning of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The methods on whose behalf samples ran.
    #[default]
    Methods,
    /// The threads of the samples.
    Threads,
}

/// A row of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    /// A method that has profile entries.
    Method(MethodId),
    /// The name of a compiled method without profile entries.
    Compiled(Arc<str>),
    /// A thread.
    Thread(ThreadId),
    /// Samples without a known method; the owner says why.
    Nobody(Owner),
}

/// Samples by row and column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// What the rows are.
    pub axis: Axis,
    /// The rows, each once.
    pub rows: Vec<Row>,
    /// The samples of each row.
    pub of_row: Vec<u64>,
    /// The samples of each column.
    pub of_column: Vec<u64>,
    /// The cells with samples.
    pub cells: Cells,
    /// The column of each of [`Profile::entries`].
    column_of_entry: IndexVec<EntryId, u32>,
}

/// 95 % half-widths of shares in all samples, each 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// By row.
    pub rows: Vec<f64>,
    /// By column.
    pub columns: Vec<f64>,
    /// By index in [`Cells::all`].
    pub cells: Vec<f64>,
}

impl Matrix {
    /// Counts the samples that a filter takes. `column_of_entry` has a column below `columns`
    /// for each of [`Profile::entries`]. Rows come unsorted. `None` after a stop.
    #[must_use]
    pub fn of(
        profile: &Profile,
        methods: &Methods,
        filter: &Filter,
        (axis, column_of_entry, columns): (Axis, IndexVec<EntryId, u32>, usize),
        stop: &Stop,
    ) -> Option<Self> {
        let mut index = RowIndex::default();
        let mut cells = Vec::new();
        match axis {
            Axis::Methods => {
                let resolver = Resolver::new(profile, methods);
                for one in owners(profile, filter, stop)? {
                    cells.push(Cell {
                        row: index.put(resolver.row(one.owner)),
                        column: column_of_entry[one.entry],
                        samples: one.samples,
                    });
                }
            }
            Axis::Threads => {
                let all = by_thread(profile, filter, stop)?;
                for of_thread in all.chunk_by(|a, b| a.thread == b.thread) {
                    // Summing first saves memory: threads run many entries, few categories.
                    let mut sums = vec![0; columns];
                    for one in of_thread {
                        sums[column_of_entry[one.entry] as usize] += one.samples;
                    }
                    let row = index.put(Row::Thread(of_thread[0].thread));
                    let sums = (0..).zip(sums).filter(|(_, samples)| *samples > 0);
                    cells.extend(sums.map(|(column, samples)| Cell {
                        row,
                        column,
                        samples,
                    }));
                }
            }
        }
        let mut matrix = Matrix {
            axis,
            of_row: vec![0; index.rows.len()],
            of_column: vec![0; columns],
            cells: Cells::of(&cells, index.rows.len()),
            rows: index.rows,
            column_of_entry,
        };
        for cell in matrix.cells.all() {
            matrix.of_row[cell.row as usize] += cell.samples;
            matrix.of_column[cell.column as usize] += cell.samples;
        }
        (!stop.is_stopped()).then_some(matrix)
    }

    /// Reorders rows and columns. `rows` and `columns` list old indices in their new order;
    /// `columns` may omit columns without samples.
    #[must_use]
    pub fn in_order(mut self, rows: &[u32], columns: &[u32]) -> Self {
        let turned = |order: &[u32], length: usize| {
            let mut new_of_old = vec![NONE; length];
            for (&old, new) in order.iter().zip(0..) {
                new_of_old[old as usize] = new;
            }
            new_of_old
        };
        let new_row = turned(rows, self.rows.len());
        let new_column = turned(columns, self.of_column.len());
        let cells = self.cells.all().iter().map(|cell| Cell {
            row: new_row[cell.row as usize],
            column: new_column[cell.column as usize],
            ..*cell
        });
        self.cells = Cells::of(&cells.collect::<Vec<_>>(), rows.len());
        self.rows = rows
            .iter()
            .map(|&old| self.rows[old as usize].clone())
            .collect();
        let sums = |order: &[u32], sums: &[u64]| -> Vec<u64> {
            order.iter().map(|&old| sums[old as usize]).collect()
        };
        self.of_row = sums(rows, &self.of_row);
        self.of_column = sums(columns, &self.of_column);
        for column in &mut self.column_of_entry {
            *column = new_column[*column as usize];
        }
        self
    }

    /// Estimates the errors of all shares, given the same profile and filter as [`Self::of`].
    /// `Some(None)`: too few samples. `None`: stopped.
    #[must_use]
    pub fn errors(
        &self,
        profile: &Profile,
        methods: &Methods,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Option<Errors>> {
        let mut index = RowIndex::default();
        for row in &self.rows {
            index.put(row.clone());
        }
        let resolver = Resolver::new(profile, methods);
        let (rows, columns) = (self.rows.len(), self.of_column.len());
        let groups = rows + columns + self.cells.all().len();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut row_of_owner: FxHashMap<Owner, Option<u32>> = FxHashMap::default();
        let mut groups_of = |thread: ThreadId, entry: EntryId, owner: Owner| {
            let row = match (self.axis, owner) {
                (Axis::Threads, _) => index.get(&Row::Thread(thread)),
                (Axis::Methods, Owner::Method(_)) => index.get(&resolver.row(owner)),
                // One name lookup per compilation.
                (Axis::Methods, _) => *row_of_owner
                    .entry(owner)
                    .or_insert_with(|| index.get(&resolver.row(owner))),
            }?;
            let column = self.column_of_entry[entry];
            let cell = self.cells.at(row, column)?;
            Some([
                row,
                number(rows + column as usize),
                number(rows + columns + cell),
            ])
        };
        // Most samples fell inside methods themselves.
        let mut own: IndexVec<EntryId, Option<[u32; 3]>> = profile.entries.with_each(None);
        let put = |thread: ThreadId, entry: EntryId, owner: Owner, hand_on: &mut dyn FnMut(u32)| {
            let is_own = self.axis == Axis::Methods && owner == Owner::Method(entry);
            let groups = if is_own {
                let known = &mut own[entry];
                *known = known.or_else(|| groups_of(thread, entry, owner));
                *known
            } else {
                groups_of(thread, entry, owner)
            };
            groups.into_iter().flatten().for_each(hand_on);
        };
        let total = self.of_row.iter().sum();
        let mut all = owner_errors(profile, filter, (total, groups), stop, put)?;
        if all.is_empty() {
            return Some(None);
        }
        let cells = all.split_off(rows + columns);
        let columns = all.split_off(rows);
        Some(Some(Errors {
            rows: all,
            columns,
            cells,
        }))
    }
}

/// Turns owners into rows.
struct Resolver<'a> {
    profile: &'a Profile,
    methods: &'a Methods,
    /// The first method of each name; built on first use.
    by_name: OnceCell<FxHashMap<&'a str, MethodId>>,
}

impl<'a> Resolver<'a> {
    fn new(profile: &'a Profile, methods: &'a Methods) -> Self {
        Resolver {
            profile,
            methods,
            by_name: OnceCell::new(),
        }
    }

    fn row(&self, owner: Owner) -> Row {
        match owner {
            Owner::Method(entry) => Row::Method(self.methods.of_entry[entry]),
            Owner::Compiled(index) => {
                let name = &self.profile.trace.compilations[index as usize].name;
                let by_name = self.by_name.get_or_init(|| {
                    let mut by_name = FxHashMap::default();
                    for (id, name) in self.methods.names.enumerated() {
                        by_name.entry(&**name).or_insert(id);
                    }
                    by_name
                });
                match by_name.get(name.as_str()) {
                    Some(&method) => Row::Method(method),
                    None => Row::Compiled(name.as_str().into()),
                }
            }
            owner => Row::Nobody(owner),
        }
    }
}

/// The indices of rows.
#[derive(Default)]
struct RowIndex {
    rows: Vec<Row>,
    /// A vector, because profiles have many methods.
    methods: IndexVec<MethodId, Option<u32>>,
    others: FxHashMap<Row, u32>,
}

impl RowIndex {
    /// Finds or adds a row.
    fn put(&mut self, row: Row) -> u32 {
        if let Some(known) = self.get(&row) {
            return known;
        }
        let new = u32::try_from(self.rows.len()).unwrap_or(NONE);
        match row {
            Row::Method(method) => {
                *self.methods.slot(method, None) = Some(new);
            }
            _ => {
                self.others.insert(row.clone(), new);
            }
        }
        self.rows.push(row);
        new
    }

    fn get(&self, row: &Row) -> Option<u32> {
        match row {
            Row::Method(method) => self.methods.get(*method).copied().flatten(),
            row => self.others.get(row).copied(),
        }
    }
}
