//! Java programs without HotSpot: reported by kind rather than passed over in silence.

use vmscope_process::{AdapterError, ProcessView};

/// Minimum mapped bytes of a native image: the runtime alone needs more.
const LEAST_IMAGE_BYTES: u64 = 4 << 20;

/// Section with the heap of GraalVM's native images.
const IMAGE_HEAP: &str = ".svm_heap";

/// Another Java implementation in `process`.
pub(crate) fn recognise(process: &ProcessView) -> Option<AdapterError> {
    let modules = process.modules();
    if modules
        .iter()
        .any(|module| module.has_code() && module.file_name().starts_with("libj9vm"))
    {
        return Some(AdapterError::OtherVm {
            vm: "Eclipse OpenJ9".to_owned(),
            why: "vmscope reads HotSpot JVMs only",
            remedy: "run the program on a HotSpot JVM, or start OpenJ9 with -Xjit:perfTool (it \
                     writes a perf map)",
        });
    }
    let program = modules.into_iter().find(|module| module.has_code())?;
    let bytes = |mapping: &vmscope_process::MapEntry| mapping.end.0.saturating_sub(mapping.start.0);
    if program.mappings.iter().map(bytes).sum::<u64>() < LEAST_IMAGE_BYTES {
        return None;
    }
    let elf = process.elf(&program).ok()?;
    elf.has_section(IMAGE_HEAP)
        .is_ok_and(|is_image| is_image)
        .then(|| AdapterError::OtherVm {
            vm: format!("a GraalVM native image ({})", program.file_name()),
            why: "its ahead-of-time code is shown as native functions, and its collector is not \
                  separated",
            remedy: "build it with -g -H:-DeleteLocalSymbols for names",
        })
}
