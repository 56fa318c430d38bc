//! Recognising a HotSpot JVM, and what samples of one carry.

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, EnvironmentChange, Launch, ProcessView, SampleNeeds,
};
use vmscope_records::{InterpreterSource, InterpreterValue, SamplePlace};

use crate::adapter::HotSpotAdapter;
use crate::jvm::library_of;
use crate::layout::encodings::interpreted_frame;
use crate::other_jvm;

/// Registers in the kernel's numbering (`arch/x86/include/uapi/asm/perf_regs.h`).
const RBX: u32 = 1;
const RBP: u32 = 6;
const RSP: u32 = 7;
const R13: u32 = 21;

/// The saved bytecode pointer lies above the expression stack, which is rarely deeper.
const STACK_BYTES: u32 = 256;

/// HotSpot JVMs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Family;

impl AdapterFamily for Family {
    fn name(&self) -> &'static str {
        "hotspot"
    }

    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        if library_of(process).is_none() {
            return other_jvm::recognise(process).map_or(Ok(None), Err);
        }
        Ok(Some(Box::new(HotSpotAdapter::new())))
    }

    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        if !launch.precise {
            return Vec::new();
        }
        vec![EnvironmentChange::Append {
            name: "JAVA_TOOL_OPTIONS".to_owned(),
            separator: " ".to_owned(),
            value: "-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints".to_owned(),
        }]
    }

    fn launch_needs(&self, _launch: &Launch) -> SampleNeeds {
        sample_needs()
    }
}

/// Where the template interpreter keeps what it executes (`templateInterpreterGenerator`,
/// x86-64): the bytecode's address in r13; where a method is being entered, its object in
/// rbx; between calls, the saved address in the frame, and the method there.
pub(crate) fn sources() -> Vec<InterpreterSource> {
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
        // A native method has a frame, and no bytecodes.
        source(method, InterpreterValue::Method),
    ]
}

/// Nothing is known of how interpreters of other processors keep it.
pub(crate) fn sample_needs() -> SampleNeeds {
    if !cfg!(target_arch = "x86_64") {
        return SampleNeeds::default();
    }
    SampleNeeds {
        registers: [RBX, RBP, RSP, R13]
            .iter()
            .fold(0, |all, bit| all | 1 << bit),
        stack_bytes: STACK_BYTES,
        words: Vec::new(),
        sources: sources(),
    }
}
