//! Places at which V8 can leave optimised code, with the bytecodes at which the interpreter continues. V8
//! keeps them for all optimised code, also where it keeps no source positions.
//!
//! An *entry* is such a place: its translation into frames, and its exit, a call behind the code. Checks jump
//! to their exit. The table of safepoints names the entry of a call's return address.

mod exits;
mod safepoints;
mod translation;

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;

use crate::code::Code;
use crate::object::{Heap, Tagged};

pub use exits::Exits;
use safepoints::Safepoints;
pub use translation::{DeoptEntry, DeoptForm, DeoptFrame};
use translation::{MAX_OPERATIONS, frames};

/// Name of the data in messages.
const WHAT: &str = "places of deoptimisation";

/// Maximum bytes of a table, or of instructions.
const MAX_TABLE: usize = 4 << 20;

/// Maximum number of places at which V8 can leave a piece of code.
const MAX_ENTRIES: u64 = 1 << 18;

/// Rounds through the code; each leads places backwards over one more level of loops.
const ROUNDS: usize = 3;

/// Damaged data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeoptError {
    /// A translation of unknown form.
    #[error("the translation at {0} of a deoptimisation is damaged")]
    Translation(u32),
    /// The innermost frame is not at the entry's bytecode.
    #[error("the translation at {0} of a deoptimisation is of another bytecode")]
    OtherBytecode(u32),
    /// A table of safepoints of unknown form.
    #[error("the table of safepoints is damaged")]
    Safepoints,
}

/// Places at which V8 can leave a piece of code, with the instructions before the exits.
#[derive(Debug)]
pub struct DeoptData {
    entries: Vec<DeoptEntry>,
    frames: Vec<Vec<DeoptFrame>>,
    instructions: Vec<u8>,
    /// Numbers of entries by the offset of the call's return address.
    calls: FxHashMap<u32, usize>,
}

impl DeoptData {
    /// Reads the data of Maglev's code.
    ///
    /// # Errors
    /// Data of another form; failed reads.
    pub fn read(heap: &Heap<'_>, code: &Code, form: DeoptForm) -> Result<Self, AdapterError> {
        let Entries { exits, entries, .. } = Entries::read(heap, code)?;
        let damaged = |error| damaged(error, code);
        let translations = heap.bytes(heap.item(code.data, 0, WHAT)?, MAX_TABLE, WHAT)?;
        let mut left = MAX_OPERATIONS;
        let each = entries.iter();
        let frames = each.map(|entry| frames(&translations, form, *entry, &mut left));
        let frames = frames.collect::<Result<_, _>>().map_err(damaged)?;
        let instructions = heap.memory.read_vec(code.start, exits.into(), MAX_TABLE);
        Ok(DeoptData {
            entries,
            frames,
            instructions: instructions.map_err(AdapterError::reading(WHAT))?,
            calls: Safepoints::read(heap, code)?.map_err(damaged)?,
        })
    }
}

/// The entries of a piece of optimised code.
struct Entries {
    /// Offset of the first exit.
    exits: u32,
    /// Number of checks, which are the first entries; the others are calls.
    checks: usize,
    entries: Vec<DeoptEntry>,
}

impl Entries {
    fn read(heap: &Heap<'_>, code: &Code) -> Result<Self, AdapterError> {
        let count = |index: u64| -> Result<u64, AdapterError> {
            let number = heap.item(code.data, index, WHAT)?.small_integer();
            Ok(number.map_or(u64::MAX, |number| u64::from(number.cast_unsigned())))
        };
        // Behind the inlined calls: begin of the exits, numbers of checks and calls, the entries.
        let first = heap.layout.optimised.inlining + 1;
        let (exits, checks) = (count(first)?, count(first + 1)?);
        let entries = checks.saturating_add(count(first + 2)?);
        let exits = u32::try_from(exits).ok().filter(|at| *at <= code.size());
        let (Some(exits), true) = (exits, entries <= MAX_ENTRIES) else {
            return Err(AdapterError::Implausible {
                what: WHAT,
                value: entries,
                at: code.start,
            });
        };
        let begin = first + 3;
        heap.item(code.data, begin + 3 * entries - 1, WHAT)?;
        let at = heap.at(code.data, 16 + 8 * begin, WHAT)?;
        let items = heap.memory.read_vec(at, 8 * 3 * entries, MAX_TABLE);
        let items = items.map_err(AdapterError::reading(WHAT))?;
        let (items, _) = items.as_chunks::<8>();
        let number = |item: &[u8; 8]| Tagged(u64::from_le_bytes(*item)).small_integer();
        let unsigned = |item: &[u8; 8]| number(item).map_or(u32::MAX, i32::cast_unsigned);
        let (triples, _) = items.as_chunks::<3>();
        let entries = triples.iter();
        let entries = entries.map(|[bytecode, translation, exit]| DeoptEntry {
            bytecode: number(bytecode).unwrap_or(i32::MIN),
            translation: unsigned(translation),
            exit: unsigned(exit),
        });
        Ok(Entries {
            exits,
            checks: usize::try_from(checks).unwrap_or(usize::MAX),
            entries: entries.collect(),
        })
    }
}

