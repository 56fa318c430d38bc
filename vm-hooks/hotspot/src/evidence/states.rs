//! States of the search: bytecodes of an inlining tree that have an effect.

use rustc_hash::FxHashMap;

use super::facts::Sign;
use super::tree::Tree;

/// A bytecode of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub node: u32,
    /// Step in the node's method.
    pub step: u16,
}

/// Maximum depth of the search for a receiver's access.
const MAX_UNDER: usize = 4;

/// All states, with an index by sign.
pub struct States {
    /// Ordered by node, then by step.
    pub all: Vec<State>,
    /// First state of each node; `None` for nodes without states.
    pub first: Vec<Option<usize>>,
    /// State of the parent that calls each node.
    pub calls: Vec<Option<usize>>,
    pub by_sign: FxHashMap<Sign, Vec<u32>>,
}

impl States {
    /// States of a tree's nodes without those that are not `near`; guesses are.
    pub fn of(tree: &Tree, near: &[bool]) -> Self {
        let mut states = States {
            all: Vec::new(),
            first: Vec::new(),
            calls: Vec::new(),
            by_sign: FxHashMap::default(),
        };
        for (index, node) in tree.nodes.iter().enumerate() {
            let first = states.all.len();
            if near.get(index) == Some(&false) {
                states.first.push(None);
                states.calls.push(None);
                continue;
            }
            states.first.push(Some(first));
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
                // Inlined methods have no return instruction.
                if *sign == Sign::Return && index > 0 {
                    continue;
                }
                let state = u32::try_from(first + usize::from(*step)).unwrap_or(u32::MAX);
                states.by_sign.entry(*sign).or_default().push(state);
            }
        }
        states
    }

    /// Whether a state belongs to the method called by state `call`, or to a method called from
    /// there.
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

    /// State of a bytecode in a node.
    pub fn index(&self, tree: &Tree, node: u32, bci: i32) -> Option<usize> {
        let step = tree.nodes.get(node as usize)?.facts.step_at(bci);
        Some(self.first.get(node as usize).copied()?? + usize::from(step))
    }
}
