//! Who calls whom: stacks by function, as a tree from the roots down, with what is asked of
//! such a tree: the callers of a function, what it calls, how much of all it is in.
//!
//! A *function* is what looks the same in a stack: a name made by one compiler, inlined or
//! not. It may be at several addresses, in several entries, and several times in one stack;
//! in sums over a function, a stack counts once however often it calls itself. A *thread* is
//! a function of its own above all others where that is asked for.
//!
//! The tree says nothing of calls: it knows where samples fell and through whom, not how
//! often somebody was called.

mod around;
mod build;

pub use around::{Around, Way};

use crate::profile::{EntryId, Region};
use std::ops::Range;
use std::sync::Arc;

/// Index in [`CallTree::functions`].
pub type FunctionId = u32;

/// Index of a node of a [`CallTree`].
pub type NodeId = u32;

/// What a frame shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// The method, function or thread; as recorded.
    pub name: Arc<str>,
    /// Which compiler or level made it; may be empty.
    pub tier: Arc<str>,
    /// Where it belongs; `None` for a thread.
    pub region: Option<Region>,
    /// Whether it was inlined into what is above it.
    pub inlined: bool,
    /// The thread that it stands for: its index in the trace.
    pub thread: Option<u32>,
}

/// What a tree is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallsOf {
    /// Whether threads are the first level.
    pub by_thread: bool,
    /// Only stacks that have this function in them.
    pub through: Option<Function>,
}

/// A function in the tree, called through those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// What it was called from; [`CallTree::ROOT`]'s is itself.
    pub parent: NodeId,
    /// What; of the root, no function.
    pub function: FunctionId,
    /// Samples in it and in what was called from it.
    pub total: u64,
    /// Samples in itself.
    pub own: u64,
    /// How many functions are above it.
    pub depth: u32,
    /// Whether its function is not above it, too.
    pub outermost: bool,
    children: (NodeId, NodeId),
}

/// What all nodes of a function have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// Samples of stacks that it is in, each once.
    pub total: u64,
    /// Samples in itself.
    pub own: u64,
    /// Whether it is several times in some stack.
    pub recursive: bool,
}

/// The tree of all stacks by function. A node's number is greater than its parent's;
/// children follow each other, those with most samples first.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    nodes: Vec<CallNode>,
    functions: Vec<Function>,
    /// The functions' numbers, in the order of the functions.
    sorted: Vec<FunctionId>,
    /// An entry of each, where it is the innermost of some site.
    entries: Vec<Option<EntryId>>,
    counts: Vec<FunctionCounts>,
    /// All nodes but the root by function; of each function a range.
    by_function: Vec<NodeId>,
    ranges: Vec<(usize, usize)>,
}

impl CallTree {
    /// The node of all samples.
    pub const ROOT: NodeId = 0;

    /// A node.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<&CallNode> {
        self.nodes.get(node as usize)
    }

    /// How many nodes there are, the root included; 0 only before anything was counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no sample in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples() == 0
    }

    /// All samples in it.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.node(Self::ROOT).map_or(0, |root| root.total)
    }

    /// What was called from a node, most samples first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Range<NodeId> {
        let children = self.node(node).map_or((0, 0), |node| node.children);
        children.0..children.1
    }

    /// The nodes from the root's child down to a node; none for the root.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = node;
        while let Some(one) = self.node(next).filter(|_| next != Self::ROOT) {
            path.push(next);
            // A parent is older: this ends.
            next = one.parent;
        }
        path.reverse();
        path
    }

    /// All functions.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The functions' numbers, in the order of the functions: by name.
    #[must_use]
    pub fn by_name(&self) -> &[FunctionId] {
        &self.sorted
    }

    /// A function.
    #[must_use]
    pub fn function(&self, function: FunctionId) -> Option<&Function> {
        self.functions.get(function as usize)
    }

    /// The function of a node; `None` for the root.
    #[must_use]
    pub fn function_of(&self, node: NodeId) -> Option<&Function> {
        self.function(self.node(node)?.function)
    }

    /// The number of a function, where it is in the tree.
    #[must_use]
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        let key = |&id: &FunctionId| self.function(id);
        let at = self
            .sorted
            .binary_search_by(|id| key(id).cmp(&Some(function)))
            .ok()?;
        self.sorted.get(at).copied()
    }

    /// The entry of a function's own samples; `None` where it has none: it is a thread, or
    /// was seen as a caller only.
    #[must_use]
    pub fn entry_of(&self, function: FunctionId) -> Option<EntryId> {
        self.entries.get(function as usize).copied().flatten()
    }

    /// What all nodes of a function have together.
    #[must_use]
    pub fn counts_of(&self, function: FunctionId) -> FunctionCounts {
        let counts = self.counts.get(function as usize);
        counts.copied().unwrap_or_default()
    }

    /// All nodes of a function, ascending.
    #[must_use]
    pub fn nodes_of(&self, function: FunctionId) -> &[NodeId] {
        let range = self.ranges.get(function as usize).copied();
        let (from, to) = range.unwrap_or_default();
        self.by_function.get(from..to).unwrap_or_default()
    }

    /// The child of a node that is such a function.
    #[must_use]
    pub fn child(&self, node: NodeId, function: FunctionId) -> Option<NodeId> {
        let mut children = self.children(node);
        children.find(|&child| {
            self.node(child)
                .is_some_and(|node| node.function == function)
        })
    }

    /// The node behind another in the order in which a flame graph is read: the first
    /// child, else the next of those called from the same, else of those above. `None`
    /// after the last.
    #[must_use]
    pub fn after(&self, node: NodeId) -> Option<NodeId> {
        let children = self.children(node);
        if !children.is_empty() {
            return Some(children.start);
        }
        let mut node = node;
        while node != Self::ROOT {
            let parent = self.node(node)?.parent;
            if node + 1 < self.children(parent).end {
                return Some(node + 1);
            }
            node = parent;
        }
        None
    }

    /// The node before another in that order; `None` for the root.
    #[must_use]
    pub fn before(&self, node: NodeId) -> Option<NodeId> {
        if node == Self::ROOT {
            return None;
        }
        let parent = self.node(node)?.parent;
        if node == self.children(parent).start {
            return Some(parent);
        }
        Some(self.last_under(node - 1))
    }

    /// The last node, in that order, of those that were called from a node; itself where
    /// there is none.
    #[must_use]
    pub fn last_under(&self, node: NodeId) -> NodeId {
        let mut last = node;
        while let Some(child) = self.children(last).last() {
            last = child;
        }
        last
    }

    /// Samples of stacks that have at least one of the functions in them (`fits` by
    /// function), each once.
    #[must_use]
    pub fn samples_with(&self, fits: &[bool]) -> u64 {
        // Whether a node or one above it fits.
        let mut below = vec![false; self.nodes.len()];
        let mut samples = 0;
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let above = below.get(node.parent as usize) == Some(&true);
            let is_it = fits.get(node.function as usize) == Some(&true);
            if is_it && !above {
                samples += node.total;
            }
            if let Some(slot) = below.get_mut(at) {
                *slot = above || is_it;
            }
        }
        samples
    }
}
