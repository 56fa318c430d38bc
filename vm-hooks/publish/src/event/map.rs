//! Maps from machine code to bytecodes.

use std::borrow::Cow;

use super::wire::{DecodeError, Item, Sink, Wire, Words, pair, unpair, wire_enum};

/// A map from machine code to bytecodes, as in `vmscope_records::PcMap`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum PcMap<'a> {
    /// No map: known method, unknown bytecode.
    #[default]
    None,
    /// Code in bytecode order, cut into ranges by boundaries.
    Boundary {
        /// Meaning of the addresses.
        rule: BoundaryRule,
        /// Reliability of the ranges.
        exactness: Exactness,
        /// Boundaries, ascending.
        entries: Cow<'a, [Boundary]>,
    },
    /// Reordered and merged code: pieces with their chains of inlined methods.
    Covers {
        /// Pieces, ascending, not overlapping.
        covers: Cow<'a, [Cover]>,
        /// Frames of the chains. Pieces with equal chains share them.
        frames: Cow<'a, [ChainFrame]>,
    },
}

impl Wire for PcMap<'_> {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        match self {
            Self::None => sink.word(0),
            Self::Boundary {
                rule,
                exactness,
                entries,
            } => {
                sink.word(1);
                rule.encode(sink);
                exactness.encode(sink);
                entries.encode(sink);
            }
            Self::Covers { covers, frames } => {
                sink.word(2);
                covers.encode(sink);
                frames.encode(sink);
            }
        }
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        Ok(match words.take()? {
            0 => Self::None,
            1 => Self::Boundary {
                rule: Wire::decode(words)?,
                exactness: Wire::decode(words)?,
                entries: Wire::decode(words)?,
            },
            2 => Self::Covers {
                covers: Wire::decode(words)?,
                frames: Wire::decode(words)?,
            },
            number => return Err(DecodeError::Number(number)),
        })
    }
}

wire_enum! {
    /// Meaning of the addresses in a boundary map, as in `vmscope_records::BoundaryRule`.
    pub enum BoundaryRule {
        /// The address after a bytecode's last instruction, such as a return address.
        AfterInstruction = 0,
        /// The address of a bytecode's first instruction.
        AtStart = 1,
    }
}

wire_enum! {
    /// Reliability of a pc map, as in `vmscope_records::Exactness`.
    pub enum Exactness {
        /// Known method, unknown position.
        MethodOnly = 0,
        /// The nearest record of the compiler.
        Approximate = 1,
        /// A complete map.
        Exact = 2,
    }
}

/// A boundary between bytecodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Boundary {
    /// Offset from the constituent's start, in bytes.
    pub offset: u32,
    /// Bytecode pc.
    pub bytecode: u32,
}

/// A piece of machine code with one chain of inlined methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cover {
    /// First offset from the constituent's start, in bytes.
    pub start: u32,
    /// First offset after the piece.
    pub end: u32,
    /// Index of the chain's innermost frame in the map's frames.
    pub first: u32,
    /// Number of frames in the chain. The callers follow the innermost frame.
    pub count: u32,
    /// Reliability: a number of [`Exactness`].
    pub exactness: u32,
}

wire_enum! {
    /// Meaning of [`ChainFrame::value`].
    pub enum PositionKind {
        /// Nothing: the position is unknown.
        Unknown = 0,
        /// A bytecode pc.
        Bytecode = 1,
        /// A source line, 1-based.
        Line = 2,
    }
}

/// A position in a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChainFrame {
    /// Id of the method.
    pub method: u64,
    /// Meaning of `value`: a number of [`PositionKind`].
    pub position: u32,
    /// The position.
    pub value: u32,
}

impl Wire for Boundary {
    const LEAST: usize = 1;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(pair(self.offset, self.bytecode));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let (offset, bytecode) = unpair(words.take()?);
        Ok(Self { offset, bytecode })
    }
}

impl Wire for Cover {
    const LEAST: usize = 3;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(pair(self.start, self.end));
        sink.word(pair(self.first, self.count));
        sink.word(u64::from(self.exactness));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let (start, end) = unpair(words.take()?);
        let (first, count) = unpair(words.take()?);
        Ok(Self {
            start,
            end,
            first,
            count,
            exactness: Wire::decode(words)?,
        })
    }
}

impl Wire for ChainFrame {
    const LEAST: usize = 2;

    #[inline]
    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(self.method);
        sink.word(pair(self.position, self.value));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let method = words.take()?;
        let (position, value) = unpair(words.take()?);
        Ok(Self {
            method,
            position,
            value,
        })
    }
}

impl Item for Boundary {}
impl Item for Cover {}
impl Item for ChainFrame {}
