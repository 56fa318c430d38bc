//! pc maps of compiled code.

mod anchors;
mod assemble;
pub mod bytecode;
pub mod facts;
mod full;
mod machine;
mod memory;
mod path;
mod pool;
mod profile;
mod signs;
mod states;
mod templates;
mod tree;
mod weights;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use vmscope_records::{Avma, Exactness};

use crate::code::{Frame, Nmethod};
pub use facts::{Arithmetic, MethodFacts, Reference, Sign};
pub use full::{full, has_full_tables, stale_scope};
pub use memory::{MemoryMethods, MethodsLayout};
pub use tree::GuessLimits;
pub use weights::Weights;

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
///
/// Its bounds are those of *sampled pcs*: an interrupt is taken when an instruction
/// retires, and the pc is then that of the next one. So the sample of an instruction
/// that goes on to the next has the pc behind it, as a return address has the pc behind
/// its call; the VM's own records do it alike. A piece begins therefore one byte after
/// its first instruction's begin, and ends one after its last one's end, unless control
/// does not come from, or go on to, the code beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first pc, from the code's begin.
    pub start: u32,
    /// One after the last pc.
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
    /// What a sampled pc, or a return address, stands for: an offset from the code's begin.
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

/// The map of an nmethod by all evidence there is: for tables of a JVM that runs without
/// `-XX:+DebugNonSafepoints`. [`full`] is for the others.
#[must_use]
pub fn pieces(nmethod: &Nmethod, methods: &dyn MethodSource) -> Map {
    pieces_weighted(nmethod, methods, &Weights::default())
}

/// Likewise, with other weights: to measure them.
#[must_use]
pub fn pieces_weighted(nmethod: &Nmethod, methods: &dyn MethodSource, weights: &Weights) -> Map {
    let machine = machine::Machine::of(nmethod, methods.narrow_class());
    let mut tree = tree::Tree::of(nmethod, methods);
    let anchors = anchors::anchors(nmethod, &machine, &tree);
    let called: FxHashSet<(u32, i32)> = anchors
        .iter()
        .filter(|anchor| anchor.kind == anchors::AnchorKind::Record)
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
    assemble::assemble(&machine, &tree, &anchors, &states, prologue)
}

#[cfg(test)]
mod tests;
