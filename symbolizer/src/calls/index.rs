//! Index of all stacks, which makes the tree of any filter cheap to count.
//!
//! Samples form *kinds*: same thread, same stack by function, same innermost entry. Every filter
//! except a time window keeps or drops whole kinds, so a window's counts per kind suffice. A
//! function and its callees have consecutive numbers, so their samples are a difference of two
//! prefix sums.

use super::functions::Functions;
use super::{Function, FunctionId};
use crate::ids::{ContextId, Id, IndexVec, IndexedThread, ThreadId};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::Stop;
use std::ops::Range;
use vmscope_records::TimeNs;

/// Samples or nodes between two checks of [`Stop`].
pub(super) const LOOK_EVERY: usize = 1 << 16;

/// The stacks of a profile's samples at the time of indexing. After the profile has grown, only the
/// indexed window stays valid.
#[derive(Debug, Default)]
pub struct StackIndex {
    pub(super) functions: Functions,
    /// All stacks in preorder, the root first.
    pub(super) nodes: IndexVec<ContextId, Context>,
    /// All nodes except the root, sorted by function; `ends` holds each function's end.
    pub(super) by_function: Vec<ContextId>,
    pub(super) ends: IndexVec<FunctionId, u32>,
    /// By thread and node; `samples` holds each kind's count.
    pub(super) kinds: Vec<Kind>,
    pub(super) samples: Vec<u32>,
    pub(super) threads: IndexVec<IndexedThread, OfThread>,
    /// The kind of each sample.
    pub(super) kind_of: Vec<u32>,
    /// Number of the first indexed sample.
    pub(super) first: usize,
    /// The indexed window.
    pub(super) window: (Option<TimeNs>, Option<TimeNs>),
}

/// A function called through its ancestors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// The root is its own parent.
    pub parent: ContextId,
    /// `None` for the root.
    pub function: Option<FunctionId>,
    /// One past the node's last descendant.
    pub end: ContextId,
    /// Depth of the deepest descendant below the node; `u16::MAX` means this or more.
    pub height: u16,
    /// Whether the function occurs in no ancestor.
    pub outermost: bool,
}

/// Samples that only a window can divide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub entry: EntryId,
    pub node: ContextId,
    /// Whether callers are missing.
    pub alone: bool,
}

/// The kinds of one thread.
#[derive(Clone, Debug)]
pub(super) struct OfThread {
    pub thread: ThreadId,
    /// The function representing the thread.
    pub function: FunctionId,
    pub kinds: Range<usize>,
}

impl StackIndex {
    /// Number of distinct stacks, including all prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Whether the index has no stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The root of all stacks.
    pub(super) fn root() -> ContextId {
        ContextId::of(0)
    }

    /// The node's children.
    pub(super) fn children(&self, node: ContextId) -> impl Iterator<Item = ContextId> + '_ {
        let end = self.nodes[node].end;
        let first = Some(node.next()).filter(|&first| first < end);
        std::iter::successors(first, move |&one| {
            // A sibling starts at the end of the previous one.
            Some(self.nodes[one].end).filter(|&next| next < end)
        })
    }

    /// All nodes of a function, ascending.
    pub(super) fn nodes_of(&self, function: FunctionId) -> &[ContextId] {
        let before = function.index().checked_sub(1).map(FunctionId::of);
        let from = before.map_or(0, |before| self.ends[before]);
        &self.by_function[from as usize..self.ends[function] as usize]
    }

    /// Samples of each kind in the filter's window.
    pub(super) fn counts(
        &self,
        profile: &Profile,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Vec<u32>> {
        if self.window == (filter.from, filter.to) {
            // In a growing profile, sample positions may have moved.
            return Some(self.samples.clone());
        }
        let window = range(profile, filter.from, filter.to);
        let all = self.kind_of.len();
        let index = |sample: usize| sample.saturating_sub(self.first).min(all);
        let window = index(window.start)..index(window.end);
        // Subtracts the samples outside if they are fewer.
        let (mut counts, ranges, by) = if window.len() > all / 2 {
            let outside = [0..window.start, window.end..all];
            (self.samples.clone(), outside, u32::MAX)
        } else {
            (vec![0; self.samples.len()], [window, 0..0], 1)
        };
        for range in ranges {
            for some in self.kind_of[range].chunks(LOOK_EVERY) {
                if stop.is_stopped() {
                    return None;
                }
                for &kind in some {
                    let count = &mut counts[kind as usize];
                    // Adds 1, or subtracts 1 by wrapping.
                    *count = count.wrapping_add(by);
                }
            }
        }
        Some(counts)
    }

    /// For each node, whether its stack contains the function; `None` if no stack does.
    pub(super) fn through(&self, function: &Function) -> Option<IndexVec<ContextId, bool>> {
        let function = self.functions.find(function)?;
        let mut has = self.nodes.with_each(false);
        for &node in self.nodes_of(function) {
            let of_node: &mut [bool] = &mut has;
            of_node[node.index()..self.nodes[node].end.index()].fill(true);
        }
        Some(has)
    }
}

/// Indices of the samples in a window.
pub(super) fn range(profile: &Profile, from: Option<TimeNs>, to: Option<TimeNs>) -> Range<usize> {
    let times = &profile.trace.samples.times;
    let index = |time| times.partition_point(|at| *at < time);
    let first = from.map_or(0, index);
    first..to.map_or(times.len(), index).max(first)
}
