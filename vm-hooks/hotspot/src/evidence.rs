//! pc maps of compiled code: for each pc, the bytecode and the chain of inlined methods.
//!
//! A JVM without `-XX:+DebugNonSafepoints` keeps debug records only at calls, polls and traps.
//! The next record after a pc therefore mostly belongs to out-of-line code. This module
//! combines the records with other evidence:
//!
//! 1. `tree`: inlined methods named by records, and guesses of small methods inlined at
//!    calls without a record: the resolved method, or methods of the profile's receivers.
//! 2. `anchors`: instructions with a record or an entry of the implicit-exception table, and
//!    branches to out-of-line code that reaches a record: the trap or slow path of a check
//!    has the scope of the check.
//! 3. `signs`: hints of instructions at their bytecode: offsets of fields, sizes of elements,
//!    lengths, classes, numbers, arithmetic, allocation. `templates`: the code of an intrinsic
//!    is one call.
//! 4. `path`, `steps`: the cheapest path through the bytecodes of the tree (Viterbi), along
//!    the instructions; a branch's target begins with the costs of its source. `parts`: the search
//!    covers only the surroundings of the sampled pcs.
//! 5. `recorded`: a return address with a record needs no search.
//! 6. `assemble`: *exact* positions are the record's own pc, the prologue, and in C1's code
//!    the entry of the implicit-exception table; all others are *approximate*.
//!
//! Measured by `examples/evidence` on programs of `tests/programs/evidence`, H2, Clojure and Spark: share
//! of samples with the right innermost method, in % of 198,456 samples. *raw*: compared with the
//! full table under the next-record rule. *sound*: without samples for which that table is
//! provably wrong, independently of this module (up to 35 % of the tiered samples: C2 gives late
//! nodes the scope parsed last). *exact*: the sound samples with an exact position.
//!
//! | | next record | raw | sound | exact |
//! |---|---|---|---|---|
//! | C1, H2 (17, 25) | 54–55 | 96–97 | 96 | 100 |
//! | C1, graph, JSON and regex (17, 25) | 63–72 | 88–92 | 88–92 | 100 |
//! | tiered, numbers (17, 25) | 66–79 | 97–98 | 98 | 100 |
//! | tiered, javac (17) | 42 | 77 | 82 | 100 |
//! | tiered, streams (17, 25) | 45 | 50–64 | 73–80 | 99–100 |
//! | tiered, JSON and regex (17, 25) | 33–45 | 67–72 | 77–78 | 100 |
//! | tiered, graph (17, 25) | 22–40 | 68–71 | 69–70 | 100 |
//! | tiered, text (17, 25) | 19–23 | 58–64 | 72–74 | 100 |
//! | tiered, H2 (17, 25) | 17–18 | 45–60 | 70–76 | 100 |
//! | tiered, Clojure (17) | 46 | 68 | 84 | 100 |
//! | tiered, Spark (17) | 54 | 68 | 71 | 96 |
//! | all tiered | 40 | 69 | 79 | – |
//! | all C1 | 62 | 92 | 91 | – |
//!
//! Two later changes (the search for a string, the weight of fields) raise some rows by up to 2 points:
//! docs/truth.md. Clojure and Spark took part in the choice of one weight, C1's code in none. `EvShares`
//! has three inlined methods and measures their shares by its own clock. The map's shares
//! differ by at most 1.5 points on C1 and C2, 17 and 25, without the flag; the next-record rule
//! gives two of the three methods nothing on C2.
//!
//! Most wrong methods are the right method's caller or callee. Unrelated methods have 0 to 7 % of the
//! samples, in text programs 8 to 11 %. Sources of errors: arithmetic and moves between
//! registers at an inlined call's borders, and the choice among equal intrinsics.
//!
//! Cost on a busy machine, for 4,478 nmethods of javac (17): median 0.02 to 0.04 ms, 99 % up to
//! 8 ms, maximum 14 to 26 ms, total 1.0 to 1.6 s. Only sampled code is mapped. The search takes
//! two thirds of the time. If the product of instructions and bytecodes is too large, the
//! search is left out, and the next-record rule applies between anchors.

