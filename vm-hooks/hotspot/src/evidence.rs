//! pc maps of compiled code: which bytecode, in which of the methods inlined into each
//! other, a pc stands for.
//!
//! A JVM without `-XX:+DebugNonSafepoints` keeps debug records at calls, polls and traps
//! alone, so that the next record mostly is that of some code out of line. What else
//! tells, and how it is put together:
//!
//! 1. `tree`: the methods that records name, inlined into each other, and besides small
//!    ones that calls without a record may have been replaced with: the resolved method,
//!    or what the receivers of the profile have.
//! 2. `anchors`: instructions with a record or an entry of the implicit-exception
//!    table, and branches to code out of line that comes to a record: the trap or slow
//!    path of a check has the scope of the check.
//! 3. `signs`: what instructions show of the bytecode that they were made for: offsets
//!    of fields, sizes of elements, lengths, classes, numbers, arithmetic, allocation.
//!    `templates`: ready-made code of intrinsics is one call.
//! 4. `path`, `steps`: the cheapest way through the bytecodes of the tree (Viterbi), along
//!    the instructions; a branch's target begins with what its source had.
//! 5. `assemble`: *exact* are the record's own pc, the prologue, and in C1's code the
//!    entry of the implicit-exception table; all else is *approximate*.
//!
//! Measured by `examples/evidence` on six programs (`tests/programs/evidence`): innermost
//! method right, in % of 36,329 samples. *raw*: against the full table under the
//! next-record rule; *sound*: without the samples for which that table can be shown to be
//! wrong, whatever is said here (7 to 33 % of the tiered ones: C2 gives what it makes late
//! the scope that was parsed last); *exact*: those of the sound that are called so.
//!
//! | | next record | raw | sound | exact |
//! |---|---|---|---|---|
//! | C1 (17) | 57–83 | 89–94 | 89–94 | 100 |
//! | tiered, numbers (17, 25) | 54–62 | 96 | 96–97 | 100 |
//! | tiered, javac (17, 25) | 60–61 | 87–89 | 88–90 | 99 |
//! | tiered, streams (17, 25) | 42–43 | 51 | 82–83 | 100 |
//! | tiered, JSON and regex (17, 25) | 26–31 | 68–70 | 72–81 | 100 |
//! | tiered, graph (17, 25) | 14–16 | 68–70 | 67–72 | 100 |
//! | tiered, text (17, 25) | 17–18 | 54–59 | 70–74 | 97–99 |
//! | all tiered | 37 | 72 | 80 | – |
//! | all of them | 50 | 79 | 85 | – |
//!
//! Those that the weights were not chosen by give 86 (sound), the others 84. The exact ones
//! of streams, JSON and graph were measured anew on 17 (1,134 samples) when C2's implicit
//! exceptions had become approximate: with them 87 to 95 were right. `EvShares`, whose
//! three inlined methods know their shares by the program's clock, comes out within 1.5
//! points on C1 and C2, 17 and 25, without the flag; the next record gives two of the three
//! nothing on C2.
//!
//! Of the wrong ones most are the caller or callee of the right one: what is neither is 0
//! to 5 % of the samples, 8 to 9 % for text. Where wrong: arithmetic and moves between
//! registers at an inlined call's borders, getters that no record names, and which of
//! several equal intrinsics it is.
//!
//! What it costs, on a busy machine: of 4,478 nmethods of javac (17) the median takes 0.02 to
//! 0.04 ms, 99 % up to 8 ms, the longest 14 to 26 ms, all of them 1.0 to 1.6 s. Only code that
//! samples hit is looked at. The search takes two thirds of it; where instructions times
//! bytecodes are too many it is left out, and what is between the anchors is as the next
//! record has it.

mod anchors;
mod assemble;
mod facts;
mod full;
mod machine;
mod memory;
mod path;
mod profile;
mod signs;
mod states;
mod steps;
mod templates;
mod tree;
mod weights;

use std::sync::Arc;

use rustc_hash::FxHashSet;
use vmscope_records::{Avma, Exactness};

use crate::code::{Frame, Nmethod};
pub use facts::{Arithmetic, MethodFacts, Referent, Sign};
pub use full::{full, has_full_tables, stale_scope, without_needless};
pub use memory::{FactsLayout, MemoryMethods};
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
    // C2 moves loads away from where they may fault, and checks of several bytecodes together.
    let implicit = if nmethod.is_by_c2() {
        Exactness::Approximate
    } else {
        Exactness::Exact
    };
    assemble::assemble(&machine, &tree, &anchors, &states, prologue, implicit)
}

#[cfg(test)]
mod tests;
