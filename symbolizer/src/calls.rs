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
//!
//! All stacks are found once ([`StackIndex`]). What a filter leaves of each is a sum over a
//! range of them, so that only those nodes of a tree are made that somebody looks at.

mod around;
mod build;
mod functions;
mod index;
mod nodes;
mod search;
mod stacks;
mod sums;

pub use around::{Around, Through, Way};
pub use index::StackIndex;

use crate::profile::{EntryId, Region};
use nodes::Nodes;
use std::sync::{Arc, RwLock};
use sums::Sums;

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

/// The tree of the stacks that a filter takes, by function. Nodes are made as they are looked
/// at: a node's number is greater than its parent's; children follow each other, those with
/// most samples first.
#[derive(Debug, Default)]
pub struct CallTree {
    index: Arc<StackIndex>,
    sums: Sums,
    nodes: RwLock<Nodes>,
    counts: Vec<FunctionCounts>,
    /// What the filter takes.
    taken: u64,
    alone: u64,
}

fn id_of(index: usize) -> NodeId {
    // There are at most as many as samples, or frames of distinct stacks: more would not fit
    // into memory.
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl CallTree {
    /// The node of all samples.
    pub const ROOT: NodeId = 0;

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

    /// All samples that the filter takes, also those whose stacks were not asked for.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Those of them of which no callers were recorded.
    #[must_use]
    pub fn alone(&self) -> u64 {
        self.alone
    }

    /// The functions of all samples, in their order: by name. Those that are not in the tree
    /// have no samples in it.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.index.functions.all
    }

    /// A function.
    #[must_use]
    pub fn function(&self, function: FunctionId) -> Option<&Function> {
        self.index.functions.all.get(function as usize)
    }

    /// The number of a function, where it is in the tree.
    #[must_use]
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        let found = self.index.functions.find(function)?;
        (self.counts_of(found).total > 0).then_some(found)
    }

    /// The entry of a function's own samples; `None` where it has none: it is a thread, or
    /// was seen as a caller only.
    #[must_use]
    pub fn entry_of(&self, function: FunctionId) -> Option<EntryId> {
        let entry = self.index.functions.entries.get(function as usize);
        entry.copied().flatten()
    }

    /// What all nodes of a function have together.
    #[must_use]
    pub fn counts_of(&self, function: FunctionId) -> FunctionCounts {
        let counts = self.counts.get(function as usize);
        counts.copied().unwrap_or_default()
    }
}
