//! The allocation call graph: who called whom to allocate what.

use super::names::Names;
use crate::present::document::{Chart, Part, Table, Value};
use crate::present::numbers::{count, some};
use anyhow::{Result, bail};
use clap::Args;
use std::collections::BTreeSet;
use vmscope_records::MethodKey;
use vmscope_symbolizer::ClassId;
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::call_graph::{CallGraph, Edge, Selection};

/// Most rows.
const ROWS: usize = 20;

/// Most paths.
const PATHS: usize = 100;

/// Most chains in a flame graph.
const CHAINS: usize = 10_000;

#[derive(Args, Clone, Debug, Default)]
pub struct GraphOptions {
    /// Only objects of this class, in the call graph and in the list of single objects
    #[arg(long, value_name = "NAME")]
    class: Option<String>,
    /// Only allocations by this method and its callees, in the call graph
    #[arg(long, value_name = "METHOD")]
    from: Option<String>,
    /// Show the calls from the method of --from to this method
    #[arg(long, value_name = "METHOD", requires = "from")]
    to: Option<String>,
}

/// The part of the call graph that the user wants to see.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    pub selection: Selection,
    pub to: Option<MethodKey>,
}

impl Wanted {
    /// # Errors
    /// A name of nothing, or of several methods; methods without recorded callers.
    pub fn of(options: &GraphOptions, lifetimes: &Lifetimes, names: &Names<'_>) -> Result<Self> {
        if options.from.is_some() && !has_callers(lifetimes) {
            bail!("{WITHOUT_CALLERS}");
        }
        let class = |name: &String| class(name, lifetimes);
        let method = |name: &String| method(name, lifetimes, names);
        Ok(Wanted {
            selection: Selection {
                class: options.class.as_ref().map(class).transpose()?,
                from: options.from.as_ref().map(method).transpose()?,
            },
            to: options.to.as_ref().map(method).transpose()?,
        })
    }
}

fn class(name: &str, lifetimes: &Lifetimes) -> Result<ClassId> {
    let all = lifetimes.classes.enumerated();
    let part = all.filter(|(_, class)| class.name.contains(name));
    let part: Vec<(ClassId, &str)> = part.map(|(id, class)| (id, class.name.as_str())).collect();
    only(name, &part, ["class", "classes"])
}

fn method(name: &str, lifetimes: &Lifetimes, names: &Names<'_>) -> Result<MethodKey> {
    let frames = lifetimes.sites.iter().flat_map(|site| &site.frames);
    let methods: BTreeSet<MethodKey> = frames.map(|(method, _)| *method).collect();
    let named = methods.into_iter().map(|key| (key, names.method(key)));
    let part = named.filter(|(_, full)| full.contains(name));
    let part: Vec<(MethodKey, String)> = part.collect();
    only(
        name,
        &part,
        ["method on the way to an allocation", "methods"],
    )
}

/// The class or method with exactly this name; else the only match.
fn only<K: Copy, N: AsRef<str>>(name: &str, found: &[(K, N)], [one, many]: [&str; 2]) -> Result<K> {
    if let Some((key, _)) = found.iter().find(|(_, full)| full.as_ref() == name) {
        return Ok(*key);
    }
    match found {
        [(key, _)] => Ok(*key),
        [] => bail!("no {one} is named {name}"),
        several => bail!(
            "`{name}` matches {} {many}; be more specific",
            count(several.len() as u64)
        ),
    }
}

/// What to do about missing callers.
const WITHOUT_CALLERS: &str = "no callers of allocating methods are recorded: \
     record with --lifetimes=1/100 --lifetime-callers 20";

fn has_callers(lifetimes: &Lifetimes) -> bool {
    lifetimes.sites.iter().any(|site| site.frames.len() > 1)
}

/// The tables and the flame graph, or what to do about missing callers.
pub fn parts(lifetimes: &Lifetimes, names: &Names<'_>, wanted: Wanted) -> Vec<Part> {
    if !has_callers(lifetimes) {
        return vec![Part::Text(vec![format!("Call graph: {WITHOUT_CALLERS}")])];
    }
    let graph = CallGraph::of(lifetimes, wanted.selection);
    let paths = match (wanted.selection.from, wanted.to) {
        (Some(from), Some(to)) => Some(Part::Table(paths(&graph, names, [from, to]))),
        _ => None,
    };
    let mut parts: Vec<Part> = paths.into_iter().collect();
    parts.push(Part::Table(calls(&graph, names)));
    parts.push(Part::Table(methods(&graph, names)));
    parts.push(Part::Chart(flame(&graph, lifetimes, names)));
    parts
}

/// The first rows' number, where there are more.
fn first(all: usize) -> String {
    match all {
        ..=ROWS => String::new(),
        _ => format!(" (the first {ROWS} of {})", count(all as u64)),
    }
}

