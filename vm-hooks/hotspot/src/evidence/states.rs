//! The bytecodes of an inlining tree that do something, as states of a search.

use rustc_hash::FxHashMap;

use super::facts::Sign;
use super::tree::Tree;

/// A bytecode of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The node.
    pub node: u32,
    /// The step in its method.
    pub step: u16,
}

/// How deep the access of a receiver is looked for.
const MAX_UNDER: usize = 4;

/// All states and the signs that lead to them.
pub struct States {
    /// By node, and in each by step.
    pub all: Vec<State>,
    /// First state of each node.
    pub first: Vec<usize>,
    /// The parent's state that calls each node.
    pub calls: Vec<Option<usize>>,
    /// The states that have each sign.
    pub by_sign: FxHashMap<Sign, Vec<u32>>,
}

impl States {
    /// Of all nodes of a tree.
    pub fn of(tree: &Tree) -> Self {
        let mut states = States {
            all: Vec::new(),
            first: Vec::new(),
            calls: Vec::new(),
            by_sign: FxHashMap::default(),
        };
        for (index, node) in tree.nodes.iter().enumerate() {
            let first = states.all.len();
            states.first.push(first);
            let call = node
                .parent
                .and_then(|(node, bci)| states.index(tree, node, bci));
            states.calls.push(call);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            for step in 0..node.facts.steps.len() {
                let step = u16::try_from(step).unwrap_or(u16::MAX);
                states.all.push(State { node: index, step });
            }
            for (sign, step) in &node.facts.signs {
                // Inlined methods do not return in the machine's sense.
                if *sign == Sign::Return && index > 0 {
                    continue;
                }
                let state = u32::try_from(first + usize::from(*step)).unwrap_or(u32::MAX);
                states.by_sign.entry(*sign).or_default().push(state);
            }
        }
        states
    }

    /// Whether a state is of a method that is called by state `call`, or by one of those
    /// that it calls.
    pub fn is_under(&self, state: u32, call: usize) -> bool {
        let mut at = state as usize;
        for _ in 0..MAX_UNDER {
            let node = self.all.get(at).map(|state| state.node as usize);
            match node.and_then(|node| self.calls.get(node).copied().flatten()) {
                Some(next) if next == call => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    /// The state of a bytecode in a node.
    pub fn index(&self, tree: &Tree, node: u32, bci: i32) -> Option<usize> {
        let step = tree.nodes.get(node as usize)?.facts.step_at(bci);
        Some(self.first.get(node as usize)? + usize::from(step))
    }
}
