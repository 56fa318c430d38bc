//! Parts of code: the surroundings of sampled pcs. Code has most of its samples at few places, and the
//! search takes most of a map's time. Methods without code nearby take no part in the search, which finds
//! as many right methods then (docs/truth.md).

use std::ops::Range;

use super::anchors::Anchor;
use super::machine::Machine;
use super::tree::Tree;

/// Instructions on each side of a sampled one that decide on its position …
const CONTEXT: usize = 80;

/// … and those with a result.
const CORE: usize = 32;

/// Ranges of instructions, ascending.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// Instructions to search.
    pub context: Vec<Range<usize>>,
    /// Instructions with a result.
    pub core: Vec<Range<usize>>,
}

impl Parts {
    /// Surroundings of sampled pcs (offsets in the code, ascending). Without pcs, or if the
    /// surroundings make up the code, the parts cover the whole code.
    pub fn of(machine: &Machine, hits: &[u32]) -> Self {
        let count = machine.insns.len();
        let context = around(machine, hits, CONTEXT);
        let length: usize = context.iter().map(Range::len).sum();
        if hits.is_empty() || length >= count {
            let whole: Vec<Range<usize>> = std::iter::once(0..count).collect();
            return Parts {
                context: whole.clone(),
                core: whole,
            };
        }
        Parts {
            context,
            core: around(machine, hits, CORE),
        }
    }

    /// Marks the nodes of a tree that have an anchor in the parts, and their callers. The search leaves out
    /// other nodes.
    pub fn nodes(&self, tree: &Tree, anchors: &[Anchor]) -> Vec<bool> {
        let mut nodes = vec![false; tree.nodes.len()];
        if let Some(root) = nodes.first_mut() {
            *root = true;
        }
        for anchor in anchors {
            let part = self.context.partition_point(|part| part.end <= anchor.insn);
            let is_inside = self
                .context
                .get(part)
                .is_some_and(|part| part.start <= anchor.insn);
            let mut at = Some(anchor.node as usize).filter(|_| is_inside);
            while let Some(is_near) = at
                .and_then(|at| nodes.get_mut(at))
                .filter(|is_near| !**is_near)
            {
                *is_near = true;
                let node = at.and_then(|at| tree.nodes.get(at));
                at = node
                    .and_then(|node| node.parent)
                    .map(|(parent, _)| parent as usize);
            }
        }
        nodes
    }
}

/// Ranges that reach `by` instructions to each side of the sampled ones.
fn around(machine: &Machine, hits: &[u32], by: usize) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    for hit in hits {
        let at = machine.before(*hit);
        let part = at.saturating_sub(by)..(at + by).min(machine.insns.len());
        match parts.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => parts.push(part),
        }
    }
    parts
}
