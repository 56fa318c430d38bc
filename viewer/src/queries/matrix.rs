//! Samples by category and method, or by category and thread. Rows are methods or threads, most
//! samples first. Columns are regions, or their parts by tier and phase, in region order.

use super::entry_index::{EntryIndex, ranked};
use crate::present::names::region_name;
use crate::present::names::thread_label;
use crate::queries::parts::part_of;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::attribution::Owner;
use vmscope_symbolizer::matrix::{self as counted, Axis, Cells, Errors, Row};
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::{EntryId, Filter, IndexVec, Profile, Region, Stop};

/// Kind of matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    pub axis: Axis,
    /// Columns for parts instead of whole regions.
    pub in_parts: bool,
    /// Error estimates, which take longer.
    pub has_errors: bool,
}

impl Shape {
    pub fn without_errors(self) -> Self {
        Shape {
            has_errors: false,
            ..self
        }
    }
}

/// Column: a region, or a named part (tier, phase).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Category {
    pub region: Region,
    /// May be empty; `None` for the whole region.
    pub part: Option<String>,
}

impl Category {
    pub fn name(&self, is_native: bool) -> String {
        let region = region_name(self.region, is_native);
        match self.part.as_deref() {
            None | Some("") => region.to_owned(),
            Some(part) if part == region => region.to_owned(),
            Some(part) => format!("{region}: {part}"),
        }
    }

    fn has(&self, profile: &Profile, entry: EntryId) -> bool {
        let entry = &profile.entries[entry];
        let is_in_part = |part: &String| part_of(entry) == part.as_str();
        entry.region == self.region && self.part.as_ref().is_none_or(is_in_part)
    }
}

/// Row or column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<T> {
    pub what: T,
    pub name: Arc<str>,
    /// Alphabetical rank; equal names share ranks.
    pub rank: u32,
    pub samples: u64,
}

#[derive(Debug, Default)]
pub struct Matrix {
    pub index: Arc<EntryIndex>,
    pub shape: Shape,
    /// Of a native program.
    pub is_native: bool,
    pub total: u64,
    /// Most samples first.
    pub rows: Vec<Item<Row>>,
    /// By region, most samples first.
    pub columns: Vec<Item<Category>>,
    pub cells: Cells,
    /// Rows with samples in each column, most samples first.
    pub rows_of_column: Vec<Vec<u32>>,
    /// Samples of the largest cell.
    pub most: u64,
    /// 95 % half-widths of shares; `None` without request or enough samples.
    pub errors: Option<Errors>,
}

impl Matrix {
    /// Counts samples under a filter; `None` after a stop.
    pub fn of(
        profile: &Profile,
        index: &Arc<EntryIndex>,
        filter: &Filter,
        shape: Shape,
        stop: &Stop,
    ) -> Option<Self> {
        let (categories, column_of_entry) = categories(profile, shape.in_parts);
        let what = (shape.axis, column_of_entry, categories.len());
        let matrix = counted::Matrix::of(profile, &index.methods, filter, what, stop)?;
        let (rows, row_order) = in_order(
            matrix.rows.iter().zip(matrix.of_row.iter().copied()),
            |row| name_of(profile, index, row),
            |_, samples, rank| (Reverse(samples), rank),
        );
        let (columns, column_order) = in_order(
            categories.iter().zip(matrix.of_column.iter().copied()),
            |category| category.name(profile.is_native()).into(),
            |category: &Category, samples, rank| (category.region as usize, Reverse(samples), rank),
        );
        let matrix = matrix.in_order(&row_order, &column_order);
        let errors = match shape.has_errors {
            true => matrix.errors(profile, &index.methods, filter, stop)?,
            false => None,
        };
        let mut rows_of_column: Vec<Vec<(Reverse<u64>, u32)>> = vec![Vec::new(); columns.len()];
        for cell in matrix.cells.all() {
            rows_of_column[cell.column as usize].push((Reverse(cell.samples), cell.row));
        }
        let rows_of_column = rows_of_column.into_iter().map(|mut rows| {
            rows.sort_unstable();
            rows.into_iter().map(|(_, row)| row).collect()
        });
        let most = matrix.cells.all().iter().map(|cell| cell.samples).max();
        let matrix = Matrix {
            index: Arc::clone(index),
            shape,
            is_native: profile.is_native(),
            total: rows.iter().map(|row| row.samples).sum(),
            rows,
            columns,
            cells: matrix.cells,
            rows_of_column: rows_of_column.collect(),
            most: most.unwrap_or(0),
            errors,
        };
        (!stop.is_stopped()).then_some(matrix)
    }

