//! Which bytecode an interpreter executes, as registers and stack show it.

use crate::{Avma, ProcessKey, SampleDetail, TimeNs};

/// How a VM's interpreter shows which bytecode it executes. Written again for the same
/// process and VM, it replaces what was said before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterpreterRules {
    /// Whose.
    pub process: ProcessKey,
    /// When they were told.
    pub time: TimeNs,
    /// Which VM they are of, in its adapter's word (`hotspot`).
    pub vm: String,
    /// Where the interpreter's code lies, first address and first address after it:
    /// samples outside need no registers. At most [`MAX_RANGES`](Self::MAX_RANGES).
    pub ranges: Vec<(Avma, Avma)>,
    /// Tried in order: the first whose value lies in a constituent of the kind that it
    /// names counts. At most [`MAX_SOURCES`](Self::MAX_SOURCES).
    pub sources: Vec<InterpreterSource>,
}

/// A place where a sample may show what the interpreter executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterpreterSource {
    /// Where to look.
    pub place: SamplePlace,
    /// What is there if it is what it seems to be.
    pub holds: InterpreterValue,
}

/// A place in what a sample carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SamplePlace {
    /// A register, in the kernel's numbering (`perf_regs.h`).
    Register(u32),
    /// A 64-bit word of the user stack.
    Stack {
        /// The register that `offset` counts from.
        base: u32,
        /// In bytes.
        offset: i32,
    },
}

/// What such a place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InterpreterValue {
    /// The address of the bytecode being executed: in a constituent of kind
    /// [`Bytecodes`](crate::ConstituentKind::Bytecodes).
    Bytecode,
    /// The address of the method being entered: the start of a constituent of kind
    /// [`MethodObject`](crate::ConstituentKind::MethodObject).
    Method,
}

impl InterpreterRules {
    /// So many ranges a reader believes. An interpreter is one piece of code, or few.
    pub const MAX_RANGES: usize = 64;
    /// So many sources a reader believes.
    pub const MAX_SOURCES: usize = 32;

    /// Whether `pc` is in the interpreter's code.
    #[must_use]
    pub fn covers(&self, pc: Avma) -> bool {
        let holds = |&(start, end): &(Avma, Avma)| start <= pc && pc < end;
        self.ranges.iter().any(holds)
    }
}

impl SamplePlace {
    /// The register that must be known to look there.
    #[must_use]
    pub const fn register(self) -> u32 {
        match self {
            SamplePlace::Register(number) | SamplePlace::Stack { base: number, .. } => number,
        }
    }

    /// The address of the word; none for a register.
    #[must_use]
    pub fn address(self, detail: &SampleDetail) -> Option<Avma> {
        let SamplePlace::Stack { base, offset } = self else {
            return None;
        };
        let base = detail.registers.as_ref()?.value(base)?;
        base.checked_add_signed(i64::from(offset)).map(Avma)
    }

    /// What a sample carries of that place: none if it has not got the register, or
    /// neither copied the word with its stack nor read it alone.
    #[must_use]
    pub fn value(self, detail: &SampleDetail) -> Option<u64> {
        if let SamplePlace::Register(number) = self {
            return detail.registers.as_ref()?.value(number);
        }
        let at = self.address(detail)?;
        let word = detail.words.iter().find(|word| word.at == at);
        word.map(|word| word.value)
            .or_else(|| detail.stack.as_ref()?.word(at))
    }
}
