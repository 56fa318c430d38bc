//! Other VMs, from start to report: each runs a program that spends nine tenths of its
//! time in one function, by its own clock. What each VM needs on its command line to tell
//! of its code stands there; what the environment can carry is vmscope's to set.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use vmscope_records::Region;

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
            format!("/tmp/perfinfo-{pid}.map"),
        ] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The share of `dominant` in both functions' samples is what the program says.
fn dominates(recorded: &Recorded, dominant: &str, minor: &str, named: f64) {
    // Name, perhaps with module or class and arguments.
    let is = |name: &str, of: &str| {
        let name = name.split([' ', '(']).next().unwrap_or(name);
        name.rsplit([':', '.']).next() == Some(of)
    };
    let program = &recorded.said[0];
    let _swept = Swept(program);
    let profile = &recorded.profile;
    let places = &profile.trace.samples.places;
    let hits: Vec<usize> = places
        .iter()
        .filter_map(|&place| {
            let name = &profile.entry_at(place).name;
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

/// What a VM prints. Removes its files.
fn asked(command: &mut Command) -> Option<Vec<u8>> {
    let child = command.stdout(Stdio::piped()).spawn().ok()?;
    let pid = serde_json::json!({ "pid": child.id() });
    let _swept = Swept(&pid);
    Some(child.wait_with_output().ok()?.stdout)
}

/// Whether PHP has opcache with an enabled JIT; prints loudly if not.
pub fn has_jit(php: &Path, settings: &[String]) -> bool {
    let text = "echo function_exists('opcache_get_status') \
                && (opcache_get_status()['jit']['on'] ?? false) ? 'jit' : 'none';";
    let asked = asked(Command::new(php).args(settings).args(["-r", text]));
    let has = asked.is_some_and(|answer| answer.ends_with(b"jit"));
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
    let asked = asked(
        Command::new(erl)
            .args(arguments)
            .args(["-noshell", "-eval"])
            .arg("io:format(\"~w\", [erlang:system_info(emu_flavor)]), halt()."),
    );
    let has_jit = asked.is_some_and(|answer| answer == b"jit");
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
    compile(&mcs, "dominant", &program);
    let arguments = [Path::new("--jitmap"), &program, Path::new("3")];
    let recorded = Recorded::of(&[], &mono, arguments);
    dominates(&recorded, "Dominant", "Minor", 0.9);
}

/// Compiles a C# program of the tests with Mono's compiler.
pub fn compile(mcs: &Path, name: &str, program: &Path) {
    let done = Command::new(mcs)
        .arg(format!("-out:{}", program.display()))
        .arg(script(&format!("{name}.cs")))
        .status();
    assert!(done.expect("mcs").success());
}

/// Releases that `.ci/dotnet` gets, each with the environment that requests a perf map; vmscope does so from .NET 6 on.
pub const DOTNETS: [(&str, &[(&str, &str)]); 2] =
    [("3.1", &[("COMPlus_PerfMapEnabled", "1")]), ("8", &[])];

/// The command `dotnet` of a release, and in `built` the C# program `NAME.dll` for it. Needs Mono's compiler.
pub fn dotnet_with(release: &str, name: &str, built: &Folder) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let folder = root.join("target/dotnet").join(release);
    let runtimes = std::fs::read_dir(folder.join("shared/Microsoft.NETCore.App"));
    let mut versions = runtimes.into_iter().flatten();
    let version = versions.find_map(|entry| entry.ok()?.file_name().into_string().ok());
    let Some(version) = version else {
        skipped(&format!("there is no .NET {release} of .ci/dotnet here"));
        return None;
    };
    let mcs = tool("mcs")?;
    compile(&mcs, name, &built.file(&format!("{name}.dll")));
    let settings = serde_json::json!({ "runtimeOptions": {
        "framework": { "name": "Microsoft.NETCore.App", "version": version },
        "configProperties": { "System.Globalization.Invariant": true },
    } });
    let file = built.file(&format!("{name}.runtimeconfig.json"));
    std::fs::write(file, settings.to_string()).expect("our folder");
    can_sample().then(|| folder.join("dotnet"))
}

#[test]
fn dotnet() {
    for (release, environment) in DOTNETS {
        is_true_of_dotnet(release, environment);
    }
}

/// .NET maps its compiler after its runtime.
fn is_true_of_dotnet(release: &str, environment: &[(&str, &str)]) {
    let built = Folder::new();
    let Some(dotnet) = dotnet_with(release, "dominant", &built) else {
        return;
    };
    let arguments = [built.file("dominant.dll"), "3".into()];
    let recorded = Recorded::with(&[], &dotnet, arguments, |vmscope| {
        vmscope.envs(environment.iter().copied());
    });
    dominates(&recorded, "Dominant", "Minor", 0.9);
    let profile = &recorded.profile;
    let entries = (profile.trace.samples.places.iter()).map(|&place| profile.entry_at(place));
    let of_jit: Vec<_> = entries
        .filter(|entry| entry.module == "libclrjit.so")
        .map(|entry| entry.region)
        .collect();
    let is_compiler = of_jit.iter().all(|region| *region == Region::Compiler);
    recorded.check(is_compiler && !of_jit.is_empty(), &format!("{of_jit:?}"));
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
