//! Searches functions in a tree.

use super::index::StackIndex;
use super::{CallTree, FunctionId, NodeId};
use crate::ids::{ContextId, Id, IndexVec, IndexedThread};

/// Prefix sums: matching index nodes with samples before each node, and in total.
struct Found(IndexVec<ContextId, u32>);

impl CallTree {
    /// Whether this function represents the thread.
    pub(super) fn thread_is(&self, thread: IndexedThread, function: FunctionId) -> bool {
        self.index.threads[thread].function == function
    }

    /// Samples of stacks containing at least one matching function; each sample counts once.
    #[must_use]
    pub fn samples_with(&self, fits: &IndexVec<FunctionId, bool>) -> u64 {
        let fits = |function: FunctionId| fits.get(function) == Some(&true);
        // Threads that match as a whole.
        let threads = self.threads();
        let fitting = threads.filter(|&thread| fits(self.index.threads[thread].function));
        let fitting: Vec<IndexedThread> = fitting.collect();
        let in_fitting = |node: ContextId| -> u64 {
            let samples = |&thread| self.sums.of_node(&self.index, Some(thread), node).1;
            fitting.iter().map(samples).sum()
        };
        let mut at = StackIndex::root();
        let mut samples = in_fitting(at);
        while let Some(node) = self.index.nodes.get(at) {
            if node.function.is_some_and(fits) {
                samples += self.sums.total(&self.index, at) - in_fitting(at);
                at = node.end;
            } else {
                at = at.next();
            }
        }
        samples
    }

    /// The next (or previous) node with a matching function, in flame-graph order with wrap-around.
    /// `or_itself` includes the start node. `None` without a match.
    #[must_use]
    pub fn matching(
        &self,
        fits: &IndexVec<FunctionId, bool>,
        node: NodeId,
        behind: bool,
        or_itself: bool,
    ) -> Option<NodeId> {
        let found = self.fitting(fits);
        let is_match = |node: NodeId| {
            let function = self.node(node).and_then(|node| node.function);
            function.is_some_and(|function| fits.get(function) == Some(&true))
        };
        if or_itself && is_match(node) {
            return Some(node);
        }
        let mut at = node;
        let mut rounds = 0;
        while rounds < 2 {
            at = if behind {
                self.step(&found, at)
            } else {
                self.step_back(&found, at)
            };
            if is_match(at) {
                return Some(at);
            }
            rounds += u32::from(at == Self::ROOT);
        }
        None
    }

    /// The next node, skipping subtrees without matches; the root after the last.
    fn step(&self, found: &Found, at: NodeId) -> NodeId {
        let below = self.has_below(found, at).then(|| self.children(at).next());
        let next = below.flatten().or_else(|| self.after_all(at, Self::ROOT));
        next.unwrap_or(Self::ROOT)
    }

    /// The previous node; before the root comes the last.
    fn step_back(&self, found: &Found, at: NodeId) -> NodeId {
        let mut last = at;
        if at != Self::ROOT {
            let parent = self.node(at).map_or(Self::ROOT, |node| node.parent);
            if at == self.children(parent).start {
                return parent;
            }
            last = at - 1;
        }
        while self.has_below(found, last)
            && let Some(child) = self.children(last).next_back()
        {
            last = child;
        }
        last
    }

    /// Whether the subtree may contain a match.
    fn has_below(&self, found: &Found, node: NodeId) -> bool {
        // The index tree has no threads.
        if node == Self::ROOT {
            return true;
        }
        let below = self.below(node);
        found.0[below.end] > found.0[below.start]
    }

    fn fitting(&self, fits: &IndexVec<FunctionId, bool>) -> Found {
        let mut before = IndexVec::default();
        let mut many = 0;
        for (at, node) in self.index.nodes.enumerated() {
            before.push(many);
            let fits = node
                .function
                .is_some_and(|function| fits.get(function) == Some(&true));
            many += u32::from(fits && self.sums.total(&self.index, at) > 0);
        }
        before.push(many);
        Found(before)
    }
}
