//! Most likely path of the instructions through the inlining tree's bytecodes: a shortest path
//! (Viterbi). Staying at a bytecode is free, progress in the same method cheap, a change to
//! another method dearer; each matching sign is a gain.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Weights;
use super::anchors::{Anchor, AnchorKind};
use super::facts::Sign;
use super::machine::{Flow, Machine};
use super::states::{State, States};
use super::steps::Steps;
use super::tree::Tree;

/// Minimum weight of an instruction's signs for use in the search.
const LEAST_GAIN: f32 = 0.45;

/// Maximum number of states that a useful sign matches.
const MAX_FITTING: usize = 400;

/// Maximum product of instructions and states for a search, so that no method takes much longer
/// than 30 ms. Beyond this limit, only anchors count, with the next-record rule between distant
/// anchors. The largest nmethod in javac takes 14 to 26 ms.
const MAX_WORK: usize = 32 << 20;

/// Maximum cells of the predecessor table in memory.
const MAX_CELLS: usize = 6 << 20;

/// State of each instruction with signs in `parts` of the code (ranges of instructions, ascending);
/// `None` for others.
#[must_use]
pub fn shortest(
    machine: &Machine,
    tree: &Tree,
    near: &[bool],
    (anchors, templates): (&[Anchor], &[Range<usize>]),
    parts: &[Range<usize>],
    weights: &Weights,
) -> Vec<Option<State>> {
    let mut told = vec![None; machine.insns.len()];
    let states = States::of(tree, near);
    if states.all.is_empty() {
        return told;
    }
    let mut gains = Vec::new();
    let evidence = (anchors, templates, parts);
    let rows = rows(machine, tree, &states, evidence, weights, &mut gains);
    let count: usize = rows.iter().map(Vec::len).sum();
    if count.saturating_mul(states.all.len()) > MAX_WORK {
        return told;
    }
    let longest = (MAX_CELLS / states.all.len()).max(16);
    let mut search = Search::new(machine, tree, &states, weights);
    for part in &rows {
        search.steps.restart();
        let mut rest = part.as_slice();
        while !rest.is_empty() {
            // Control does not arrive from the previous row.
            let apart = rest.iter().skip(1).position(|row| row.is_apart);
            let length = apart.map_or(rest.len(), |at| at + 1).min(longest);
            let (segment, behind) = rest.split_at(length);
            rest = behind;
            for (row, state) in segment.iter().zip(search.through(segment, &gains)) {
                if let Some(told) = told.get_mut(row.insn) {
                    *told = states.all.get(state).copied();
                }
            }
        }
    }
    for range in templates {
        // A template is one call.
        let Some(inside) = told.get_mut(range.clone()) else {
            continue;
        };
        if let Some(&Some(state)) = inside.first() {
            let telling = states.by_sign.get(&Sign::Intrinsic);
            let is_intrinsic = telling.is_some_and(|telling| {
                telling
                    .iter()
                    .any(|&at| states.all.get(at as usize) == Some(&state))
            });
            if is_intrinsic {
                inside.fill(Some(state));
            }
        }
    }
    told
}

/// An instruction with signs.
#[derive(Clone)]
struct Row {
    insn: usize,
    /// Whether control does not arrive from the previous row.
    is_apart: bool,
    /// The states' gains, as a range of all gains.
    gains: Range<usize>,
}

/// Rows of each part. Adds the rows' gains to `gains`: (state, gain).
fn rows(
    machine: &Machine,
    tree: &Tree,
    states: &States,
    (anchors, templates, parts): (&[Anchor], &[Range<usize>], &[Range<usize>]),
    weights: &Weights,
    gains: &mut Vec<(u32, f32)>,
) -> Vec<Vec<Row>> {
    let mut rows = vec![Vec::new(); parts.len()];
    let intrinsic = states.by_sign.get(&Sign::Intrinsic);
    let intrinsic = intrinsic.map_or(&[][..], Vec::as_slice);
    let mut templates = templates.iter().peekable();
    let mut anchors = anchors.iter().peekable();
    let mut is_apart = true;
    for (index, insn) in machine.insns.iter().enumerate() {
        let part = parts.partition_point(|part| part.end <= index);
        let is_wanted = parts.get(part).is_some_and(|part| part.start <= index);
        let Some(rows) = rows.get_mut(part).filter(|_| is_wanted) else {
            while anchors.next_if(|anchor| anchor.insn <= index).is_some() {}
            is_apart = true;
            continue;
        };
        let begin = gains.len();
        while templates.next_if(|range| range.end <= index).is_some() {}
        let template = templates.peek().filter(|range| range.contains(&index));
        let template = template.filter(|_| !intrinsic.is_empty());
        if template.is_some_and(|range| range.start == index) {
            let gain = weights.of_kind(&Sign::Intrinsic);
            gains.extend(intrinsic.iter().map(|state| (*state, gain)));
        }
        if insn.leaves {
            let returns = states.by_sign.get(&Sign::Return).into_iter().flatten();
            let gain = weights.of_kind(&Sign::Return);
            gains.extend(returns.map(|state| (*state, gain)));
        }
        let signs = template.map_or(machine.signs_of(insn), |_| &[]);
        for (sign, worth) in signs {
            let fitting = states.by_sign.get(sign).map_or(&[][..], Vec::as_slice);
            let factor = weights.of_kind(sign);
            if fitting.len() > MAX_FITTING || factor <= 0.0 {
                continue;
            }
            let rarity = weights.rarity / (4.0 + gain_count(fitting));
            let worth = worth * (weights.signs + rarity) * factor;
            gains.extend(fitting.iter().map(|state| (*state, worth)));
        }
        while let Some(anchor) = anchors.next_if(|anchor| anchor.insn <= index) {
            let gain = anchor.share
                * match anchor.kind {
                    AnchorKind::Record => weights.record,
                    AnchorKind::Implicit => weights.implicit,
                    AnchorKind::Receiver => weights.receiver,
                    AnchorKind::Trap => weights.trap,
                    AnchorKind::OutOfLine => weights.out_of_line,
                };
            let Some(state) = states.index(tree, anchor.node, anchor.bci) else {
                continue;
            };
            if anchor.kind == AnchorKind::Receiver {
                // The called method accesses the receiver.
                let count = gains.len();
                for index in begin..count {
                    let told = gains.get(index).copied();
                    if let Some((at, _)) = told.filter(|(at, _)| states.is_under(*at, state)) {
                        gains.push((at, gain));
                    }
                }
                if gains.len() > count {
                    continue;
                }
            }
            gains.push((u32::try_from(state).unwrap_or(u32::MAX), gain));
        }
        let own = gains.get(begin..).unwrap_or_default();
        if own.iter().any(|(_, gain)| *gain >= LEAST_GAIN) {
            rows.push(Row {
                insn: index,
                is_apart,
                gains: begin..gains.len(),
            });
            is_apart = false;
        } else {
            gains.truncate(begin);
        }
        is_apart |= !insn.falls;
    }
    rows
}

