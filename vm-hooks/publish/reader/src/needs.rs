//! Sample contents needed to locate the interpreters of publishing VMs.

use vmscope_process::SampleNeeds;

/// Bytes of stack per sample: covers registers saved by interpreter functions.
const STACK_BYTES: u32 = 256;

/// Registers that may hold an interpreter's position between bytecodes: callee-saved registers,
/// stack pointer and frame pointer. Kernel numbering (`arch/*/include/uapi/asm/perf_regs.h`).
const REGISTERS: &[u32] = if cfg!(target_arch = "x86_64") {
    // rbx, rbp, rsp, r12 to r15.
    &[1, 6, 7, 20, 21, 22, 23]
} else if cfg!(target_arch = "aarch64") {
    // x19 to x29, sp.
    &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31]
} else {
    &[]
};

/// Returns the sample needs. `sources` stays empty: the VM's
/// [`Interpreter`](vmscope_publish::event::Interpreter) event later says which recorded values
/// matter.
pub(crate) fn sample_needs() -> SampleNeeds {
    if REGISTERS.is_empty() {
        return SampleNeeds::default();
    }
    SampleNeeds {
        registers: REGISTERS
            .iter()
            .fold(0, |all, register| all | 1 << register),
        stack_bytes: STACK_BYTES,
        sources: Vec::new(),
    }
}
