//! V8: Node.js, Deno, Electron.

use vmscope_records::{ConstituentKind, ThreadRole};
use vmscope_v8::regions::{BYTECODE_HANDLER, kind_of_builtin};

use super::CodeName;
use super::name::line_behind;

/// Takes apart what V8 writes into a jitdump or a perf map: `Tag:name`, for functions
/// with the tier's mark and the place (`src/logging/log.cc`, `CodeEventLogger`).
pub(super) fn split(name: &str) -> Option<CodeName> {
    // `RegExp.> src: 'a+' flags: 'g'` since V8 13, `RegExp.< src: …` since V8 14.
    let begins = ["RegExp.> src: '", "RegExp.< src: '"];
    if let Some(rest) = begins.iter().find_map(|begin| name.strip_prefix(begin)) {
        let (source, flags) = rest.rsplit_once("' flags: '").unwrap_or((rest, ""));
        return Some(regexp(source, flags.trim_end_matches('\'')));
    }
    let (tag, rest) = name.split_once(':')?;
    Some(match tag {
        "Builtin" => builtin(rest),
        "BytecodeHandler" | "Handler" => handler(rest),
        "RegExp" => regexp(rest, ""),
        "JS" | "LazyCompile" | "Function" | "Script" | "Eval" => match wasm(rest) {
            Some(function) => function,
            None => function(tag, rest),
        },
        // `js-to-wasm:i:i`, `wasm-to-js:…`: adapters between calling conventions.
        "Stub" if rest.contains("-to-") => CodeName::new(rest, ConstituentKind::Adapter, "wasm"),
        "Stub" | "Callback" => CodeName::new(rest, ConstituentKind::Stub, &tag.to_lowercase()),
        _ => return None,
    })
}

/// A builtin, with the names and tiers that the rules give without a dump.
fn builtin(name: &str) -> CodeName {
    let (kind, part) = kind_of_builtin(name);
    CodeName::new(name, kind, part)
}

/// `LdaZero`, `LdaZero.Wide`: names without the dot, as in V8's symbols. The handler of `Star0` to
/// `Star15` has the first name in the dump.
fn handler(name: &str) -> CodeName {
    let name = match name {
        "Star0" => "ShortStar".to_owned(),
        _ => name.replace('.', ""),
    };
    CodeName::new(&name, ConstituentKind::Interpreter, BYTECODE_HANDLER)
}

fn regexp(source: &str, flags: &str) -> CodeName {
    CodeName::new(&format!("/{source}/{flags}"), ConstituentKind::RegExp, "")
}

/// `fib-3-turbofan`: name, index, compiler. Functions without a name are called
/// `wasm-function[3]`.
fn wasm(rest: &str) -> Option<CodeName> {
    let (name, compiler) = rest.rsplit_once('-')?;
    let tier = match compiler {
        "liftoff" => "Liftoff",
        "turbofan" => "TurboFan",
        _ => return None,
    };
    let (name, index) = name.rsplit_once('-')?;
    super::name::number(index)?;
    Some(CodeName::new(name, ConstituentKind::Method, tier))
}

/// `*fib /home/me/b.js:1:13`.
fn function(tag: &str, rest: &str) -> CodeName {
    let (kind, tier, rest) = tier(rest);
    // Before V8 10 there is no column.
    let (called, line, column) = match line_behind(rest) {
        Some((rest, last)) => match line_behind(rest) {
            Some((rest, line)) => (rest, line, last),
            None => (rest, last, 0),
        },
        None => (rest, 0, 0),
    };
    let (name, file) = match line {
        0 => (called, ""),
        _ => name_and_file(called),
    };
    let name = match name {
        "" if tag == "Script" || (!file.is_empty() && (line, column) == (1, 1)) => "(top level)",
        "" if tag == "Eval" => "(eval)",
        "" => "(anonymous)",
        name => name,
    };
    CodeName::new(name, kind, tier).at(file, line)
}

/// Splits off the leading mark (`CodeKindToMarker` in `src/objects/code-kind.cc`). A preceding
/// `o` means entry in the middle of a loop (on-stack replacement), a following `'` means code for
/// one closure only.
fn tier(rest: &str) -> (ConstituentKind, &'static str, &str) {
    let replaced = rest.strip_prefix('o').filter(|rest| {
        let mark = rest.as_bytes().first();
        matches!(mark, Some(b'*' | b'+'))
    });
    let mut left = replaced.unwrap_or(rest).chars();
    let (kind, tier) = match left.next() {
        Some('*') => (ConstituentKind::Method, "TurboFan"),
        Some('+') => (ConstituentKind::Method, "Maglev"),
        Some('^') => (ConstituentKind::Method, "Sparkplug"),
        // A copy of the interpreter's entry for one function
        // (--interpreted-frames-native-stack), or, in perf maps, its bytecodes.
        Some('~') => (ConstituentKind::Interpreter, "Ignition"),
        _ => return (ConstituentKind::Method, "", rest),
    };
    let left = left.as_str();
    (kind, tier, left.strip_prefix('\'').unwrap_or(left))
}

/// Splits a name from a file or URL behind a space; both may contain spaces. The file begins at a
/// path's or URL's beginning.
fn name_and_file(called: &str) -> (&str, &str) {
    const BEGINNINGS: [&str; 7] = [
        " /",
        " file://",
        " node:",
        " http://",
        " https://",
        " ext:",
        " evalmachine.",
    ];
    let begin = BEGINNINGS.iter().filter_map(|begin| called.find(begin));
    let at = begin.min().or_else(|| called.rfind(' '));
    match at {
        Some(at) => (&called[..at], &called[at + 1..]),
        None => (called, ""),
    }
}

/// Threads of V8's platforms, by names that Node.js 24 and Deno 2 give. In Node.js 20
/// all are called `node`.
pub(super) fn role_of_thread(name: &str) -> Option<ThreadRole> {
    Some(match name {
        "MainThread" | "WorkerThread" | "deno" => ThreadRole::Mutator,
        // These threads collect and compile; the function tells which.
        "V8Worker" | "V8 DefaultWorke" | "DelayedTaskSche" | "SignalInspector" | "libuv-worker"
        | "tokio-runtime-w" => ThreadRole::Vm,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