/// Who calls whom, most bytes first.
fn calls(graph: &CallGraph, names: &Names<'_>) -> Table {
    let title = format!("Calls that allocate{}", first(graph.edges.len()));
    let columns = [
        "caller",
        "callee",
        ">objects",
        ">±",
        ">bytes",
        ">±",
        ">share of bytes",
    ];
    let mut table = Table::new(&title, &columns);
    let mut edges: Vec<&Edge> = graph.edges.iter().collect();
    edges.sort_by(|a, b| b.bytes.value.total_cmp(&a.bytes.value));
    for edge in edges.into_iter().take(ROWS) {
        table.rows.push(vec![
            Value::Text(caller(graph, names, edge)),
            Value::Text(names.method(graph.nodes[edge.callee].method)),
            super::rounded(edge.objects.value),
            super::rounded(edge.objects.error),
            super::sized(edge.bytes.value),
            super::sized(edge.bytes.error),
            Value::Share(edge.bytes.value / graph.bytes.value.max(1.0)),
        ]);
    }
    table
}

fn caller(graph: &CallGraph, names: &Names<'_>, edge: &Edge) -> String {
    names.site(Some((graph.nodes[edge.caller].method, edge.pc)))
}

/// Methods with what they and their callees allocate, most bytes first.
fn methods(graph: &CallGraph, names: &Names<'_>) -> Table {
    let title = format!(
        "Methods with the allocations of their callees{}",
        first(graph.nodes.len())
    );
    let columns = [
        "method",
        ">objects",
        ">±",
        ">bytes",
        ">share of bytes",
        ">own objects",
        ">own bytes",
    ];
    let mut table = Table::new(&title, &columns);
    let mut nodes: Vec<_> = graph.nodes.iter().collect();
    nodes.sort_by(|a, b| b.bytes.value.total_cmp(&a.bytes.value));
    for node in nodes.into_iter().take(ROWS) {
        table.rows.push(vec![
            Value::Text(names.method(node.method)),
            super::rounded(node.objects.value),
            super::rounded(node.objects.error),
            super::sized(node.bytes.value),
            Value::Share(node.bytes.value / graph.bytes.value.max(1.0)),
            super::rounded(node.own_objects.value),
            super::sized(node.own_bytes.value),
        ]);
    }
    table
}

/// Paths between two methods. The call with the fewest allocations bounds a path's allocations.
fn paths(graph: &CallGraph, names: &Names<'_>, [from, to]: [MethodKey; 2]) -> Table {
    let found = graph.paths(from, to, PATHS);
    let ends = format!("from {} to {}", names.method(from), names.method(to));
    let title = match (found.paths.len(), found.is_complete) {
        (0, true) => format!("No path {ends}"),
        (number, true) => format!("{} {ends}", some(number as u64, "path", "paths")),
        (number, false) => format!("The first {number} paths {ends}"),
    };
    let mut table = Table::new(&title, &[">objects at most", ">bytes at most", "path"]);
    for path in &found.paths {
        let edges = || path.iter().map(|edge| &graph.edges[*edge]);
        let mut steps: Vec<String> = edges().map(|edge| caller(graph, names, edge)).collect();
        steps.push(names.method(to));
        let least = |of: fn(&Edge) -> f64| edges().map(of).fold(f64::INFINITY, f64::min);
        table.rows.push(vec![
            super::rounded(least(|edge| edge.objects.value)),
            super::sized(least(|edge| edge.bytes.value)),
            Value::Text(steps.join(" > ")),
        ]);
    }
    table
}

/// Allocated bytes by chain of callers, the allocating bytecode at the top.
fn flame(graph: &CallGraph, lifetimes: &Lifetimes, names: &Names<'_>) -> Chart {
    let mut chains: Vec<_> = graph.chains.iter().collect();
    chains.sort_by(|a, b| b.bytes.value.total_cmp(&a.bytes.value));
    // A semicolon separates frames.
    let frame = |name: String| name.replace(';', ",").replace('\n', " ");
    let lines = chains.into_iter().take(CHAINS).map(|chain| {
        let frames = &lifetimes.sites[chain.site].frames;
        let frames = frames.iter().take(chain.frames).enumerate().rev();
        let frames = frames.map(|(at, (method, pc))| match at {
            0 => frame(names.site(Some((*method, *pc)))),
            _ => frame(names.method(*method)),
        });
        let frames: Vec<String> = frames.collect();
        format!("{} {:.0}", frames.join(";"), chain.bytes.value.max(0.0))
    });
    Chart::Flame {
        title: "Allocated bytes by callers".to_owned(),
        unit: "bytes",
        collapsed: lines.collect(),
    }
}
