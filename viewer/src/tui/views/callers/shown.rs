//! All that the view shows, for copying and exporting.

use super::branches::Branches;
use super::list::NOBODY;
use super::words;
use crate::export::frames::{field, mark};
use crate::export::tree::LONGEST_NAME;
use crate::present::document::{Chart, Table, Value, each};
use crate::present::numbers::ratio;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::calls::{CallTree, Function, NodeId};

/// Frames of fewer samples than this part of all stay with their callers: so many can't be
/// told apart in a picture.
const NARROWEST: u64 = 10_000;

/// The most text of collapsed stacks: where stacks of hostile depth have hostile names,
/// narrow frames are left out earlier.
const MOST_TEXT_BYTES: usize = 16 << 20;

/// The rows of the tree, as far as it is opened.
pub fn table(
    tree: &CallTree,
    branches: &Branches,
    up: bool,
    all: u64,
    stop: &Stop,
) -> Option<Table> {
    let columns = [
        ">depth",
        ">total",
        ">self",
        ">samples",
        ">self samples",
        "region",
        "function",
    ];
    let title = if up {
        "functions by samples of their own, and who called them"
    } else {
        "functions and what they called"
    };
    let mut table = Table::new(title, &columns);
    each(0..branches.len(), stop, |row| {
        let Some(branch) = branches.row(row) else {
            return;
        };
        let function = branch.function.and_then(|id| tree.function(id));
        let share = |samples: u64| Value::Share(ratio(samples, all));
        table.rows.push(vec![
            Value::Count(branch.depth as u64),
            branch.total.map_or(Value::Empty, share),
            share(branch.own),
            branch.total.map_or(Value::Empty, Value::Count),
            Value::Count(branch.own),
            Value::Text(function.map_or_else(String::new, region_of)),
            Value::Text(function.map_or_else(|| NOBODY.to_owned(), named)),
        ]);
    })?;
    Some(table)
}

fn named(function: &Function) -> String {
    let inlined = if function.inlined { " (inlined)" } else { "" };
    format!("{}{inlined}", words::full(function))
}

fn region_of(function: &Function) -> String {
    let region = function.region.map(crate::present::names::region_name);
    region.unwrap_or("thread").to_owned()
}

/// The stacks under a node, as lines that other tools read: with the names and marks that
/// `vmscope export` writes. Returns how many samples a frame has at least.
pub fn flame(tree: &CallTree, zoom: NodeId, title: String, stop: &Stop) -> Option<(Chart, u64)> {
    let total = tree.node(zoom).map_or(0, |node| node.total);
    let mut least = (total / NARROWEST).max(1);
    loop {
        if stop.is_stopped() {
            return None;
        }
        if let Some(collapsed) = lines(tree, zoom, least) {
            return Some((Chart::Flame { title, collapsed }, least));
        }
        least = least.saturating_mul(2);
    }
}

/// The lines; `None` where they are too long.
fn lines(tree: &CallTree, zoom: NodeId, least: u64) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    let mut path = String::new();
    let mut bytes = 0;
    // Of each node above the next one, how long the path to it is.
    let mut lengths: Vec<usize> = Vec::new();
    let first_depth = tree.node(zoom)?.depth;
    let mut next = Some(zoom);
    while let Some(id) = next {
        let node = tree.node(id)?;
        let level = (node.depth - first_depth) as usize;
        if node.total < least {
            // With all that was called from it: and those behind it are smaller.
            next = tree.after_all(id, zoom);
            continue;
        }
        lengths.truncate(level);
        path.truncate(lengths.last().copied().unwrap_or(0));
        let name = match tree.function_of(id) {
            Some(function) => {
                let of_region = |region| mark(region, function.inlined);
                let mark = function.region.map_or("", of_region);
                format!("{}{mark}", field(&words::full(function), LONGEST_NAME))
            }
            // All of it has no frame.
            None => String::new(),
        };
        if !path.is_empty() {
            path.push(';');
        }
        path.push_str(&name);
        lengths.push(path.len());
        let children = tree.children(id).filter_map(|child| tree.node(child));
        let kept: u64 = children
            .map(|child| child.total)
            .take_while(|&total| total >= least)
            .sum();
        let own = node.total.saturating_sub(kept);
        if own > 0 {
            let stack = if path.is_empty() { "all" } else { &path };
            bytes += stack.len();
            if bytes > MOST_TEXT_BYTES && least < node.total.max(2) {
                return None;
            }
            lines.push(format!("{stack} {own}"));
        }
        let first = tree.children(id).next();
        next = first.or_else(|| tree.after_all(id, zoom));
    }
    Some(lines)
}