fn gain_count(fitting: &[u32]) -> f32 {
    f32::from(u16::try_from(fitting.len()).unwrap_or(u16::MAX))
}

/// Maximum number of costs kept for branch targets.
const MAX_KEPT: usize = 4 << 20;

struct Search<'a> {
    weights: &'a Weights,
    /// Forward branches: (target, source), ascending.
    sources: Vec<(usize, usize)>,
    /// Costs before a row with a branch, by instruction.
    kept: FxHashMap<usize, Vec<f32>>,
    /// Instructions whose costs are needed later, ascending.
    wanted: Vec<usize>,
    steps: Steps<'a>,
    /// Predecessor of each state, per row of a segment.
    from: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(machine: &Machine, tree: &Tree, states: &States, weights: &'a Weights) -> Self {
        let mut sources = Vec::new();
        for (source, insn) in machine.insns.iter().enumerate() {
            if let Flow::Branch(target) | Flow::Jump(target) = insn.flow {
                let target = machine.index_at(target);
                let before = target.checked_sub(1).and_then(|at| machine.insns.get(at));
                let is_apart = before.is_some_and(|insn| !insn.falls);
                if target > source && is_apart {
                    sources.push((target, source));
                }
            }
        }
        sources.sort_unstable();
        let mut wanted: Vec<usize> = sources.iter().map(|(_, source)| *source).collect();
        wanted.sort_unstable();
        Search {
            weights,
            sources,
            kept: FxHashMap::default(),
            wanted,
            steps: Steps::new(tree, states, weights),
            from: Vec::new(),
        }
    }

    /// Cheapest states of the rows of a straight segment.
    fn through(&mut self, rows: &[Row], gains: &[(u32, f32)]) -> Vec<usize> {
        let count = self.steps.costs.len();
        self.from.clear();
        let mut jump = self.weights.jump;
        if let Some(row) = rows.first().filter(|row| row.is_apart) {
            jump = self.begin(row.insn);
        }
        for (index, row) in rows.iter().enumerate() {
            self.steps.step(jump, &mut self.from);
            for (state, gain) in gains.get(row.gains.clone()).unwrap_or_default() {
                if let Some(cost) = self.steps.costs.get_mut(*state as usize) {
                    *cost -= gain;
                }
            }
            jump = self.weights.jump;
            // Branches up to the next row use these costs.
            let until = rows.get(index + 1).map_or(usize::MAX, |row| row.insn);
            let at = self.wanted.partition_point(|&wanted| wanted < row.insn);
            if self.wanted.get(at).is_some_and(|&wanted| wanted < until)
                && self.kept.len() * count < MAX_KEPT
            {
                self.kept.insert(row.insn, self.steps.costs.clone());
            }
        }
        let last = self.steps.costs.iter().enumerate();
        let last = last.min_by(|a, b| a.1.total_cmp(b.1));
        let mut at = last.map_or(0, |(state, _)| state);
        let mut path = Vec::with_capacity(rows.len());
        for row in (0..rows.len()).rev() {
            path.push(at);
            at = self
                .from
                .get(row * count + at)
                .map_or(0, |&before| before as usize);
        }
        path.reverse();
        path
    }

    /// Takes the costs at the source of a branch to instruction `at`, or shortly before it.
    /// Returns the cost of a jump there.
    fn begin(&mut self, at: usize) -> f32 {
        let behind = self.sources.partition_point(|(target, _)| *target <= at);
        let source = behind
            .checked_sub(1)
            .and_then(|index| self.sources.get(index));
        let kept = source.and_then(|(_, source)| {
            let mut row = *source;
            // Row at or before the branch.
            for _ in 0..8 {
                if let Some(costs) = self.kept.get(&row) {
                    return Some(costs);
                }
                row = row.checked_sub(1)?;
            }
            None
        });
        match kept {
            Some(costs) => {
                self.steps.costs.clone_from(costs);
                self.weights.jump
            }
            None => self.weights.apart,
        }
    }
}