mod anchors;
mod assemble;
mod facts;
mod full;
mod machine;
mod memory;
mod parts;
mod path;
mod profile;
mod recorded;
mod signs;
mod states;
mod steps;
mod templates;
mod tree;
mod weights;

use std::ops::Range;
use std::sync::Arc;

use vmscope_records::{Avma, Exactness};

use crate::code::{Frame, Nmethod};
pub(crate) use facts::{MethodFacts, Referent, Targets};
pub use full::{full, has_full_tables, stale_scope, without_needless};
pub use memory::{Facts, FactsLayout, MemoryMethods};
pub use tree::GuessLimits;
pub use weights::Weights;

/// Bytecode indexes in a method, ascending.
pub type Bcis = Arc<[u16]>;

/// Source of method facts for evidence.
pub trait MethodSource {
    /// Facts about the bytecodes of the method at `method`.
    fn facts(&self, method: Avma) -> Option<Arc<MethodFacts>>;

    /// Possible targets of a call, likely ones first.
    fn targets(&self, targets: &Targets) -> Vec<Avma> {
        match targets {
            Targets::Known(methods) => methods.clone(),
            Targets::Named(_) => Vec::new(),
        }
    }

    /// Bytecode indexes of calls in the method at `method` that code with its begin at bytecode `entry` does not
    /// reach, or that have no count in the VM's profile ([`Nmethod::counts_calls`]).
    fn unreached(&self, _method: Avma, _entry: u32) -> Bcis {
        Bcis::default()
    }

    /// Base and shift of compressed class pointers.
    fn narrow_class(&self) -> Option<(u64, u32)> {
        None
    }
}

/// A piece of code and its position.
///
/// Bounds are *sampled pcs*. An interrupt arrives when an instruction retires, with the pc of
/// the next instruction. The sampled pc thus lies behind an instruction that continues to the
/// next, as a return address lies behind its call; the VM's own records use the same
/// convention. A piece therefore begins one byte after the begin of its first instruction and
/// ends one byte after the end of its last. Exceptions are borders without control flow from,
/// or to, the adjacent code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First pc, as an offset in the code.
    pub start: u32,
    /// Last pc plus one.
    pub end: u32,
    /// Index into [`Map::chains`].
    pub chain: u32,
    /// Exactness of the position.
    pub exactness: Exactness,
    /// What names the innermost method.
    pub named_by: NamedBy,
}

/// What names a piece's innermost method, surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NamedBy {
    /// The VM's record for this code, or its frame's layout.
    Record,
    /// Bytecodes, records and the VM's profile: no call of the compiled method is inlined.
    Certain,
    /// Inference: the compiled method. No record and no guess names an inlined method.
    Alone,
    /// Inference: code of the compiled method itself, beside inlined methods.
    Own,
    /// Inference: code of an inlined method that other records name.
    Inlined,
    /// Inference: code of an inlined method that no record names.
    Guess,
}

impl NamedBy {
    /// Bound of the inference error, in percent of the samples: see
    /// [`vmscope_records::Cover::method_error`]. Measured by `examples/evidence/real.py`; the table is in
    /// docs/truth.md.
    #[must_use]
    pub fn error(self, is_by_c2: bool) -> u8 {
        match (self, is_by_c2) {
            (NamedBy::Record | NamedBy::Certain, _) => 0,
            (NamedBy::Alone, false) => 20,
            (NamedBy::Alone, true) => 40,
            (NamedBy::Own, false) => 75,
            (NamedBy::Own, true) => 90,
            (NamedBy::Inlined | NamedBy::Guess, false) => 155,
            (NamedBy::Inlined | NamedBy::Guess, true) => 100,
        }
    }
}

/// Positions in an nmethod's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// Pieces, ascending, not overlapping.
    pub pieces: Vec<Piece>,
    /// Chains of (method, bytecode) used by the pieces, innermost first.
    pub chains: Vec<Vec<Frame>>,
    /// Ranges of sampled pcs that the map covers, ascending.
    pub covered: Vec<Range<u32>>,
}

