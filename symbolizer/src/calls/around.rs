//! What is around a function: who called it, and what it called.

use super::{CallTree, FunctionId, NodeId};
use crate::slices::Stop;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Samples that came one way: through the callers of some nodes, all of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// The caller; `None` where they were called by nobody: the outermost.
    pub caller: Option<FunctionId>,
    /// How many.
    pub samples: u64,
    /// The caller's nodes, each with how many of them came through it.
    pub nodes: Vec<(NodeId, u64)>,
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
    /// The nodes of a function with its own samples: where a tree from it to its callers
    /// begins.
    #[must_use]
    pub fn own_of(&self, function: FunctionId) -> Vec<(NodeId, u64)> {
        let nodes = self.nodes_of(function).iter();
        let own = nodes.filter_map(|&id| Some((id, self.node(id)?.own)));
        own.filter(|(_, own)| *own > 0).collect()
    }

    /// Divides samples at some nodes by who called those, most samples first.
    #[must_use]
    pub fn ways_to(&self, nodes: &[(NodeId, u64)]) -> Vec<Way> {
        let mut ways: Vec<Way> = Vec::new();
        let mut index: FxHashMap<Option<FunctionId>, usize> = FxHashMap::default();
        // Of each caller's node its place in its way.
        let mut place: FxHashMap<NodeId, usize> = FxHashMap::default();
        for &(node, samples) in nodes {
            let Some(parent) = self.node(node).map(|node| node.parent) else {
                continue;
            };
            let caller = self.node(parent).filter(|_| parent != Self::ROOT);
            let caller = caller.map(|caller| caller.function);
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
            way.samples += samples;
            if caller.is_none() {
                continue;
            }
            let at = *place.entry(parent).or_insert_with(|| {
                way.nodes.push((parent, 0));
                way.nodes.len() - 1
            });
            if let Some((_, sum)) = way.nodes.get_mut(at) {
                *sum += samples;
            }
        }
        ways.sort_by_key(|way| (Reverse(way.samples), self.name_key(way.caller)));
        ways
    }

    /// What is around a function; `None` when `stop` was wished before it was done.
    #[must_use]
    pub fn around(&self, function: FunctionId, stop: &Stop) -> Option<Around> {
        let mut callees: FxHashMap<FunctionId, u64> = FxHashMap::default();
        let mut outermost = Vec::new();
        for &id in self.nodes_of(function) {
            if stop.is_stopped() {
                return None;
            }
            let Some(node) = self.node(id) else {
                continue;
            };
            if node.outermost {
                outermost.push((id, node.total));
            }
            for child in self.children(id) {
                let Some(child) = self.node(child) else {
                    continue;
                };
                if node.outermost || !self.was_called_above(id, function, child.function) {
                    *callees.entry(child.function).or_default() += child.total;
                }
            }
        }
        let callers = self.ways_to(&outermost).into_iter();
        let mut callees: Vec<(FunctionId, u64)> = callees.into_iter().collect();
        callees.sort_by_key(|&(callee, samples)| (Reverse(samples), self.name_key(Some(callee))));
        Some(Around {
            callers: callers.map(|way| (way.caller, way.samples)).collect(),
            callees,
        })
    }

    /// Whether, above a node of `function`, that called `callee` already.
    fn was_called_above(&self, node: NodeId, function: FunctionId, callee: FunctionId) -> bool {
        let mut below = node;
        while let Some(node) = self.node(below).filter(|_| below != Self::ROOT) {
            let is_callee = node.function == callee;
            below = node.parent;
            let caller = self.node(below).filter(|_| below != Self::ROOT);
            if is_callee && caller.is_some_and(|caller| caller.function == function) {
                return true;
            }
        }
        false
    }

    fn name_key(&self, function: Option<FunctionId>) -> Option<&super::Function> {
        function.and_then(|function| self.function(function))
    }
}
