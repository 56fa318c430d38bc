//! pc maps of compiled code.

mod anchors;
pub mod bytecode;
pub mod facts;
mod machine;
mod memory;
mod path;
mod pool;
mod profile;
mod templates;
mod tree;

use std::sync::Arc;

use vmscope_records::{Avma, Exactness};

use crate::code::{Frame, Nmethod};
pub use anchors::AnchorKind;
pub use facts::{Arithmetic, MethodFacts, Reference, Sign};
pub use memory::{MemoryMethods, MethodsLayout};
pub use tree::GuessLimits;

/// What evidence needs to know of methods.
pub trait MethodSource {
    /// What the bytecodes of the method at that `Method*` may be recognised by.
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>>;

    /// The base and the shift of compressed class pointers.
    fn narrow_class(&self) -> Option<(u64, u32)> {
        None
    }
}

/// A piece of code and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its first byte from the code's begin.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// Index into [`Map::chains`].
    pub chain: u32,
    /// How well that is known.
    pub exactness: Exactness,
}

/// What an nmethod's code stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The pieces, ascending, not overlapping.
    pub pieces: Vec<Piece>,
    /// The chains of (method, bytecode) that they stand for, innermost first.
    pub chains: Vec<Vec<Frame>>,
}

impl Map {
    /// The piece at an offset from the code's begin.
    #[must_use]
    pub fn at(&self, offset: u32) -> Option<(&Piece, &[Frame])> {
        let index = self.pieces.partition_point(|piece| piece.end <= offset);
        let piece = self
            .pieces
            .get(index)
            .filter(|piece| piece.start <= offset)?;
        Some((piece, self.chains.get(piece.chain as usize)?))
    }
}

/// What each kind of evidence is worth, and each way through the bytecodes costs.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// A debug record.
    pub record: f32,
    /// An entry of the implicit-exception table.
    pub implicit: f32,
    /// Such an entry of the receiver of a call.
    pub receiver: f32,
    /// A branch to a trap.
    pub trap: f32,
    /// A branch to other code out of line.
    pub out_of_line: f32,
    /// Factor of all signs.
    pub signs: f32,
    /// How much more a sign is worth that fits few bytecodes.
    pub rarity: f32,
    /// Factors of the kinds of signs, in the order of [`Sign`]'s variants.
    pub kinds: [f32; 14],
    /// For each bytecode that is skipped, going forward.
    pub skip: f32,
    /// Forward in the same method.
    pub forward: f32,
    /// Backward in the same method.
    pub within: f32,
    /// Into an inlined method.
    pub enter: f32,
    /// Out of one.
    pub leave: f32,
    /// Anywhere.
    pub jump: f32,
    /// Anywhere, where control does not come from the instruction in front.
    pub apart: f32,
    /// Into a method that no record names, besides.
    pub guess: f32,
    /// Which methods that may be.
    pub limits: GuessLimits,
}

impl Weights {
    /// The factor of a sign.
    fn of_kind(&self, sign: &Sign) -> f32 {
        let index = match sign {
            Sign::Field { .. } => 0,
            Sign::Element { .. } => 1,
            Sign::Length => 2,
            Sign::ClassOf => 3,
            Sign::Class(_) => 4,
            Sign::Constant(-1..=1) => 5,
            Sign::Constant(_) => 6,
            Sign::Arithmetic(_) => 7,
            Sign::Branch => 8,
            Sign::Allocate => 9,
            Sign::Lock => 10,
            Sign::Vector => 11,
            Sign::Intrinsic => 12,
            Sign::Return => 13,
        };
        self.kinds.get(index).copied().unwrap_or(1.0)
    }
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            record: 12.0,
            implicit: 8.0,
            receiver: 2.0,
            trap: 5.0,
            out_of_line: 3.0,
            signs: 1.0,
            rarity: 2.0,
            kinds: [
                1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 8.0, 6.0,
            ],
            skip: 0.04,
            forward: 0.2,
            within: 1.0,
            enter: 2.5,
            leave: 2.0,
            jump: 6.0,
            apart: 2.0,
            guess: 1.0,
            limits: GuessLimits {
                depth: 4,
                size: 80,
                targets: 2,
                steps: 6000,
            },
        }
    }
}