    pub fn cell(&self, row: u32, column: u32) -> u64 {
        self.cells.get(row, column)
    }

    /// 95 % half-width of a cell's share.
    pub fn error(&self, row: u32, column: u32) -> Option<f64> {
        let errors = self.errors.as_ref()?;
        Some(errors.cells[self.cells.at(row, column)?])
    }

    /// Entries selected by category, method, or both.
    pub fn entries_of(
        &self,
        profile: &Profile,
        category: Option<&Category>,
        method: Option<MethodId>,
    ) -> Vec<EntryId> {
        let entries = self.index.methods.of_entry.enumerated();
        let fits = entries.filter(|&(entry, of)| {
            method.is_none_or(|method| method == *of)
                && category.is_none_or(|category| category.has(profile, entry))
        });
        fits.map(|(entry, _)| entry).collect()
    }
}

/// Categories, and each entry's category index.
fn categories(profile: &Profile, in_parts: bool) -> (Vec<Category>, IndexVec<EntryId, u32>) {
    let mut index: FxHashMap<(Region, &str), u32> = FxHashMap::default();
    let mut categories = Vec::new();
    let of_entry = profile.entries.map(|_, entry| {
        let part = if in_parts { part_of(entry) } else { "" };
        *index.entry((entry.region, part)).or_insert_with(|| {
            categories.push(Category {
                region: entry.region,
                part: in_parts.then(|| part.to_owned()),
            });
            u32::try_from(categories.len() - 1).unwrap_or(u32::MAX)
        })
    });
    (categories, of_entry)
}

fn name_of(profile: &Profile, index: &EntryIndex, row: &Row) -> Arc<str> {
    match row {
        Row::Method(method) => Arc::clone(&index.methods.names[*method]),
        Row::Compiled(name) => Arc::clone(name),
        Row::Thread(thread) => {
            let thread = &profile.trace.threads[*thread];
            thread_label(&thread.thread).into()
        }
        Row::Nobody(owner) => why(*owner).into(),
    }
}

const fn why(owner: Owner) -> &'static str {
    match owner {
        Owner::Collector => "(collector threads)",
        Owner::Compiler => "(compilers: method unknown)",
        Owner::Vm => "(VM threads)",
        Owner::NoMethod => "(no method among callers)",
        Owner::Forgotten => "(too old: callers dropped)",
        _ => "(unknown: no callers recorded)",
    }
}

/// Items with samples, sorted by key, with their old indices.
fn in_order<'a, T: Clone + 'a, K: Ord>(
    all: impl Iterator<Item = (&'a T, u64)>,
    name: impl Fn(&T) -> Arc<str>,
    key: impl Fn(&T, u64, u32) -> K,
) -> (Vec<Item<T>>, Vec<u32>) {
    let all = (0u32..).zip(all).filter(|(_, (_, samples))| *samples > 0);
    let items = all.map(|(old, (what, samples))| {
        let name = name(what);
        let item = Item {
            what: what.clone(),
            name,
            rank: 0,
            samples,
        };
        (item, old)
    });
    let mut items: Vec<(Item<T>, u32)> = items.collect();
    let (_, ranks) = ranked(items.iter().map(|(item, _)| &*item.name));
    for ((item, _), rank) in items.iter_mut().zip(ranks) {
        item.rank = rank;
    }
    items.sort_by_cached_key(|(item, old)| (key(&item.what, item.samples, item.rank), *old));
    items.into_iter().unzip()
}

#[cfg(test)]
mod tests;
