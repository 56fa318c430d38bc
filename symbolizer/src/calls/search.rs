//! Searches functions in a tree.

use super::sums::ALL;
use super::{CallTree, FunctionId, NodeId};

/// Prefix sums: matching index nodes with samples before each node, and in total.
struct Found(Vec<u32>);

impl CallTree {
    /// Whether this function represents the thread.
    pub(super) fn thread_is(&self, thread: u32, function: FunctionId) -> bool {
        let one = self.index.threads.get(thread as usize);
        one.is_some_and(|one| one.function == function)
    }

    /// Samples of stacks containing at least one matching function (`fits` by function); each
    /// sample counts once.
    #[must_use]
    pub fn samples_with(&self, fits: &[bool]) -> u64 {
        let fits = |function: FunctionId| fits.get(function as usize) == Some(&true);
        // Threads that match as a whole.
        let fitting = self.threads().filter(|&thread| {
            let one = self.index.threads.get(thread as usize);
            one.is_some_and(|one| fits(one.function))
        });
        let fitting: Vec<u32> = fitting.collect();
        let in_fitting = |node: NodeId| -> u64 {
            let samples = |&thread: &u32| self.sums.of_node(&self.index, thread, node).1;
            fitting.iter().map(samples).sum()
        };
        let mut samples = in_fitting(Self::ROOT);
        let mut at = 1;
        while let Some(node) = self.index.nodes.get(at as usize) {
            if fits(node.function) {
                samples += self.sums.total(&self.index, at) - in_fitting(at);
                at = self.index.end(at);
            } else {
                at += 1;
            }
        }
        samples
    }

    /// The next (or previous) node with a matching function, in flame-graph order with wrap-around.
    /// `or_itself` includes the start node. `None` without a match.
    #[must_use]
    pub fn matching(
        &self,
        fits: &[bool],
        node: NodeId,
        behind: bool,
        or_itself: bool,
    ) -> Option<NodeId> {
        let found = self.fitting(fits);
        let is_match = |node: NodeId| {
            let function = self.node(node).map(|node| node.function);
            function.is_some_and(|function| fits.get(function as usize) == Some(&true))
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
        let before = |at: NodeId| found.0.get(at as usize).copied().unwrap_or(0);
        before(below.end) > before(below.start)
    }

    fn fitting(&self, fits: &[bool]) -> Found {
        let mut before = Vec::with_capacity(self.index.nodes.len() + 1);
        let mut many = 0;
        for (node, at) in self.index.nodes.iter().zip(0..) {
            before.push(many);
            let fits = fits.get(node.function as usize) == Some(&true);
            many += u32::from(fits && self.sums.of_node(&self.index, ALL, at).1 > 0);
        }
        before.push(many);
        Found(before)
    }
}
