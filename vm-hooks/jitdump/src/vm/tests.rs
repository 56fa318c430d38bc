use vmscope_records::{ConstituentKind, ThreadRole};

use super::{CodeName, VmKind};

/// What a name comes apart to: name, kind, tier, file, line.
fn parts(kind: VmKind, name: &str) -> (String, ConstituentKind, String, String, u32) {
    let CodeName {
        name,
        kind,
        tier,
        file,
        line,
        ..
    } = kind.split(name);
    (name, kind, tier, file, line)
}

#[track_caller]
fn check(kind: VmKind, table: &[(&str, &str, ConstituentKind, &str, &str, u32)]) {
    for (whole, name, what, tier, file, line) in table {
        let expected = (
            (*name).to_owned(),
            what.clone(),
            (*tier).to_owned(),
            (*file).to_owned(),
            *line,
        );
        assert_eq!(parts(kind, whole), expected, "{whole}");
    }
}

use ConstituentKind::{Adapter, Method, Stub, Trampoline};

#[test]
fn names_of_dotnet() {
    let table = [
        (
            "instance void [System.Private.CoreLib] System.Text.StringBuilder::Append(char)[OptimizedTier1]",
            "System.Text.StringBuilder.Append(char)",
            Method,
            "OptimizedTier1",
            "System.Private.CoreLib",
            0,
        ),
        (
            "uint8[] [bench] P::Q(class [System.Runtime]System.Array,int32[])[QuickJitted]",
            "P.Q(System.Array,int32[])",
            Method,
            "QuickJitted",
            "bench",
            0,
        ),
        (
            "int32 [b] P::Fib(int32)[PreJIT]",
            "P.Fib(int32)",
            Method,
            "PreJIT",
            "b",
            0,
        ),
        (
            "instance void [System.Private.CoreLib] System.Span`1[System.Char]::.ctor(void*,int32)[PreJIT]",
            "System.Span`1[System.Char]..ctor(void*,int32)",
            Method,
            "PreJIT",
            "System.Private.CoreLib",
            0,
        ),
        (
            "bool [b] P::Q(class System.Func`2<valuetype [a]A/B,class [c]C[]>,!!0[0...,0...]&)[OptimizedTier1]",
            "P.Q(System.Func`2<A/B,C[]>,!!0[0...,0...]&)",
            Method,
            "OptimizedTier1",
            "b",
            0,
        ),
        (
            "stub<7> JitHelper<JIT_New>",
            "JitHelper<JIT_New>",
            Stub,
            "stub",
            "",
            0,
        ),
        (
            "stub GenerateLookupStub<?>",
            "GenerateLookupStub<?>",
            Stub,
            "stub",
            "",
            0,
        ),
        ("odd", "odd", Method, "", "", 0),
    ];
    check(VmKind::DotNet, &table);
    let of_class = VmKind::DotNet.split("void [b] A.P`1[A.T]::Q(class A.X)[PreJIT]");
    assert_eq!(of_class.class, "A.P`1[A.T]");
    let role = |name| VmKind::DotNet.role_of_thread(name);
    assert_eq!(role(".NET Server GC"), Some(ThreadRole::Collector));
    assert_eq!(role(".NET Tiered Com"), Some(ThreadRole::Compiler));
    assert_eq!(role(".NET Finalizer"), Some(ThreadRole::Vm));
    assert_eq!(role("dotnet"), None);
}

#[test]
fn names_of_erlang() {
    let table = [
        ("$lists:map/2", "lists:map/2", Method, "BeamAsm", "", 0),
        ("b:fib/1", "b:fib/1", Method, "BeamAsm", "", 0),
        (
            "$b:'-loop/2-fun-0-'/1",
            "b:'-loop/2-fun-0-'/1",
            Method,
            "BeamAsm",
            "",
            0,
        ),
        (
            "b:fib/1-CodeInfoPrologue",
            "b:fib/1-CodeInfoPrologue",
            Stub,
            "prologue",
            "",
            0,
        ),
        ("$b::codeHeader", "b::codeHeader", Stub, "prologue", "", 0),
        (
            "$global::arith_eq_shared",
            "arith_eq_shared",
            Stub,
            "shared",
            "",
            0,
        ),
    ];
    check(VmKind::Beam, &table);
}

