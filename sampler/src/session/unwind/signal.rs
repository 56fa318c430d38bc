//! Signal frames: the registers of the interrupted code, which the kernel left on the stack
//! (`struct rt_sigframe`, `arch/*/kernel/signal.c`).
//!
//! Unwind tables describe them, too, but with expressions that read memory, which framehop refuses.

use vmscope_process::Frame;
use vmscope_records::{Arch, ChainEnd, Registers};

/// Mask of the registers in the kernel's numbering (`perf_regs.h`), and their offsets from the stack
/// pointer in the frame of `rt_sigreturn`: `uc_mcontext.gregs` in `struct ucontext`.
#[cfg(target_arch = "x86_64")]
const SAVED: (u64, &[u64]) = (
    0x00ff_01ff,
    &[
        // ax bx cx dx si di bp sp ip
        144, 128, 152, 136, 112, 104, 120, 160, 168, // r8 to r15
        40, 48, 56, 64, 72, 80, 88, 96,
    ],
);

/// Likewise: x0 to x30, sp, pc in `uc_mcontext`, behind `struct siginfo`.
#[cfg(target_arch = "aarch64")]
const SAVED: (u64, &[u64]) = (
    0x1_ffff_ffff,
    &[
        312, 320, 328, 336, 344, 352, 360, 368, 376, 384, 392, 400, 408, 416, 424, 432, 440, 448,
        456, 464, 472, 480, 488, 496, 504, 512, 520, 528, 536, 544, 552, 560, 568,
    ],
);

/// The registers of the code that a signal interrupted; `frame` is its handler's caller.
///
/// # Errors
/// [`ChainEnd`] if the copied stack lacks them.
pub fn interrupted(frame: &Frame<'_>) -> Result<Registers, ChainEnd> {
    let (mask, offsets) = SAVED;
    let sp = frame.registers.sp;
    let values = offsets.iter().map(|at| frame.word(sp.wrapping_add(*at)));
    Ok(Registers {
        arch: Arch::of_this_machine(),
        mask,
        values: values.collect::<Result<_, _>>()?,
    })
}
