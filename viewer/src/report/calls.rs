//! Call trees: `--tree`, `--callers METHOD`, `--callees METHOD`.

use super::page::{Others, Page, narrowed_to};
use super::{accuracy, session};
use crate::present::functions::{self, NOBODY};
use crate::present::names::region_key;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::harmless;
use crate::print::ListError;
use crate::queries::branches::{Branches, Row};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::annotate::fitting;
use vmscope_symbolizer::calls::{CallTree, CallsOf, Function, FunctionId, StackIndex};
use vmscope_symbolizer::profile::Begin;

/// Version of the JSON schema (docs/report-json.md).
const SCHEMA: &str = "vmscope-calls/1.1";

/// Default minimum share of a row, in percent.
const MIN_SHARE: f64 = 1.0;

/// Fewest columns of a name.
const MIN_NAME: usize = 30;

/// Which call tree to print instead of the report.
#[derive(Args, Clone, Debug, Default)]
pub struct CallsOptions {
    /// Print the call tree, top down
    #[arg(long, group = "form")]
    pub tree: bool,
    /// With --tree: the hottest functions first, their callers below
    #[arg(long, requires = "tree")]
    pub inverted: bool,
    /// Print the callers of a method or function: its full name, or an unambiguous part
    #[arg(long, group = "form", value_name = "METHOD")]
    pub callers: Option<String>,
    /// Print the callees of a method or function
    #[arg(long, group = "form", value_name = "METHOD")]
    pub callees: Option<String>,
}

/// A call tree with its rows.
pub(super) struct Calls {
    title: String,
    /// Denominator of shares: samples of the tree or of the chosen function.
    whole: u64,
    /// Samples of the report's selection.
    all: u64,
    /// Minimum share of a row, in percent.
    least: f64,
    branches: Branches,
    lines: Vec<Line>,
}

/// A row with enough samples, or all small rows below one row.
struct Line {
    /// Line of the parent.
    parent: Option<usize>,
    /// `None` for small rows.
    row: Option<Row>,
    others: Others,
    /// Branches before the name.
    branches: String,
}

impl CallsOptions {
    /// Whether the user asks for a call tree.
    pub(super) fn is_asked(&self) -> bool {
        self.tree || self.callers.is_some() || self.callees.is_some()
    }
}

/// The asked call tree.
///
/// # Errors
/// A recording without callers, an unknown or ambiguous function.
pub(super) fn calls(page: &Page<'_>) -> Result<Calls> {
    let options = &page.options.calls;
    let profile = page.profile;
    if profile.trace.samples.chains.is_empty() {
        bail!(
            "this recording has no callers: vmscope records them unless told not to (--call-graph=off)"
        );
    }
    let stop = Stop::new();
    let tree = StackIndex::of(profile, None, None, &stop).and_then(|index| {
        let of = CallsOf::default();
        CallTree::of(profile, &Arc::new(index), page.filter, &of, &stop)
    });
    let tree = Arc::new(tree.context("stopped")?);
    let around = match (&options.callers, &options.callees) {
        (Some(wanted), _) => Some((wanted, true)),
        (_, Some(wanted)) => Some((wanted, false)),
        _ => None,
    };
    let (title, whole, branches) = match around {
        None => {
            let title = match options.inverted {
                true => "Functions by own samples, with their callers",
                false => "Call tree, top down",
            };
            let branches = Branches::of(&tree, options.inverted);
            (title.to_owned(), tree.samples(), branches)
        }
        Some((wanted, up)) => {
            let (name, functions) = named(&tree, wanted)?;
            let stacks = tree.stacks_of(&functions);
            let whole = stacks.iter().map(|stack| stack.samples).sum();
            let own = functions.iter().map(|&id| tree.counts_of(id).own).sum();
            let which = if up { "Callers" } else { "Callees" };
            let part = |samples| {
                let share = percent(ratio(samples, tree.samples()));
                let samples = some(samples, "sample", "samples");
                format!("{samples} ({share} of all)")
            };
            let name = harmless(&name);
            let (with, own) = (part(whole), part(own));
            let title = format!("{which} of {name}: {with} with its callees, {own} of its own");
            (title, whole, Branches::around(&tree, &stacks, up))
        }
    };
    let least = page.options.min_share.unwrap_or(MIN_SHARE);
    Ok(Calls {
        title,
        whole,
        all: tree.taken(),
        least,
        lines: lines(&branches, |samples| ratio(samples, whole) * 100.0 >= least),
        branches,
    })
}

