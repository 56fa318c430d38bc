//! Samples: where a thread was.

use crate::{Arch, Avma, ThreadKey, TimeNs};

/// The processor mode that a sample interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CpuMode {
    /// User space.
    #[default]
    User,
    /// The kernel.
    Kernel,
    /// The thread did not run (wall clock only): `pc` is where it will go on.
    Idle,
    /// A hypervisor, a guest, or not known.
    Other,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, taken before anything else.
    pub time: TimeNs,
    /// Which thread.
    pub thread: ThreadKey,
    /// The instruction pointer: the address of the next instruction to retire. A
    /// sample is charged to the instruction after a slow one (skid, TRUTH.md §3).
    pub pc: Avma,
    /// The mode that `pc` belongs to.
    pub mode: CpuMode,
    /// What was asked for beyond that. Boxed: most samples have none.
    pub detail: Option<Box<SampleDetail>>,
}

/// What a sample carries on request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleDetail {
    /// Callers, where `--call-graph` was given.
    pub chain: Option<CallChain>,
    /// User registers, where an adapter asked for them.
    pub registers: Option<Registers>,
    /// A copy of the top of the user stack, where an adapter asked for it.
    pub stack: Option<StackBytes>,
    /// Words of memory read while the thread stood still.
    pub words: Vec<Word>,
}

/// A caller chain without the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChain {
    /// Return addresses in the kernel, innermost first; empty for user samples. For a
    /// kernel sample `user` then starts with the user pc itself, not with a return
    /// address.
    pub kernel: Vec<Avma>,
    /// Return addresses in user space, innermost first.
    pub user: Vec<Avma>,
    /// Whether the bound on the depth cut the chain off.
    pub truncated: bool,
}

/// User registers in the kernel's numbering (`arch/*/include/uapi/asm/perf_regs.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Whose registers.
    pub arch: Arch,
    /// Which ones: bit n for register n.
    pub mask: u64,
    /// Their values, one for each bit set in `mask`, lowest register first.
    pub values: Vec<u64>,
}

/// A copy of a piece of the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackBytes {
    /// The address of the first byte: the stack pointer.
    pub sp: Avma,
    /// The bytes from there upwards.
    pub bytes: Vec<u8>,
}

/// A 64-bit word of the target's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Where it was read.
    pub at: Avma,
    /// What was there.
    pub value: u64,
}

impl StackBytes {
    /// The 64-bit word at an address, little endian, if the whole of it was copied.
    #[must_use]
    pub fn word(&self, at: Avma) -> Option<u64> {
        let from = usize::try_from(at.0.checked_sub(self.sp.0)?).ok()?;
        let bytes = self.bytes.get(from..from.checked_add(size_of::<u64>())?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Registers {
    /// Those of `mask` alone; none where none of them was taken.
    #[must_use]
    pub fn only(&self, mask: u64) -> Option<Registers> {
        let mask = self.mask & mask;
        let taken = (0..u64::BITS).filter(|number| mask >> number & 1 != 0);
        let values: Vec<u64> = taken.filter_map(|number| self.value(number)).collect();
        let arch = self.arch;
        (!values.is_empty()).then_some(Registers { arch, mask, values })
    }

    /// The value of register `number` in the kernel's numbering, if it was taken.
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
