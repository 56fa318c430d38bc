//! Callers in VMs that tell no stacks: programs whose calls are known (docs/truth.md §9). Each calls a
//! leaf through three callers, with 1 : 2 : 3 parts of the work.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::chains::{Counts, chains_of};
use crate::common::programs::script;
use crate::common::vmscope::{Folder, can_sample, command, profile, run};
use crate::common::whole::said;
use crate::common::{say, skipped};
use crate::node::{ratio, tool};
use crate::others::{
    OLD_PERF_MAP, Swept, built_by, compile, dotnet_with, has_erlang_jit, has_jit, newest_python,
    settings,
};

const FUNCTIONS: [&str; 19] = [
    "leaf", "in_a", "in_b", "in_c", "callerA", "callerB", "callerC", "middle", "loop", "main",
    "Leaf", "InA", "InB", "InC", "CallerA", "CallerB", "CallerC", "Middle", "Main",
];

/// The function of a frame in generated code: `prog:leaf/2 (BeamAsm)_[j]` is `leaf`.
fn function(frame: &str) -> Option<String> {
    let name = frame.strip_suffix("_[j]")?.split([' ', '(', '/']).next()?;
    let name = name.rsplit(':').next()?;
    FUNCTIONS.contains(&name).then(|| name.to_owned())
}

/// Records the program, and compares chains; `first` begins the name of a thread's first frame.
fn are_true(what: &str, program: &Path, first: &str, change: impl FnOnce(&mut Command)) {
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let mut recording = command(["record", "--quiet", "--output"]);
    recording.arg(&file).arg("--").arg(program);
    recording.current_dir(folder.path());
    change(&mut recording);
    let recorded = run(recording).code(0);
    let told: &Value = &said(&recorded.stdout)[0];
    let _swept = Swept(told);
    let plain = |frame: &str| Some(frame.to_owned());
    let chains = chains_of(&told["chains"], plain);
    // Before the VM is recognised, chains are cut off.
    let mut export = command(["export", "--to", "collapsed", "--output", "-", "--from=0.5"]);
    export.arg(&file);
    let exported = run(export).code(0).stdout;
    let counts = Counts::of(&exported, &chains, function, &[first]);
    let wrong: u64 = counts.wrong.values().sum();
    let all = counts.whole + counts.cut + wrong;
    let ends = &profile(&file).0.trace.samples.chain_ends;
    let shares = ["A", "B", "C"].map(|one| {
        let caller = format!("aller{one}");
        let lines = exported.lines().filter(|line| line.contains(&caller));
        let samples = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        ratio(samples.sum(), all)
    });
    let shown = format!(
        "{what}: {} whole, {} cut off, {wrong} wrong; by caller {shares:.3?}; {ends:?}",
        counts.whole, counts.cut
    );
    say(&shown);
    let shown = format!("{shown}\n{:?}", counts.wrong);
    assert!(all > 1000, "{shown}");
    assert!(counts.whole * 100 >= all * 95, "{shown}");
    assert!(wrong * 1000 <= all, "{shown}");
    assert!((ends.broken + ends.stack) * 5 <= all, "{shown}");
    let has_callers = chains.values().any(|told| told.len() > 1);
    for (share, part) in shares.iter().zip([1.0, 2.0, 3.0]) {
        let is_true = (share - part / 6.0).abs() < 0.05;
        assert!(is_true || !has_callers, "{shown}");
    }
}

/// Trampolines without frame pointers.
#[test]
fn callers_in_cpython() {
    let Some(python) = newest_python() else {
        skipped("there is no CPython from 3.12 on here");
        return;
    };
    if can_sample() {
        are_true("CPython", &python, "_start", |command| {
            command.arg(script("callers.py")).arg("3");
        });
    }
}

/// The first function of an Erlang process is the end of a whole chain.
#[test]
fn callers_in_erlang() {
    let (Some(erl), Some(erlc)) = (tool("erl"), tool("erlc")) else {
        return;
    };
    let built = built_by(&erlc, "callers.erl");
    if !has_erlang_jit(&erl, &[]) {
        return;
    }
    are_true("Erlang", &erl, "init:do_boot", |command| {
        command
            .args(["-noshell", "-noinput", "-pa"])
            .arg(built.path());
        command.args(["-run", "callers", "main", "3"]);
    });
}

/// vmscope asks for frame pointers, which Mono omits.
#[test]
fn callers_in_mono() {
    let (Some(mono), Some(mcs)) = (tool("mono"), tool("mcs")) else {
        return;
    };
    let built = Folder::new();
    let program = built.file("callers.exe");
    compile(&mcs, "callers", &program);
    are_true("Mono", &mono, "_start", |command| {
        command.arg(&program).arg("3");
    });
}

/// Without frame pointers, chains of Mono are cut off, and none is wrong.
#[test]
fn callers_in_a_mono_without_frame_pointers() {
    let (Some(mono), Some(mcs)) = (tool("mono"), tool("mcs")) else {
        return;
    };
    let folder = Folder::new();
    let program = folder.file("callers.exe");
    compile(&mcs, "callers", &program);
    let file = folder.file("out.vmscope");
    let mut recording = command(["record", "--quiet", "--no-jit-env", "--output"]);
    recording
        .arg(&file)
        .arg("--")
        .arg(mono)
        .arg("--jitmap")
        .arg(program);
    recording.arg("2").env_remove("MONO_DEBUG");
    let recorded = run(recording).code(0);
    let _swept = Swept(&said(&recorded.stdout)[0]);
    let (profile, _) = profile(&file);
    let ends = &profile.trace.samples.chain_ends;
    say(&format!("Mono without frame pointers: {ends:?}"));
    assert!(
        ends.broken > 1000 && ends.whole * 5 < ends.broken,
        "{ends:?}"
    );
    let mut limits = profile.trace.limits.iter();
    assert!(limits.any(|limit| limit.remedy.contains("MONO_DEBUG=disable_omit_fp")));
}

/// Optimised methods have no frame pointer.
#[test]
fn callers_in_dotnet() {
    let built = Folder::new();
    let Some(dotnet) = dotnet_with("callers", &built) else {
        return;
    };
    are_true(".NET", &dotnet, "_start", |command| {
        let program = built.file("callers.dll");
        command.arg(program).arg("3").env(OLD_PERF_MAP, "1");
    });
}

/// The JIT's code runs inside a frame of the interpreter: its functions have native callers alone.
#[test]
fn callers_in_php() {
    let Some(php) = tool("php") else {
        return;
    };
    for kind in ["16", "32"] {
        let settings = settings("tracing", kind);
        if !has_jit(&php, &settings) {
            return;
        }
        are_true("PHP", &php, "_start", |command| {
            command.args(&settings).arg(script("callers.php")).arg("3");
        });
    }
}
