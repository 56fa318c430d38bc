//! Maps from machine code to bytecodes, in two kinds (DESIGN.md §5).

use crate::{BytecodePc, MethodKey};

/// Reliability of a resolution (docs/truth.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Exactness {
    /// A boundary map, or a complete covering entry.
    Exact,
    /// The nearest debug record.
    Approximate,
    /// Known method, unknown position.
    #[default]
    MethodOnly,
}

/// Meaning of addresses in a boundary map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundaryRule {
    /// The address after a bytecode's last instruction (Cog: return addresses): code between two
    /// entries executes bytecodes after the first one, up to and including the second.
    AfterInstruction,
    /// The address of a bytecode's first instruction: code between two entries executes the first
    /// entry's bytecode, up to the second's.
    AtStart,
}

/// A constituent's machine-code-pc → bytecode-pc map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PcMap {
    /// No map: known method, unknown bytecode.
    #[default]
    None,
    /// Code in bytecode order, cut into ranges by boundaries.
    Boundary {
        /// Meaning of the addresses.
        rule: BoundaryRule,
        /// Reliability of its ranges.
        exactness: Exactness,
        /// Machine code offsets from the constituent's start, ascending, each with a bytecode.
        entries: Vec<(u32, BytecodePc)>,
    },
    /// Reordered and merged code: pieces with their chains of inlined methods.
    Covers {
        /// Pieces, ascending by `start`, not overlapping.
        covers: Vec<Cover>,
        /// Distinct chains of the pieces.
        chains: Vec<Chain>,
    },
}

/// A piece of machine code in a covers map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// First offset from the constituent's start.
    pub start: u32,
    /// First offset after the piece.
    pub end: u32,
    /// Index in the map's `chains`.
    pub chain: u32,
    /// Reliability of the chain.
    pub exactness: Exactness,
    /// Inference error of the innermost method, in percent of the piece's samples. For 95 % of the
    /// methods, the number of true samples differs from the number of inferred samples by at most this
    /// part. 0 if the VM's own records name the method. The adapter measures it (docs/truth.md §5).
    pub method_error: u8,
}

/// A method and its inline callers, innermost first; never empty in a valid map.
pub type Chain = Vec<ChainFrame>;

/// A position in a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainFrame {
    /// The method.
    pub method: MethodKey,
    /// Position in the method.
    pub position: Position,
}

/// A position in a method, as fine as the VM reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Position {
    /// Unknown.
    #[default]
    Unknown,
    /// A bytecode.
    Bytecode(BytecodePc),
    /// A source line, 1-based.
    Line(u32),
}

/// A range of bytecodes in a boundary map, `from → to` in VMProfiler's notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// Boundary before; `None` for the method's entry.
    pub from: Option<BytecodePc>,
    /// Boundary after; `None` for the method's end.
    pub to: Option<BytecodePc>,
}

impl PcMap {
    /// Approximate heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match self {
            PcMap::None => 0,
            PcMap::Boundary { entries, .. } => size_of_val(entries.as_slice()),
            PcMap::Covers { covers, chains } => {
                let frames = chains.iter().map(|chain| size_of_val(chain.as_slice()));
                size_of_val(covers.as_slice())
                    + size_of_val(chains.as_slice())
                    + frames.sum::<usize>()
            }
        }
    }

    /// The boundary map's range at machine-code offset `at`; `None` for other kinds. Entries
    /// `(mc₁,bc₁) … (mcₙ,bcₙ)` divide code into *entry → bc₁*, *bcᵢ → bcᵢ₊₁* and *bcₙ → end*
    /// (DESIGN.md §5).
    #[must_use]
    pub fn boundary_range(&self, at: u32) -> Option<Range> {
        let PcMap::Boundary { entries, .. } = self else {
            return None;
        };
        let after = entries.partition_point(|&(mc, _)| mc <= at);
        let bytecode = |index: usize| entries.get(index).map(|&(_, bc)| bc);
        Some(Range {
            from: after.checked_sub(1).and_then(bytecode),
            to: bytecode(after),
        })
    }

    /// The covers map's piece at machine-code offset `at`, with its chain; `None` for other kinds,
    /// in gaps, and for invalid chain indexes.
    #[must_use]
    pub fn cover(&self, at: u32) -> Option<(&Cover, &Chain)> {
        let PcMap::Covers { covers, chains } = self else {
            return None;
        };
        let after = covers.partition_point(|cover| cover.start <= at);
        let cover = covers.get(after.checked_sub(1)?)?;
        let chain = chains.get(usize::try_from(cover.chain).ok()?)?;
        (at < cover.end).then_some((cover, chain))
    }
}
