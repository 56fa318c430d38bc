//! Places at which V8 can leave optimised code, with the bytecodes at which the interpreter continues. V8
//! keeps them for all optimised code, also where it keeps no source positions.
//!
//! - An *entry* is such a place: its translation, and its exit, a call behind the code. Checks jump to their
//!   exit; the table of safepoints names the entry of a call's return address.
//! - A *translation* tells the interpreter's frames, outermost first, each with its values: operations with
//!   numbers of variable length. It may repeat operations of an earlier translation, its *basis*.
//!
//! (V8's `deoptimizer/translation-opcode.h`, `deoptimizer/frame-translation-builder.cc` and
//! `codegen/maglev-safepoint-table.h`, 12.4 and 13.6.)

use iced_x86::{Decoder, DecoderOptions, FlowControl};
use rustc_hash::FxHashMap;
use vmscope_process::AdapterError;

use crate::code::Code;
use crate::object::{Heap, Tagged};
use crate::vlq;

/// Maximum bytes of a table, or of instructions.
const MAX_TABLE: usize = 64 << 20;

/// Maximum number of places at which V8 can leave a piece of code.
const MAX_ENTRIES: u64 = 1 << 18;

/// Maximum number of a translation's operations; a frame has one for each register.
const MAX_OPERATIONS: usize = 1 << 16;

/// Maximum number of nested frames.
const MAX_DEPTH: u64 = 128;

/// Rounds through the code; each leads places backwards over one more level of loops.
const ROUNDS: usize = 3;

/// Operations that begin a frame: those below this number.
const FRAMES: u8 = 11;

/// Frames of bytecodes, with and without a place for a call's result: those below this number.
const FRAMES_OF_BYTECODES: u8 = 2;

/// Operations that begin a translation.
const BEGINS: [u8; 2] = [14, 15];

/// Offset of the number of entries in a table of safepoints. Their form follows.
const SAFEPOINTS: usize = 4;

/// What differs between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptForm {
    /// Number of operands of each operation. The last operation repeats the basis.
    pub operands: &'static [u8],
}

/// A place at which V8 can leave the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeoptEntry {
    /// Offset of its translation.
    pub translation: u32,
    /// Bytecode of the innermost frame; a builtin's number if a builtin continues.
    pub bytecode: i32,
    /// Offset of its exit in the code.
    pub exit: u32,
}

/// A frame that the interpreter continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeoptFrame {
    /// Number of the function in the code's literals.
    pub function: u32,
    /// Offset of the bytecode, in bytes; `None` before the first bytecode.
    pub bytecode: Option<u32>,
}

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
        const WHAT: &str = "places of deoptimisation";
        let damaged = |error: DeoptError| AdapterError::Damaged {
            what: "code",
            why: error.to_string(),
            at: code.start,
        };
        let count = |index: u64| -> Result<u64, AdapterError> {
            let number = heap.item(code.data, index, WHAT)?.small_integer();
            Ok(number.map_or(u64::MAX, |number| u64::from(number.cast_unsigned())))
        };
        let bytes = |at, length| {
            let read = heap.memory.read_vec(at, length, MAX_TABLE);
            read.map_err(AdapterError::reading(WHAT))
        };
        // Behind the inlined calls: begin of the exits, numbers of checks and calls, the entries.
        let first = heap.layout.optimised.inlining + 1;
        let exits = count(first)?;
        let entries = count(first + 1)?.saturating_add(count(first + 2)?);
        if entries > MAX_ENTRIES || exits > code.size().into() {
            return Err(AdapterError::Implausible {
                what: WHAT,
                value: entries,
                at: code.start,
            });
        }
        let begin = first + 3;
        heap.item(code.data, begin + 3 * entries - 1, WHAT)?;
        let items = bytes(heap.at(code.data, 16 + 8 * begin, WHAT)?, 8 * 3 * entries)?;
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
        let entries: Vec<DeoptEntry> = entries.collect();
        let translations = heap.bytes(heap.item(code.data, 0, WHAT)?, MAX_TABLE, WHAT)?;
        let frames = entries
            .iter()
            .map(|entry| frames(&translations, form, *entry));
        let frames = frames.collect::<Result<_, _>>().map_err(damaged)?;
        let header = bytes(code.end, Safepoints::HEADER as u64)?;
        let safepoints = Safepoints::of(&header).map_err(damaged)?;
        let table = bytes(code.end, safepoints.bytes())?;
        Ok(DeoptData {
            entries,
            frames,
            instructions: bytes(code.start, exits)?,
            calls: safepoints.calls(&table),
        })
    }
}

/// An operation with its operands.
struct Operation {
    number: u8,
    operands: Vec<u64>,
}

impl Operation {
    fn signed(&self, index: usize) -> Option<i64> {
        self.operands.get(index).map(|it| vlq::sign(*it))
    }
}

/// Operations of a translation behind its begin.
struct Operations<'a> {
    form: DeoptForm,
    rest: &'a [u8],
    /// The basis behind the operations that were repeated or replaced.
    basis: &'a [u8],
    repeats: u64,
}

