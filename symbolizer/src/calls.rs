//! Call tree: stacks by function, from the roots down, with callers, callees and sums per function.
//!
//! A *function* is a name, a begin in its source if no class locates it, and a tier, inlined or not.
//! It may have several addresses and entries and
//! occur several times in a stack; sums over a function count each stack once. On request, a
//! *thread* acts as a function above all others.
//!
//! The tree counts samples, not calls.
//!
//! [`StackIndex`] finds all stacks once. A filter's tree is sums over ranges of the index, and
//! nodes are made on demand.

mod around;
mod build;
mod functions;
mod groups;
mod index;
mod nodes;
mod search;
mod stacks;
mod sums;

pub use around::{Around, Through, Way};
pub use index::StackIndex;

pub use crate::ids::FunctionId;
use crate::ids::{IndexVec, ThreadId};
use crate::profile::{Begin, EntryId, Region};
use nodes::Nodes;
use std::sync::{Arc, RwLock};
use sums::Sums;

/// Index of a node of a [`CallTree`].
pub type NodeId = u32;

/// The displayed identity of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function {
    /// Name of the method, function or thread, as recorded.
    pub name: Arc<str>,
    /// [`Profile::begin_of`](crate::Profile::begin_of) its frames.
    pub begin: Option<Begin>,
    /// Compiler or tier; may be empty.
    pub tier: Arc<str>,
    /// `None` for a thread.
    pub region: Option<Region>,
    /// Whether the function is inlined into its caller.
    pub inlined: bool,
    /// The thread, if the function represents a thread.
    pub thread: Option<ThreadId>,
}

/// Shape of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallsOf {
    /// Whether threads form the first level.
    pub by_thread: bool,
    /// Only stacks containing this function.
    pub through: Option<Function>,
}

/// A function called through its ancestors in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// The caller; [`CallTree::ROOT`] is its own parent.
    pub parent: NodeId,
    /// `None` for the root.
    pub function: Option<FunctionId>,
    /// Samples in the function and its callees.
    pub total: u64,
    /// Samples in the function itself.
    pub own: u64,
    /// Number of functions above it.
    pub depth: u32,
    /// Whether the function occurs in no ancestor.
    pub outermost: bool,
}

/// Sums over all nodes of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCounts {
    /// Samples of stacks containing the function; each stack counts once.
    pub total: u64,
    /// Samples in the function itself.
    pub own: u64,
    /// Whether some stack contains the function several times.
    pub recursive: bool,
}

/// The tree of a filter's stacks, by function. Nodes are made on demand. A node's number exceeds
/// its parent's; siblings have consecutive numbers, most samples first.
#[derive(Debug, Default)]
pub struct CallTree {
    index: Arc<StackIndex>,
    sums: Sums,
    nodes: RwLock<Nodes>,
    counts: IndexVec<FunctionId, FunctionCounts>,
    taken: u64,
    alone: u64,
}

fn id_of(index: usize) -> NodeId {
    // At most one per sample or frame of a distinct stack: more would not fit into memory.
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl CallTree {
    /// The node of all samples.
    pub const ROOT: NodeId = 0;

    /// Whether the tree has no samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples() == 0
    }

    /// Samples in the tree.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.node(Self::ROOT).map_or(0, |root| root.total)
    }

    /// Samples of the filter, including stacks excluded by [`CallsOf`].
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Samples among [`Self::taken`] without recorded callers.
    #[must_use]
    pub fn alone(&self) -> u64 {
        self.alone
    }

    /// The functions of the index, ordered by name. Functions outside the tree have no samples.
    #[must_use]
    pub fn functions(&self) -> &IndexVec<FunctionId, Function> {
        &self.index.functions.all
    }

    /// The function with this number.
    #[must_use]
    pub fn function(&self, function: FunctionId) -> Option<&Function> {
        self.index.functions.all.get(function)
    }

    /// The function's number, if the tree contains it.
    #[must_use]
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        let found = self.index.functions.find(function)?;
        (self.counts_of(found).total > 0).then_some(found)
    }

    /// Whether another function differs only in the folders of its file.
    #[must_use]
    pub fn has_namesake(&self, function: FunctionId) -> bool {
        self.index.functions.namesakes.contains(&function)
    }

    /// The entry of the function's own samples; `None` for threads and functions seen only as
    /// callers.
    #[must_use]
    pub fn entry_of(&self, function: FunctionId) -> Option<EntryId> {
        let entry = self.index.functions.entries.get(function);
        entry.copied().flatten()
    }

    /// Sums over all nodes of a function.
    #[must_use]
    pub fn counts_of(&self, function: FunctionId) -> FunctionCounts {
        let counts = self.counts.get(function);
        counts.copied().unwrap_or_default()
    }
}
