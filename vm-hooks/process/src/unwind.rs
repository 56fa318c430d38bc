//! Unwinding: from a frame to its caller, for callers of samples.

use std::sync::Arc;

use vmscope_records::{Avma, ChainEnd, Registers, StackBytes, TimeNs};

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
    pub stack: &'a StackBytes,
    /// Time of the copy (`CLOCK_MONOTONIC`).
    pub time: TimeNs,
}

/// A frame outside of the copied stack, without registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherFrame {
    /// Its return address, or an address that stands for it: see [`Unwound::shown`].
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
}

/// The unwind rules of a VM's generated code.
///
/// Asked for code outside files, and for code in files with unwind tables that lack an entry for it
/// (V8's builtins). An unwinder runs in the thread that writes samples, so it may read the target's
/// memory rarely only, and must not wait.
pub trait Unwinder: Send + std::fmt::Debug {
    /// Whether the rules cover the code at `pc`.
    fn covers(&self, pc: Avma) -> bool;

    /// The caller of a covered frame.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] beyond the copied stack, [`ChainEnd::Broken`] without a rule or with
    /// values that make no sense.
    fn caller(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd>;
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
    fn caller(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        Ok(Unwound {
            caller: frame.by_frame_pointer()?,
            shown: None,
            method: None,
            is_guess: frame.sampled.is_some(),
            between: Arc::default(),
        })
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
    /// As [`Frame::word`].
    pub fn by_frame_pointer(&self) -> Result<FrameRegisters, ChainEnd> {
        let fp = self.registers.fp;
        Ok(FrameRegisters {
            pc: self.word(fp.wrapping_add(8))?,
            sp: fp.wrapping_add(16),
            fp: self.word(fp)?,
        })
    }

    /// A word of the stack.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] above the copied stack, [`ChainEnd::Broken`] below it.
    pub fn word(&self, at: u64) -> Result<u64, ChainEnd> {
        match self.stack.word(Avma(at)) {
            Some(word) => Ok(word),
            None if at < self.stack.sp.0 => Err(ChainEnd::Broken),
            None => Err(ChainEnd::Stack),
        }
    }
}