#[test]
fn names_of_php() {
    let table = [
        ("JIT$fibr", "fibr", Method, "JIT", "", 0),
        ("JIT$P::st", "P::st", Method, "JIT", "", 0),
        ("JIT${closure}", "{closure}", Method, "JIT", "", 0),
        ("JIT$/a/b.php", "/a/b.php", Method, "JIT", "/a/b.php", 0),
        ("JIT$$trace_halt", "trace_halt", Stub, "stub", "", 0),
        ("TRACE-3$P::m$12", "P::m", Method, "trace", "", 12),
        ("JIT$", "(unnamed)", Method, "JIT", "", 0),
    ];
    check(VmKind::Php, &table);
}

#[test]
fn names_of_cpython_and_of_wasmtime_in_it() {
    let trampoline = "perf trampoline";
    let table = [
        (
            "py::fib:/a/b.py",
            "fib",
            Trampoline,
            trampoline,
            "/a/b.py",
            0,
        ),
        (
            "py::_ModuleLock.__init__:<frozen importlib._bootstrap>",
            "_ModuleLock.__init__",
            Trampoline,
            trampoline,
            "<frozen importlib._bootstrap>",
            0,
        ),
        (
            "wasm[0]::function[1]",
            "wasm[0]::function[1]",
            Method,
            "Cranelift",
            "",
            0,
        ),
        (
            "wasm[0]::function[1]::fib",
            "fib",
            Method,
            "Cranelift",
            "",
            0,
        ),
        (
            "wasm[0]::array_to_wasm_trampoline[0]",
            "wasm[0]::array_to_wasm_trampoline[0]",
            Adapter,
            "trampoline",
            "",
            0,
        ),
        (
            "signatures[1]::wasm_to_array_trampoline",
            "signatures[1]::wasm_to_array_trampoline",
            Adapter,
            "trampoline",
            "",
            0,
        ),
        ("fib", "fib", Method, "", "", 0),
    ];
    check(VmKind::CPython, &table);
}

#[test]
fn names_of_mono() {
    let table = [
        ("H:Fib (int)", "H:Fib (int)", Method, "", "", 0),
        (
            "(wrapper managed-to-native) System.GC:_SuppressFinalize (object)",
            "System.GC:_SuppressFinalize (object)",
            Adapter,
            "managed-to-native",
            "",
            0,
        ),
        (
            "delegate_invoke_no_target_0",
            "delegate_invoke_no_target_0",
            Stub,
            "",
            "",
            0,
        ),
    ];
    check(VmKind::Mono, &table);
}

#[test]
fn names_of_julia_and_luajit() {
    let julia = [
        ("julia_fib_123", "fib", Method, "", "", 0),
        ("jfptr_fib_124", "fib", Adapter, "", "", 0),
        ("japi1_a_b_7", "a_b", Method, "", "", 0),
        ("julia_fib", "julia_fib", Method, "", "", 0),
    ];
    check(VmKind::Julia, &julia);
    let lua = [("TRACE_3::b.lua:12", "TRACE 3", Method, "", "b.lua", 12)];
    check(VmKind::LuaJit, &lua);
    // In another program's process.
    check(VmKind::Other, &lua);
}

#[test]
fn nothing_is_lost_and_nothing_panics() {
    let odd = [
        "",
        " ",
        ":",
        "JS:",
        "JS:*",
        "JS:o",
        "JS:o*'",
        "RegExp.> src: '",
        "Builtin:",
        "[",
        "] ",
        ")[x]",
        "stub<",
        "$",
        "/",
        "::",
        "wasm[",
        "py::",
        "TRACE_",
        "TRACE-$$",
        "julia_",
        "é:ü 1:2",
        "(wrapper ",
        "(wrapper x) ",
    ];
    for kind in VmKind::ALL {
        for name in odd {
            assert!(!kind.split(name).name.is_empty(), "{kind:?} {name:?}");
        }
    }
}

#[test]
fn threads_are_told_by_names_that_were_seen() {
    let role = VmKind::role_of_thread;
    assert_eq!(role(VmKind::V8, "MainThread"), Some(ThreadRole::Mutator));
    assert_eq!(role(VmKind::V8, "V8Worker"), Some(ThreadRole::Vm));
    assert_eq!(role(VmKind::V8, "node"), None, "all of Node.js 20's");
    assert_eq!(role(VmKind::Beam, "2_scheduler"), Some(ThreadRole::Mutator));
    assert_eq!(
        role(VmKind::Beam, "10_dirty_io_sch"),
        Some(ThreadRole::Mutator)
    );
    assert_eq!(role(VmKind::Beam, "1_aux"), Some(ThreadRole::Vm));
    assert_eq!(
        role(VmKind::Mono, "SGen worker"),
        Some(ThreadRole::Collector)
    );
    assert_eq!(role(VmKind::Php, "php"), None);
}
