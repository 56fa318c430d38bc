//! Ignition, the interpreter: its handlers of bytecodes, which are builtins, and what samples show in
//! them.
//!
//! Handlers lie one after the other in V8's block of builtins. Since V8 11, each isolate maps this block
//! again near its code. The dispatch table of an isolate has the addresses of its handlers.

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Memory, Poll, ProcessView, SampleNeeds};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentKind, InterpreterSource, InterpreterValue, PcMap,
    SamplePlace, TimeNs,
};

use crate::bytecodes::{self, HANDLERS, OPCODES};
use crate::isolate::{Isolate, Tables};
use crate::regions::kind_of_builtin;
use crate::vm::{BUILTINS, V8};

/// End of the names of handlers.
const SUFFIX: &str = "Handler";

/// The first handler, which the first entry of a dispatch table refers to.
const FIRST: &str = "Builtins_WideHandler";

/// The builtin that enters interpreted functions.
const ENTRY: &str = "InterpreterEntryTrampoline";

/// Builtins that are no handlers, although they are called so.
const OTHERS: &str = "AtomicsMutex";

/// Maximum number of builtins and handlers of bytecodes (V8 14: 2,415).
const MAX_ROUTINES: usize = 1 << 13;

/// Maximum number of constituents: other builtins of further isolates have no names (Node.js 20: each worker maps
/// 2,200).
const MAX_CONSTITUENTS: usize = 1 << 19;

/// Maximum number of bytes between routines of one range.
const MAX_GAP: u64 = 64;

/// Maximum bytes of a handler without a symbol (the largest in Node.js 18 to 26: 5,728).
const MAX_HANDLER: u64 = 1 << 14;

/// Bytes of the last handler without a symbol, that of the rarest bytecode.
const LAST: u64 = 64;

/// Suffixes of handlers and bytecodes with larger operands.
const SIZES: [(&str, &str); 2] = [("ExtraWide", ".ExtraWide"), ("Wide", ".Wide")];

/// Registers in the kernel's numbering (`perf_regs.h`).
const RBP: u32 = 6;
const R9: u32 = 17;
const R12: u32 = 20;

/// Bytes of stack in a sample; 99.8 % of frames begin within them.
const STACK_BYTES: u32 = 256;

/// Offset of the bytecodes in the frame of an interpreted function.
const FRAME_BYTECODES: i32 = -32;

/// Data that samples need: none on processors other than x86-64, whose registers are unknown.
///
/// r12 holds the tagged address of the bytecodes, r9 the offset of the current one. Frames of
/// interpreted functions hold the bytecodes as well.
#[must_use]
pub fn sample_needs() -> SampleNeeds {
    if !cfg!(target_arch = "x86_64") {
        return SampleNeeds::default();
    }
    let source = |place, holds| InterpreterSource { place, holds };
    let frame = SamplePlace::Stack {
        base: RBP,
        offset: FRAME_BYTECODES,
    };
    let bytecode = SamplePlace::Sum {
        base: R12,
        index: R9,
    };
    let sources = vec![
        source(bytecode, InterpreterValue::Bytecode),
        source(frame, InterpreterValue::Method),
        source(SamplePlace::Register(R12), InterpreterValue::Method),
    ];
    let registers = sources.iter().map(|source| source.place.registers());
    SampleNeeds {
        registers: registers.fold(0, |all, one| all | one),
        stack_bytes: STACK_BYTES,
        sources,
    }
}

/// A handler of a bytecode, or another builtin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Routine {
    /// Distance from the first handler.
    offset: i64,
    size: u64,
    name: String,
    kind: ConstituentKind,
    tier: &'static str,
    /// Whether its registers tell the current bytecode.
    interprets: bool,
}

impl Routine {
    /// A handler, or the entry of interpreted functions.
    fn of_interpreter(offset: i64, size: u64, name: String) -> Self {
        Routine {
            offset,
            size,
            name,
            kind: ConstituentKind::Interpreter,
            tier: "",
            interprets: true,
        }
    }

    fn range(&self, first: Avma) -> (Avma, Avma) {
        let start = first.0.wrapping_add_signed(self.offset);
        (Avma(start), Avma(start.saturating_add(self.size)))
    }
}

/// The interpreter of one V8.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    /// Ascending; `None` before they were read.
    routines: Option<Vec<Routine>>,
    /// Addresses of first handlers that were reported.
    told: FxHashSet<Avma>,
}

