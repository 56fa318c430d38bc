//! Mono (`mono/mini/mini-runtime.c`, `mono_emit_jit_map`).

use vmscope_records::{ConstituentKind, Region, ThreadRole};

use super::CodeName;
use vmscope_process::region_table::{NamePattern::*, RegionEntry};

/// Distributions strip Mono: only exported functions have names.
pub(super) const REGIONS: &[RegionEntry] = &[
    (Begins("sgen_"), Region::Gc, ""),
    (Begins("mono_gc_"), Region::Gc, ""),
    (Begins("mini_"), Region::Compiler, "JIT"),
    (Begins("mono_jit_compile"), Region::Compiler, "JIT"),
    (Begins("mono_interp_"), Region::Interpreter, ""),
    (Any, Region::Vm, ""),
];

/// What was compiled ahead of time (`mscorlib.dll.so`).
pub(super) const AHEAD: &[RegionEntry] = &[(Any, Region::Generated, "AOT")];

/// `Namespace.Class:Method (int,string)`, `(wrapper kind) Class:Method (…)`; trampolines have no
/// colon.
pub(super) fn split(name: &str) -> Option<CodeName> {
    if let Some(wrapped) = name.strip_prefix("(wrapper ") {
        let (kind, method) = wrapped.split_once(") ")?;
        return Some(CodeName::new(method, ConstituentKind::Adapter, kind));
    }
    let kind = if name.contains(':') {
        ConstituentKind::Method
    } else if name.ends_with("trampoline") || name.contains("_trampoline_") {
        ConstituentKind::Trampoline
    } else {
        ConstituentKind::Stub
    };
    Some(CodeName::new(name, kind, ""))
}

/// As Mono 6 names its own threads; the main thread has the program's name.
pub(super) fn role_of_thread(name: &str) -> Option<ThreadRole> {
    match name {
        "SGen worker" => Some(ThreadRole::Collector),
        "Finalizer" => Some(ThreadRole::Vm),
        "mono" | "mono-sgen" => Some(ThreadRole::Mutator),
        _ => None,
    }
}
