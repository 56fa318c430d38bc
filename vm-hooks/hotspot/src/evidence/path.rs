//! The likeliest way through the inlining tree's bytecodes that the instructions tell:
//! a shortest path (Viterbi), where staying costs nothing, going on in the same method
//! little, entering or leaving an inlined method more, and each sign that fits is a gain.

use rustc_hash::FxHashMap;

use super::Weights;
use super::anchors::{Anchor, AnchorKind};
use super::facts::Sign;
use super::machine::{Flow, Machine};
use super::tree::Tree;

/// A bytecode of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The node.
    pub node: u32,
    /// The step in its method.
    pub step: u16,
}

/// Cells of the table of predecessors that are kept at a time.
const MAX_CELLS: usize = 6 << 20;

/// All states and the signs that lead to them.
struct States {
    all: Vec<State>,
    /// First state of each node.
    first: Vec<usize>,
    by_sign: FxHashMap<Sign, Vec<u32>>,
}

impl States {
    fn of(tree: &Tree) -> Self {
        let mut states = States {
            all: Vec::new(),
            first: Vec::new(),
            by_sign: FxHashMap::default(),
        };
        for (index, node) in tree.nodes.iter().enumerate() {
            let first = states.all.len();
            states.first.push(first);
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            for step in 0..node.facts.steps.len() {
                let step = u16::try_from(step).unwrap_or(u16::MAX);
                states.all.push(State { node: index, step });
            }
            for (sign, step) in &node.facts.signs {
                let state = u32::try_from(first + usize::from(*step)).unwrap_or(u32::MAX);
                states.by_sign.entry(*sign).or_default().push(state);
            }
        }
        states
    }

    fn index(&self, tree: &Tree, node: u32, bci: i32) -> Option<usize> {
        let step = tree.nodes.get(node as usize)?.facts.step_at(bci);
        Some(self.first.get(node as usize)? + usize::from(step))
    }
}

/// The state of each instruction that tells something; others have none.
#[must_use]
pub fn shortest(
    machine: &Machine,
    tree: &Tree,
    anchors: &[Anchor],
    weights: &Weights,
) -> Vec<Option<State>> {
    let mut told = vec![None; machine.insns.len()];
    let states = States::of(tree);
    if states.all.is_empty() {
        return told;
    }
    let rows = rows(machine, tree, &states, anchors, weights);
    let limit = (MAX_CELLS / states.all.len()).max(16);
    for rows in rows.chunks(limit) {
        for (row, state) in rows.iter().zip(through(tree, &states, rows, weights)) {
            if let Some(told) = told.get_mut(row.insn) {
                *told = states.all.get(state).copied();
            }
        }
    }
    told
}

/// An instruction that tells something: what states gain by it.
struct Row {
    insn: usize,
    /// Whether control does not come from the row before.
    is_apart: bool,
    gains: Vec<(u32, f32)>,
}

fn rows(
    machine: &Machine,
    tree: &Tree,
    states: &States,
    anchors: &[Anchor],
    weights: &Weights,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut anchors = anchors.iter().peekable();
    let mut is_apart = true;
    for (index, insn) in machine.insns.iter().enumerate() {
        let mut gains = Vec::new();
        for (sign, worth) in machine.signs_of(insn) {
            let worth = worth * weights.signs;
            let fitting = states.by_sign.get(sign).into_iter().flatten();
            gains.extend(fitting.map(|state| (*state, worth)));
        }
        while let Some(anchor) = anchors.next_if(|anchor| anchor.insn <= index) {
            let gain = anchor.share
                * match anchor.kind {
                    AnchorKind::Record => weights.record,
                    AnchorKind::Implicit => weights.implicit,
                    AnchorKind::Trap => weights.trap,
                    AnchorKind::OutOfLine => weights.out_of_line,
                };
            if let Some(state) = states.index(tree, anchor.node, anchor.bci) {
                gains.push((u32::try_from(state).unwrap_or(u32::MAX), gain));
            }
        }
        if !gains.is_empty() {
            rows.push(Row {
                insn: index,
                is_apart,
                gains,
            });
            is_apart = false;
        }
        is_apart |= matches!(insn.flow, Flow::Jump(_) | Flow::Away);
    }
    rows
}

/// A cost and the state that it comes from.
type Best = (f32, u32);

fn better(a: Best, b: Best) -> Best {
    if b.0 < a.0 { b } else { a }
}

/// The cheapest states of `rows`.
fn through(tree: &Tree, states: &States, rows: &[Row], weights: &Weights) -> Vec<usize> {
    let count = states.all.len();
    let mut costs = vec![0.0_f32; count];
    let mut next = vec![0.0_f32; count];
    let mut from: Vec<u32> = Vec::with_capacity(count * rows.len());
    let mut reach: Vec<Best> = Vec::new();
    for row in rows {
        let jump = if row.is_apart {
            weights.apart
        } else {
            weights.jump
        };
        reachable(tree, states, &costs, weights, jump, &mut reach);
        let mut state = 0_u32;
        let mut values = costs.iter().zip(next.iter_mut());
        for (node, reach) in tree.nodes.iter().zip(&reach) {
            let mut forward: Best = (f32::INFINITY, 0);
            for (cost, next) in values.by_ref().take(node.facts.steps.len()) {
                let mut best = (*cost, state);
                best = better(best, (forward.0 + weights.forward, forward.1));
                best = better(best, *reach);
                forward = better(forward, (*cost, state));
                *next = best.0;
                from.push(best.1);
                state += 1;
            }
        }
        for (state, gain) in &row.gains {
            if let Some(cost) = next.get_mut(*state as usize) {
                *cost -= gain;
            }
        }
        std::mem::swap(&mut costs, &mut next);
    }
    let last = costs.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    let mut at = last.map_or(0, |(state, _)| state);
    let mut path = Vec::with_capacity(rows.len());
    for row in (0..rows.len()).rev() {
        path.push(at);
        at = from.get(row * count + at).map_or(0, |&before| before as usize);
    }
    path.reverse();
    path
}

/// For each node the cheapest way into any of its states, from anywhere.
fn reachable(
    tree: &Tree,
    states: &States,
    costs: &[f32],
    weights: &Weights,
    jump: f32,
    reach: &mut Vec<Best>,
) {
    reach.clear();
    let mut anywhere: Best = (f32::INFINITY, 0);
    let mut values = (0_u32..).zip(costs.iter());
    debug_assert_eq!(states.all.len(), costs.len());
    for node in &tree.nodes {
        let mut best: Best = (f32::INFINITY, 0);
        for (state, cost) in values.by_ref().take(node.facts.steps.len()) {
            best = better(best, (*cost, state));
        }
        anywhere = better(anywhere, best);
        // Within a method backward, and in the end everywhere.
        reach.push((best.0 + weights.within, best.1));
    }
    // Up the tree, then down: children come after their parents.
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        if let (Some((parent, _)), Some(&own)) = (node.parent, reach.get(index)) {
            if let Some(up) = reach.get_mut(parent as usize) {
                *up = better(*up, (own.0 + weights.leave, own.1));
            }
        }
    }
    for (index, node) in tree.nodes.iter().enumerate() {
        let guess = if node.is_recorded { 0.0 } else { weights.guess };
        let above = node.parent.and_then(|(parent, _)| reach.get(parent as usize).copied());
        if let Some(own) = reach.get_mut(index) {
            if let Some(above) = above {
                *own = better(*own, (above.0 + weights.enter + guess, above.1));
            }
            *own = better(*own, (anywhere.0 + jump + guess, anywhere.1));
        }
    }
}