impl Interpreter {
    /// Reports the interpreters of new isolates.
    ///
    /// # Errors
    /// Unreadable symbols; failed reads.
    pub fn poll(
        &mut self,
        (vm, process): (&V8, &ProcessView),
        (tables, isolates): (&Tables, &[Isolate]),
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let memory = process.memory();
        let (mut new, mut last_table) = (Vec::new(), None);
        for isolate in isolates {
            let Some(table) = dispatch_table(*isolate, tables, memory)? else {
                continue;
            };
            let first = first_handler(table, memory)?;
            new.extend(first.filter(|first| self.told.insert(*first)));
            last_table = Some(table);
        }
        let Some(table) = last_table.filter(|_| !new.is_empty()) else {
            return Ok(());
        };
        let routines = match self.routines.take() {
            Some(routines) => routines,
            None => match routines(vm) {
                named if named.is_empty() => {
                    let text = "this V8 has no symbols of its builtins: its bytecodes have numbers \
                                instead of names, and its builtins have no names";
                    poll.limit(text.to_owned(), "use an unstripped build of the VM");
                    numbered(table, memory)?
                }
                named => named,
            },
        };
        let fits = |interpreters: usize| interpreters * routines.len() <= MAX_CONSTITUENTS;
        let has_room = fits(self.told.len());
        if !has_room && fits(self.told.len() - new.len()) {
            let text = "V8 maps its builtins too often: those of some workers have no names";
            poll.limit(text.to_owned(), "");
        }
        for first in new {
            for routine in routines.iter().filter(|one| has_room || one.interprets) {
                poll.code(CodeChange::Seen(constituent(first, routine, poll)));
            }
        }
        let mut ranges: Vec<_> = (self.told.iter())
            .flat_map(|first| ranges(*first, &routines))
            .collect();
        ranges.sort_unstable();
        let sources = sample_needs().sources;
        if !ranges.is_empty() && !sources.is_empty() {
            poll.interpreter("v8", ranges, sources);
        }
        self.routines = Some(routines);
        Ok(())
    }
}

/// An isolate's dispatch table.
fn dispatch_table(
    isolate: Isolate,
    tables: &Tables,
    memory: &dyn Memory,
) -> Result<Option<Avma>, AdapterError> {
    let table = tables.reference(isolate, HANDLERS, memory)?;
    Ok(table.filter(|table| table.0 != 0))
}

/// Address of the first handler in a dispatch table; `None` before V8 has filled the table.
fn first_handler(table: Avma, memory: &dyn Memory) -> Result<Option<Avma>, AdapterError> {
    let first = memory.read_u64(table);
    let first = first.map_err(AdapterError::reading("dispatch table"))?;
    Ok(Some(Avma(first)).filter(|first| first.0 != 0))
}

/// The interpreter's routines, from a dispatch table: handlers of a V8 without symbols of builtins. One
/// ends where the next begins.
fn numbered(table: Avma, memory: &dyn Memory) -> Result<Vec<Routine>, AdapterError> {
    let handlers = bytecodes::handlers(table, memory)?;
    let first = handlers.first().copied().unwrap_or(0);
    let places = handlers.into_iter().zip(0_usize..);
    let mut places: Vec<(u64, usize)> = places.filter(|(at, _)| *at != 0).collect();
    places.sort_unstable();
    // Several bytecodes share a handler.
    places.dedup_by_key(|(at, _)| *at);
    let ends = places.iter().skip(1).map(|(at, _)| Some(*at));
    let ends: Vec<Option<u64>> = ends.chain([None]).collect();
    let each = places.into_iter().zip(ends).map(|((at, index), end)| {
        let size = end.map_or(LAST, |end| end.saturating_sub(at));
        let scale = ["", ".Wide", ".ExtraWide"].get(index / OPCODES);
        let name = format!("bytecode {}{}", index % OPCODES, scale.unwrap_or(&""));
        let offset = at.wrapping_sub(first) as i64;
        Routine::of_interpreter(offset, size.min(MAX_HANDLER), name)
    });
    Ok(each.collect())
}