impl Operations<'_> {
    fn take(form: DeoptForm, bytes: &mut &[u8]) -> Option<Operation> {
        let (number, rest) = bytes.split_first()?;
        *bytes = rest;
        let count = *form.operands.get(usize::from(*number))?;
        let operands = (0..count).map(|_| vlq::unsigned(bytes));
        Some(Operation {
            number: *number,
            operands: operands.collect::<Option<_>>()?,
        })
    }
}

impl Iterator for Operations<'_> {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.repeats == 0 {
            let count = u8::try_from(self.form.operands.len()).ok()?;
            let first = *self.rest.first()?;
            self.repeats = if let Some(short) = first.checked_sub(count) {
                self.rest = self.rest.get(1..)?;
                short.into()
            } else {
                let operation = Self::take(self.form, &mut self.rest)?;
                if operation.number + 1 < count {
                    // It replaces an operation of the basis.
                    Self::take(self.form, &mut self.basis);
                    return Some(operation);
                }
                *operation.operands.first()?
            };
        }
        self.repeats = self.repeats.checked_sub(1)?;
        Self::take(self.form, &mut self.basis)
    }
}

/// Frames of an entry, innermost first. Frames of builtins are left out.
///
/// # Errors
/// [`DeoptError`].
fn frames(
    translations: &[u8],
    form: DeoptForm,
    entry: DeoptEntry,
) -> Result<Vec<DeoptFrame>, DeoptError> {
    let at = entry.translation;
    let damaged = DeoptError::Translation(at);
    let begin = |at: u32| {
        let mut bytes = translations.get(at as usize..)?;
        let begin = Operations::take(form, &mut bytes)?;
        BEGINS.contains(&begin.number).then_some((begin, bytes))
    };
    let (first, rest) = begin(at).ok_or(damaged)?;
    let basis = match first.operands.first().ok_or(damaged)? {
        0 => &[][..],
        distance => {
            let distance = u32::try_from(*distance).ok();
            let before = distance.and_then(|distance| at.checked_sub(distance));
            before.and_then(begin).ok_or(damaged)?.1
        }
    };
    let count = first.signed(1).and_then(|count| u64::try_from(count).ok());
    let count = count.filter(|count| *count <= MAX_DEPTH).ok_or(damaged)?;
    let operations = Operations {
        form,
        rest,
        basis,
        repeats: 0,
    };
    let (mut frames, mut begun) = (Vec::new(), 0);
    for operation in operations.take(MAX_OPERATIONS) {
        if operation.number >= FRAMES {
            continue;
        }
        begun += 1;
        let bytecode = operation.signed(0).ok_or(damaged)?;
        let is_of_bytecodes = operation.number < FRAMES_OF_BYTECODES;
        if is_of_bytecodes {
            let function = operation.signed(1).and_then(|it| u32::try_from(it).ok());
            frames.push(DeoptFrame {
                function: function.ok_or(damaged)?,
                bytecode: u32::try_from(bytecode).ok(),
            });
        }
        if begun == count {
            // Numbers below 0 are a function's entry.
            if is_of_bytecodes && bytecode.max(-1) != i64::from(entry.bytecode.max(-1)) {
                return Err(DeoptError::OtherBytecode(at));
            }
            frames.reverse();
            return Ok(frames);
        }
    }
    Err(damaged)
}

/// Form of the entries in a table of safepoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Safepoints {
    count: usize,
    /// Bytes of a pc, of an entry's number (none if the code has no calls with entries), of an entry.
    pc: usize,
    number: usize,
    entry: usize,
}

impl Safepoints {
    /// Bytes of a table's begin for [`Safepoints::of`].
    const HEADER: usize = 16;

    /// Reads a table's header.
    ///
    /// # Errors
    /// [`DeoptError::Safepoints`].
    fn of(table: &[u8]) -> Result<Self, DeoptError> {
        let word = |at: usize| {
            let bytes = table.get(at..).and_then(<[u8]>::first_chunk);
            bytes.map(|bytes| u32::from_le_bytes(*bytes))
        };
        let words = word(SAFEPOINTS).zip(word(SAFEPOINTS + 4));
        let (count, bits) = words.ok_or(DeoptError::Safepoints)?;
        let bytes = |shift: u32| (bits >> shift & 7) as usize;
        let (registers, pc, number) = (bytes(1), bytes(4), bytes(7));
        if pc == 0 || [registers, pc, number].iter().any(|bytes| *bytes > 4) {
            return Err(DeoptError::Safepoints);
        }
        let has_numbers = bits & 1 != 0;
        let for_exit = if has_numbers { number + pc } else { 0 };
        Ok(Safepoints {
            count: count as usize,
            pc,
            number: if has_numbers { number } else { 0 },
            entry: pc + for_exit + 1 + registers,
        })
    }