/// The map of an nmethod by all evidence there is.
#[must_use]
pub fn pieces(nmethod: &Nmethod, methods: &dyn MethodSource, weights: &Weights) -> Map {
    let machine = machine::Machine::of(nmethod, methods.narrow_class());
    let mut tree = tree::Tree::of(nmethod, methods);
    let anchors = anchors::anchors(nmethod, &machine, &tree);
    let called: std::collections::HashSet<(u32, i32)> = anchors
        .iter()
        .filter(|anchor| anchor.kind == AnchorKind::Record)
        .filter(|anchor| {
            let insn = machine.insns.get(anchor.insn);
            insn.is_some_and(|insn| insn.flow == machine::Flow::Call)
        })
        .map(|anchor| (anchor.node, anchor.bci))
        .collect();
    tree.guess(methods, &weights.limits, |node, bci| {
        called.contains(&(node, bci))
    });
    let templates = templates::regions(&machine);
    let states = path::shortest(&machine, &tree, &anchors, &templates, weights);
    let prologue = u32::try_from(nmethod.blob.frame_complete).unwrap_or(0);
    assemble(&machine, &tree, &anchors, &states, prologue)
}

/// `SynchronizationEntryBCI`: before a method's first bytecode.
const METHOD_ENTRY: i32 = -1;

fn assemble(
    machine: &machine::Machine,
    tree: &tree::Tree,
    anchors: &[anchors::Anchor],
    states: &[Option<path::State>],
    prologue: u32,
) -> Map {
    let mut places: Vec<Option<(u32, i32, Exactness)>> = states
        .iter()
        .map(|state| {
            let state = (*state)?;
            let steps = &tree.nodes.get(state.node as usize)?.facts.steps;
            let bci = i32::from(*steps.get(usize::from(state.step))?);
            Some((state.node, bci, Exactness::Approximate))
        })
        .collect();
    for anchor in anchors {
        if matches!(anchor.kind, AnchorKind::Record | AnchorKind::Implicit) {
            if let Some(place) = places.get_mut(anchor.insn) {
                *place = Some((anchor.node, anchor.bci, Exactness::Exact));
            }
        }
    }
    for (insn, place) in machine.insns.iter().zip(places.iter_mut()) {
        if insn.start >= prologue {
            break;
        }
        *place = Some((0, METHOD_ENTRY, Exactness::Exact));
    }
    // What tells nothing prepares what comes next, if control goes there.
    let mut following = None;
    for (insn, place) in machine.insns.iter().zip(places.iter_mut()).rev() {
        if !insn.falls {
            following = None;
        }
        match place {
            Some((node, bci, _)) => following = Some((*node, *bci)),
            None => *place = following.map(|(node, bci)| (node, bci, Exactness::Approximate)),
        }
    }
    let mut before = (0, 0);
    let mut map = Map::default();
    let mut indices: rustc_hash::FxHashMap<(u32, i32), u32> = rustc_hash::FxHashMap::default();
    for (insn, place) in machine.insns.iter().zip(&places) {
        let (node, bci, exactness) = place.unwrap_or((before.0, before.1, Exactness::Approximate));
        before = (node, bci);
        let chains = &mut map.chains;
        let chain = *indices.entry((node, bci)).or_insert_with(|| {
            chains.push(tree.chain(node, bci));
            u32::try_from(chains.len() - 1).unwrap_or(u32::MAX)
        });
        match map.pieces.last_mut() {
            Some(last)
                if last.chain == chain && last.exactness == exactness && last.end == insn.start =>
            {
                last.end = insn.end;
            }
            _ => map.pieces.push(Piece {
                start: insn.start,
                end: insn.end,
                chain,
                exactness,
            }),
        }
    }
    map
}
