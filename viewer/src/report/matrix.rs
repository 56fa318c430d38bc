//! Methods by category, and categories by method.

use super::page::{Others, Page};
use crate::present::names::region_key;
use crate::present::numbers::{count, percent, ratio};
use crate::present::shorten::{Name, labels};
use crate::present::text::fit;
use crate::queries::entry_index::EntryIndex;
use crate::queries::matrix::{Item, Matrix, Shape};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::matrix::{Axis, Row};
use vmscope_symbolizer::methods::is_method;
use vmscope_symbolizer::{Region, Stop};

/// Maximum number of rows in the text, and of lines below each row.
const MAX_ROWS: usize = 5;
const MAX_PARTS: usize = 3;

/// Maximum number of rows of each kind in JSON; further rows are counted.
const MAX_JSON_ROWS: usize = 1000;

/// Columns beside the name: both percentages and samples.
const FIXED_COLUMNS: usize = 8 + 2 + 10 + 2 + 1 + 11;

const METHOD: [&str; 2] = ["method", "methods"];
const CATEGORY: [&str; 2] = ["category", "categories"];

/// A row with its parts: names, samples.
struct Branch<'a> {
    name: &'a str,
    samples: u64,
    parts: Vec<(&'a str, u64)>,
}

/// Both tables, if callers attribute samples of the VM, libraries or the kernel to methods.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let stop = Stop::new();
    let matrix = EntryIndex::of(page.profile, &stop).and_then(|index| {
        let shape = Shape {
            in_parts: true,
            ..Shape::default()
        };
        Matrix::of(page.profile, &Arc::new(index), page.filter, shape, &stop)
    });
    let Some(matrix) = matrix else {
        return;
    };
    let costs = costs(page, &matrix);
    // The section of compilers shows compiler costs.
    if costs.iter().all(|(region, _)| *region == Region::Compiler) {
        return;
    }
    let known = (0u32..).zip(&matrix.rows);
    let known = known.filter(|(_, item)| is_known(&item.what));
    let methods = known.map(|(row, item)| {
        let cells = matrix.cells.of_row(row).iter();
        let name = |column: u32| &*matrix.columns[column as usize].name;
        let mut parts: Vec<_> = cells
            .map(|cell| (name(cell.column), cell.samples))
            .collect();
        parts.sort_by_key(|(_, samples)| Reverse(*samples));
        Branch {
            name: &item.name,
            samples: item.samples,
            parts,
        }
    });
    let methods: Vec<Branch> = methods.collect();
    let costs: Vec<Branch> = costs.into_iter().map(|(_, branch)| branch).collect();
    page.heading(out, "Methods by category");
    branches(page, METHOD, CATEGORY, &methods, out);
    page.heading(out, "Categories by method");
    branches(page, CATEGORY, METHOD, &costs, out);
}

fn branches(
    page: &Page<'_>,
    of_rows: [&str; 2],
    of_parts: [&str; 2],
    branches: &[Branch],
    out: &mut String,
) {
    let columns = page.width.saturating_sub(FIXED_COLUMNS);
    let title = format!("% of total (% of {})", of_rows[0]);
    let left = columns + 22;
    out.push_str(&format!("{title:<left$} {:>11}\n", "(samples)"));
    let mut line = |name: &str, samples: u64, whole: Option<u64>| {
        let (total, part, indent) = match whole {
            None => (percent(page.summary.share(samples)), String::new(), ""),
            Some(whole) => {
                let share = percent(ratio(samples, whole));
                (String::new(), format!("({share})"), "  ")
            }
        };
        let name = fit(&format!("{indent}{name}"), columns);
        let samples = format!("({})", count(samples));
        out.push_str(&format!("{total:>8}  {part:>10}  {name} {samples:>11}\n"));
    };
    let labels_in = |names: &mut dyn Iterator<Item = &str>, columns: usize| {
        let names = names.map(|name| {
            (
                Name {
                    name,
                    ..Name::default()
                },
                columns,
            )
        });
        labels(&names.collect::<Vec<_>>())
    };
    let (shown, rest) = branches.split_at(MAX_ROWS.min(branches.len()));
    let names = labels_in(&mut shown.iter().map(|branch| branch.name), columns);
    for (branch, name) in shown.iter().zip(&names) {
        line(name, branch.samples, None);
        let (shown, rest) = branch.parts.split_at(MAX_PARTS.min(branch.parts.len()));
        let names = &mut shown.iter().map(|(name, _)| *name);
        let names = labels_in(names, columns.saturating_sub(2));
        for ((_, samples), name) in shown.iter().zip(&names) {
            line(name, *samples, Some(branch.samples));
        }
        let others = Others::of(rest.iter().map(|(_, samples)| *samples));
        if others.number > 0 {
            line(&others.name(of_parts), others.samples, Some(branch.samples));
        }
    }
    let others = Others::of(rest.iter().map(|branch| branch.samples));
    if others.number > 0 {
        line(&others.name(of_rows), others.samples, None);
    }
}

