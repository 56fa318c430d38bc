//! Other VMs, from start to report: each runs a program that spends nine tenths of its
//! time in one function, by its own clock. What each VM needs on its command line to tell
//! of its code stands there; what the environment can carry is vmscope's to set.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::programs::script;
use crate::common::vmscope::{Folder, can_sample};
use crate::common::{say, skipped};
use crate::measured::{Worst, batch_means, number};
use crate::node::{Recorded, ratio, tool};

/// Removes what the VM wrote under /tmp because it was asked to on its command line.
pub struct Swept<'a>(pub &'a Value);

impl Drop for Swept<'_> {
    fn drop(&mut self) {
        let pid = &self.0["pid"];
        for path in [
            format!("/tmp/perf-{pid}.map"),
            format!("/tmp/jit-{pid}.dump"),
        ] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The share of `dominant` in both functions' samples is what the program says.
fn dominates(recorded: &Recorded, dominant: &str, minor: &str, named: f64) {
    // Name, perhaps with module and arguments.
    let is = |name: &str, of: &str| {
        let rest = name.rsplit_once(':').map_or(name, |(_, own)| own);
        rest.strip_prefix(of)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let program = &recorded.said[0];
    let _swept = Swept(program);
    let profile = &recorded.profile;
    let places = &profile.trace.samples.places;
    let hits: Vec<usize> = places
        .iter()
        .filter_map(|&place| {
            let site = &profile.sites[profile.site_of_place[place]];
            let name = &profile.entries[site.entry].name;
            [dominant, minor].iter().position(|of| is(name, of))
        })
        .collect();
    recorded.check(
        hits.len() > 1500,
        &format!("{} samples of both", hits.len()),
    );
    let (one, other) = (number(&program["dominant"]), number(&program["minor"]));
    let mut worst = Worst::default();
    let share = batch_means(&hits, |hit| hit == 0);
    // Before compilation, samples count for the interpreter; and wall clocks include other work of
    // the machine.
    worst.compare(dominant, share, one / (one + other), 0.03);
    let found = recorded.named();
    recorded.check(found >= named, &format!("{found} named"));
    say(&format!(
        "{dominant}: {:.2} % of both, {:.2} % by the program's clock; {:.2} % of {} user \
         samples named",
        100.0 * share.share,
        100.0 * one / (one + other),
        100.0 * found,
        recorded.user_samples(),
    ));
}

/// PHP's arguments for its JIT: 16 writes a perf map, 32 a jitdump in /tmp.
pub fn settings(jit: &str, debug: &str) -> Vec<String> {
    let settings = [
        "opcache.enable=1",
        "opcache.enable_cli=1",
        // Otherwise PHP ignores fresh scripts.
        "opcache.file_update_protection=0",
        "opcache.jit_buffer_size=32M",
        &format!("opcache.jit={jit}"),
        &format!("opcache.jit_debug={debug}"),
    ];
    let arguments = settings.iter().flat_map(|one| ["-d", one]);
    arguments.map(str::to_owned).collect()
}

/// Whether PHP has opcache with an enabled JIT; prints loudly if not.
pub fn has_jit(php: &Path, settings: &[String]) -> bool {
    let text = "echo function_exists('opcache_get_status') \
                && (opcache_get_status()['jit']['on'] ?? false) ? 'jit' : 'none';";
    let asked = Command::new(php).args(settings).args(["-r", text]).output();
    let has = asked.is_ok_and(|answer| answer.stdout.ends_with(b"jit"));
    if !has {
        skipped("this PHP has no JIT");
    }
    has
}

#[test]
fn php() {
    let Some(php) = tool("php") else {
        return;
    };
    for kind in ["16", "32"] {
        let mut arguments = settings("tracing", kind);
        if !has_jit(&php, &arguments) {
            return;
        }
        let program = script("dominant.php");
        arguments.extend([program.to_str().expect("UTF-8").to_owned(), "3".to_owned()]);
        let recorded = Recorded::of(&[], &php, &arguments);
        dominates(&recorded, "dominant", "minor", 0.9);
    }
}

/// Folder with a module of Erlang.
pub fn built_by(erlc: &Path, source: &str) -> Folder {
    let built = Folder::new();
    let done = Command::new(erlc)
        .arg("-o")
        .arg(built.path())
        .arg(script(source))
        .status();
    assert!(done.expect("erlc").success());
    built
}

/// Whether Erlang has its JIT with these arguments; prints loudly if not.
pub fn has_erlang_jit(erl: &Path, arguments: &[&str]) -> bool {
    let asked = Command::new(erl)
        .args(arguments)
        .args(["-noshell", "-eval"])
        .arg("io:format(\"~w\", [erlang:system_info(emu_flavor)]), halt().")
        .output();
    let has_jit = asked.is_ok_and(|answer| answer.stdout == b"jit");
    if !has_jit {
        skipped("this Erlang has no JIT");
    }
    has_jit
}

/// Erlang's, by its own switch: `dump` writes a jitdump, `map` a perf map.
#[test]
fn erlang() {
    let (Some(erl), Some(erlc)) = (tool("erl"), tool("erlc")) else {
        return;
    };
    let built = built_by(&erlc, "dominant.erl");
    let module = built.path().to_str().expect("UTF-8").to_owned();
    for kind in ["map", "dump"] {
        let arguments = [
            "+JPperf", kind, "-noshell", "-noinput", "-pa", &module, "-run", "dominant", "main",
            "3",
        ];
        if !has_erlang_jit(&erl, &["+JPperf", kind]) {
            return;
        }
        let recorded = Recorded::of(&[], &erl, arguments);
        dominates(&recorded, "dominant/2", "minor/2", 0.9);
    }
}

/// Mono's `--jitmap` writes a perf map.
#[test]
fn mono() {
    let (Some(mono), Some(mcs)) = (tool("mono"), tool("mcs")) else {
        return;
    };
    let built = Folder::new();
    let program = built.file("dominant.exe");
    let out = format!("-out:{}", program.display());
    let done = Command::new(mcs)
        .arg(out)
        .arg(script("dominant.cs"))
        .status();
    assert!(done.expect("mcs").success());
    let arguments = [Path::new("--jitmap"), &program, Path::new("3")];
    let recorded = Recorded::of(&[], &mono, arguments);
    dominates(&recorded, "Dominant", "Minor", 0.9);
}

/// CPython's trampolines make functions visible in call chains alone. Each pc is in the
/// interpreter's loop, or in code that the loop calls, whichever function runs. So only call chains
/// show the functions.
#[test]
fn cpython() {
    let Some(python) = newest_python() else {
        skipped("there is no CPython from 3.12 on here");
        return;
    };
    if !can_sample() {
        return;
    }
    let program = script("dominant.py");
    let recorded = Recorded::of(&[], &python, [program.as_path(), Path::new("2")]);
    let _swept = Swept(&recorded.said[0]);
    let found = recorded.named();
    recorded.check(found >= 0.95, &format!("{found} named"));
    let interpreter = recorded.samples(|entry| entry["region"] == "interpreter");
    let share = ratio(interpreter, recorded.user_samples());
    recorded.check(share >= 0.1, &format!("{share} in the interpreter"));
    say(&format!(
        "CPython: {:.2} % of {} user samples named, {:.2} % in the interpreter",
        100.0 * found,
        recorded.user_samples(),
        100.0 * share
    ));
}

/// A CPython that can write perf maps: the system's, or one of pyenv's.
pub fn newest_python() -> Option<std::path::PathBuf> {
    let home = std::env::var_os("HOME")?;
    let versions = std::fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    let mut found: Vec<_> = versions
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin/python3")))
        .collect();
    found.push("python3".into());
    let works = |python: &std::path::PathBuf| {
        let text = "import sys; sys.exit(0 if sys.version_info >= (3, 12) and \
                    sys.is_stack_trampoline_active() else 1)";
        let mut command = Command::new(python);
        command.args(["-X", "perf", "-c", text]);
        let child = command.spawn();
        child.is_ok_and(|mut child| {
            let pid = child.id();
            let holds = child.wait().is_ok_and(|status| status.success());
            let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
            holds
        })
    };
    found.into_iter().find(works)
}
