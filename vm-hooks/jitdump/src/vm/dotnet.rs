//! .NET (`src/coreclr/vm/perfmap.cpp` of dotnet/runtime).

use vmscope_records::{ConstituentKind, Region};

use super::CodeName;
use vmscope_process::region_table::{NamePattern::Any, RegionEntry};

/// The JIT and the stand-alone collector are modules of their own; the rest of the
/// runtime is shipped without symbols.
pub(super) const COMPILER: &[RegionEntry] = &[(Any, Region::Compiler, "RyuJIT")];
pub(super) const COLLECTOR: &[RegionEntry] = &[(Any, Region::Gc, "")];
pub(super) const RUNTIME: &[RegionEntry] = &[(Any, Region::Vm, "")];

/// `instance void [System.Private.CoreLib] System.X::Y(class …)[OptimizedTier1]`, or
/// `stub<12> GenerateLookupStub<?>`.
pub(super) fn split(name: &str) -> Option<CodeName> {
    if let Some(stub) = name.strip_prefix("stub") {
        let stub = match stub.split_once("> ") {
            Some((number, stub)) if number.starts_with('<') => stub,
            _ => stub.strip_prefix(' ')?,
        };
        return Some(CodeName::new(stub, ConstituentKind::Stub, "stub"));
    }
    // Arrays end in brackets too, but not behind the parameters.
    let (name, tier) = match name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once(")["))
    {
        Some((name, tier)) => (format!("{name})"), tier),
        None => (name.to_owned(), ""),
    };
    let (assembly, method) = assembly_and_method(&name).unwrap_or(("", &name));
    let method = CodeName::new(method, ConstituentKind::Method, tier);
    Some(method.at(assembly, 0))
}

/// `void [System.Private.CoreLib] System.X::Y()` without the type: the assembly is in
/// brackets with a space behind, which no array's type is.
fn assembly_and_method(name: &str) -> Option<(&str, &str)> {
    name.match_indices("] ").find_map(|(end, _)| {
        let begin = name[..end].rfind('[')?;
        let alone = name[..begin]
            .chars()
            .next_back()
            .is_none_or(|last| last == ' ');
        let assembly = &name[begin + 1..end];
        (alone && !assembly.is_empty()).then(|| (assembly, &name[end + 2..]))
    })
}
