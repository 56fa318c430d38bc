//! Maps from machine code to bytecodes.
//!
//! A method's map lies at its end and goes downward. A byte has an annotation (3 bits) and the distance
//! from the previous place (5 bits). An annotated place is the address after an instruction. Entries
//! have no bytecode: they come in the order of the mapped bytecodes, which a walk over the bytecodes
//! finds (`Cogit>>mapFor:bcpc:performUntil:arg:`).

use std::collections::BTreeSet;

use crate::bytecodes::{Bytecodes, Encoding};
use crate::cog_method::{BlockMethod, CogMethod};

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
    fn entries(&self, places: &[Place], mut walk: Walk, may_follow: bool) -> Map {
        let mut entries = Vec::with_capacity(places.len());
        let mut steps = Steps::new(self.bytecodes, self.bytes, &walk);
        let mut places = places.iter();
        if let Some(first) = places.next() {
            entries.push(MapEntry {
                machine: first.at,
                bytecode: u32::try_from(walk.start).unwrap_or(u32::MAX),
                is_listed: false,
            });
        }
        walk.to = walk.to.min(self.bytes.len());
        for place in places {
            let Some((bytecode, is_listed)) = steps.next_mapped(&walk) else {
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
    /// A return that no jump skips is the last bytecode.
    ends_at_return: bool,
}

/// A walk over bytecodes.
struct Steps<'a> {
    bytecodes: &'a Bytecodes,
    bytes: &'a [u8],
    at: usize,
    /// Furthest target of a forward jump.
    continues_at: usize,
    /// Number of extensions in front of `at`, and the value of those of kind B.
    extensions: usize,
    extension: Option<i64>,
    is_over: bool,
}

impl<'a> Steps<'a> {
    fn new(bytecodes: &'a Bytecodes, bytes: &'a [u8], walk: &Walk) -> Self {
        Steps {
            bytecodes,
            bytes,
            at: walk.from,
            continues_at: 0,
            extensions: 0,
            extension: None,
            is_over: false,
        }
    }

    /// Goes behind the next mapped bytecode; returns it, and whether primitive 253 lists it.
    fn next_mapped(&mut self, walk: &Walk) -> Option<(u32, bool)> {
        while !self.is_over && self.at < walk.to {
            let code = *self.bytes.get(self.at)?;
            let bytecode = self.bytecodes.get(code);
            let span = match bytecode.has_span || bytecode.creates_block {
                true => (self.bytecodes).span(self.bytes, self.at, self.extension.unwrap_or(0)),
                false => 0,
            };
            let mut shown = self.at;
            if span < 0 && !bytecode.creates_block {
                shown = shown.saturating_sub(2 * self.extensions);
            }
            let behind = self.at.saturating_add(usize::from(bytecode.bytes.max(1)));
            let skipped = behind.saturating_add(usize::try_from(span).unwrap_or(0));
            if span > 0 {
                self.continues_at = self.continues_at.max(skipped);
            }
            self.is_over =
                walk.ends_at_return && bytecode.is_return && self.at >= self.continues_at;
            self.extend(code, bytecode.is_extension);
            self.at = if bytecode.creates_block {
                skipped
            } else {
                behind
            };
            if bytecode.is_mapped || (walk.is_block && bytecode.is_mapped_in_block) {
                return Some((u32::try_from(shown).ok()?, bytecode.is_mapped));
            }
        }
        None
    }

    /// Notes the extension at `at`; another bytecode ends a row of extensions.
    fn extend(&mut self, code: u8, is_extension: bool) {
        if !is_extension {
            (self.extensions, self.extension) = (0, None);
            return;
        }
        let operand = self.at.checked_add(1).and_then(|at| self.bytes.get(at));
        let operand = operand.copied().unwrap_or(0);
        if code == EXTENSION_B {
            self.extension = Some(match self.extension {
                None => i64::from(operand.cast_signed()),
                Some(before) => (before << 8).wrapping_add(i64::from(operand)),
            });
        }
        self.extensions += 1;
    }
}

/// The extension of the operand B.
const EXTENSION_B: u8 = 225;
