//! Samples by method, thread and category.

use crate::queries::entry_index::EntryIndex;
use crate::queries::matrix::{Item, Matrix, Shape};
use serde::Serialize;
use std::sync::Arc;
use vmscope_symbolizer::matrix::{Axis, Row};
use vmscope_symbolizer::{Filter, Profile, Stop};

/// The most rows of each kind; the rest is counted.
const MAX_ROWS: usize = 1000;

#[derive(Serialize)]
pub(super) struct MatrixPart {
    categories: Vec<CategoryPart>,
    methods: Vec<RowPart>,
    methods_left_out: usize,
    threads: Vec<RowPart>,
    threads_left_out: usize,
}

#[derive(Serialize)]
struct CategoryPart {
    region: &'static str,
    part: String,
    samples: u64,
    share_error: Option<f64>,
    /// Indices in [`MatrixPart::methods`], most samples first.
    methods: Vec<CellPart>,
    /// Indices in [`MatrixPart::threads`], most samples first.
    threads: Vec<CellPart>,
}

#[derive(Serialize)]
struct RowPart {
    kind: &'static str,
    name: String,
    samples: u64,
    share_error: Option<f64>,
    /// Indices in [`MatrixPart::categories`], in their order.
    categories: Vec<CellPart>,
}

#[derive(Serialize)]
struct CellPart {
    index: u32,
    samples: u64,
    share_error: Option<f64>,
}

/// `None` if counting was stopped.
pub(super) fn matrix_part(profile: &Profile, filter: &Filter) -> Option<MatrixPart> {
    let stop = Stop::new();
    let index = Arc::new(EntryIndex::of(profile, &stop)?);
    let of = |axis| {
        let shape = Shape {
            axis,
            in_parts: true,
            has_errors: true,
        };
        Matrix::of(profile, &index, filter, shape, &stop)
    };
    let (methods, threads) = (of(Axis::Methods)?, of(Axis::Threads)?);
    let errors = methods.errors.as_ref();
    // Both matrices count equal samples: columns are equal.
    let categories = (0u32..).zip(&methods.columns);
    let categories = categories.map(|(column, item)| CategoryPart {
        region: item.what.region.name(),
        part: item.what.part.clone().unwrap_or_default(),
        samples: item.samples,
        share_error: errors.map(|errors| errors.columns[column as usize]),
        methods: cells_of_column(&methods, column),
        threads: cells_of_column(&threads, column),
    });
    Some(MatrixPart {
        categories: categories.collect(),
        methods_left_out: methods.rows.len().saturating_sub(MAX_ROWS),
        methods: rows(&methods),
        threads_left_out: threads.rows.len().saturating_sub(MAX_ROWS),
        threads: rows(&threads),
    })
}

fn rows(matrix: &Matrix) -> Vec<RowPart> {
    let rows = (0u32..).zip(&matrix.rows).take(MAX_ROWS);
    rows.map(|(row, item)| RowPart {
        kind: kind_of(item),
        name: item.name.to_string(),
        samples: item.samples,
        share_error: (matrix.errors.as_ref()).map(|errors| errors.rows[row as usize]),
        categories: (matrix.cells.of_row(row).iter())
            .map(|cell| cell_part(matrix, (row, cell.column), cell.column))
            .collect(),
    })
    .collect()
}

fn cells_of_column(matrix: &Matrix, column: u32) -> Vec<CellPart> {
    let rows = matrix.rows_of_column[column as usize].iter();
    let listed = rows.filter(|row| (**row as usize) < MAX_ROWS);
    listed
        .map(|&row| cell_part(matrix, (row, column), row))
        .collect()
}

fn cell_part(matrix: &Matrix, (row, column): (u32, u32), index: u32) -> CellPart {
    CellPart {
        index,
        samples: matrix.cell(row, column),
        share_error: matrix.error(row, column),
    }
}

fn kind_of(item: &Item<Row>) -> &'static str {
    match item.what {
        Row::Method(_) => "method",
        Row::Compiled(_) => "compiled",
        Row::Thread(_) => "thread",
        Row::Nobody(_) => "nobody",
    }
}
