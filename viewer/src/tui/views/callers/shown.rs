//! Flame graph for copying and exporting.

use super::words;
use crate::export::frames::{field, mark};
use crate::export::tree::LONGEST_NAME;
use crate::present::document::Chart;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::calls::{CallTree, NodeId};

/// Pictures show at most this many frames side by side; samples of smaller frames stay with the
/// caller.
const NARROWEST: u64 = 10_000;

/// Maximum bytes of collapsed stacks. Hostile depths and names leave out narrow frames earlier.
const MOST_TEXT_BYTES: usize = 16 << 20;

/// Collapsed stacks under a node, with names and marks of `vmscope export`, and the minimum samples
/// per frame.
pub fn flame(tree: &CallTree, zoom: NodeId, title: String, stop: &Stop) -> Option<(Chart, u64)> {
    let total = tree.node(zoom).map_or(0, |node| node.total);
    let mut least = (total / NARROWEST).max(1);
    loop {
        if stop.is_stopped() {
            return None;
        }
        if let Some(collapsed) = lines(tree, zoom, least) {
            let flame = Chart::Flame {
                title,
                unit: "samples",
                collapsed,
            };
            return Some((flame, least));
        }
        least = least.saturating_mul(2);
    }
}

/// Collapsed stacks; `None` above the maximum text length.
fn lines(tree: &CallTree, zoom: NodeId, least: u64) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    let mut path = String::new();
    let mut bytes = 0;
    // Path lengths of the node's ancestors.
    let mut lengths: Vec<usize> = Vec::new();
    let first_depth = tree.node(zoom)?.depth;
    let mut next = Some(zoom);
    while let Some(id) = next {
        let node = tree.node(id)?;
        let level = (node.depth - first_depth) as usize;
        if node.total < least {
            // Skips callees and smaller siblings, too.
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
            // Root without a frame.
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
