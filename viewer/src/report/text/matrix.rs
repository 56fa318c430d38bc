//! Methods by category, and categories by method.

use super::Page;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::fit;
use crate::queries::entry_index::EntryIndex;
use crate::queries::matrix::{Matrix, Shape};
use anyhow::Result;
use std::io::Write;
use std::sync::Arc;
use vmscope_symbolizer::matrix::Row;
use vmscope_symbolizer::methods::is_method;
use vmscope_symbolizer::{Filter, Region, Stop};

/// The most rows of a table, and the most lines under each row.
const MAX_ROWS: usize = 5;
const MAX_PARTS: usize = 3;

/// Columns of everything but the name: both percentages and samples.
const FIXED_COLUMNS: usize = 8 + 2 + 10 + 2 + 1 + 11;

/// A row with its parts: names, samples.
struct Branch<'a> {
    name: &'a str,
    samples: u64,
    parts: Vec<(&'a str, u64)>,
}

impl Page<'_> {
    /// Both tables, where callers show which methods the VM, libraries or the kernel worked for.
    pub(super) fn matrix(&self, filter: &Filter, out: &mut dyn Write) -> Result<()> {
        let stop = Stop::new();
        let matrix = EntryIndex::of(self.profile, &stop).and_then(|index| {
            let shape = Shape {
                in_parts: true,
                ..Shape::default()
            };
            Matrix::of(self.profile, &Arc::new(index), filter, shape, &stop)
        });
        let Some(matrix) = matrix else {
            return Ok(());
        };
        let costs = self.costs(&matrix);
        // What compilers worked for has a section of its own.
        if costs.iter().all(|(region, _)| *region == Region::Compiler) {
            return Ok(());
        }
        let methods: Vec<Branch> = (0u32..)
            .zip(&matrix.rows)
            .filter(|(_, item)| is_known(&item.what))
            .map(|(row, item)| {
                let cells = matrix.cells.of_row(row).iter();
                let part = |column: u32| &*matrix.columns[column as usize].name;
                let mut parts: Vec<_> = cells
                    .map(|cell| (part(cell.column), cell.samples))
                    .collect();
                parts.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
                Branch {
                    name: &item.name,
                    samples: item.samples,
                    parts,
                }
            })
            .collect();
        let costs: Vec<Branch> = costs.into_iter().map(|(_, branch)| branch).collect();
        writeln!(out, "\n**Methods by category**")?;
        self.branches(
            "method",
            "methods",
            &methods,
            ["category", "categories"],
            out,
        )?;
        writeln!(out, "\n**Categories by method**")?;
        self.branches("category", "categories", &costs, ["method", "methods"], out)
    }

    fn branches(
        &self,
        one: &str,
        many: &str,
        branches: &[Branch],
        [part, parts]: [&str; 2],
        out: &mut dyn Write,
    ) -> Result<()> {
        let columns = self.width.saturating_sub(FIXED_COLUMNS);
        let title = format!("% of total (% of {one})");
        let left = columns + 22;
        writeln!(out, "{title:<left$} {:>11}", "(samples)")?;
        let mut line = |of: (String, String), name: &str, samples: u64| {
            let name = fit(name, columns);
            let samples = format!("({})", count(samples));
            writeln!(out, "{:>8}  {:>10}  {name} {samples:>11}", of.0, of.1)
        };
        for branch in branches.iter().take(MAX_ROWS) {
            let share = percent(self.summary.share(branch.samples));
            line((share, String::new()), branch.name, branch.samples)?;
            let mut inside = |name: &str, samples: u64| {
                let share = format!("({})", percent(ratio(samples, branch.samples)));
                line((String::new(), share), &format!("  {name}"), samples)
            };
            let (shown, rest) = branch.parts.split_at(MAX_PARTS.min(branch.parts.len()));
            for (name, samples) in shown {
                inside(name, *samples)?;
            }
            if !rest.is_empty() {
                let name = some(rest.len() as u64, part, parts);
                let samples = rest.iter().map(|(_, samples)| samples).sum();
                inside(&format!("...others... ({name})"), samples)?;
            }
        }
        let rest = branches.get(MAX_ROWS..).unwrap_or_default();
        if !rest.is_empty() {
            let name = some(rest.len() as u64, one, many);
            let samples = rest.iter().map(|branch| branch.samples).sum();
            let share = percent(self.summary.share(samples));
            line(
                (share, String::new()),
                &format!("...others... ({name})"),
                samples,
            )?;
        }
        Ok(())
    }

    /// The categories outside methods' own code that have samples of known methods, most
    /// samples first.
    fn costs<'a>(&self, matrix: &'a Matrix) -> Vec<(Region, Branch<'a>)> {
        let mut costs = Vec::new();
        for (column, item) in (0u32..).zip(&matrix.columns) {
            let entries = matrix.entries_of(self.profile, Some(&item.what), None);
            if entries.iter().any(|&entry| is_method(self.profile, entry)) {
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
        costs.sort_by_key(|(_, branch)| std::cmp::Reverse(branch.samples));
        costs
    }
}

fn is_known(row: &Row) -> bool {
    !matches!(row, Row::Nobody(_))
}
