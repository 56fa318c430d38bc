//! The bytecode interpreter: the C function `interpret`, and its labels for bytecodes.
//!
//! Its jump table has a label for each bytecode. The code from a label to the next one executes that
//! bytecode; a compiler may share code between bytecodes, or move rare parts elsewhere.

use std::collections::BTreeMap;

use vmscope_process::{AdapterError, Memory, Poll, ProcessView, SampleNeeds};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentKind, InterpreterSource, InterpreterValue, PcMap,
    SamplePlace, TimeNs,
};

use crate::bytecode_table::row;
use crate::bytecodes::Encoding;
use crate::vm::Vm;

const FUNCTION: &str = "interpret";

/// Start of the jump table's name; compilers append a number.
const TABLE: &str = "jumpTable";

/// Maximum number of tables with such a name.
const MAX_TABLES: usize = 16;

/// Sizes of a jump table: one set of bytecodes, or two.
const SIZES: [u64; 2] = [256, 512];

/// Registers that C functions preserve, in the kernel's numbering (`perf_regs.h`): rbx, rbp, r12 to r15.
/// One of them holds the address of the current bytecode. No other value points into bytecodes, since
/// object pointers point to headers.
const PRESERVED: [u32; 6] = [1, 6, 20, 21, 22, 23];

/// The interpreter's code.
#[derive(Clone, Debug)]
pub struct Interpreter {
    range: (Avma, Avma),
    /// Its parts, ascending, with names.
    parts: Vec<(Avma, String)>,
}

impl Interpreter {
    /// The interpreter of a VM; `None` without its symbol.
    ///
    /// # Errors
    /// Failed reads.
    pub fn find(
        vm: &Vm,
        process: &ProcessView,
        memory: &dyn Memory,
    ) -> Result<Option<Self>, AdapterError> {
        let function = process.symbols(&vm.module, &[FUNCTION])?;
        let Some(function) = function.into_iter().flatten().next() else {
            return Ok(None);
        };
        let start = function.address;
        let Some(end) = start.checked_add(function.size).filter(|end| *end > start) else {
            return Ok(None);
        };
        let tables = process.symbols_beginning(&vm.module, &[TABLE], MAX_TABLES)?;
        let mut parts = vec![(start, FUNCTION.to_owned())];
        for table in tables {
            let word = memory.pointer_bytes() as u64;
            let count = table.size / word;
            if !SIZES.contains(&count) || table.size % word != 0 {
                continue;
            }
            let bytes = memory.read_vec(table.address, table.size, 1 << 13);
            let bytes = match bytes {
                Err(error) if error.is_final() => {
                    return Err(AdapterError::reading("jump table")(error));
                }
                Err(_) => continue,
                Ok(bytes) => bytes,
            };
            let labels = bytes.chunks_exact(memory.pointer_bytes());
            let labels: Vec<Avma> = labels
                .map(|label| Avma(crate::cog_method::number(label)))
                .collect();
            if labels.iter().all(|label| start <= *label && *label < end) {
                let only = vm.bytecodes.of_method(-1).map(|set| set.encoding);
                parts.extend(named(&labels, only.unwrap_or(Encoding::Sista)));
                break;
            }
        }
        // A label at the function's start has the name.
        parts.reverse();
        parts.sort_by_key(|(at, _)| *at);
        parts.dedup_by_key(|(at, _)| *at);
        let range = (start, end);
        Ok(Some(Interpreter { range, parts }))
    }

    /// Reports the parts, and where samples show bytecodes. `started`: the VM's start.
    pub fn tell(&self, vm: &str, started: Option<TimeNs>, poll: &mut Poll) {
        let ends = self.parts.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain(std::iter::once(self.range.1));
        for ((start, name), end) in self.parts.iter().zip(ends) {
            poll.code(CodeChange::Seen(Constituent {
                key: poll.keys().constituent(),
                process: poll.process(),
                since: started.unwrap_or(poll.began()),
                absent_at: None,
                start: *start,
                end,
                kind: ConstituentKind::Interpreter,
                tier: String::new(),
                name: name.clone(),
                method: None,
                cases: Vec::new(),
                map: PcMap::None,
            }));
        }
        let sources = sample_needs().sources;
        if !sources.is_empty() {
            poll.interpreter(vm, vec![self.range], sources);
        }
        if self.parts.len() == 1 {
            let text = "this VM does not tell the parts of its interpreter";
            poll.limit(text.to_owned(), "");
        }
    }
}

/// Data that samples need to show the interpreter's bytecode: none on processors other than x86-64.
#[must_use]
pub fn sample_needs() -> SampleNeeds {
    if !cfg!(target_arch = "x86_64") {
        return SampleNeeds::default();
    }
    let source = |register| InterpreterSource {
        place: SamplePlace::Register(register),
        holds: InterpreterValue::Bytecode,
    };
    SampleNeeds {
        registers: PRESERVED.iter().fold(0, |all, bit| all | 1 << bit),
        stack_bytes: 0,
        sources: PRESERVED.into_iter().map(source).collect(),
    }
}

/// Labels with the names of their bytecodes. A table of 512 labels begins with the older set; `only` is the set
/// of a shorter table.
fn named(labels: &[Avma], only: Encoding) -> impl Iterator<Item = (Avma, String)> {
    let has_two_sets = labels.len() > 256;
    let mut bytecodes: BTreeMap<Avma, Vec<usize>> = BTreeMap::new();
    for (bytecode, label) in labels.iter().enumerate() {
        bytecodes.entry(*label).or_default().push(bytecode);
    }
    bytecodes.into_iter().map(move |(label, bytecodes)| {
        let set = |bytecode: usize| {
            let encoding = match (has_two_sets, bytecode) {
                (false, _) => only,
                (true, 0..=255) => Encoding::V3,
                (true, _) => Encoding::Sista,
            };
            (encoding, (bytecode % 256) as u8)
        };
        let (encoding, code) = set(bytecodes.first().copied().unwrap_or(0));
        let each = bytecodes.iter().map(|bytecode| {
            let (encoding, code) = set(*bytecode);
            format!("{encoding:?} {code}")
        });
        let each: Vec<String> = each.collect();
        let name = row(encoding, code).2.name();
        (label, format!("{name} ({})", each.join(", ")))
    })
}
