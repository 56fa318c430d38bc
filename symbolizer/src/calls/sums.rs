//! Sums of a filter's samples over the stack index.

use super::index::{Kind, StackIndex};
use super::{CallTree, NodeId};
use std::ops::Range;

/// Stands for all threads in place of an index in [`StackIndex::threads`].
pub(super) const ALL: u32 = u32::MAX;

/// Prefix sums of samples by stack.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Samples before each index node, and in total.
    by_node: Vec<u64>,
    /// Samples before each kind, and in total; empty without threads as first level.
    by_kind: Vec<u64>,
}

impl Sums {
    /// Sums the kinds' counts.
    pub fn of(index: &StackIndex, counts: &[u32], by_thread: bool) -> Self {
        let mut by_node = vec![0; index.nodes.len() + 1];
        for (kind, &count) in index.kinds.iter().zip(counts) {
            if let Some(slot) = by_node.get_mut(kind.node as usize) {
                *slot += u64::from(count);
            }
        }
        let mut before = 0;
        for slot in &mut by_node {
            before += std::mem::replace(slot, before);
        }
        let mut by_kind = Vec::new();
        if by_thread {
            by_kind.reserve_exact(counts.len() + 1);
            let mut before = 0;
            for &count in counts {
                by_kind.push(before);
                before += u64::from(count);
            }
            by_kind.push(before);
        }
        Sums { by_node, by_kind }
    }

    /// Whether threads form the first level.
    pub fn by_thread(&self) -> bool {
        !self.by_kind.is_empty()
    }

    pub fn all(&self) -> u64 {
        self.by_node.last().copied().unwrap_or(0)
    }

    pub fn of_kind(&self, kind: usize) -> u64 {
        difference(&self.by_kind, kind..kind + 1)
    }

    /// Own and total samples of an index node, in one thread or [`ALL`].
    pub fn of_node(&self, index: &StackIndex, thread: u32, node: NodeId) -> (u64, u64) {
        let end = index.end(node);
        let one = self.between(index, thread, node..(node + 1).min(end));
        (one, self.between(index, thread, node..end))
    }

    /// Total samples of an index node over all threads.
    pub fn total(&self, index: &StackIndex, node: NodeId) -> u64 {
        difference(&self.by_node, node as usize..index.end(node) as usize)
    }

    fn between(&self, index: &StackIndex, thread: u32, nodes: Range<NodeId>) -> u64 {
        if thread == ALL {
            return difference(&self.by_node, nodes.start as usize..nodes.end as usize);
        }
        let Some(kinds) = index.threads.get(thread as usize).map(|one| &one.kinds) else {
            return 0;
        };
        let all = index.kinds.get(kinds.clone()).unwrap_or_default();
        let before = |node: NodeId| kinds.start + all.partition_point(|kind| kind.node < node);
        difference(&self.by_kind, before(nodes.start)..before(nodes.end))
    }

    /// Visits the children of an index node that have samples in `thread` (or [`ALL`]), with their
    /// samples.
    pub fn each_child(
        &self,
        index: &StackIndex,
        thread: u32,
        node: NodeId,
        mut visit: impl FnMut(NodeId, (u64, u64)),
    ) {
        if thread == ALL {
            for child in index.children(node) {
                let samples = self.of_node(index, ALL, child);
                if samples.1 > 0 {
                    visit(child, samples);
                }
            }
            return;
        }
        let Some(kinds) = index.threads.get(thread as usize).map(|one| &one.kinds) else {
            return;
        };
        let all = index.kinds.get(kinds.clone()).unwrap_or_default();
        let before = |from: usize, node: NodeId| from + behind(all.get(from..), node);
        let mut from = before(0, node + 1);
        for child in index.children(node) {
            let (own, end) = (before(from, child + 1), before(from, index.end(child)));
            let samples =
                |end: usize| difference(&self.by_kind, kinds.start + from..kinds.start + end);
            if samples(end) > 0 {
                visit(child, (samples(own), samples(end)));
            }
            from = end;
        }
    }

    /// The thread with most of the node's samples.
    pub fn hottest_thread(&self, index: &StackIndex, node: NodeId) -> u32 {
        let threads = (0u32..).take(if self.by_thread() {
            index.threads.len()
        } else {
            0
        });
        let samples = |&thread: &u32| self.of_node(index, thread, node).1;
        threads.max_by_key(samples).unwrap_or(ALL)
    }
}

impl CallTree {
    /// Index positions of the threads, if they form the first level.
    pub(super) fn threads(&self) -> impl Iterator<Item = u32> + Clone + use<> {
        let count = if self.sums.by_thread() {
            self.index.threads.len()
        } else {
            0
        };
        (0u32..).take(count)
    }
}

/// Number of kinds before a node. Searches exponentially: the node is usually near.
fn behind(kinds: Option<&[Kind]>, node: NodeId) -> usize {
    let kinds = kinds.unwrap_or_default();
    let is_before = |kind: &Kind| kind.node < node;
    let mut near = 1;
    while kinds.get(near - 1).is_some_and(is_before) {
        near *= 2;
    }
    let near = kinds.get(..near.min(kinds.len())).unwrap_or_default();
    near.partition_point(is_before)
}

fn difference(sums: &[u64], range: Range<usize>) -> u64 {
    let before = |at: usize| sums.get(at).copied().unwrap_or(0);
    before(range.end).saturating_sub(before(range.start))
}
