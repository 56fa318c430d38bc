//! Costs per bytecode of an inlining tree, from one instruction to the next. This is the
//! innermost loop of the search, with some ten million steps for a large method.

use super::Weights;
use super::states::States;
use super::tree::Tree;

/// States per vector step: the compiler turns plain loops over arrays of this length into
/// vector instructions.
const LANES: usize = 8;

/// A cost and its predecessor state.
type Best = (f32, u32);

const NOWHERE: Best = (f32::INFINITY, 0);

fn better(a: Best, b: Best) -> Best {
    if b.0 < a.0 { b } else { a }
}

fn plus(a: Best, cost: f32) -> Best {
    (a.0 + cost, a.1)
}

/// Data of a node for each step.
struct Place {
    /// Range of its states.
    first: usize,
    end: usize,
    /// State that calls the node.
    call: Option<usize>,
    /// Additional cost of entry.
    guess: f32,
    /// Minimum cost of its states after returns from inlined methods.
    least: Best,
}

/// Costs of all states.
pub struct Steps<'a> {
    /// Cost of each state.
    pub costs: Vec<f32>,
    weights: &'a Weights,
    places: Vec<Place>,
    /// 0, 1, 2 …
    themselves: Vec<u32>,
}

impl<'a> Steps<'a> {
    /// Cost 0 for all states.
    pub fn new(tree: &Tree, states: &States, weights: &'a Weights) -> Self {
        let count = states.all.len();
        let nodes = tree.nodes.iter().zip(&states.first).zip(&states.calls);
        let places = nodes.filter_map(|((node, first), &call)| {
            let first = (*first)?;
            Some(Place {
                first,
                end: first + node.facts.steps.len(),
                call,
                guess: if node.is_recorded { 0.0 } else { weights.guess },
                least: NOWHERE,
            })
        });
        Steps {
            costs: vec![0.0; count],
            weights,
            places: places.collect(),
            themselves: (0_u32..).take(count).collect(),
        }
    }

    /// Cost 0 for all states again.
    pub fn restart(&mut self) {
        self.costs.fill(0.0);
    }

    /// Advances one instruction; `jump` is the cost of an arrival from anywhere. Adds each
    /// state's predecessor to `table`.
    pub fn step(&mut self, jump: f32, table: &mut Vec<u32>) {
        let Steps {
            costs,
            weights,
            places,
            themselves,
        } = self;
        let begin = table.len();
        table.extend_from_slice(themselves);
        let from = table.get_mut(begin..).unwrap_or_default();
        // Returns from inlined methods: children come after their parents.
        let mut anywhere = NOWHERE;
        for place in places.iter_mut().rev() {
            place.least = least(costs, from, place);
            anywhere = better(anywhere, place.least);
            if let Some(call) = place.call {
                let left = plus(place.least, weights.leave);
                if let (Some(cost), Some(from)) = (costs.get_mut(call), from.get_mut(call)) {
                    (*cost, *from) = better((*cost, *from), left);
                }
            }
        }
        let anywhere = plus(anywhere, jump);
        // Entries into inlined methods.
        for place in places.iter() {
            let call = place
                .call
                .and_then(|call| Some((*costs.get(call)?, *from.get(call)?)));
            let into = plus(call.unwrap_or(NOWHERE), weights.enter + place.guess);
            let anyhow = better(
                plus(anywhere, place.guess),
                plus(place.least, weights.within),
            );
            let anyhow = better(anyhow, plus(into, weights.forward));
            let range = place.first..place.end;
            if let (Some(costs), Some(from)) = (costs.get_mut(range.clone()), from.get_mut(range)) {
                within(costs, from, anyhow, weights);
                // Only the call leads to the first state.
                if let (Some(cost), Some(from)) = (costs.first_mut(), from.first_mut()) {
                    (*cost, *from) = better((*cost, *from), into);
                }
            }
        }
    }
}

/// First state of minimum cost in a node.
fn least(costs: &[f32], from: &[u32], place: &Place) -> Best {
    let own = costs.get(place.first..place.end).unwrap_or_default();
    let (chunks, rest) = own.as_chunks::<LANES>();
    let mut lanes = [f32::INFINITY; LANES];
    for chunk in chunks {
        for (lane, &cost) in lanes.iter_mut().zip(chunk) {
            *lane = if cost < *lane { cost } else { *lane };
        }
    }
    let all = lanes.iter().chain(rest).copied();
    let cost = all.fold(f32::INFINITY, |a, b| if b < a { b } else { a });
    let has = |chunk: &[f32; LANES]| chunk.iter().fold(false, |any, &own| any | (own == cost));
    let skipped = chunks.iter().take_while(|chunk| !has(chunk)).count() * LANES;
    let rest = own.get(skipped..).unwrap_or_default();
    let at = rest.iter().position(|&own| own == cost);
    let at = at.map(|at| skipped + at);
    let from = at.and_then(|at| from.get(place.first + at));
    from.map_or(NOWHERE, |&from| (cost, from))
}

/// Moves forward between a node's states, or to any state by the single way `anyhow`.
fn within(costs: &mut [f32], from: &mut [u32], anyhow: Best, weights: &Weights) {
    // Forward move to this state; cheaper than `anyhow` for some states only.
    let mut forward = NOWHERE;
    let (cost_chunks, cost_rest) = costs.as_chunks_mut::<LANES>();
    let (from_chunks, from_rest) = from.as_chunks_mut::<LANES>();
    for (costs, from) in cost_chunks.iter_mut().zip(from_chunks) {
        let may = |cost: f32| cost + weights.forward <= anyhow.0;
        let begins = costs.iter().fold(false, |any, &cost| any | may(cost));
        if begins || may(forward.0) {
            one_by_one(costs, from, &mut forward, anyhow, weights);
            continue;
        }
        for (cost, from) in costs.iter_mut().zip(from) {
            let is_less = anyhow.0 < *cost;
            *cost = if is_less { anyhow.0 } else { *cost };
            *from = if is_less { anyhow.1 } else { *from };
        }
    }
    one_by_one(cost_rest, from_rest, &mut forward, anyhow, weights);
}

fn one_by_one(
    costs: &mut [f32],
    from: &mut [u32],
    forward: &mut Best,
    anyhow: Best,
    weights: &Weights,
) {
    for (cost, from) in costs.iter_mut().zip(from) {
        let here = (*cost, *from);
        let best = better(here, plus(*forward, weights.forward));
        (*cost, *from) = better(best, anyhow);
        *forward = better(plus(*forward, weights.skip), here);
    }
}
