//! Maps from machine code to bytecodes.
//!
//! A method's map lies at its end and goes downward. A byte has an annotation (3 bits) and the distance
//! from the previous place (5 bits). An annotated place is the address after an instruction. Entries
//! have no bytecode: they come in the order of the mapped bytecodes, which a walk over the bytecodes
//! finds (`Cogit>>mapFor:bcpc:performUntil:arg:`).

use std::collections::BTreeSet;

use crate::bytecodes::{Bytecodes, Encoding};
use crate::cog_method::{BlockMethod, CogMethod};
use crate::instructions::{Instruction, Instructions};

/// Annotations of map bytes.
mod annotation {
    /// Adds 32 times its distance.
    pub const FAR: u8 = 0;
    /// Extends the annotation before.
    pub const EXTENSION: u8 = 1;
    /// A place with a bytecode. Higher numbers are sends: these places also have bytecodes.
    pub const HAS_BYTECODE: u8 = 5;
    pub const SEND: u8 = 7;
}

/// Bytes of the bytecode that calls a primitive.
const CALL_PRIMITIVE_BYTES: usize = 3;

/// A place in machine code with its bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapEntry {
    /// Offset of the address after the instruction, from the method's start.
    pub machine: u32,
    /// Its bytecode: zero-based offset from the object's first byte after the header.
    pub bytecode: u32,
    /// Whether primitive 253 lists the place. The primitive omits stack checks and returns from blocks.
    pub is_listed: bool,
}

/// A map, or why the map is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Map {
    /// The code builds no frame: its bytecodes have no places.
    Frameless,
    /// The places, ascending.
    Entries(Vec<MapEntry>),
    /// A contradiction between code and bytecodes.
    Flawed(Flaw),
}

/// A contradiction in a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The map has no end inside the method.
    Endless,
    /// No entry for the stack check.
    NoStackCheck,
    /// The machine code has more places than the bytecodes have.
    TooLong,
    /// The places are not in order, or outside the code.
    Order,
    /// The bytecodes are of an unknown set, or unreadable.
    Bytecodes,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Flaw::Endless => "the map has no end",
            Flaw::NoStackCheck => "the map has no stack check",
            Flaw::TooLong => "the map has more places than the bytecodes",
            Flaw::Order => "the map's places are not in order",
            Flaw::Bytecodes => "the bytecodes are unreadable",
        })
    }
}

/// A method's code and bytecodes.
#[derive(Clone, Copy, Debug)]
pub struct MapSource<'a> {
    /// The method.
    pub method: &'a CogMethod,
    /// Its machine code with header and map, from the method's start on.
    pub code: &'a [u8],
    /// The bytes of the method object: literals, then bytecodes.
    pub bytes: &'a [u8],
    /// The set of its bytecodes.
    pub bytecodes: &'a Bytecodes,
    /// Bytes of a machine word.
    pub word: u64,
    /// Where its annotated code begins.
    pub origin: Origin,
}

/// An annotated place with a bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Offset of the address after the instruction, from the method's start.
    pub at: u32,
    annotation: u8,
}

impl Place {
    /// Whether a send ends here.
    pub fn is_send(&self) -> bool {
        self.annotation >= annotation::SEND
    }
}

/// Offset of a method's first annotated code, and the machine's smallest unit of instructions in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Offset of the code behind the class check.
    pub unchecked_entry: u32,
    /// 1 on x86, 4 on ARM.
    pub granularity: u32,
}

/// Places with bytecodes in a method's `code` (with header and map), without those of other kinds.
pub(crate) fn places(code: &[u8], origin: Origin) -> Result<Vec<Place>, Flaw> {
    let mut places: Vec<Place> = Vec::new();
    let mut at = u64::from(origin.unchecked_entry);
    let unit = u64::from(origin.granularity);
    // It can't reach down to the entry.
    let begin = usize::try_from(origin.unchecked_entry).unwrap_or(usize::MAX);
    let mut map = code.get(begin..).unwrap_or_default().iter().rev();
    loop {
        let byte = *map.next().ok_or(Flaw::Endless)?;
        if byte == 0 {
            return Ok(places);
        }
        let distance = byte & 0x1f;
        let annotation = byte >> 5;
        match annotation {
            annotation::EXTENSION => {
                if let Some(last) = places.last_mut()
                    && last.annotation == annotation::SEND
                {
                    last.annotation = last.annotation.saturating_add(distance);
                }
                continue;
            }
            annotation::FAR => at += 32 * u64::from(distance) * unit,
            _ => at += u64::from(distance) * unit,
        }
        // The map itself is behind all code.
        if at >= code.len() as u64 {
            return Err(Flaw::Order);
        }
        if annotation >= annotation::HAS_BYTECODE {
            places.push(Place {
                at: u32::try_from(at).map_err(|_| Flaw::Order)?,
                annotation,
            });
        }
    }
}

