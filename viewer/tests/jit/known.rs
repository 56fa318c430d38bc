//! Callers in VMs that tell no stacks: programs whose calls are known (docs/truth.md §9). Each calls a
//! leaf through three callers, with 1 : 2 : 3 parts of the work.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vmscope_symbolizer::Profile;

use crate::common::chains::{Counts, chains_of};
use crate::common::programs::script;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, can_sample, command, profile, run};
use crate::common::whole::said;
use crate::common::{await_that, say, skipped};
use crate::node::{ratio, tool};
use crate::others::{
    DOTNETS, Swept, built_by, compile, dotnet_with, has_erlang_jit, has_jit, newest_python,
    settings,
};

const FUNCTIONS: [&str; 19] = [
    "leaf", "in_a", "in_b", "in_c", "callerA", "callerB", "callerC", "middle", "loop", "main",
    "Leaf", "InA", "InB", "InC", "CallerA", "CallerB", "CallerC", "Middle", "Main",
];

/// The function of a frame in generated code: `prog:leaf/2 (BeamAsm)_[j]` is `leaf`.
fn function(frame: &str) -> Option<String> {
    let name = frame.strip_suffix("_[j]")?.split([' ', '(', '/']).next()?;
    let name = name.rsplit([':', '.']).next()?;
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
    for (release, environment) in DOTNETS {
        let built = Folder::new();
        let Some(dotnet) = dotnet_with(release, "callers", &built) else {
            return;
        };
        // .NET 8's command is stripped.
        let first = match release {
            "3.1" => "_start",
            _ => "(no symbol) dotnet",
        };
        are_true(&format!(".NET {release}"), &dotnet, first, |command| {
            let program = built.file("callers.dll");
            command.arg(program).arg("3");
            command.envs(environment.iter().copied());
        });
    }
}

/// .NET 8 begins to report its code when vmscope asks, any number of times.
#[test]
fn a_running_dotnet_names_its_code_if_asked() {
    let built = Folder::new();
    let Some(dotnet) = dotnet_with("8", "callers", &built) else {
        return;
    };
    let mut started = Command::new(dotnet);
    let target = Target::silent(started.arg(built.file("callers.dll")).arg("60"));
    let pid = target.pid();
    let of_target = |start: String, end: &str| {
        let names = std::fs::read_dir("/tmp").expect("/tmp").flatten();
        let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names.any(|name| name.starts_with(&start) && name.ends_with(end))
    };
    await_that("the VM has its port", || {
        of_target(format!("dotnet-diagnostic-{pid}-"), "-socket").then_some(())
    });
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let attach = |options: &[&str]| {
        let mut attach = command(["attach", "--quiet", "--duration", "3"]);
        attach
            .args(options)
            .arg(pid.to_string())
            .arg("--output")
            .arg(&file);
        run(attach).code(0);
        profile(&file).0
    };
    let leaves = |profile: &Profile| {
        let places = &profile.trace.samples.places;
        let names = places.iter().map(|&place| &profile.entry_at(place).name);
        let found = names
            .filter(|name| name.starts_with("Callers.Leaf("))
            .count();
        (found, places.len())
    };
    let unasked = attach(&[]);
    assert_eq!(leaves(&unasked).0, 0);
    let mut remedies = unasked.trace.limits.iter().map(|limit| &limit.remedy);
    assert!(remedies.any(|remedy| remedy.starts_with("attach with --ask-vm")));
    for _ in 0..2 {
        let asked = attach(&["--ask-vm"]);
        let (found, all) = leaves(&asked);
        // Before the VM has reported its code, chains are cut off.
        let mut export = command(["export", "--to", "collapsed", "--output", "-", "--from=0.7"]);
        let exported = run({
            export.arg(&file);
            export
        });
        let exported = exported.code(0).stdout;
        let stacks = exported.lines().filter_map(|line| {
            let (stack, samples) = line.rsplit_once(' ')?;
            Some((stack, samples.parse::<u64>().ok()?))
        });
        let of_leaf = stacks.filter(|(stack, _)| stack.contains("Callers.Leaf("));
        let (whole, cut): (Vec<_>, Vec<_>) =
            of_leaf.partition(|(stack, _)| stack.contains("Callers.Main("));
        let [whole, cut] = [whole, cut].map(|all| all.iter().map(|(_, n)| n).sum::<u64>());
        let shown = format!("asked: {found} of {all} in the leaf; {whole} whole, {cut} cut off");
        say(&shown);
        assert!(all > 1500 && found * 100 >= all * 95, "{shown}");
        assert!(whole > 1000 && cut * 50 <= whole, "{shown}");
        assert!(!of_target(format!("jit-{pid}."), "dump"), "{shown}");
    }
    let dumped = run(command(["dump", "--ask-vm", &pid.to_string()]))
        .code(0)
        .stdout;
    // In one of fifty dumps, the program just asks for its CPU time.
    assert!(dumped.contains("    Callers.Main("), "{dumped}");
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
