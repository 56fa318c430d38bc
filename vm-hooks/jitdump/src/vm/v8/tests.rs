use vmscope_records::ConstituentKind::{
    self, Adapter, Enilopmart, Interpreter, Method, RegExp, Stub, Trampoline,
};
use vmscope_records::Region;

use vmscope_v8::regions::{BUILTIN, BYTECODE_HANDLER, INTERPRETER_ENTRY};
use vmscope_v8::testing::place_of_function;

use super::split;

#[test]
fn names_that_node_and_deno_write() {
    // What Node.js 10, 12, 16, 20, 22, 24 and Deno 2.9 wrote.
    let table: &[(&str, &str, ConstituentKind, &str, &str, u32)] = &[
        (
            "JS:*fib /p/b.js:1:13",
            "fib",
            Method,
            "TurboFan",
            "/p/b.js",
            1,
        ),
        (
            "JS:+fib /p/b.js:1:13",
            "fib",
            Method,
            "Maglev",
            "/p/b.js",
            1,
        ),
        (
            "JS:^fib /p/b.js:1:13",
            "fib",
            Method,
            "Sparkplug",
            "/p/b.js",
            1,
        ),
        (
            "JS:~fib /p/b.js:1:13",
            "fib",
            Interpreter,
            "Ignition",
            "/p/b.js",
            1,
        ),
        (
            "JS:*'arrow /p/n.js:4:13",
            "arrow",
            Method,
            "TurboFan",
            "/p/n.js",
            4,
        ),
        (
            "JS:o+poly file:///p/f.cjs:4:14",
            "poly",
            Method,
            "Maglev",
            "file:///p/f.cjs",
            4,
        ),
        (
            "JS:* /p/b.js:15:58",
            "(anonymous)",
            Method,
            "TurboFan",
            "/p/b.js",
            15,
        ),
        (
            "JS:^ /p/b.js:1:1",
            "(top level)",
            Method,
            "Sparkplug",
            "/p/b.js",
            1,
        ),
        ("JS:* :3:109", "(anonymous)", Method, "TurboFan", "", 3),
        ("JS:*inEval :1:17", "inEval", Method, "TurboFan", "", 1),
        (
            "JS:*get g /p/n.js:5:133",
            "get g",
            Method,
            "TurboFan",
            "/p/n.js",
            5,
        ),
        (
            "JS:*#priv /p/n.js:5:476",
            "#priv",
            Method,
            "TurboFan",
            "/p/n.js",
            5,
        ),
        (
            "JS:*name with spaces /p/n.js:6:29",
            "name with spaces",
            Method,
            "TurboFan",
            "/p/n.js",
            6,
        ),
        (
            "JS:*inVm /weird path/with space:and:colon.js:1:15",
            "inVm",
            Method,
            "TurboFan",
            "/weird path/with space:and:colon.js",
            1,
        ),
        (
            "JS:*ünï→cödé /p/n.js:6:145",
            "ünï→cödé",
            Method,
            "TurboFan",
            "/p/n.js",
            6,
        ),
        (
            "JS:* file:///tmp/url%20x.js:1:10",
            "(anonymous)",
            Method,
            "TurboFan",
            "file:///tmp/url%20x.js",
            1,
        ),
        (
            "JS:*ClientRequest node:_http_client:134:23",
            "ClientRequest",
            Method,
            "TurboFan",
            "node:_http_client",
            134,
        ),
        (
            "JS:wasm-function[0]-0-liftoff",
            "wasm-function[0]",
            Method,
            "Liftoff",
            "",
            0,
        ),
        ("JS:fib-3-turbofan", "fib", Method, "TurboFan", "", 0),
        (
            "Script:~ /p/b.js:1:1",
            "(top level)",
            Interpreter,
            "Ignition",
            "/p/b.js",
            1,
        ),
        (
            "Eval:~ /p/b.js:1:1",
            "(top level)",
            Interpreter,
            "Ignition",
            "/p/b.js",
            1,
        ),
        (
            "LazyCompile:*area /p/b.js:2",
            "area",
            Method,
            "TurboFan",
            "/p/b.js",
            2,
        ),
        (
            "Function:^fib /p/b.js:1",
            "fib",
            Method,
            "Sparkplug",
            "/p/b.js",
            1,
        ),
        (
            "LazyCompile:~",
            "(anonymous)",
            Interpreter,
            "Ignition",
            "",
            0,
        ),
        (
            "LazyCompile:*fib /p/b.js:1:13",
            "fib",
            Method,
            "TurboFan",
            "/p/b.js",
            1,
        ),
        (
            "Builtin:LoadIC_Megamorphic",
            "LoadIC_Megamorphic",
            Stub,
            BUILTIN,
            "",
            0,
        ),
        ("Builtin:JSEntry", "JSEntry", Enilopmart, BUILTIN, "", 0),
        (
            "Builtin:CEntry_Return1_ArgvOnStack_NoBuiltinExit",
            "CEntry_Return1_ArgvOnStack_NoBuiltinExit",
            Trampoline,
            BUILTIN,
            "",
            0,
        ),
        (
            "Builtin:InterpreterEntryTrampoline",
            "InterpreterEntryTrampoline",
            Interpreter,
            INTERPRETER_ENTRY,
            "",
            0,
        ),
        (
            "BytecodeHandler:LdaZero",
            "LdaZero",
            Interpreter,
            BYTECODE_HANDLER,
            "",
            0,
        ),
        (
            "BytecodeHandler:Add.ExtraWide",
            "AddExtraWide",
            Interpreter,
            BYTECODE_HANDLER,
            "",
            0,
        ),
        (
            "BytecodeHandler:Star0",
            "ShortStar",
            Interpreter,
            BYTECODE_HANDLER,
            "",
            0,
        ),
        ("RegExp:b+", "/b+/", RegExp, "", "", 0),
        (
            "RegExp.> src: 'x's:y' flags: 'gu'",
            "/x's:y/gu",
            RegExp,
            "",
            "",
            0,
        ),
        ("RegExp.< src: 'a+' flags: ''", "/a+/", RegExp, "", "", 0),
        (
            "Stub:js-to-wasm:i:i",
            "js-to-wasm:i:i",
            Adapter,
            "wasm",
            "",
            0,
        ),
    ];
    for (whole, name, kind, tier, file, line) in table {
        let got = split(whole).unwrap();
        let got = (&*got.name, got.kind, &*got.tier, &*got.file, got.line);
        assert_eq!(got, (*name, kind.clone(), *tier, *file, *line), "{whole}");
    }
    assert_eq!(split("fib"), None);
    assert_eq!(split("wasm[0]::function[1]"), None);
}

