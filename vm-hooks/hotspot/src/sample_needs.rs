//! Registers and stack that samples of a HotSpot JVM carry, and the interpreter's values there.

use vmscope_process::SampleNeeds;
use vmscope_records::{InterpreterSource, InterpreterValue, SamplePlace};

use crate::layout::encodings::interpreted_frame;

/// Registers in the kernel's numbering (`arch/x86/include/uapi/asm/perf_regs.h`).
const RBX: u32 = 1;
const RBP: u32 = 6;
const RSP: u32 = 7;
const R13: u32 = 21;

/// Bytes of stack in a sample. The saved bytecode pointer lies above the expression stack,
/// which is rarely deeper.
const STACK_BYTES: u32 = 256;

/// The template interpreter's places of the current bytecode and method
/// (`templateInterpreterGenerator`, x86-64). The bytecode's address lies in r13. On method
/// entry, rbx has the method's object. Between calls, the frame has the saved bytecode
/// address and the method.
pub(crate) fn interpreter_sources() -> Vec<InterpreterSource> {
    let source = |place, holds| InterpreterSource { place, holds };
    let saved = SamplePlace::Stack {
        base: RBP,
        offset: interpreted_frame::BCP,
    };
    let method = SamplePlace::Stack {
        base: RBP,
        offset: interpreted_frame::METHOD,
    };
    vec![
        source(SamplePlace::Register(R13), InterpreterValue::Bytecode),
        source(SamplePlace::Register(RBX), InterpreterValue::Method),
        source(saved, InterpreterValue::Bytecode),
        // A native method has a frame, but no bytecodes.
        source(method, InterpreterValue::Method),
    ]
}

/// The caller of code without a frame: its return address is the innermost word of the stack.
pub(crate) fn leaf_sources() -> Vec<InterpreterSource> {
    vec![InterpreterSource {
        place: SamplePlace::Stack {
            base: RSP,
            offset: 0,
        },
        holds: InterpreterValue::Caller,
    }]
}

/// Data that samples need: none on processors other than x86-64, where the interpreter's
/// registers are unknown.
pub(crate) fn sample_needs() -> SampleNeeds {
    if !cfg!(target_arch = "x86_64") {
        return SampleNeeds::default();
    }
    SampleNeeds {
        registers: [RBX, RBP, RSP, R13]
            .iter()
            .fold(0, |all, bit| all | 1 << bit),
        stack_bytes: STACK_BYTES,
        sources: interpreter_sources(),
    }
}