fn damaged(error: DeoptError, code: &Code) -> AdapterError {
    AdapterError::Damaged {
        what: "code",
        why: error.to_string(),
        at: code.start,
    }
}

/// Code of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptPiece {
    /// First offset, in bytes.
    pub start: u32,
    /// First offset after the piece.
    pub end: u32,
    /// Its functions.
    pub place: DeoptPlace,
    /// Whether this is the entry's call: its bytecode is known. A check's bytecode may be far behind: V8 goes
    /// back to the last bytecode with an effect.
    pub is_call: bool,
}

/// An entry without its innermost functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeoptPlace {
    /// Number of the entry.
    pub entry: usize,
    /// Number of frames that it leaves out.
    pub skipped: usize,
}

/// An instruction.
struct Instruction {
    start: u32,
    end: u32,
    /// Entry of a check or call.
    entry: Option<usize>,
    is_call: bool,
    /// Target of a jump inside the code.
    target: Option<u32>,
    /// Whether the next instruction is reached by jumps alone.
    ends_block: bool,
}

impl DeoptData {
    /// All code with its places, ascending. A call or check begins the code of its entry. Code to which
    /// several places lead belongs to the function that contains all of them. Code before the first entry has
    /// no piece.
    #[must_use]
    pub fn pieces(&self) -> Vec<DeoptPiece> {
        let instructions = self.decoded();
        let mut sources: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (index, instruction) in instructions.iter().enumerate() {
            if let Some(target) = instruction.target {
                sources.entry(target).or_default().push(index);
            }
        }
        let mut places: Vec<Option<DeoptPlace>> = vec![None; instructions.len()];
        for _ in 0..ROUNDS {
            let mut current = None;
            for (index, instruction) in instructions.iter().enumerate() {
                for source in sources.get(&instruction.start).into_iter().flatten() {
                    current = self.common(current, places.get(*source).copied().flatten());
                }
                let own = instruction
                    .entry
                    .map(|entry| DeoptPlace { entry, skipped: 0 });
                current = own.or(current);
                if let Some(place) = places.get_mut(index) {
                    *place = current;
                }
                current = current.filter(|_| !instruction.ends_block);
            }
        }
        let mut pieces: Vec<DeoptPiece> = Vec::new();
        for (instruction, place) in instructions.iter().zip(places) {
            let &Instruction {
                start,
                end,
                is_call,
                ..
            } = instruction;
            let Some(place) = place else { continue };
            let begins = is_call || instruction.entry.is_some() || sources.contains_key(&start);
            match pieces.last_mut() {
                Some(last) if last.end == start && !last.is_call && !begins => last.end = end,
                _ => pieces.push(DeoptPiece {
                    start,
                    end,
                    place,
                    is_call,
                }),
            }
        }
        self.begin_callees(&mut pieces);
        pieces
    }

    /// Frames at a place, innermost first.
    #[must_use]
    pub fn frames(&self, place: DeoptPlace) -> &[DeoptFrame] {
        let frames = self.frames.get(place.entry).map_or(&[][..], Vec::as_slice);
        frames.get(place.skipped..).unwrap_or_default()
    }

    /// The innermost function that contains two places.
    fn common(&self, one: Option<DeoptPlace>, other: Option<DeoptPlace>) -> Option<DeoptPlace> {
        let (Some(one), Some(other)) = (one, other) else {
            return one.or(other);
        };
        let (frames, others) = (self.frames(one), self.frames(other));
        let pairs = frames.iter().rev().zip(others.iter().rev());
        let mut count = 0;
        for (frame, other) in pairs {
            if frame.function != other.function {
                break;
            }
            count += 1;
            if frame.bytecode != other.bytecode {
                break;
            }
        }
        (count > 0).then(|| DeoptPlace {
            skipped: one.skipped + frames.len() - count,
            ..one
        })
    }

