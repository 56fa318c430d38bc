//! What samples of publishing VMs carry, so that their interpreters' positions are found.

use vmscope_process::SampleNeeds;

/// Bytes of stack in a sample: what an interpreter's own functions save there.
const STACK_BYTES: u32 = 256;

/// Registers in which an interpreter may keep its position from one bytecode to the next: those that functions preserve,
/// and the stack and frame pointers. In the kernel's numbering (`arch/*/include/uapi/asm/perf_regs.h`).
const REGISTERS: &[u32] = if cfg!(target_arch = "x86_64") {
    // rbx, rbp, rsp, r12 to r15.
    &[1, 6, 7, 20, 21, 22, 23]
} else if cfg!(target_arch = "aarch64") {
    // x19 to x29, sp.
    &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31]
} else {
    &[]
};

/// The needs. The VM's [`Interpreter`](vmscope_publish::event::Interpreter) event says later which
/// of these values are recorded, so there are no `sources` yet.
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
