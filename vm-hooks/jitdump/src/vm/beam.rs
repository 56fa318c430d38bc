//! Erlang's BEAM (`erts/emulator/beam/jit/asm_load.c`, `beam_jit_common.cpp`).

use vmscope_records::{ConstituentKind, Region, ThreadRole};

use super::CodeName;
use vmscope_process::region_table::{NamePattern::*, RegionEntry};

const JIT: &str = "BeamAsm";

/// Released emulators keep only their dynamic symbols, hardly any of them of the collector.
pub(super) const REGIONS: &[RegionEntry] = &[
    (Begins("erts_garbage_collect"), Region::Gc, ""),
    (Begins("erts_gc"), Region::Gc, ""),
    (Holds("asmjit"), Region::Compiler, JIT),
    (Holds("BeamModuleAssembler"), Region::Compiler, JIT),
    (Holds("BeamGlobalAssembler"), Region::Compiler, JIT),
    (Holds("BeamAssembler"), Region::Compiler, JIT),
    (Begins("beam_load"), Region::Compiler, "loader"),
    (Begins("beamfile"), Region::Compiler, "loader"),
    (Begins("beamcodereader"), Region::Compiler, "loader"),
    (Begins("beamopallocator"), Region::Compiler, "loader"),
    (Begins("erts_transform_engine"), Region::Compiler, "loader"),
    (Begins("erts_prepare_loading"), Region::Compiler, "loader"),
    (Begins("erts_schedule"), Region::Vm, "scheduler"),
    (Any, Region::Vm, ""),
];

/// Splits `$lists:map/2` of a perf map, or the same without `$` of a dump. `-CodeInfoPrologue` is code
/// before a function, `lists::codeHeader` code before a module, `global::` code shared by all
/// modules.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let name = name.strip_prefix('$').unwrap_or(name);
    if let Some(shared) = name.strip_prefix("global::") {
        return Some(CodeName::new(shared, ConstituentKind::Stub, "shared"));
    }
    if name.ends_with("::codeHeader")
        || name.ends_with("::codeFooter")
        || name.ends_with("-CodeInfoPrologue")
    {
        return Some(CodeName::new(name, ConstituentKind::Stub, "prologue"));
    }
    let (called, arity) = name.rsplit_once('/')?;
    super::name::number(arity)?;
    called.contains(':').then(|| {
        // The module precedes the name; no file is known.
        CodeName::new(name, ConstituentKind::Method, JIT)
    })
}

/// `1_scheduler`, `10_dirty_io_sch` (OTP 25).
pub(super) fn role_of_thread(name: &str) -> Option<ThreadRole> {
    if matches!(name, "beam.smp" | "sys_msg_dispatc" | "sys_sig_dispatc") {
        return Some(ThreadRole::Vm);
    }
    let (count, what) = name.split_once('_')?;
    match what {
        "scheduler" => Some(ThreadRole::Mutator),
        _ if what.starts_with("dirty_") => Some(ThreadRole::Mutator),
        "aux" | "poller" => Some(ThreadRole::Vm),
        _ if count == "async" => Some(ThreadRole::Vm),
        _ => None,
    }
}