    fn decoded(&self) -> Vec<Instruction> {
        let exits = self.entries.iter().enumerate();
        let exits: FxHashMap<u64, usize> = exits
            .map(|(number, entry)| (entry.exit.into(), number))
            .collect();
        let mut decoder = Decoder::new(64, &self.instructions, DecoderOptions::NONE);
        let decoded = decoder.iter().map(|decoded| {
            use FlowControl::{ConditionalBranch, UnconditionalBranch};
            let flow = decoded.flow_control();
            let is_jump = matches!(flow, ConditionalBranch | UnconditionalBranch);
            let target = Some(decoded.near_branch_target()).filter(|_| is_jump);
            let exit = target.and_then(|target| exits.get(&target)).copied();
            let end = decoded.next_ip() as u32;
            let call = self.calls.get(&end).copied();
            Instruction {
                start: decoded.ip() as u32,
                end,
                entry: call.or(exit),
                is_call: call.is_some(),
                target: target
                    .filter(|_| exit.is_none())
                    .map(|target| target as u32),
                ends_block: ends_block(flow),
            }
        });
        decoded.collect()
    }

    /// Gives the code before an inlined function's first entry to that function. The preceding entry of its caller
    /// belongs to the check before the call.
    fn begin_callees(&self, pieces: &mut [DeoptPiece]) {
        for index in 1..pieces.len() {
            let Some([piece, next]) = pieces.get_mut(index - 1..=index) else {
                return;
            };
            let follows = next.start == piece.end && !piece.is_call;
            if follows && is_inlined_in(self.frames(next.place), self.frames(piece.place)) {
                piece.place = next.place;
            }
        }
    }
}

/// Whether the next instruction is reached by jumps alone.
fn ends_block(flow: FlowControl) -> bool {
    matches!(
        flow,
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Interrupt
            | FlowControl::Exception
    )
}

/// Whether the innermost function of `frames` was inlined, directly or not, in the innermost function of
/// `caller`.
fn is_inlined_in(frames: &[DeoptFrame], caller: &[DeoptFrame]) -> bool {
    let Some((innermost, callers)) = caller.split_first() else {
        return false;
    };
    let depth = frames.len().checked_sub(caller.len());
    let depth = depth.filter(|depth| *depth > 0);
    let same = depth.and_then(|depth| frames.get(depth..)?.split_first());
    same.is_some_and(|(frame, outer)| frame.function == innermost.function && outer == callers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn frame(function: u32, bytecode: u32) -> DeoptFrame {
        DeoptFrame {
            function,
            bytecode: Some(bytecode),
        }
    }

    fn entry(exit: u32) -> DeoptEntry {
        DeoptEntry {
            translation: 0,
            bytecode: 0,
            exit,
        }
    }

    /// Function 1 checks, calls the inlined function 2, and loops.
    #[test]
    fn code_has_the_places_that_lead_to_it() {
        let mut instructions = Vec::new();
        let exit = |at: u32, instructions: &mut Vec<u8>| {
            let from = i32::try_from(instructions.len() + 6).unwrap();
            instructions.extend([0x0f, 0x85]);
            instructions.extend((at.cast_signed() - from).to_le_bytes());
        };
        instructions.push(0x90);
        exit(100, &mut instructions);
        instructions.push(0x90);
        exit(104, &mut instructions);
        instructions.push(0x90);
        // The loop: an instruction, a call, and a jump back; then code of an unknown block.
        instructions.extend([0x90, 0xe8, 0, 0, 0, 0, 0xeb, 0xf8, 0x90]);
        let data = DeoptData {
            entries: [100, 104, 108].map(entry).to_vec(),
            frames: vec![
                vec![frame(1, 4)],
                vec![frame(2, 0), frame(1, 8)],
                vec![frame(1, 30)],
            ],
            instructions,
            calls: FxHashMap::from_iter([(21, 2)]),
        };
        let pieces = data.pieces();
        let pieces = pieces.iter().map(|piece| {
            let frames = data.frames(piece.place);
            (piece.start, piece.end, frames, piece.is_call)
        });
        let [outer, inner, looping] = [&data.frames[0], &data.frames[1], &data.frames[2]];
        let expected: [(u32, u32, &[DeoptFrame], bool); 5] = [
            // The callee begins behind the check of the call.
            (1, 8, inner, false),
            (8, 15, inner, false),
            // Reached from the callee and from the loop's end: code of the caller.
            (15, 16, &inner[1..], false),
            (16, 21, looping, true),
            (21, 23, looping, false),
        ];
        assert_eq!(pieces.collect::<Vec<_>>(), expected, "{outer:?}");
    }

    proptest! {
        #[test]
        fn pieces_ascend(bytes in prop::collection::vec(any::<u8>(), 0..300), exit in 0..300_u32) {
            let data = DeoptData {
                entries: vec![entry(exit)],
                frames: vec![vec![frame(1, 2)]],
                calls: (0..9).map(|at| (at * 16, 0)).collect(),
                instructions: bytes,
            };
            let mut last = 0;
            for piece in data.pieces() {
                prop_assert!(last <= piece.start && piece.start < piece.end);
                last = piece.end;
            }
        }
    }
}