/// The functions of one name and begin, whatever their tiers.
struct Named<'a> {
    name: &'a str,
    begin: Option<&'a Begin>,
    /// Name and begin.
    label: String,
    /// Samples of stacks with it, summed over its tiers.
    samples: u64,
    ids: Vec<FunctionId>,
}

/// The functions with the wanted name or label.
fn named(tree: &CallTree, wanted: &str) -> Result<(String, Vec<FunctionId>)> {
    // Function ids follow names and begins.
    let mut names: Vec<Named<'_>> = Vec::new();
    for (id, function) in tree.functions().enumerated() {
        let samples = tree.counts_of(id).total;
        if samples == 0 || function.thread.is_some() {
            continue;
        }
        let (name, begin) = (&*function.name, function.begin.as_ref());
        let is_same = |one: &&mut Named<'_>| (one.name, one.begin) == (name, begin);
        match names.last_mut().filter(is_same) {
            Some(same) => {
                same.samples += samples;
                same.ids.push(id);
            }
            None => names.push(Named {
                name,
                begin,
                label: begin.map_or_else(
                    || name.to_owned(),
                    |begin| format!("{name} {}", begin.text(tree.has_namesake(id))),
                ),
                samples,
                ids: vec![id],
            }),
        }
    }
    names.sort_by_key(|one| Reverse(one.samples));
    let found = fitting(&names, wanted, |one| [one.name, &one.label]);
    let (message, listed) = match found[..] {
        [one] => return Ok((one.label.clone(), one.ids.clone())),
        [] => {
            let message = format!("no function with samples matches `{wanted}`; the hottest are:");
            (message, names.iter().collect())
        }
        _ => {
            let number = count(found.len() as u64);
            let message = format!("`{wanted}` matches {number} functions; be more specific:");
            (message, found)
        }
    };
    let list = listed.iter().map(|one| (one.samples, &*one.label));
    let list: Vec<(u64, &str)> = list.collect();
    Err(ListError::of_names(message, ["inclusive", "function"], &list).into())
}

/// Lines in order: each row's children behind it. The only line below a row has no branch: chains of
/// calls don't move to the right.
fn lines(branches: &Branches, is_large: impl Fn(u64) -> bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    // Children to write, the next last: parent, rest of the parent's branches, row.
    let mut open: Vec<(Line, String)> = Vec::new();
    let put =
        |open: &mut Vec<(Line, String)>, parent: Option<usize>, before: &str, rows: &[Row]| {
            let (large, small): (Vec<Row>, Vec<Row>) = rows
                .iter()
                .partition(|&&row| is_large(branches.samples(row)));
            let others = Others::of(small.into_iter().map(|row| branches.samples(row)));
            let has_others = others.number > 0 && is_large(others.samples);
            let rows = large.into_iter().map(Some);
            let rows: Vec<Option<Row>> = rows.chain(has_others.then_some(None)).collect();
            for (at, row) in rows.iter().enumerate().rev() {
                let (branch, below) = match (rows.len(), at + 1 == rows.len()) {
                    (1, _) => ("", ""),
                    (_, true) => ("└ ", "  "),
                    (_, false) => ("├ ", "│ "),
                };
                let line = Line {
                    parent,
                    row: *row,
                    others,
                    branches: format!("{before}{branch}"),
                };
                open.push((line, format!("{before}{below}")));
            }
        };
    put(&mut open, None, "", branches.roots());
    while let Some((line, below)) = open.pop() {
        let row = line.row;
        lines.push(line);
        if let Some(row) = row {
            put(
                &mut open,
                Some(lines.len() - 1),
                &below,
                &branches.children_of(row),
            );
        }
    }
    lines
}

