//! Unwinding: from a sample's frame to its callers.

mod code_rule;
mod copied_stack;
mod entered;
mod machine_code;
mod pieces;
mod run;

pub use code_rule::{CodeRule, MAX_CALL_BYTES, behind_first_call, ends_with_call};
pub use copied_stack::{CopiedStack, WordRead};
pub use entered::{Entered, entered};
pub use machine_code::{InterpretedFrames, KeptFramePointers, MachineCode};
pub use pieces::{Piece, Pieces};
pub use run::{Jumps, Run, sampled_register};

use std::sync::Arc;

use vmscope_records::{Avma, ChainEnd, Registers, TimeNs};

/// The usual size of a large stack.
const MAX_STACK: u64 = 8 << 20;

/// The smallest page of Linux.
const PAGE_BYTES: u64 = 4096;

/// The registers of a frame that every unwind rule needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRegisters {
    /// The next instruction; in a caller, the return address.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer register, whatever the code uses it for.
    pub fp: u64,
}

/// A frame to unwind.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its registers.
    pub registers: FrameRegisters,
    /// All sampled registers, in the innermost frame only.
    pub sampled: Option<&'a Registers>,
    /// The copied stack.
    pub stack: &'a CopiedStack<'a>,
    /// Time of the copy (`CLOCK_MONOTONIC`).
    pub time: TimeNs,
}

/// A frame outside of the copied stack, without registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFrame {
    /// Its return address, or a substitute address: see [`Unwound::shown`].
    pub shown: Avma,
    /// Its method object, which names `shown`.
    pub method: Option<Avma>,
}

/// The result of unwinding one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwound {
    /// Callers between this frame and `caller` whose frames lie elsewhere, innermost first.
    pub between: Arc<[OtherFrame]>,
    /// The caller's registers.
    pub caller: FrameRegisters,
    /// Address that stands for the frame instead of its pc: one after the address of its current
    /// bytecode or method object, as a return address comes after its call.
    pub shown: Option<Avma>,
    /// The frame's method object, which names `shown`.
    pub method: Option<Avma>,
    /// Whether the rule is a guess: nothing confirms it.
    pub is_guess: bool,
    /// Whether callers were read from the process after the sample, because the copied stack ends below
    /// them.
    pub is_late: bool,
    /// End of the chain after `between`: `caller` means nothing then. [`ChainEnd::Whole`] if the
    /// last frame is the thread's first. For frames with `shown` or `between`; for others the result
    /// of [`Unwinder::caller`] says the same.
    pub end: Option<ChainEnd>,
}

impl Unwound {
    /// A caller by a certain rule, without frames in between.
    #[must_use]
    pub fn certain(caller: FrameRegisters) -> Self {
        Unwound {
            caller,
            shown: None,
            method: None,
            is_guess: false,
            is_late: false,
            end: None,
            between: Arc::default(),
        }
    }
}

/// The unwind rules of a VM's generated code.
///
/// Asked for code outside files, and for code in files with unwind tables that lack an entry for it
/// (V8's builtins). An unwinder runs in the thread that writes samples, so it may read the target's
/// memory rarely only, and must not wait.
pub trait Unwinder: Send + std::fmt::Debug {
    /// Whether the rules cover the code at `pc`.
    fn covers(&self, pc: Avma) -> bool;

    /// A number for what the rules know. The caller of a frame that has called a frame that had called is the
    /// same while this number and all words read from the stack are, unless frames lie between them
    /// ([`Unwound::between`]). `None` if it also depends on other memory.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Caller of a covered frame; `None` for the first frame of a thread, or of the VM's own
    /// process.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] beyond the copied stack, [`ChainEnd::Broken`] without a rule or with
    /// values that make no sense.
    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd>;
}

/// The rule of VMs whose generated code keeps frame pointers everywhere.
#[derive(Clone, Copy, Debug)]
pub struct FramePointers;

impl Unwinder for FramePointers {
    fn covers(&self, _: Avma) -> bool {
        true
    }

    /// Before a function has made its frame, its direct caller is missed: the innermost frame is a
    /// guess.
    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        Ok(Some(Unwound {
            is_guess: frame.sampled.is_some(),
            ..Unwound::certain(frame.by_frame_pointer()?)
        }))
    }
}

impl Frame<'_> {
    /// Address inside the current instruction: the pc of the innermost frame; in a caller, the last
    /// byte of the call before the return address.
    #[must_use]
    pub fn instruction(&self) -> Avma {
        let pc = self.registers.pc;
        Avma(match self.sampled {
            Some(_) => pc,
            None => pc.wrapping_sub(1),
        })
    }

    /// The caller of a frame whose frame pointer register points to it.
    ///
    /// # Errors
    /// As [`Frame::word_at_pointer`].
    pub fn by_frame_pointer(&self) -> Result<FrameRegisters, ChainEnd> {
        let fp = self.registers.fp;
        Ok(FrameRegisters {
            pc: self.word_at_pointer(fp.wrapping_add(8))?,
            sp: fp.wrapping_add(16),
            fp: self.word_at_pointer(fp)?,
        })
    }

    /// A word of the stack at an address from an unchecked frame pointer.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] where the stack may go on above its copy, else [`ChainEnd::Broken`].
    pub fn word_at_pointer(&self, at: u64) -> Result<u64, ChainEnd> {
        let end = self.stack.end();
        // The kernel copies up to the first page that it can't read.
        let goes_on = !end.is_multiple_of(PAGE_BYTES);
        let is_near = at < end.saturating_add(MAX_STACK);
        self.word(at).map_err(|reason| match reason {
            ChainEnd::Stack if !goes_on || !is_near => ChainEnd::Broken,
            reason => reason,
        })
    }

    /// A word of the stack.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] above the copied stack, [`ChainEnd::Broken`] below it.
    pub fn word(&self, at: u64) -> Result<u64, ChainEnd> {
        self.stack.read(at)
    }
}

#[cfg(test)]
mod tests {
    use vmscope_records::StackBytes;

    use super::*;

    #[test]
    fn a_frame_pointer_tells_of_a_larger_stack_only_near_its_copy() {
        let stack = |length: usize| StackBytes {
            sp: Avma(0x10_0000),
            bytes: vec![0; length],
        };
        let end = |fp: u64, length: usize| {
            let stack = stack(length);
            let frame = Frame {
                registers: FrameRegisters {
                    pc: 1,
                    sp: 0x10_0000,
                    fp,
                },
                sampled: None,
                stack: &CopiedStack::of(&stack),
                time: TimeNs(0),
            };
            frame.by_frame_pointer().map(|caller| caller.sp)
        };
        assert_eq!(end(0x10_0010, 0x100), Ok(0x10_0020));
        assert_eq!(end(0x10_0800, 0x100), Err(ChainEnd::Stack));
        assert_eq!(end(0x7000_0000, 0x100), Err(ChainEnd::Broken));
        assert_eq!(end(u64::MAX - 3, 0x100), Err(ChainEnd::Broken));
        assert_eq!(end(0x10, 0x100), Err(ChainEnd::Broken));
        // The copy ends with a page, like the stack.
        assert_eq!(end(0x10_1800, 0x1000), Err(ChainEnd::Broken));
    }
}
