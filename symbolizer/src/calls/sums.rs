//! Sums of a filter's samples over the stack index.

use super::CallTree;
use super::index::{Kind, StackIndex};
use crate::ids::{ContextId, Id, IndexedThread};
use std::ops::Range;

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
            by_node[kind.node.index()] += u64::from(count);
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

    /// Own and total samples of an index node, in one thread or all.
    pub fn of_node(
        &self,
        index: &StackIndex,
        thread: Option<IndexedThread>,
        node: ContextId,
    ) -> (u64, u64) {
        let one = self.between(index, thread, node..node.next());
        (
            one,
            self.between(index, thread, node..index.nodes[node].end),
        )
    }

    /// Total samples of an index node over all threads.
    pub fn total(&self, index: &StackIndex, node: ContextId) -> u64 {
        self.between(index, None, node..index.nodes[node].end)
    }

    fn between(
        &self,
        index: &StackIndex,
        thread: Option<IndexedThread>,
        nodes: Range<ContextId>,
    ) -> u64 {
        let Some(thread) = thread else {
            return difference(&self.by_node, nodes.start.index()..nodes.end.index());
        };
        let kinds = &index.threads[thread].kinds;
        let all = &index.kinds[kinds.clone()];
        let before = |node: ContextId| kinds.start + all.partition_point(|kind| kind.node < node);
        difference(&self.by_kind, before(nodes.start)..before(nodes.end))
    }

    /// Visits the children of an index node that have samples in `thread` (or any), with their
    /// samples.
    pub fn each_child(
        &self,
        index: &StackIndex,
        thread: Option<IndexedThread>,
        node: ContextId,
        mut visit: impl FnMut(ContextId, (u64, u64)),
    ) {
        let Some(thread) = thread else {
            for child in index.children(node) {
                let samples = self.of_node(index, None, child);
                if samples.1 > 0 {
                    visit(child, samples);
                }
            }
            return;
        };
        let kinds = &index.threads[thread].kinds;
        let all = &index.kinds[kinds.clone()];
        let before = |from: usize, node: ContextId| from + behind(&all[from..], node);
        let mut from = before(0, node.next());
        for child in index.children(node) {
            let (own, end) = (
                before(from, child.next()),
                before(from, index.nodes[child].end),
            );
            let samples =
                |end: usize| difference(&self.by_kind, kinds.start + from..kinds.start + end);
            if samples(end) > 0 {
                visit(child, (samples(own), samples(end)));
            }
            from = end;
        }
    }

    /// The threads, if they form the first level.
    pub fn threads(
        &self,
        index: &StackIndex,
    ) -> impl Iterator<Item = IndexedThread> + Clone + use<> {
        let count = if self.by_thread() {
            index.threads.len()
        } else {
            0
        };
        (0..count).map(IndexedThread::of)
    }

    /// The thread with most of the node's samples, if threads form the first level.
    pub fn hottest_thread(&self, index: &StackIndex, node: ContextId) -> Option<IndexedThread> {
        let samples = |&thread: &IndexedThread| self.of_node(index, Some(thread), node).1;
        self.threads(index).max_by_key(samples)
    }
}

impl CallTree {
    /// The threads, if they form the first level.
    pub(super) fn threads(&self) -> impl Iterator<Item = IndexedThread> + Clone + use<> {
        self.sums.threads(&self.index)
    }
}

/// Number of kinds before a node. Searches exponentially: the node is usually near.
fn behind(kinds: &[Kind], node: ContextId) -> usize {
    let is_before = |kind: &Kind| kind.node < node;
    let mut near = 1;
    while kinds.get(near - 1).is_some_and(is_before) {
        near *= 2;
    }
    kinds[..near.min(kinds.len())].partition_point(is_before)
}

fn difference(sums: &[u64], range: Range<usize>) -> u64 {
    sums[range.end] - sums[range.start]
}
