//! Assembly of pieces of code from the evidence of instructions.

use rustc_hash::FxHashMap;
use vmscope_records::Exactness;

use super::anchors::{Anchor, AnchorKind};
use super::machine::{Flow, Machine};
use super::states::State;
use super::tree::Tree;
use super::{Map, NamedBy, Piece};

/// `SynchronizationEntryBCI`: before a method's first bytecode.
const METHOD_ENTRY: i32 = -1;

/// Node, bytecode index, exactness.
type Place = (u32, i32, Exactness);

/// Assembles the pieces: the path, overridden by certain positions. `prologue`: offset of the
/// frame's completion. `implicit`: exactness of an entry of the implicit-exception table.
pub fn assemble(
    machine: &Machine,
    tree: &Tree,
    anchors: &[Anchor],
    states: &[Option<State>],
    prologue: u32,
    implicit: Exactness,
) -> Map {
    let mut places = places(tree, states);
    for anchor in anchors {
        let exactness = match anchor.kind {
            AnchorKind::Record => Exactness::Exact,
            AnchorKind::Implicit => implicit,
            _ => continue,
        };
        if let Some(place) = places.get_mut(anchor.insn) {
            *place = Some((anchor.node, anchor.bci, exactness));
        }
    }
    for (insn, place) in machine.insns.iter().zip(places.iter_mut()) {
        if insn.start >= prologue {
            break;
        }
        *place = Some((0, METHOD_ENTRY, Exactness::Exact));
    }
    // Instructions without signs prepare the next one, if control reaches it.
    let mut following: Option<Place> = None;
    for (insn, place) in machine.insns.iter().zip(places.iter_mut()).rev() {
        if !insn.falls {
            following = None;
        }
        match place {
            Some((node, bci, _)) => following = Some((*node, *bci, Exactness::Approximate)),
            None => *place = following,
        }
    }
    map(machine, tree, &places)
}

fn places(tree: &Tree, states: &[Option<State>]) -> Vec<Option<Place>> {
    let place = |state: &Option<State>| {
        let state = (*state)?;
        let steps = &tree.nodes.get(state.node as usize)?.facts.steps;
        let bci = i32::from(*steps.get(usize::from(state.step))?);
        Some((state.node, bci, Exactness::Approximate))
    };
    states.iter().map(place).collect()
}

fn map(machine: &Machine, tree: &Tree, places: &[Option<Place>]) -> Map {
    let mut map = Map::default();
    let mut indices: FxHashMap<(u32, i32), u32> = FxHashMap::default();
    let mut before = (0, METHOD_ENTRY, Exactness::MethodOnly);
    let mut start = 0;
    for (insn, place) in machine.insns.iter().zip(places) {
        let (node, bci, exactness) = place.unwrap_or(before);
        before = (
            node,
            bci,
            match exactness {
                Exactness::Exact => Exactness::Approximate,
                other => other,
            },
        );
        let end = if insn.falls || insn.flow == Flow::Call {
            insn.end.saturating_add(1)
        } else {
            insn.end
        };
        let chains = &mut map.chains;
        let chain = *indices.entry((node, bci)).or_insert_with(|| {
            chains.push(tree.chain(node, bci));
            u32::try_from(chains.len() - 1).unwrap_or(u32::MAX)
        });
        match map.pieces.last_mut() {
            Some(last) if last.chain == chain && last.exactness == exactness => last.end = end,
            _ if end > start => map.pieces.push(Piece {
                start,
                end,
                chain,
                exactness,
                named_by: match exactness {
                    Exactness::Exact => NamedBy::Record,
                    _ => tree.inferred(node),
                },
            }),
            _ => {}
        }
        start = start.max(end);
    }
    map
}
