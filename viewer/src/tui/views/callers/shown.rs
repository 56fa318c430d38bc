//! The flame graph for copying and exporting.

use super::words;
use crate::export::frames::{field, mark};
use crate::export::tree::LONGEST_NAME;
use crate::present::document::Chart;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::calls::{CallTree, NodeId};

/// Frames of fewer samples than this part of all stay with their callers: so many can't be
/// told apart in a picture.
const NARROWEST: u64 = 10_000;

/// The most text of collapsed stacks: where stacks of hostile depth have hostile names,
/// narrow frames are left out earlier.
const MOST_TEXT_BYTES: usize = 16 << 20;

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
