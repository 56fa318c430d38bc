//! Exports as other people's readers take them: `go tool pprof`, and the Firefox
//! Profiler's own loader (npm's `@firefox-devtools/profiler-cli`). And where they may be
//! written.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::vmscope::{Folder, can_sample, command, report, run};
use crate::common::{PATIENCE, programs, skipped};
use serde_json::Value;

/// A recording with chains of a program whose chains are known; `None`, said, where there
/// can't be one.
fn recording(folder: &Folder) -> Option<PathBuf> {
    let program = programs::build(programs::RECURSION)?;
    if !can_sample() {
        return None;
    }
    let path = folder.file("out.vmscope");
    let mut command = command(["record", "--quiet", "--call-graph=fp", "--output"]);
    command.arg(&path).arg("--").arg(program);
    run(command).code(0);
    Some(path)
}

fn export(path: &Path, to: &str, output: &Path) {
    let mut command = command(["export", "--to", to, "--output"]);
    run({
        command.arg(output).arg(path);
        command
    })
    .code(0);
}

/// Somebody else's reader; `None`, said, where there is none.
fn reader(program: &'static str, probe: &str) -> Option<&'static str> {
    let probed = Command::new(program).arg(probe).output();
    if probed.is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    skipped(&format!("there is no working `{program}` here"));
    None
}

/// What `go tool pprof` says.
fn go_pprof(go: &str, options: &[&str], file: &Path) -> String {
    let mut command = Command::new(go);
    command.args(["tool", "pprof"]).args(options).arg(file);
    text(&command.stdin(Stdio::null()).output().expect("it was there"))
}

/// What the Firefox Profiler's command line says.
fn profiler_cli(cli: &str, folder: &Folder, arguments: &[&str]) -> String {
    let mut command = Command::new(cli);
    command
        .args(arguments)
        .env("PROFILER_CLI_SESSION_DIR", folder.path())
        .env(
            "PROFILER_CLI_LOAD_TIMEOUT_MS",
            PATIENCE.as_millis().to_string(),
        )
        .stdin(Stdio::null());
    text(&command.output().expect("it was there"))
}

#[track_caller]
fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Samples of the report's entries, by name.
fn by_report(path: &Path) -> BTreeMap<String, u64> {
    let report = report(path, &["--json"]).code(0).json();
    let mut counts = BTreeMap::new();
    for entry in report["entries"].as_array().expect("entries") {
        let name = entry["name"].as_str().expect("a name").to_owned();
        *counts.entry(name).or_insert(0) += entry["samples"].as_u64().expect("a count");
    }
    counts
}

#[test]
fn pprof_reads_what_the_report_says() {
    let folder = Folder::new();
    let (Some(go), Some(path)) = (reader("go", "version"), recording(&folder)) else {
        return;
    };
    let pb = folder.file("x.pb.gz");
    export(&path, "pprof", &pb);
    let all = [
        "-nodefraction=0",
        "-nodecount=100000",
        "-sample_index=samples",
    ];
    let top = go_pprof(go, &[&["-top"], &all[..]].concat(), &pb);
    // flat flat% sum% cum cum% name
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let flat: u64 = words.next()?.parse().ok()?;
        let name: Vec<&str> = words.skip(4).collect();
        Some((name.join(" "), flat))
    };
    let read: Vec<(String, u64)> = top.lines().filter_map(row).collect();
    for (name, samples) in by_report(&path) {
        let flat = read.iter().filter(|(other, _)| *other == name);
        let flat: u64 = flat.map(|(_, flat)| flat).sum();
        assert_eq!(flat, samples, "{name} in\n{top}");
    }
    let lines = go_pprof(go, &[&["-top", "-lines"], &all[..]].concat(), &pb);
    assert!(lines.contains("recursion.c:"), "{lines}");
    let traces = go_pprof(go, &["-traces"], &pb);
    let words: Vec<&str> = traces.split_whitespace().collect();
    let chain = ["chain_c", "chain_b", "chain_a", "main"];
    assert!(words.windows(4).any(|w| w == chain), "{traces}");
}