/// Categories outside methods' own code with samples of known methods, most samples first.
fn costs<'a>(page: &Page<'_>, matrix: &'a Matrix) -> Vec<(Region, Branch<'a>)> {
    let mut costs = Vec::new();
    for (column, item) in (0u32..).zip(&matrix.columns) {
        let entries = matrix.entries_of(page.profile, Some(&item.what), None);
        if entries.iter().any(|&entry| is_method(page.profile, entry)) {
            continue;
        }
        let rows = matrix.rows_of_column[column as usize].iter();
        let rows = rows.map(|&row| (&matrix.rows[row as usize], matrix.cell(row, column)));
        if rows.clone().any(|(row, _)| is_known(&row.what)) {
            let branch = Branch {
                name: &item.name,
                samples: item.samples,
                parts: rows.map(|(row, samples)| (&*row.name, samples)).collect(),
            };
            costs.push((item.what.region, branch));
        }
    }
    costs.sort_by_key(|(_, branch)| Reverse(branch.samples));
    costs
}

fn is_known(row: &Row) -> bool {
    !matches!(row, Row::Nobody(_))
}

pub(super) fn json(page: &Page<'_>) -> Result<Value> {
    let stop = Stop::new();
    let index = EntryIndex::of(page.profile, &stop).context("the entries were not counted")?;
    let index = Arc::new(index);
    let of = |axis| {
        let shape = Shape {
            axis,
            in_parts: true,
            has_errors: true,
        };
        let matrix = Matrix::of(page.profile, &index, page.filter, shape, &stop);
        matrix.context("the matrix was not counted")
    };
    let (methods, threads) = (of(Axis::Methods)?, of(Axis::Threads)?);
    // Both matrices have equal columns.
    let categories = (0u32..).zip(&methods.columns).map(|(column, item)| {
        let errors = methods.errors.as_ref();
        json!({
            "region": region_key(item.what.region, page.profile.is_native()),
            "part": item.what.part.as_deref().unwrap_or_default(),
            "samples": item.samples,
            "share_error": errors.map(|errors| errors.columns[column as usize]),
            "methods": cells_of_column(&methods, column),
            "threads": cells_of_column(&threads, column),
        })
    });
    Ok(json!({
        "categories": categories.collect::<Vec<_>>(),
        "methods": rows(&methods),
        "methods_left_out": methods.rows.len().saturating_sub(MAX_JSON_ROWS),
        "threads": rows(&threads),
        "threads_left_out": threads.rows.len().saturating_sub(MAX_JSON_ROWS),
    }))
}

fn rows(matrix: &Matrix) -> Value {
    let rows = (0u32..).zip(&matrix.rows).take(MAX_JSON_ROWS);
    let row = |(row, item): (u32, &Item<Row>)| {
        let cells = matrix.cells.of_row(row).iter();
        let cells = cells.map(|cell| cell_json(matrix, (row, cell.column), cell.column));
        let errors = matrix.errors.as_ref();
        json!({
            "kind": match item.what {
                Row::Method(_) => "method",
                Row::Compiled(_) => "compiled",
                Row::Thread(_) => "thread",
                Row::Nobody(_) => "nobody",
            },
            "name": &*item.name,
            "samples": item.samples,
            "share_error": errors.map(|errors| errors.rows[row as usize]),
            "categories": cells.collect::<Vec<_>>(),
        })
    };
    rows.map(row).collect()
}

fn cells_of_column(matrix: &Matrix, column: u32) -> Value {
    let rows = matrix.rows_of_column[column as usize].iter();
    let listed = rows.filter(|row| (**row as usize) < MAX_JSON_ROWS);
    let cells = listed.map(|&row| cell_json(matrix, (row, column), row));
    cells.collect()
}

/// Cell within its row's or column's list; `index` counts the other dimension.
fn cell_json(matrix: &Matrix, (row, column): (u32, u32), index: u32) -> Value {
    json!({
        "index": index,
        "samples": matrix.cell(row, column),
        "share_error": matrix.error(row, column),
    })
}
