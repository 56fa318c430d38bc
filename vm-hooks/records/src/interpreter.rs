//! How registers and stack show an interpreter's current bytecode.

use crate::{Avma, ProcessKey, SampleDetail, TimeNs};

/// How a VM's interpreter shows its current bytecode. Replaces earlier rules for the same process
/// and VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterpreterRules {
    /// The VM's process.
    pub process: ProcessKey,
    /// Time of emission.
    pub time: TimeNs,
    /// The adapter's name for the VM (`hotspot`).
    pub vm: String,
    /// Ranges of the interpreter's code (first address, first address after it); samples elsewhere
    /// need no registers. At most [`MAX_RANGES`](Self::MAX_RANGES).
    pub ranges: Vec<(Avma, Avma)>,
    /// Tried in order: the first with a value inside a constituent of the right kind counts. At
    /// most [`MAX_SOURCES`](Self::MAX_SOURCES).
    pub sources: Vec<InterpreterSource>,
}

/// A possible source of the interpreter's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterpreterSource {
    /// Location of the value.
    pub place: SamplePlace,
    /// Meaning of the value.
    pub holds: InterpreterValue,
}

/// A location in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SamplePlace {
    /// A register, in the kernel's numbering (`perf_regs.h`).
    Register(u32),
    /// A 64-bit word of the user stack.
    Stack {
        /// Base register of `offset`.
        base: u32,
        /// In bytes.
        offset: i32,
    },
    /// The sum of two registers.
    Sum {
        /// One register.
        base: u32,
        /// The other.
        index: u32,
    },
}

/// Meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterpreterValue {
    /// Address of the current bytecode, inside a constituent of kind
    /// [`Bytecodes`](crate::ConstituentKind::Bytecodes).
    Bytecode,
    /// Address of the entered method: the start of a constituent of kind
    /// [`MethodObject`](crate::ConstituentKind::MethodObject).
    Method,
    /// Return address in the caller: the executing code has no frame.
    Caller,
}

impl InterpreterRules {
    /// Maximum number of ranges that readers accept. Interpreters have one or a few.
    pub const MAX_RANGES: usize = 64;
    /// Maximum number of sources that readers accept.
    pub const MAX_SOURCES: usize = 32;

    /// Whether the ranges are an interpreter's. Others hold code without frames, which only shows
    /// its caller.
    #[must_use]
    pub fn are_of_interpreter(&self) -> bool {
        let mut sources = self.sources.iter();
        sources.any(|source| source.holds != InterpreterValue::Caller)
    }

    /// Whether `pc` lies inside the ranges.
    #[must_use]
    pub fn covers(&self, pc: Avma) -> bool {
        let holds = |&(start, end): &(Avma, Avma)| start <= pc && pc < end;
        self.ranges.iter().any(holds)
    }
}

impl SamplePlace {
    /// Registers with the value or its parts, one bit each.
    #[must_use]
    pub fn registers(self) -> u64 {
        let bit = |number| 1_u64.checked_shl(number).unwrap_or(0);
        match self {
            SamplePlace::Register(number) | SamplePlace::Stack { base: number, .. } => bit(number),
            SamplePlace::Sum { base, index } => bit(base) | bit(index),
        }
    }

    /// Address of the stack word; `None` for registers.
    #[must_use]
    pub fn address(self, detail: &SampleDetail) -> Option<Avma> {
        let SamplePlace::Stack { base, offset } = self else {
            return None;
        };
        let base = detail.registers.as_ref()?.value(base)?;
        base.checked_add_signed(i64::from(offset)).map(Avma)
    }

    /// Value at this location; `None` if the sample lacks the register, or the word in both its
    /// stack copy and its words.
    #[must_use]
    pub fn value(self, detail: &SampleDetail) -> Option<u64> {
        let register = |number| detail.registers.as_ref()?.value(number);
        match self {
            SamplePlace::Register(number) => return register(number),
            SamplePlace::Sum { base, index } => {
                return Some(register(base)?.wrapping_add(register(index)?));
            }
            SamplePlace::Stack { .. } => {}
        }
        let at = self.address(detail)?;
        let word = detail.words.iter().find(|word| word.at == at);
        word.map(|word| word.value)
            .or_else(|| detail.stack.as_ref()?.word(at))
    }
}
