//! Index of all stacks, which makes the tree of any filter cheap to count.
//!
//! Samples form *kinds*: same thread, same stack by function, same innermost entry. Every filter
//! except a time window keeps or drops whole kinds, so a window's counts per kind suffice. A
//! function and its callees have consecutive numbers, so their samples are a difference of two
//! prefix sums.

use super::functions::Functions;
use super::{Function, FunctionId, NodeId};
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
    pub(super) nodes: Vec<Context>,
    /// All nodes except the root, sorted by function; `ends` holds each function's end.
    pub(super) by_function: Vec<NodeId>,
    pub(super) ends: Vec<u32>,
    /// By thread and node; `samples` holds each kind's count.
    pub(super) kinds: Vec<Kind>,
    pub(super) samples: Vec<u32>,
    pub(super) threads: Vec<OfThread>,
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
    pub parent: NodeId,
    pub function: FunctionId,
    /// One past the node's last descendant.
    pub end: NodeId,
    /// Depth of the deepest descendant below the node; `u16::MAX` means this or more.
    pub height: u16,
    /// Whether no ancestor has the same function.
    pub outermost: bool,
}

/// Samples that only a window can divide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub entry: EntryId,
    pub node: NodeId,
    /// Whether callers are missing.
    pub alone: bool,
}

/// The kinds of one thread.
#[derive(Clone, Debug)]
pub(super) struct OfThread {
    /// Index in [`Trace::threads`](crate::Trace::threads).
    pub thread: u32,
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

    /// One past the node's last descendant.
    pub(super) fn end(&self, node: NodeId) -> NodeId {
        self.nodes.get(node as usize).map_or(node, |node| node.end)
    }

    /// The node's children.
    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.end(node);
        let first = Some(node + 1).filter(|&first| first < end);
        std::iter::successors(first, move |&one| {
            // A sibling starts at the end of the previous one.
            Some(self.end(one)).filter(|&next| next < end)
        })
    }

    /// All nodes of a function, ascending.
    pub(super) fn nodes_of(&self, function: FunctionId) -> &[NodeId] {
        let function = function as usize;
        let end = |function: usize| self.ends.get(function).map_or(0, |&end| end as usize);
        let from = function.checked_sub(1).map_or(0, end);
        let nodes = self.by_function.get(from..end(function));
        nodes.unwrap_or_default()
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
            let of = self.kind_of.get(range).unwrap_or_default();
            for some in of.chunks(LOOK_EVERY) {
                if stop.is_stopped() {
                    return None;
                }
                for &kind in some {
                    if let Some(count) = counts.get_mut(kind as usize) {
                        // Adds 1, or subtracts 1 by wrapping.
                        *count = count.wrapping_add(by);
                    }
                }
            }
        }
        Some(counts)
    }

    /// For each node, whether its stack contains the function; `None` if no stack does.
    pub(super) fn through(&self, function: &Function) -> Option<Vec<bool>> {
        let function = self.functions.find(function)?;
        let mut has = vec![false; self.nodes.len()];
        for &node in self.nodes_of(function) {
            let all = has.get_mut(node as usize..self.end(node) as usize);
            all.unwrap_or_default().fill(true);
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
