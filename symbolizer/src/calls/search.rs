//! Looking for functions in a tree.

use super::sums::ALL;
use super::{CallTree, FunctionId, NodeId};

/// How many nodes of the index with samples fit before each, and in all.
struct Found(Vec<u32>);

impl CallTree {
    /// Whether a thread that is apart has this function.
    pub(super) fn thread_is(&self, thread: u32, function: FunctionId) -> bool {
        let one = self.index.threads.get(thread as usize);
        one.is_some_and(|one| one.function == function)
    }

    /// Samples of stacks that have at least one of the functions in them (`fits` by
    /// function), each once.
    #[must_use]
    pub fn samples_with(&self, fits: &[bool]) -> u64 {
        let fits = |function: FunctionId| fits.get(function as usize) == Some(&true);
        // All of a thread that fits.
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

    /// The next node behind (or before) another of a function that fits, in the order in
    /// which a flame graph is read; goes round at the ends. With `or_itself` that node counts,
    /// too. `None` where none fits.
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

    /// The next node, without those under which nothing fits; the root behind the last.
    fn step(&self, found: &Found, at: NodeId) -> NodeId {
        let below = self.has_below(found, at).then(|| self.children(at).next());
        let next = below.flatten().or_else(|| self.after_all(at, Self::ROOT));
        next.unwrap_or(Self::ROOT)
    }

    /// The node before; behind the root the last.
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

    /// Whether anything below a node may fit.
    fn has_below(&self, found: &Found, node: NodeId) -> bool {
        // Threads are not in the index's tree.
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
