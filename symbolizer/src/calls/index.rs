//! The stacks of samples, found once: what makes the tree of any filter cheap to count.
//!
//! Samples are divided into *kinds*: those of one kind have the same thread, the same stack
//! by function and the same innermost entry, and no filter but a window tells them apart.
//! What a window leaves of each kind is counted without a look at places and names. Stacks
//! are numbered so that a function and all that it called follow each other: their samples
//! are a difference of two sums.

use super::functions::Functions;
use super::{Function, FunctionId, NodeId};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::Stop;
use std::ops::Range;
use vmscope_records::TimeNs;

/// Samples between two looks at whether to go on.
pub(super) const LOOK_EVERY: usize = 1 << 16;

/// The stacks of a profile's samples. It knows those samples that there were when it was made:
/// of a profile that has grown since, it answers for the window alone that it was made of.
#[derive(Debug, Default)]
pub struct StackIndex {
    pub(super) functions: Functions,
    /// All stacks, the root first, each before those that begin with it.
    pub(super) nodes: Vec<Context>,
    /// The nodes but the root by function, and where those of each end.
    pub(super) by_function: Vec<NodeId>,
    pub(super) ends: Vec<u32>,
    /// By thread and node, and how many samples are of each.
    pub(super) kinds: Vec<Kind>,
    pub(super) samples: Vec<u32>,
    pub(super) threads: Vec<OfThread>,
    /// The kind of each sample.
    pub(super) kind_of: Vec<u32>,
    /// The first sample.
    pub(super) first: usize,
    /// What it was made of.
    pub(super) window: (Option<TimeNs>, Option<TimeNs>),
}

/// A function called through those above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub parent: NodeId,
    pub function: FunctionId,
    /// Behind the last of those that begin with it.
    pub end: NodeId,
    /// How many functions are below it at most; this many or more.
    pub height: u16,
    /// Whether its function is not above it, too.
    pub outermost: bool,
}

/// What no filter but a window divides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub entry: EntryId,
    pub node: NodeId,
    /// Whether no callers were recorded.
    pub alone: bool,
}

/// The kinds of one thread.
#[derive(Clone, Debug)]
pub(super) struct OfThread {
    /// Index in [`Trace::threads`](crate::Trace::threads).
    pub thread: u32,
    /// What stands for it.
    pub function: FunctionId,
    pub kinds: Range<usize>,
}

impl StackIndex {
    /// How many distinct stacks there are, each with all that it begins with.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where the stacks end that begin with a node.
    pub(super) fn end(&self, node: NodeId) -> NodeId {
        self.nodes.get(node as usize).map_or(node, |node| node.end)
    }

    /// What was called from a node.
    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let end = self.end(node);
        let first = Some(node + 1).filter(|&first| first < end);
        std::iter::successors(first, move |&one| {
            // It ends behind itself.
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

    /// How many samples of each kind are in a filter's window.
    pub(super) fn counts(
        &self,
        profile: &Profile,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Vec<u32>> {
        if self.window == (filter.from, filter.to) {
            // Where they are may be another place by now, if the profile grows.
            return Some(self.samples.clone());
        }
        let window = range(profile, filter.from, filter.to);
        let all = self.kind_of.len();
        let index = |sample: usize| sample.saturating_sub(self.first).min(all);
        let window = index(window.start)..index(window.end);
        // What is outside is taken away, where that is less.
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
                        // One more or, wrapping, one less.
                        *count = count.wrapping_add(by);
                    }
                }
            }
        }
        Some(counts)
    }

    /// By node, whether a function is in the stack; `None` where it is in none.
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

/// The samples of a window by their numbers.
pub(super) fn range(profile: &Profile, from: Option<TimeNs>, to: Option<TimeNs>) -> Range<usize> {
    let times = &profile.trace.samples.times;
    let index = |time| times.partition_point(|at| *at < time);
    let first = from.map_or(0, index);
    first..to.map_or(times.len(), index).max(first)
}