/// The interpreter's routines, from the names of builtins; none without names. Reports have other builtins' names
/// from the program's symbols; without symbols, all builtins are routines.
fn routines(vm: &V8) -> Vec<Routine> {
    let Some(first) = vm.builtins().find(|symbol| symbol.name == FIRST) else {
        return Vec::new();
    };
    let first = first.address.0;
    let each = vm.builtins().filter_map(|symbol| {
        let name = symbol.name.strip_prefix(BUILTINS)?;
        let offset = symbol.address.0.wrapping_sub(first) as i64;
        let size = symbol.size;
        match name.strip_suffix(SUFFIX) {
            Some(handler) if !name.starts_with(OTHERS) => Some(Routine::of_interpreter(
                offset,
                size,
                bytecode_name(handler),
            )),
            _ if name == ENTRY => Some(Routine::of_interpreter(offset, size, name.to_owned())),
            _ if vm.lacks_builtins => {
                let (kind, tier) = kind_of_builtin(name);
                Some(Routine {
                    offset,
                    size,
                    name: name.to_owned(),
                    kind,
                    tier,
                    interprets: false,
                })
            }
            _ => None,
        }
    });
    let mut all: Vec<Routine> = each.take(MAX_ROUTINES).collect();
    all.sort_by_key(|routine| routine.offset);
    all
}

/// A bytecode in V8's notation, from its handler's name: `LdaSmi.Wide`. A handler of several bytecodes
/// names them all.
fn bytecode_name(handler: &str) -> String {
    if handler == "ShortStar" {
        let each: Vec<String> = (0..16).map(|number| format!("Star{number}")).collect();
        return format!("ShortStar ({})", each.join(", "));
    }
    let is_prefix = matches!(
        handler.strip_prefix("DebugBreak").unwrap_or(handler),
        "Wide" | "ExtraWide"
    );
    let split = SIZES.iter().find_map(|(suffix, dotted)| {
        let base = handler.strip_suffix(suffix).filter(|_| !is_prefix)?;
        Some(format!("{base}{dotted}"))
    });
    split.unwrap_or_else(|| handler.to_owned())
}

/// Ranges of the interpreter's routines, which are ascending.
fn ranges(first: Avma, routines: &[Routine]) -> Vec<(Avma, Avma)> {
    let mut all: Vec<(Avma, Avma)> = Vec::new();
    for routine in routines.iter().filter(|routine| routine.interprets) {
        let (start, end) = routine.range(first);
        match all.last_mut() {
            Some(last) if start.0.saturating_sub(last.1.0) <= MAX_GAP => last.1 = end.max(last.1),
            _ => all.push((start, end)),
        }
    }
    all
}

/// A routine exists as long as its isolate.
fn constituent(first: Avma, routine: &Routine, poll: &Poll) -> Constituent {
    let (start, end) = routine.range(first);
    Constituent {
        key: poll.keys().constituent(),
        process: poll.process(),
        since: TimeNs(0),
        absent_at: None,
        start,
        end,
        kind: routine.kind.clone(),
        tier: routine.tier.to_owned(),
        name: routine.name.clone(),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;

    use super::*;

    #[test]
    fn handlers_without_symbols_have_the_numbers_of_their_bytecodes() {
        let mut table = vec![0x9000_u64; 768];
        table[..4].copy_from_slice(&[0x5000, 0x5100, 0x5100, 0x5080]);
        table[256] = 0x5200;
        let mut memory = FakeMemory::new();
        let bytes = table.iter().flat_map(|at| at.to_le_bytes());
        memory.put(Avma(0x10_0000), bytes.collect());
        let routine =
            |offset, size, name: &str| Routine::of_interpreter(offset, size, name.to_owned());
        let expected = [
            routine(0, 0x80, "bytecode 0"),
            routine(0x80, 0x80, "bytecode 3"),
            routine(0x100, 0x100, "bytecode 1"),
            routine(0x200, 0x3e00, "bytecode 0.Wide"),
            routine(0x4000, 64, "bytecode 4"),
        ];
        assert_eq!(numbered(Avma(0x10_0000), &memory).unwrap(), expected);
        assert!(numbered(Avma(0x20_0000), &memory).is_err());
    }

    #[test]
    fn handlers_have_the_names_of_their_bytecodes() {
        for (handler, bytecode) in [
            ("LdaZero", "LdaZero"),
            ("LdaSmiWide", "LdaSmi.Wide"),
            ("LdaSmiExtraWide", "LdaSmi.ExtraWide"),
            ("Wide", "Wide"),
            ("ExtraWide", "ExtraWide"),
            ("DebugBreakWide", "DebugBreakWide"),
            ("DebugBreakExtraWide", "DebugBreakExtraWide"),
        ] {
            assert_eq!(bytecode_name(handler), bytecode);
        }
        assert!(bytecode_name("ShortStar").ends_with(", Star15)"));
    }
}