/// The call tree as text, behind the limits of its accuracy.
pub(super) fn text(page: &Page<'_>, calls: &Calls) -> String {
    let mut out = String::new();
    accuracy::text(page, &mut out);
    if let Some(narrowed) = narrowed_to(page.profile, page.filter, page.summary) {
        page.paragraph(&mut out, &narrowed);
    }
    page.paragraph(&mut out, &calls.title);
    let is_up = calls.branches.is_up();
    let next = if is_up { "caller" } else { "callee" };
    let mut legend =
        format!("A line without a branch of its own is the only {next} of the line above.");
    if calls.least > 0.0 {
        let left_out = "Left out: functions with less than";
        legend.push_str(&format!(" {left_out} {} % of these samples.", calls.least));
    }
    page.paragraph(&mut out, &legend);
    let heads = if is_up {
        "   share"
    } else {
        "   total     self"
    };
    out.push_str(&format!("{heads}{:>11}  function\n", "samples"));
    let share = |samples: u64| percent(ratio(samples, calls.whole));
    for line in &calls.lines {
        let function = line.row.and_then(|row| calls.branches.function(row));
        let name = line.row.and_then(|row| calls.branches.name(row));
        let samples = line
            .row
            .map_or(line.others.samples, |row| calls.branches.samples(row));
        let own = line.row.map(|row| calls.branches.branch(row).own);
        let own = match own.filter(|own| *own > 0) {
            _ if is_up => String::new(),
            own => format!("{:>9}", own.map_or_else(String::new, share)),
        };
        let used = heads.len() + 11 + 2 + line.branches.chars().count();
        let columns = page.width.saturating_sub(used).max(MIN_NAME);
        let name = match (line.row, function, name) {
            (None, ..) => line.others.name(["function", "functions"]),
            (_, Some(function), Some(name)) => {
                let inlined = if function.inlined { " (inlined)" } else { "" };
                let label = name.label(columns.saturating_sub(inlined.len()));
                format!("{}{inlined}", label.trim_end())
            }
            _ => NOBODY.to_owned(),
        };
        out.push_str(&format!(
            "{:>8}{own}{:>11}  {}{name}\n",
            share(samples),
            count(samples),
            line.branches
        ));
    }
    if calls.lines.is_empty() {
        out.push_str("no samples\n");
    }
    out
}

/// The call tree as JSON (docs/report-json.md). Rows name their parents, since chains of calls are
/// deeper than many readers of JSON allow objects to be.
///
/// # Errors
/// A recording without a session.
pub(super) fn json(page: &Page<'_>, calls: &Calls) -> Result<Value> {
    let is_native = page.profile.is_native();
    let rows = calls.lines.iter().map(|line| {
        let Some(row) = line.row else {
            return json!({
                "parent": line.parent,
                "samples": line.others.samples,
                "others": line.others.number,
            });
        };
        let branch = calls.branches.branch(row);
        let mut value = json!({
            "parent": line.parent,
            "samples": calls.branches.samples(row),
            "function": calls.branches.function(row).map(|one| of_function(one, is_native)),
        });
        if !calls.branches.is_up() {
            value["self"] = branch.own.into();
        }
        value
    });
    Ok(json!({
        "schema": SCHEMA,
        "title": calls.title,
        "session": session::json(page)?,
        "samples": calls.whole,
        "selected_samples": calls.all,
        "rows": rows.collect::<Vec<Value>>(),
    }))
}

fn of_function(function: &Function, is_native: bool) -> Value {
    let region = function.region.map(|region| region_key(region, is_native));
    let mut value = functions::json(&function.name, &function.tier, region, function.inlined);
    if let Some(begin) = &function.begin {
        functions::put_place(&mut value, &begin.file, begin.line);
    }
    value
}
