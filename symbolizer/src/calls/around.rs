//! Callers and callees of a function.

use super::sums::ALL;
use super::{CallTree, FunctionId, NodeId};
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Samples with the same stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// Number of samples.
    pub samples: u64,
    /// Index of the thread, and node in the index.
    thread: u32,
    context: NodeId,
}

/// Samples that share a caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// `None` for outermost functions.
    pub caller: Option<FunctionId>,
    /// Number of samples.
    pub samples: u64,
    /// The caller's stacks, with sample counts.
    pub through: Vec<Through>,
}

/// Callers and callees of a function. Each number counts a stack once, even with recursion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Samples by caller of the outermost occurrence, most first; `None` for roots.
    pub callers: Vec<(Option<FunctionId>, u64)>,
    /// Samples by callee, most first. With recursion, a stack may count for several callees.
    pub callees: Vec<(FunctionId, u64)>,
}

impl CallTree {
    /// The function's own samples by stack: the start of a caller tree.
    #[must_use]
    pub fn own_of(&self, function: FunctionId) -> Vec<Through> {
        let mut own = Vec::new();
        let mut put = |thread, context, samples| {
            if samples > 0 {
                own.push(Through {
                    samples,
                    thread,
                    context,
                });
            }
        };
        let index = &self.index;
        if !self.sums.by_thread() {
            for &context in index.nodes_of(function) {
                put(ALL, context, self.sums.of_node(index, ALL, context).0);
            }
            return own;
        }
        for (one, thread) in index.threads.iter().zip(0..) {
            for kind in one.kinds.clone() {
                let context = index.kinds.get(kind).map_or(0, |kind| kind.node);
                let found = index.nodes.get(context as usize);
                if found.is_some_and(|found| found.function == function) {
                    put(thread, context, self.sums.of_kind(kind));
                }
            }
        }
        own
    }

    /// Groups stacks by the caller of their innermost function, most samples first.
    #[must_use]
    pub fn ways_to(&self, stacks: &[Through]) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        let mut index: FxHashMap<Option<FunctionId>, usize> = FxHashMap::default();
        // Position of each caller's stack in its way.
        let mut place: FxHashMap<(u32, NodeId), usize> = FxHashMap::default();
        for one in stacks {
            let above = self.above(one);
            let caller = above.map(|(caller, _)| caller);
            let slot = *index.entry(caller).or_insert_with(|| {
                ways.push(Way {
                    caller,
                    ..Way::default()
                });
                ways.len() - 1
            });
            let Some(way) = ways.get_mut(slot) else {
                continue;
            };
            way.samples += one.samples;
            let Some((_, context)) = above else {
                continue;
            };
            let at = *place.entry((one.thread, context)).or_insert_with(|| {
                way.through.push(Through {
                    samples: 0,
                    context,
                    ..*one
                });
                way.through.len() - 1
            });
            if let Some(sum) = way.through.get_mut(at) {
                sum.samples += one.samples;
            }
        }
        // Function numbers follow names.
        ways.sort_by_key(|way| (Reverse(way.samples), way.caller));
        ways
    }

    /// The caller of the stack's innermost function and its node; `None` for an outermost function.
    fn above(&self, stack: &Through) -> Option<(FunctionId, NodeId)> {
        if stack.context == Self::ROOT {
            return None;
        }
        let parent = self.index.nodes.get(stack.context as usize)?.parent;
        let function = if parent == Self::ROOT {
            self.index.threads.get(stack.thread as usize)?.function
        } else {
            self.index.nodes.get(parent as usize)?.function
        };
        Some((function, parent))
    }

    /// Callers and callees of a function; `None` if `stop` was requested first.
    #[must_use]
    pub fn around(&self, function: FunctionId, stop: &Stop) -> Option<Around> {
        let mut callers: FxHashMap<Option<FunctionId>, u64> = FxHashMap::default();
        let mut callees = vec![0; self.index.functions.all.len()];
        let mut call = |callee: NodeId, samples: u64| {
            let callee = self.index.nodes.get(callee as usize);
            if let Some(slot) = callee.and_then(|node| callees.get_mut(node.function as usize)) {
                *slot += samples;
            }
        };
        if let Some(thread) = self.threads().find(|&one| self.thread_is(one, function)) {
            let (_, total) = self.sums.of_node(&self.index, thread, Self::ROOT);
            if total > 0 {
                callers.insert(None, total);
            }
            let sums = &self.sums;
            sums.each_child(&self.index, thread, Self::ROOT, |child, (_, total)| {
                call(child, total);
            });
        }
        // Callees above a recursive occurrence.
        let mut called = Vec::new();
        for (at, &context) in self.index.nodes_of(function).iter().enumerate() {
            if at.is_multiple_of(256) && stop.is_stopped() {
                return None;
            }
            let total = self.sums.total(&self.index, context);
            let Some(node) = self.index.nodes.get(context as usize).filter(|_| total > 0) else {
                continue;
            };
            called.clear();
            if node.outermost {
                self.count_callers(context, total, &mut callers);
            } else {
                self.called_above(context, function, &mut called);
            }
            let sums = &self.sums;
            sums.each_child(&self.index, ALL, context, |child, (_, total)| {
                let callee = self.index.nodes.get(child as usize);
                if callee.is_none_or(|callee| !called.contains(&callee.function)) {
                    call(child, total);
                }
            });
        }
        let mut callers: Vec<_> = callers.into_iter().collect();
        callers.sort_by_key(|&(caller, samples)| (Reverse(samples), caller));
        let callees = (0..).zip(callees).filter(|(_, samples)| *samples > 0);
        let mut callees: Vec<(FunctionId, u64)> = callees.collect();
        callees.sort_by_key(|&(callee, samples)| (Reverse(samples), callee));
        Some(Around { callers, callees })
    }

    fn count_callers(
        &self,
        context: NodeId,
        total: u64,
        callers: &mut FxHashMap<Option<FunctionId>, u64>,
    ) {
        let mut add = |caller, samples| *callers.entry(caller).or_default() += samples;
        let mut through = Through {
            samples: total,
            thread: ALL,
            context,
        };
        let caller = self.above(&through).map(|(caller, _)| caller);
        if caller.is_some() || !self.sums.by_thread() {
            return add(caller, total);
        }
        for thread in self.threads() {
            through.thread = thread;
            let (_, samples) = self.sums.of_node(&self.index, thread, context);
            if samples > 0 {
                add(self.above(&through).map(|(caller, _)| caller), samples);
            }
        }
    }

    /// Callees of a function on the path above one of its nodes.
    fn called_above(&self, node: NodeId, function: FunctionId, called: &mut Vec<FunctionId>) {
        let mut below = node;
        while let Some(node) = self.index.nodes.get(below as usize) {
            if below == Self::ROOT {
                return;
            }
            let caller = self.index.nodes.get(node.parent as usize);
            if caller.is_some_and(|caller| caller.function == function) {
                called.push(node.function);
            }
            below = node.parent;
        }
    }
}
