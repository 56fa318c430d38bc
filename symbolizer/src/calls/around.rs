//! What is around a function: who called it, and what it called.

use super::sums::ALL;
use super::{CallTree, FunctionId, NodeId};
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Samples that came through one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// How many.
    pub samples: u64,
    /// Of which thread, and where in the index.
    thread: u32,
    context: NodeId,
}

/// Samples that came one way: through the callers of some stacks, all of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The caller; `None` where they were called by nobody: the outermost.
    pub caller: Option<FunctionId>,
    /// How many.
    pub samples: u64,
    /// The caller's stacks, each with how many of them came through it.
    pub through: Vec<Through>,
}

/// A function, who called it and what it called. A stack counts once in each of the
/// numbers, however often the function is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Samples by the outermost one's caller, most first; `None` where it is a root.
    pub callers: Vec<(Option<FunctionId>, u64)>,
    /// Samples by what it called, most first. One stack may be in several of them, where
    /// the function calls itself.
    pub callees: Vec<(FunctionId, u64)>,
}

impl CallTree {
    /// A function's own samples by stack: where a tree from it to its callers begins.
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

    /// Divides samples of some stacks by who called their innermost functions, most samples
    /// first.
    #[must_use]
    pub fn ways_to(&self, stacks: &[Through]) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        let mut index: FxHashMap<Option<FunctionId>, usize> = FxHashMap::default();
        // Of each caller's stack its place in its way.
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
        // Functions are numbered by name.
        ways.sort_by_key(|way| (Reverse(way.samples), way.caller));
        ways
    }

    /// What called the innermost function of a stack, and where that is; `None` where nobody
    /// did.
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

    /// What is around a function; `None` when `stop` was wished before it was done.
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
        // What it called above a stack in which it is again.
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

    /// What a function called, in the stack above a node of it.
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