impl Map {
    /// Whether the map covers all code.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.covered
            .first()
            .is_some_and(|range| *range == (0..u32::MAX))
    }

    /// Drops everything outside these ranges.
    fn cut_to(&mut self, covered: Vec<Range<u32>>) {
        let mut pieces = Vec::new();
        let mut numbers = vec![None; self.chains.len()];
        let mut chains = Vec::new();
        for piece in &self.pieces {
            let first = covered.partition_point(|range| range.end <= piece.start);
            for range in covered.iter().skip(first) {
                let (start, end) = (piece.start.max(range.start), piece.end.min(range.end));
                let number = numbers.get_mut(piece.chain as usize);
                let (true, Some(number)) = (start < end, number) else {
                    break;
                };
                let chain = *number.get_or_insert_with(|| {
                    chains.extend(self.chains.get(piece.chain as usize).cloned());
                    u32::try_from(chains.len() - 1).unwrap_or(u32::MAX)
                });
                pieces.push(Piece {
                    start,
                    end,
                    chain,
                    ..*piece
                });
            }
        }
        *self = Map {
            pieces,
            chains,
            covered,
        };
    }

    /// Position of a sampled pc or return address, given as an offset in the code.
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

/// Whether one of these ascending ranges contains a pc.
pub(crate) fn covers(ranges: &[Range<u32>], offset: u32) -> bool {
    let after = ranges.partition_point(|range| range.end <= offset);
    ranges.get(after).is_some_and(|range| range.start <= offset)
}

/// Map of an nmethod from all evidence, for the tables of a JVM without
/// `-XX:+DebugNonSafepoints`. For complete tables, use [`full()`]. With hits, the map
/// covers at least the sampled pcs `hits` (offsets in the code, ascending) with some code around
/// them; without hits, the whole code. Hits at return addresses with a record need no search: if all
/// hits are such, the map covers them alone.
#[must_use]
pub fn pieces(nmethod: &Nmethod, methods: &dyn MethodSource, hits: &[u32]) -> Map {
    let (recorded, others) = recorded::split(nmethod, hits);
    let mut map = match others.is_empty() && !recorded.is_empty() {
        true => Map::default(),
        false => pieces_weighted(nmethod, methods, &others, &Weights::default()),
    };
    map.add_recorded(nmethod, &recorded);
    map
}

/// Likewise with other weights, for measurements.
#[must_use]
pub fn pieces_weighted(
    nmethod: &Nmethod,
    methods: &dyn MethodSource,
    hits: &[u32],
    weights: &Weights,
) -> Map {
    let machine = machine::Machine::of(nmethod, methods.narrow_class());
    let parts = parts::Parts::of(&machine, hits);
    let mut tree = tree::Tree::of(nmethod, methods);
    let anchors = anchors::anchors(nmethod, &machine, &tree);
    let called = anchors::real_calls(nmethod, &machine, &anchors);
    let near = parts.nodes(&tree, &anchors);
    let is_far = |node: u32| near.get(node as usize) == Some(&false);
    let entry = nmethod.counts_calls().then(|| nmethod.entry());
    tree.judge(methods, entry, |bci| called.contains(&(0, bci)));
    tree.guess(methods, &weights.limits, entry, |node, bci| {
        is_far(node) || called.contains(&(node, bci))
    });
    let templates = templates::regions(&machine);
    let evidence = (anchors.as_slice(), templates.as_slice());
    let states = path::shortest(&machine, &tree, &near, evidence, &parts.context, weights);
    let prologue = u32::try_from(nmethod.blob.frame_complete).unwrap_or(0);
    // C2 moves loads away from their possible fault, and checks of several bytecodes together.
    let implicit = if nmethod.is_by_c2() {
        Exactness::Approximate
    } else {
        Exactness::Exact
    };
    let mut map = assemble::assemble(&machine, &tree, &anchors, &states, prologue, implicit);
    map.cut_to(machine.pcs_of(&parts.core));
    map
}

#[cfg(test)]
mod tests;