#[test]
fn builtins_are_called_the_same_with_and_without_a_dump() {
    let pairs = [
        ("Builtins_LdaZeroHandler", "BytecodeHandler:LdaZero"),
        (
            "Builtins_AddExtraWideHandler",
            "BytecodeHandler:Add.ExtraWide",
        ),
        ("Builtins_ShortStarHandler", "BytecodeHandler:Star0"),
        ("Builtins_LoadIC_Megamorphic", "Builtin:LoadIC_Megamorphic"),
        (
            "Builtins_InterpreterEntryTrampoline",
            "Builtin:InterpreterEntryTrampoline",
        ),
        (
            "Builtins_InterpreterPushArgsThenCall",
            "Builtin:InterpreterPushArgsThenCall",
        ),
        (
            "Builtins_AtomicsMutexAsyncUnlockRejectHandler",
            "Builtin:AtomicsMutexAsyncUnlockRejectHandler",
        ),
    ];
    for (symbol, dumped) in pairs {
        let (region, part, shown) = place_of_function(symbol).unwrap();
        let dumped = split(dumped).unwrap();
        if region == Region::Interpreter {
            assert_eq!(dumped.kind, Interpreter, "{symbol}");
        }
        assert_eq!(part, dumped.tier, "{symbol}");
        if part != INTERPRETER_ENTRY {
            assert_eq!(shown, dumped.name, "{symbol}");
        }
        assert!(dumped.name.ends_with(&shown), "{symbol}");
    }
}
