//! From machine code to bytecodes: the two kinds of pc map (DESIGN.md §5).

use crate::{BytecodePc, MethodKey};

/// What a range's resolution is worth (TRUTH.md §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Exactness {
    /// A boundary map, or a covering entry known to be complete.
    Exact,
    /// The nearest debug record.
    Approximate,
    /// The method is known, the place in it is not.
    #[default]
    MethodOnly,
}

/// Which address a boundary map's entries name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoundaryRule {
    /// The address after the bytecode's last instruction (Cog: return addresses):
    /// code from one entry to the next executes the bytecodes after the first up to
    /// and including the second.
    AfterInstruction,
    /// The address of the bytecode's first instruction: code from one entry to the
    /// next executes the first entry's bytecode up to the second's.
    AtStart,
}

/// A constituent's machine-code-pc → bytecode-pc map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PcMap {
    /// There is none: the method is known, not the bytecode.
    #[default]
    None,
    /// Code in bytecode order, cut into ranges by boundaries.
    Boundary {
        /// What the entries' addresses mean.
        rule: BoundaryRule,
        /// What a range of this map is worth.
        exactness: Exactness,
        /// Machine code offsets from the constituent's start, ascending, each with
        /// its bytecode.
        entries: Vec<(u32, BytecodePc)>,
    },
    /// Reordered and merged code: each piece with the chain of methods it is
    /// executing for.
    Covers {
        /// The pieces, ascending by `start`, not overlapping.
        covers: Vec<Cover>,
        /// The chains they refer to, each once.
        chains: Vec<Chain>,
    },
}

/// A piece of machine code in a covers map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// First offset from the constituent's start.
    pub start: u32,
    /// First offset after it.
    pub end: u32,
    /// Index in the map's `chains`.
    pub chain: u32,
    /// What this piece's chain is worth.
    pub exactness: Exactness,
}

/// A method and those it was inlined through, innermost first; never empty in a
/// valid map.
pub type Chain = Vec<ChainFrame>;

/// A place in a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChainFrame {
    /// The method.
    pub method: MethodKey,
    /// Where in it.
    pub position: Position,
}

/// A position in a method, in the finest terms that its VM gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Position {
    /// Not known.
    #[default]
    Unknown,
    /// A bytecode.
    Bytecode(BytecodePc),
    /// A source line, 1-based.
    Line(u32),
}

/// Where a machine-code offset lies in a boundary map: the bytecodes
/// `from → to`, as VMProfiler prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The boundary before; `None` is the method's entry.
    pub from: Option<BytecodePc>,
    /// The boundary after; `None` is the method's end.
    pub to: Option<BytecodePc>,
}

impl PcMap {
    /// About how much memory it takes beside its own size, in bytes.
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

    /// The range of a boundary map that the machine-code offset `at` lies in;
    /// `None` for the other kinds. Entries `(mc₁,bc₁) … (mcₙ,bcₙ)` cut the code into
    /// *entry → bc₁*, *bcᵢ → bcᵢ₊₁* and *bcₙ → end* (DESIGN.md §5).
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

    /// The piece of a covers map that the machine-code offset `at` lies in, with
    /// its chain; `None` for the other kinds, in a gap, and where the map refers
    /// to a chain that it does not have.
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
