//! Wasmtime, embedded in whatever program (`crates/wasmtime/src/profiling_agent`).

use vmscope_records::ConstituentKind;

use super::CodeName;

/// `wasm[0]::function[3]::name`, or only the name in the module's name section, which looks like any
/// VM's; trampolines by the calling conventions on both sides.
pub(super) fn split(name: &str) -> Option<CodeName> {
    let rest = name
        .strip_prefix("wasm[")
        .or_else(|| name.strip_prefix("signatures["))?;
    let (module, what) = rest.split_once("]::")?;
    super::name::number(module)?;
    if what.contains("trampoline") {
        return Some(CodeName::new(name, ConstituentKind::Adapter, "trampoline"));
    }
    let called = what.split_once("]::").map_or(name, |(_, called)| called);
    Some(CodeName::new(called, ConstituentKind::Method, "Cranelift"))
}