    /// Bytes of the whole table.
    #[must_use]
    fn bytes(&self) -> u64 {
        (self.count as u64)
            .saturating_mul(self.entry as u64)
            .saturating_add(Self::HEADER as u64)
    }

    /// Numbers of entries by the offset of the call's return address.
    #[must_use]
    fn calls(&self, table: &[u8]) -> FxHashMap<u32, usize> {
        let entries = table.get(Self::HEADER..).unwrap_or_default();
        let number = |bytes: &[u8]| {
            let shifted = bytes.iter().enumerate();
            shifted.fold(0, |sum, (index, byte)| {
                sum | u32::from(*byte) << (8 * index)
            })
        };
        let pair = |entry: &[u8]| {
            let (pc, rest) = entry.split_at_checked(self.pc)?;
            let index = number(rest.get(..self.number)?).checked_sub(1)?;
            Some((number(pc), index as usize))
        };
        let entries = entries.chunks_exact(self.entry).take(self.count);
        entries.filter_map(pair).collect()
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

    /// Gives code to inlined functions: between an entry of the caller and the first entry of its inlined
    /// callee, the callee has begun.
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
    use crate::debug::Debug;
    use crate::versions::Layout;
    use crate::vlq::{put_signed, put_unsigned};
    use proptest::prelude::*;

    fn form() -> DeoptForm {
        let layout = Layout::new((13, 6), &Debug::default());
        layout.and_then(|layout| layout.deopt).unwrap()
    }

    const fn frame(function: u32, bytecode: u32) -> DeoptFrame {
        DeoptFrame {
            function,
            bytecode: Some(bytecode),
        }
    }

    /// A frame without a place for a result: bytecode, function, bytecodes, height.
    fn put_frame(bytecode: i64, function: i64, bytes: &mut Vec<u8>) {
        bytes.push(1);
        for number in [bytecode, function, 7, 1] {
            put_signed(number, bytes);
        }
    }

    fn put_begin(distance: u64, frames: i64, bytes: &mut Vec<u8>) {
        bytes.push(14);
        put_unsigned(distance, bytes);
        put_signed(frames, bytes);
        put_signed(frames, bytes);
    }

    fn entry(translation: usize, bytecode: i32) -> DeoptEntry {
        DeoptEntry {
            translation: translation.try_into().unwrap(),
            bytecode,
            exit: 0,
        }
    }

    #[test]
    fn a_translation_repeats_its_basis() {
        let mut bytes = Vec::new();
        put_begin(0, 2, &mut bytes);
        put_frame(200, 3, &mut bytes);
        // A literal, a value that is left out.
        bytes.extend([38, 12, 37]);
        put_frame(5, 4, &mut bytes);
        let second = bytes.len();
        put_begin(second as u64, 3, &mut bytes);
        // Three operations of the basis, in short and in long form.
        bytes.push(45 + 2);
        bytes.extend([44, 1]);
        put_frame(9, 4, &mut bytes);
        bytes.extend([6, 0, 0, 0]);
        let frames = |entry| frames(&bytes, form(), entry);
        assert_eq!(frames(entry(0, 5)), Ok(vec![frame(4, 5), frame(3, 200)]));
        assert_eq!(frames(entry(0, 6)), Err(DeoptError::OtherBytecode(0)));
        // A builtin continues: its frame is left out.
        let with_builtin = Ok(vec![frame(4, 9), frame(3, 200)]);
        assert_eq!(frames(entry(second, 77)), with_builtin);
        assert_eq!(frames(entry(1, 5)), Err(DeoptError::Translation(1)));
        assert_eq!(frames(entry(999, 5)), Err(DeoptError::Translation(999)));
    }

    #[test]
    fn safepoints_name_the_entries_of_calls() {
        // Two entries of 1 + 1 + 1 + 1 + 0 bytes: pc, entry plus one, exit plus one, slots.
        let mut table = vec![0; 16];
        table[4] = 2;
        table[8..10].copy_from_slice(&(1_u16 | 1 << 4 | 1 << 7).to_le_bytes());
        table.extend([0x20, 3, 0x50, 0, 0x30, 0, 0, 0]);
        let safepoints = Safepoints::of(&table).unwrap();
        assert_eq!(safepoints.bytes(), table.len() as u64);
        assert_eq!(safepoints.calls(&table), FxHashMap::from_iter([(0x20, 2)]));
        assert!(Safepoints::of(&table[..10]).is_err() && Safepoints::of(&[0; 16]).is_err());
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
        let entry = |exit| DeoptEntry {
            exit,
            ..entry(0, 0)
        };
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
        fn damaged_tables_are_errors(
            bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0..300_u32,
        ) {
            let _ = frames(&bytes, form(), DeoptEntry { translation: at, bytecode: 0, exit: 0 });
            if let Ok(safepoints) = Safepoints::of(&bytes) {
                prop_assert!(safepoints.calls(&bytes).len() <= bytes.len());
            }
            let entry = DeoptEntry { translation: 0, bytecode: 0, exit: at };
            let data = DeoptData {
                entries: vec![entry],
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
