//! The stacks of processes.
#![allow(unsafe_code, reason = "maps memory for stacks")]

use super::raw::{Fp, Sp};
use crate::memory::Oop;

/// Size of a stack in bytes. Pages that nobody has used cost nothing.
pub const STACK_BYTES: usize = 16 << 20;
/// Size of the main process's stack, in bytes.
pub const MAIN_STACK_BYTES: usize = 64 << 20;
/// Words that stay free below the limit, for the frame that a safe point finds too deep and for
/// primitives called by machine code.
const RESERVE: usize = 32 << 10;
/// Words below the first limit for the code that handles a stack overflow.
const HEADROOM: usize = 64 << 10;

/// A process's stack; for a sleeping process, also its frame and stack pointers.
#[derive(Debug)]
pub struct Stack {
    memory: *mut Oop,
    words: usize,
    /// Innermost frame.
    pub fp: Fp,
    /// Top of the stack.
    pub sp: Sp,
    /// Whether the process handles a stack overflow, using the headroom.
    pub overflowed: bool,
}

impl Stack {
    /// A stack of `bytes` bytes; `None` without memory.
    pub fn new(bytes: usize) -> Option<Self> {
        let (rights, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new anonymous mapping; the kernel chooses the address.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let words = bytes / size_of::<Oop>();
        let memory = memory.cast::<Oop>();
        // Tokens hold addresses of frames as numbers.
        memory.expose_provenance();
        Some(Self {
            memory,
            words,
            fp: Fp::NONE,
            sp: Sp(memory.wrapping_add(words)),
            overflowed: false,
        })
    }

    /// First address above the stack.
    pub fn base(&self) -> *mut Oop {
        self.memory.wrapping_add(self.words)
    }

    /// Lowest stack pointer allowed at a safe point.
    pub fn limit(&self) -> *mut Oop {
        let headroom = if self.overflowed { 0 } else { HEADROOM };
        self.memory.wrapping_add(RESERVE + headroom)
    }

    /// Stack pointers below this address make a safe point interrupt the program. While the process
    /// handles an overflow, every safe point does, so the end of the handling is noticed before the
    /// next overflow.
    pub fn interrupt_limit(&self) -> u64 {
        if self.overflowed {
            return u64::MAX;
        }
        self.limit() as u64
    }

    /// Whether enough of the stack is free to restore the headroom.
    pub fn recovered(&self, sp: Sp) -> bool {
        sp.0 > self.memory.wrapping_add(RESERVE + 2 * HEADROOM)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this memory; no reference to a dropped stack remains.
        unsafe { libc::munmap(self.memory.cast(), self.words * size_of::<Oop>()) };
    }
}