#[test]
fn the_firefox_profilers_own_loader_reads_what_the_report_says() {
    let folder = Folder::new();
    let cli = reader("profiler-cli", "--version");
    let (Some(cli), Some(path)) = (cli, recording(&folder)) else {
        return;
    };
    let json = folder.file("x.json.gz");
    export(&path, "firefox", &json);
    let ask = |arguments: &[&str]| profiler_cli(cli, &folder, arguments);
    ask(&["load", json.to_str().expect("UTF-8")]);
    let functions = ask(&["thread", "functions", "--json"]);
    ask(&["stop"]);
    let functions: Value = serde_json::from_str(&functions).expect("JSON");
    let list = functions["functions"].as_array().expect("functions");
    for (name, samples) in by_report(&path) {
        let named = list.iter().filter(|function| function["name"] == *name);
        let own = named.filter_map(|function| function["selfSamples"].as_u64());
        assert_eq!(own.sum::<u64>(), samples, "{name} in {functions}");
    }
}

#[test]
fn an_export_is_private_and_replaces_nothing_unasked() {
    let folder = Folder::new();
    let Some(path) = recording(&folder) else {
        return;
    };
    let default = |options: &[&str]| {
        let mut command = command(["export", "--to=pprof"]);
        command.arg(&path).args(options);
        run(command)
    };
    default(&[]).code(0).says("out.pb.gz");
    let output = folder.file("out.pb.gz");
    let mode = std::fs::metadata(&output)
        .expect("it is there")
        .permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);

    std::fs::write(&output, "somebody's letter").expect("a file");
    default(&[]).code(2).says("exists: --force replaces it");
    let letter = std::fs::read_to_string(&output).expect("it is there");
    assert_eq!(letter, "somebody's letter");
    default(&["--force"]).code(0);
    assert_ne!(
        std::fs::read(&output).expect("it is there"),
        letter.as_bytes()
    );

    // What is no plain file is not replaced, whatever is asked for.
    std::fs::remove_file(&output).expect("it is there");
    let elsewhere = folder.file("elsewhere");
    symlink(&elsewhere, &output).expect("a link");
    default(&["--force"])
        .code(2)
        .says("exists and is not your file");
    assert!(!elsewhere.exists(), "the link was followed");
    default(&["--force", "--output=/dev/null"])
        .code(2)
        .says("exists and is not your file");
    std::fs::remove_file(&output).expect("it is there");

    default(&["--threads=nobody"]).code(2).says("nobody");
    default(&["--output=/nowhere/x"]).code(2).says("/nowhere/x");
    assert_eq!(folder.names(), ["out.vmscope"], "drafts were left behind");
}

/// Names in the boxes of a flame graph's page: the function's own name is the last part to go.
#[test]
fn names_in_boxes_keep_the_function() {
    let Some(node) = reader("node", "--version") else {
        return;
    };
    let javascript = "flatMap /srv/lib/typescript.js:2532 (TurboFan)";
    let native = "v8::internal::Scavenger::Process(v8::internal::Page*) (scavenger)";
    let table = [
        (javascript, 46, javascript),
        (javascript, 45, "flatMap typescript.js:2532 (TurboFan)"),
        (javascript, 36, "flatMap typescript.js:2532"),
        (javascript, 20, "flatMap"),
        (javascript, 5, "flat…"),
        (
            native,
            60,
            "v8::internal::Scavenger::Process(v8::internal::Page*)",
        ),
        (native, 40, "v8::internal::Scavenger::Process"),
        (native, 20, "Scavenger::Process"),
        (native, 9, "Process"),
        ("node::(anonymous namespace)::Work(void*)", 12, "Work"),
        ("java.util.HashMap.putVal(int) (C2)", 20, "HashMap.putVal"),
        ("(generated code, unnamed)", 8, "(genera…"),
        ("/^a::(b|c)+d/g", 8, "/^a::(b…"),
    ];
    let script = include_str!("../../src/export/flamegraph/page.js");
    let begin = script
        .find("const LESS_NEEDED")
        .expect("the parts of names");
    let (code, _) = script[begin..].split_once("\n}\n").expect("a function");
    let asked = table.map(|(name, most, _)| (name, most));
    let asked = serde_json::json!(asked);
    let code =
        format!("{code}\n}}\nconsole.log(JSON.stringify({asked}.map((it) => shortened(...it))))");
    let output = Command::new(node).args(["--eval", &code]).output();
    let shown: Vec<String> = serde_json::from_str(&text(&output.expect("node"))).expect("JSON");
    assert_eq!(shown, table.map(|(.., expected)| expected));
}
