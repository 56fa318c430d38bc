//! Samples of threads.

use crate::{Arch, Avma, ThreadKey, TimeNs};

/// Processor mode of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CpuMode {
    /// User space.
    #[default]
    User,
    /// The kernel.
    Kernel,
    /// A blocked thread (wall clock only): `pc` is its next instruction.
    Idle,
    /// A hypervisor, a guest, or unknown.
    Other,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time, read first of all.
    pub time: TimeNs,
    /// The thread.
    pub thread: ThreadKey,
    /// Instruction pointer: address of the next instruction to retire. After a slow instruction,
    /// the sample counts for its successor (skid, docs/truth.md §3).
    pub pc: Avma,
    /// Mode of `pc`.
    pub mode: CpuMode,
    /// Requested details. Boxed: most samples have none.
    pub detail: Option<Box<SampleDetail>>,
}

/// Requested details of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleDetail {
    /// Callers (`--call-graph`).
    pub chain: Option<CallChain>,
    /// User registers for an adapter.
    pub registers: Option<Registers>,
    /// Copy of the top of the user stack for an adapter.
    pub stack: Option<StackBytes>,
    /// Memory words read while the thread was stopped.
    pub words: Vec<Word>,
}

/// A caller chain without the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChain {
    /// Kernel return addresses, innermost first; empty for user samples. In a kernel sample, `user`
    /// then starts with the user pc itself, not a return address.
    pub kernel: Vec<Avma>,
    /// User return addresses, innermost first.
    pub user: Vec<Avma>,
    /// Reason for the chain's end.
    pub end: ChainEnd,
    /// Whether a frame without an unwind rule was passed by its frame pointer: nothing confirms
    /// its callers.
    pub guessed: bool,
    /// Whether callers were read from the process after the sample, which may have changed them.
    pub late: bool,
}

/// Why a chain of callers ends (TRUTH.md §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChainEnd {
    /// Unknown: the kernel follows frame pointers until they make no sense.
    #[default]
    Unknown,
    /// The thread's first frame.
    Whole,
    /// The maximum depth.
    Depth,
    /// The end of the copied stack.
    Stack,
    /// A frame without an unwind rule, or with values that make no sense.
    Broken,
    /// Unwinding was behind: the stack was dropped.
    Behind,
}

/// User registers in the kernel's numbering (`arch/*/include/uapi/asm/perf_regs.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Their architecture.
    pub arch: Arch,
    /// Register set: bit n for register n.
    pub mask: u64,
    /// Values, one per bit of `mask`, lowest register first.
    pub values: Vec<u64>,
}

/// A copy of part of the stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackBytes {
    /// Address of the first byte: the stack pointer.
    pub sp: Avma,
    /// Bytes from `sp` upwards.
    pub bytes: Vec<u8>,
}

/// A 64-bit word of the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Address.
    pub at: Avma,
    /// Value.
    pub value: u64,
}

impl StackBytes {
    /// The little-endian 64-bit word at `at`, if copied completely.
    #[must_use]
    pub fn word(&self, at: Avma) -> Option<u64> {
        let from = usize::try_from(at.0.checked_sub(self.sp.0)?).ok()?;
        let bytes = self.bytes.get(from..from.checked_add(size_of::<u64>())?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Registers {
    /// Registers in `mask` only; `None` without any.
    #[must_use]
    pub fn only(&self, mask: u64) -> Option<Registers> {
        let mask = self.mask & mask;
        let taken = (0..u64::BITS).filter(|number| mask >> number & 1 != 0);
        let values: Vec<u64> = taken.filter_map(|number| self.value(number)).collect();
        let arch = self.arch;
        (!values.is_empty()).then_some(Registers { arch, mask, values })
    }

    /// Value of register `number` in the kernel's numbering, if sampled.
    #[must_use]
    pub fn value(&self, number: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(number)?;
        if self.mask & bit == 0 {
            return None;
        }
        let before = (self.mask & (bit - 1)).count_ones();
        self.values.get(usize::try_from(before).ok()?).copied()
    }
}
