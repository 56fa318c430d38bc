//! .NET (`src/coreclr/vm/perfmap.cpp` of dotnet/runtime).

use vmscope_records::{ConstituentKind, Region, RegionRule, ThreadRole};

use super::CodeName;
use vmscope_process::region_table::{NamePattern::Any, RegionEntry};

/// The JIT and the stand-alone collector are modules of their own; the rest of the
/// runtime is shipped without symbols.
pub(super) const COMPILER: &[RegionEntry] = &[(Any, Region::Compiler, "RyuJIT")];
pub(super) const COLLECTOR: &[RegionEntry] = &[(Any, Region::Gc, "")];
pub(super) const RUNTIME: &[RegionEntry] = &[(Any, Region::Vm, "")];

/// The runtime has no symbols: the thread's role tells its collector and compiler.
pub(super) fn rules_of_threads(runtime: &str) -> [RegionRule; 2] {
    let rule = |role, region| RegionRule {
        module: runtime.to_owned(),
        role: Some(role),
        region,
        ..RegionRule::default()
    };
    [
        rule(ThreadRole::Collector, Region::Gc),
        rule(ThreadRole::Compiler, Region::Compiler),
    ]
}

/// As .NET from 7 on names its own threads, cut to 15 bytes (`Thread::SetThreadName`).
pub(super) fn role_of_thread(name: &str) -> Option<ThreadRole> {
    match name {
        ".NET BGC" | ".NET Server GC" => Some(ThreadRole::Collector),
        ".NET Tiered Com" => Some(ThreadRole::Compiler),
        ".NET TP Worker" => Some(ThreadRole::Mutator),
        _ if name.starts_with(".NET ") => Some(ThreadRole::Vm),
        _ => None,
    }
}

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
    let code = |name: &str| CodeName::new(name, ConstituentKind::Method, tier).at(assembly, 0);
    let open = method.find('(').unwrap_or(method.len());
    let (head, parameters) = method.split_at(open);
    let Some((class, own)) = head.rsplit_once("::") else {
        return Some(code(method));
    };
    let name = format!("{class}.{own}{}", without_assemblies(parameters));
    let class = class.to_owned();
    Some(CodeName {
        class,
        ..code(&name)
    })
}

/// Types as .NET's stack traces have them: `class [System.Runtime]System.Array` is `System.Array`.
fn without_assemblies(types: &str) -> String {
    let types = types.replace("class ", "").replace("valuetype ", "");
    let mut text = String::with_capacity(types.len());
    let mut rest = types.as_str();
    while let Some((before, behind)) = rest.split_once('[') {
        text.push_str(before);
        let is_array = text.ends_with(|c: char| !"(,< ".contains(c));
        rest = match behind.split_once(']') {
            Some((_, behind)) if !is_array => behind,
            _ => {
                text.push('[');
                behind
            }
        };
    }
    text + rest
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