impl MapSource<'_> {
    /// Maps of the method and of its inner blocks. All offsets count from the method's start.
    #[must_use]
    pub fn maps(&self) -> (Map, Vec<Map>) {
        let places = places(self.code, self.origin);
        let map = |stack_check: u16, map: &dyn Fn(&[Place]) -> Map| match (stack_check, &places) {
            (0, _) => Map::Frameless,
            (_, Err(flaw)) => Map::Flawed(*flaw),
            (_, Ok(places)) => map(places),
        };
        let blocks = self.method.blocks.iter();
        let blocks =
            blocks.map(|block| map(block.stack_check, &|places| self.block(block, places)));
        let method = map(self.method.stack_check, &|places| self.method(places));
        (method, blocks.collect())
    }

    /// First bytecode, to which the stack check belongs: behind the literals.
    fn start(&self) -> usize {
        let literals = crate::names::literals(self.method.header);
        usize::try_from(self.word * (literals + 1)).unwrap_or(usize::MAX)
    }

    /// First bytecode that may be mapped: `start`, unless the method calls a primitive and then stores its
    /// error code. Generated code does both outside the mapped code.
    fn first_mapped(&self, start: usize) -> usize {
        let store = match self.bytecodes.encoding {
            Encoding::V3 => 129,
            Encoding::Sista => 245,
        };
        let after = start.saturating_add(CALL_PRIMITIVE_BYTES);
        let has_primitive = self.method.header & (1 << 16) != 0;
        match has_primitive && self.bytes.get(after) == Some(&store) {
            true => after + 2,
            false => start,
        }
    }

    fn method(&self, places: &[Place]) -> Map {
        let is_entry = |place: &Place| place.annotation == annotation::HAS_BYTECODE;
        let Some(entry) = places.iter().position(is_entry) else {
            return Map::Flawed(Flaw::NoStackCheck);
        };
        let is_block = self.method.is_full_block;
        let start = self.start();
        let walk = Walk {
            start,
            from: self.first_mapped(start),
            to: self.bytes.len(),
            is_block,
            ends_at_return: !is_block,
        };
        let may_follow = !self.method.blocks.is_empty();
        self.entries(places.get(entry..).unwrap_or_default(), walk, may_follow)
    }

    fn block(&self, block: &BlockMethod, places: &[Place]) -> Map {
        let at = u32::from(block.offset) + u32::from(block.stack_check);
        let entry = places.partition_point(|place| place.at < at);
        let is_entry =
            |place: &Place| place.annotation == annotation::HAS_BYTECODE && place.at == at;
        if !places.get(entry).is_some_and(is_entry) {
            return Map::Flawed(Flaw::NoStackCheck);
        }
        let from = usize::from(block.start);
        let walk = Walk {
            start: from,
            from,
            to: self.block_end(from),
            is_block: true,
            ends_at_return: false,
        };
        self.entries(places.get(entry..).unwrap_or_default(), walk, true)
    }

    /// End of the block whose bytecodes begin at `from`. The bytecode before `from` creates the block.
    fn block_end(&self, from: usize) -> usize {
        let starts = [3, 4].into_iter().filter_map(|bytes| {
            let at = from.checked_sub(bytes)?;
            let created = self.bytecodes.get(*self.bytes.get(at)?);
            (created.creates_block && usize::from(created.bytes) == bytes).then_some(at)
        });
        let spans = starts.map(|at| self.bytecodes.span(self.bytes, at, 0));
        let length = spans.filter_map(|span| usize::try_from(span).ok()).max();
        let end = from.saturating_add(length.unwrap_or(usize::MAX));
        end.min(self.bytes.len())
    }

    /// Pairs places with mapped bytecodes. The first place is the stack check, at the first bytecode.
    /// `may_follow`: places of other code may follow those of this code.
    fn entries(&self, places: &[Place], walk: Walk, may_follow: bool) -> Map {
        let mut entries = Vec::with_capacity(places.len());
        let bytes = self.bytes.get(..walk.to).unwrap_or(self.bytes);
        let mut steps = Instructions::new(self.bytecodes, bytes, walk.from);
        (steps.skips_blocks, steps.ends_at_return) = (true, walk.ends_at_return);
        let mut steps = steps.filter_map(|one| walk.mapped(&one));
        let mut places = places.iter();
        if let Some(first) = places.next() {
            entries.push(MapEntry {
                machine: first.at,
                bytecode: u32::try_from(walk.start).unwrap_or(u32::MAX),
                is_listed: false,
            });
        }
        for place in places {
            let Some((bytecode, is_listed)) = steps.next() else {
                match may_follow {
                    true => break,
                    false => return Map::Flawed(Flaw::TooLong),
                }
            };
            entries.push(MapEntry {
                machine: place.at,
                bytecode,
                is_listed,
            });
        }
        let places: BTreeSet<u32> = entries.iter().map(|entry| entry.machine).collect();
        match places.len() == entries.len() {
            true => Map::Entries(entries),
            false => Map::Flawed(Flaw::Order),
        }
    }
}

/// Bytecodes to walk over.
#[derive(Clone, Copy, Debug)]
struct Walk {
    /// Bytecode of the stack check.
    start: usize,
    from: usize,
    to: usize,
    is_block: bool,
    ends_at_return: bool,
}

impl Walk {
    /// The mapped bytecode of an instruction, and whether primitive 253 lists it. A jump back counts from its
    /// extensions on.
    fn mapped(&self, one: &Instruction) -> Option<(u32, bool)> {
        let is_mapped = one.bytecode.is_mapped;
        let is_jump_back = one.span < 0 && !one.bytecode.creates_block;
        let at = if is_jump_back { one.first } else { one.at };
        let at = u32::try_from(at).ok()?;
        (is_mapped || self.is_block && one.bytecode.is_mapped_in_block).then_some((at, is_mapped))
    }
}
