//! Callers and callees of a function.

use super::{CallTree, FunctionId, StackIndex};
use crate::ids::{ContextId, IndexedThread};
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Samples with the same stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Through {
    /// Number of samples.
    pub samples: u64,
    /// `None` for all threads.
    thread: Option<IndexedThread>,
    context: ContextId,
}

/// Samples that share a caller or a callee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The caller or callee; `None` above outermost functions.
    pub function: Option<FunctionId>,
    /// Number of samples.
    pub samples: u64,
    /// The function's stacks, with sample counts.
    pub through: Vec<Through>,
}

/// Ways under construction.
#[derive(Default)]
struct Ways {
    all: Vec<Way>,
    index: FxHashMap<Option<FunctionId>, usize>,
}

impl Ways {
    fn of(&mut self, function: Option<FunctionId>) -> &mut Way {
        let slot = *self.index.entry(function).or_insert_with(|| {
            self.all.push(Way {
                function,
                ..Way::default()
            });
            self.all.len() - 1
        });
        &mut self.all[slot]
    }

    /// Most samples first.
    fn sorted(mut self) -> Vec<Way> {
        // Function numbers follow names.
        self.all
            .sort_by_key(|way| (Reverse(way.samples), way.function));
        self.all
    }
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
                put(None, context, self.sums.of_node(index, None, context).0);
            }
            return own;
        }
        for (thread, one) in index.threads.enumerated() {
            for kind in one.kinds.clone() {
                let context = index.kinds[kind].node;
                if index.nodes[context].function == Some(function) {
                    put(Some(thread), context, self.sums.of_kind(kind));
                }
            }
        }
        own
    }

    /// Stacks that contain any of these functions, samples of callees included: the basis for trees of callers and
    /// callees. Of nested occurrences, the outermost counts.
    #[must_use]
    pub fn stacks_of(&self, functions: &[FunctionId]) -> Vec<Through> {
        let nodes = &self.index.nodes;
        let is_wanted = |context: ContextId| {
            let function = nodes[context].function;
            function.is_some_and(|function| functions.contains(&function))
        };
        let is_nested = |context: ContextId| {
            let mut above = nodes[context].parent;
            while above != StackIndex::root() {
                if is_wanted(above) {
                    return true;
                }
                above = nodes[above].parent;
            }
            false
        };
        let all = functions
            .iter()
            .flat_map(|&function| self.index.nodes_of(function));
        let outermost = all.filter(|&&context| !is_nested(context));
        let stacks = outermost.map(|&context| Through {
            samples: self.sums.total(&self.index, context),
            thread: None,
            context,
        });
        stacks.filter(|stack| stack.samples > 0).collect()
    }

    /// Own samples of the stacks' innermost functions.
    #[must_use]
    pub fn own_in(&self, stacks: &[Through]) -> u64 {
        let own = |one: &Through| self.sums.of_node(&self.index, one.thread, one.context).0;
        stacks.iter().map(own).sum()
    }

    /// Groups stacks by the callee of their innermost function, most samples first.
    #[must_use]
    pub fn ways_from(&self, stacks: &[Through]) -> Vec<Way> {
        let mut ways = Ways::default();
        for one in stacks {
            let index = &self.index;
            (self.sums).each_child(index, one.thread, one.context, |context, (_, samples)| {
                let way = ways.of(index.nodes[context].function);
                way.samples += samples;
                way.through.push(Through {
                    samples,
                    context,
                    ..*one
                });
            });
        }
        ways.sorted()
    }

    /// Groups stacks by the caller of their innermost function, most samples first.
    #[must_use]
    pub fn ways_to(&self, stacks: &[Through]) -> Vec<Way> {
        let mut ways = Ways::default();
        // Position of each caller's stack in its way.
        let mut place: FxHashMap<_, usize> = FxHashMap::default();
        for one in stacks {
            let above = self.above(one);
            let way = ways.of(above.map(|(caller, _)| caller));
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
            way.through[at].samples += one.samples;
        }
        ways.sorted()
    }

    /// The caller of the stack's innermost function and its node; `None` for an outermost function.
    fn above(&self, stack: &Through) -> Option<(FunctionId, ContextId)> {
        if stack.context == StackIndex::root() {
            return None;
        }
        let parent = self.index.nodes[stack.context].parent;
        let of_thread = || Some(self.index.threads[stack.thread?].function);
        let function = self.index.nodes[parent].function.or_else(of_thread)?;
        Some((function, parent))
    }

    /// Callers and callees of a function; `None` if `stop` was requested first.
    #[must_use]
    pub fn around(&self, function: FunctionId, stop: &Stop) -> Option<Around> {
        let mut callers: FxHashMap<Option<FunctionId>, u64> = FxHashMap::default();
        let mut callees = self.index.functions.all.with_each(0);
        let mut call = |callee: ContextId, samples: u64| {
            if let Some(function) = self.index.nodes[callee].function {
                callees[function] += samples;
            }
        };
        if let Some(thread) = self.threads().find(|&one| self.thread_is(one, function)) {
            let root = StackIndex::root();
            let (_, total) = self.sums.of_node(&self.index, Some(thread), root);
            if total > 0 {
                callers.insert(None, total);
            }
            let sums = &self.sums;
            sums.each_child(&self.index, Some(thread), root, |child, (_, total)| {
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
            if total == 0 {
                continue;
            }
            let node = &self.index.nodes[context];
            called.clear();
            if node.outermost {
                self.count_callers(context, total, &mut callers);
            } else {
                self.called_above(context, function, &mut called);
            }
            let sums = &self.sums;
            sums.each_child(&self.index, None, context, |child, (_, total)| {
                if !called.contains(&self.index.nodes[child].function) {
                    call(child, total);
                }
            });
        }
        let mut callers: Vec<_> = callers.into_iter().collect();
        callers.sort_by_key(|&(caller, samples)| (Reverse(samples), caller));
        let callees = callees
            .enumerated()
            .map(|(callee, samples)| (callee, *samples));
        let mut callees: Vec<(FunctionId, u64)> =
            callees.filter(|(_, samples)| *samples > 0).collect();
        callees.sort_by_key(|&(callee, samples)| (Reverse(samples), callee));
        Some(Around { callers, callees })
    }

    fn count_callers(
        &self,
        context: ContextId,
        total: u64,
        callers: &mut FxHashMap<Option<FunctionId>, u64>,
    ) {
        let mut add = |caller, samples| *callers.entry(caller).or_default() += samples;
        let mut through = Through {
            samples: total,
            thread: None,
            context,
        };
        let caller = self.above(&through).map(|(caller, _)| caller);
        if caller.is_some() || !self.sums.by_thread() {
            return add(caller, total);
        }
        for thread in self.threads() {
            through.thread = Some(thread);
            let (_, samples) = self.sums.of_node(&self.index, Some(thread), context);
            if samples > 0 {
                add(self.above(&through).map(|(caller, _)| caller), samples);
            }
        }
    }

    /// Callees of a function on the path above one of its nodes.
    fn called_above(
        &self,
        node: ContextId,
        function: FunctionId,
        called: &mut Vec<Option<FunctionId>>,
    ) {
        let mut below = node;
        while below != StackIndex::root() {
            let node = &self.index.nodes[below];
            if self.index.nodes[node.parent].function == Some(function) {
                called.push(node.function);
            }
            below = node.parent;
        }
    }
}
