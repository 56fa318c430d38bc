//! Whole recordings of programs: what they keep when the program is gone, which threads
//! and processes they follow, what an ordinary user gets, caller chains.

#![allow(clippy::panic, reason = "tests fail by it")]

mod common;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::programs::{self, Program};
use common::targets::Target;
use common::vmscope::{Folder, Run, can_sample, command, profile, report, run, vmscope};
use common::{is_root, skipped};
use serde_json::Value;
use vmscope_symbolizer::Profile;

/// Nobody's uid on every Linux.
const NOBODY: u32 = 65534;

/// `vmscope record` of a program into `folder`; the run's stdout is both reports'.
fn record(folder: &Folder, options: &[&str], program: &Path, arguments: &[&str]) -> Run {
    let mut command = command(["record", "--output"]);
    command.arg(folder.file("out.vmscope")).args(options);
    command.arg("--").arg(program).args(arguments);
    run(command)
}

/// `vmscope attach` to a target into `folder`, for a while.
fn attach(folder: &Folder, target: &Target) -> Run {
    let mut command = command(["attach", &target.pid().to_string(), "--duration", "0.5"]);
    command.arg("--output").arg(folder.file("out.vmscope"));
    run(command)
}

/// The program, where it can be built and sampled.
fn build(program: Program) -> Option<PathBuf> {
    let path = programs::build(program)?;
    can_sample().then_some(path)
}

/// The lines of a program's own report, those that are JSON.
fn said(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with("{\""));
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn json(folder: &Folder) -> Value {
    report(&folder.file("out.vmscope"), &["--json"])
        .code(0)
        .json()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

/// The samples of each function, by name.
fn functions(document: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for entry in list(&document["entries"]) {
        let name = entry["name"].as_str().expect("a name").to_owned();
        *all.entry(name).or_insert(0) += entry["samples"].as_u64().expect("a number");
    }
    all
}

/// A program that spends its time in a shared library of its own, both in `folder`.
fn with_library(folder: &Folder) -> Option<PathBuf> {
    let sources = [
        (
            "library.c",
            "long library_spin(long n) { volatile long x = 1; while (n--) x = x * 3; return x; }",
        ),
        (
            "main.c",
            "#include <stdio.h>\n#include <unistd.h>\nlong library_spin(long);\n\
             long program_spin(long n) { volatile long x = 1; while (n--) x = x * 3; return x; }\n\
             int main(int argc, char **argv) { printf(\"ready %d\\n\", getpid()); fflush(stdout);\n\
             long i = 0, x = 0; while (argc > 1 || i++ < 100) x += library_spin(1000000) \
             + program_spin(1000000); return x == 42; }",
        ),
    ];
    for (name, text) in sources {
        std::fs::write(folder.file(name), text).expect("a file of ours");
    }
    let cc = |arguments: &[&str]| {
        let mut cc = Command::new("cc");
        cc.args(arguments).current_dir(folder.path()).output()
    };
    let Ok(library) = cc(&[
        "-O1",
        "-g",
        "-shared",
        "-fPIC",
        "-o",
        "libspin.so",
        "library.c",
    ]) else {
        skipped("there is no `cc` here");
        return None;
    };
    let flags = [
        "-O1",
        "-g",
        "-o",
        "main",
        "main.c",
        "-L.",
        "-lspin",
        "-Wl,-rpath,$ORIGIN",
    ];
    let program = cc(&flags).expect("it ran a moment ago");
    assert!(
        library.status.success() && program.status.success(),
        "{library:?} {program:?}"
    );
    can_sample().then(|| folder.file("main"))
}

#[test]
fn a_recording_needs_no_binaries() {
    let folder = Folder::new();
    let Some(program) = with_library(&folder) else {
        return;
    };
    record(&folder, &[], &program, &[]).code(0);
    let before = report(&folder.file("out.vmscope"), &["--ranges", "all"])
        .code(0)
        .stdout;
    for name in ["main", "libspin.so", "main.c", "library.c"] {
        std::fs::remove_file(folder.file(name)).expect("it is there");
    }
    let after = report(&folder.file("out.vmscope"), &["--ranges", "all"])
        .code(0)
        .prints("library_spin [libspin.so]")
        .prints("program_spin")
        .prints("library.c:1")
        .prints("main.c:4");
    assert_eq!(after.stdout, before, "the binaries made a difference");
    let document = json(&folder);
    assert_eq!(document["samples"]["unresolved"], 0, "{document}");
}

#[test]
fn binaries_that_are_gone_are_said_so_and_still_named_where_that_is_possible() {
    let folder = Folder::new();
    let Some(program) = with_library(&folder) else {
        return;
    };
    let mut command = Command::new(&program);
    command.arg("forever");
    let target = Target::ready(command);
    std::fs::remove_file(&program).expect("it is there");
    std::fs::remove_file(folder.file("libspin.so")).expect("it is there");
    // Root opens them all the same, through /proc/PID/map_files.
    named_or_explained(attach(&folder, &target), "was deleted while it ran");

    // Another program under the name of the one that runs.
    std::fs::copy("/bin/true", &program).expect("a copy");
    std::fs::copy("/bin/true", folder.file("libspin.so")).expect("a copy");
    named_or_explained(attach(&folder, &target), "was replaced while it ran");
}

/// The names of what ran; an ordinary user may get only the reason why there are none.
fn named_or_explained(run: Run, why: &str) {
    let named = run.stdout.contains("library_spin") && run.stdout.contains("program_spin");
    let words: Vec<&str> = run.stdout.split_whitespace().collect();
    let words = words.join(" ");
    let explained = words.contains(why) && words.contains("have no name");
    let right = named || (explained && !is_root());
    run.code(0).check(right, "names, or why there are none");
}

#[test]
fn an_ordinary_user_is_told_of_binaries_that_are_gone() {
    if !is_root() {
        return skipped("only root can be somebody else");
    }
    let folder = Folder::new();
    let Some(program) = with_library(&folder) else {
        return;
    };
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).expect("our folder");
    let binary = folder.file("vmscope");
    std::fs::copy(env!("CARGO_BIN_EXE_vmscope"), &binary).expect("a copy");
    let as_nobody = |program: &Path| {
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY).current_dir(folder.path());
        command
    };
    let mut spin = as_nobody(&program);
    spin.arg("forever");
    let target = Target::ready(spin);
    let attach = || {
        let mut command = as_nobody(&binary);
        command.args(["attach", &target.pid().to_string(), "--duration", "0.3"]);
        run(command).code(0)
    };
    std::fs::remove_file(folder.file("libspin.so")).expect("it is there");
    let deleted = attach();
    if !deleted.stdout.contains("library_spin") {
        deleted
            .prints("have no name")
            .prints("libspin.so was deleted while it ran");
    }
    std::fs::copy("/bin/true", folder.file("libspin.so")).expect("a copy");
    let replaced = attach();
    if !replaced.stdout.contains("library_spin") {
        replaced
            .prints("have no name")
            .prints("libspin.so was replaced while it ran");
    }
}

#[test]
fn a_recording_is_its_owners_alone() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "umask 0; exec \"$1\" record --quiet --output \"$2\" -- true",
        "sh",
    ]);
    shell
        .arg(env!("CARGO_BIN_EXE_vmscope"))
        .arg(folder.file("out.vmscope"));
    run(shell).code(0);
    let metadata = std::fs::metadata(folder.file("out.vmscope")).expect("a recording");
    assert_eq!(metadata.mode() & 0o7777, 0o600);
    // What was set aside for the end on a full disk is given back.
    assert!(
        metadata.blocks() * 512 <= metadata.len() + 8192,
        "{metadata:?}"
    );
}

#[test]
fn threads_of_5_ms_are_all_seen() {
    let Some(program) = build(programs::SHORT_THREADS) else {
        return;
    };
    let folder = Folder::new();
    let run = record(&folder, &[], &program, &["--count", "40"]).code(0);
    let own = said(&run.stdout).remove(0);
    let document = json(&folder);
    let period = document["session"]["period_ns"].as_f64().expect("a number");
    let (mut expected_all, mut seen_all) = (0.0, 0.0);
    for thread in list(&own["threads"]) {
        let mut rows = list(&document["threads"]).iter();
        let row = rows.find(|row| row["name"] == thread["name"]);
        let row = row.unwrap_or_else(|| panic!("{thread} is not in {document}"));
        assert_eq!(row["tid"], thread["tid"]);
        let samples = row["samples"].as_f64().expect("a number");
        let expected = thread["cpu_seconds"].as_f64().expect("a number") * 1e9 / period;
        // No more than its time and its end are worth: nothing is sampled twice. Where
        // its ticks came late there are fewer, but it ran for seven periods.
        assert!((1.0..=expected + 2.0).contains(&samples), "{row} {thread}");
        expected_all += expected;
        seen_all += samples;
    }
    // Of each thread the part of a period that it ends in is lost: half a period for each
    // CPU that it ran on, of seven.
    let share = seen_all / expected_all;
    assert!((0.7..1.02).contains(&share), "{share}");
    let lost = document["samples"]["lost"].as_u64();
    assert_eq!(lost, Some(0));
}

#[test]
fn a_storm_of_threads_is_attached_to() {
    let Some(program) = build(programs::THREAD_STORM) else {
        return;
    };
    let folder = Folder::new();
    let mut command = Command::new(&program);
    command.args(["--seconds", "1.5"]);
    let mut target = Target::ready(command);
    let run = attach(&folder, &target)
        .code(0)
        .prints("threads ended before their first sample");
    let document = json(&folder);
    let samples = &document["samples"];
    let total = samples["total"].as_f64().expect("a number");
    let promised = samples["promised"].as_f64().expect("a number");
    // A thread of 20 µs ends before its first tick; never is there more than they ran.
    let bounded = total > 0.0 && total < promised * 1.1 + 20.0;
    run.check(bounded, &format!("{samples}"));
    let own = said(&target.wait());
    assert!(own[0]["created"].as_u64() > Some(10), "it went on: {own:?}");
}

#[test]
fn children_and_execs_are_followed_from_a_command() {
    let Some(program) = build(programs::FORK_EXEC) else {
        return;
    };
    let folder = Folder::new();
    let run = record(&folder, &[], &program, &["--ms", "40"]).code(0);
    let document = json(&folder);
    let functions = functions(&document);
    let own = said(&run.stdout);
    assert_eq!(own.len(), 9, "{own:?}");
    // 40 ms are 56 samples; of `again` and `last` a part was spent before the exec.
    let period = document["session"]["period_ns"].as_f64().expect("a number");
    for (name, processes) in [
        ("first_spin", 1.0),
        ("child_spin", 3.0),
        ("again_spin", 1.0),
        ("nest_spin", 3.0),
        ("last_spin", 1.0),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let samples = *functions.get(name).unwrap_or(&0) as f64;
        let most = processes * 40e6 / period;
        // `last` has used 40 ms as `first` already, and spins not at all.
        if name != "last_spin" {
            assert!(
                samples > 0.3 * most,
                "{name}: {samples} of {most}: {functions:?}"
            );
        }
        assert!(samples < 1.1 * most + 3.0, "{name}: {samples} of {most}");
    }
    // Each process has samples in its own functions only.
    for process in &own {
        let mut threads = list(&document["threads"]).iter();
        let thread = threads.find(|thread| thread["tid"] == process["pid"]);
        let samples = thread.map_or(0, |thread| thread["samples"].as_u64().expect("a number"));
        assert!(samples > 0, "{process} has no samples: {document}");
    }
    let (profile, summary) = profile(&folder.file("out.vmscope"));
    let unnamed = profile.trace.places.iter().zip(&profile.site_of_place);
    let unnamed =
        unnamed.filter(|(_, site)| !profile.is_named(profile.sites[**site as usize].entry));
    let unnamed: Vec<_> = unnamed.map(|(place, _)| place).collect();
    assert!(
        unnamed.is_empty(),
        "{:?} {unnamed:?} {:?}",
        summary.quality,
        profile.trace.modules
    );
}

#[test]
fn children_are_not_followed_from_an_attached_process() {
    let Some(program) = build(programs::FORK_EXEC) else {
        return;
    };
    let folder = Folder::new();
    let mut command = Command::new("sh");
    // The shell lives on until its child is through, and spins itself.
    command.args([
        "-c",
        "echo ready; while :; do \"$1\" --ms 5 >/dev/null; done",
        "sh",
    ]);
    let target = Target::ready({
        command.arg(&program);
        command
    });
    attach(&folder, &target).code(0);
    let document = json(&folder);
    let functions = functions(&document);
    assert!(
        functions.keys().all(|name| !name.ends_with("_spin")),
        "{functions:?}"
    );
    let pids = list(&document["threads"])
        .iter()
        .map(|thread| &thread["pid"]);
    assert!(
        pids.into_iter().all(|pid| *pid == target.pid()),
        "{document}"
    );
    // What it forks may outlive it by a moment, and ends by itself.
    drop(target);
}

#[test]
fn an_ordinary_user_gets_user_samples_and_is_told_so() {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    if !is_root() || paranoid.is_ok_and(|level| level.trim() != "2") {
        return skipped("not root, or kernel.perf_event_paranoid is not 2");
    }
    let Some(program) = build(programs::INLINED) else {
        return;
    };
    let folder = Folder::new();
    let open = PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), open).expect("our folder");
    // The build's folder may be closed to others.
    let (binary, program_copy) = (folder.file("vmscope"), folder.file("inlined"));
    std::fs::copy(env!("CARGO_BIN_EXE_vmscope"), &binary).expect("a copy");
    std::fs::copy(program, &program_copy).expect("a copy");
    let as_nobody = |program: &Path| {
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY).current_dir(folder.path());
        command
    };
    let mut spin = as_nobody(Path::new("/bin/sh"));
    spin.args(["-c", "echo ready; exec ./inlined --seconds 20 >/dev/null"]);
    let target = Target::ready(spin);
    let exe = format!("/proc/{}/exe", target.pid());
    common::await_that("it is the program", || {
        let program = std::fs::read_link(&exe).ok()?;
        program.ends_with("inlined").then_some(())
    });
    let mut attach = as_nobody(&binary);
    attach.args(["attach", &target.pid().to_string(), "--duration", "1"]);
    run(attach)
        .code(0)
        .prints("Samples in the kernel are excluded")
        .prints("user only")
        .prints("solver-0");
    let document = report(&folder.file("recording.vmscope"), &["--json"])
        .code(0)
        .json();
    assert_eq!(document["session"]["kernel_included"], false);
    let mut regions = list(&document["regions"]).iter();
    let kernel = regions
        .find(|part| part["region"] == "kernel")
        .expect("it is listed");
    assert_eq!(kernel["samples"], 0, "{document}");
    assert!(
        document["samples"]["total"].as_u64() > Some(100),
        "{document}"
    );
}

/// The names in a sample's chain, from the direct caller outwards.
fn callers(profile: &Profile, sample: usize) -> Vec<&str> {
    let Some(&node) = profile.trace.samples.chains.get(sample) else {
        return Vec::new();
    };
    let places = profile.trace.chains.callers(node);
    places.map(|place| name_of(profile, place)).collect()
}

fn name_of(profile: &Profile, place: u32) -> &str {
    let site = profile.site_of_place[place as usize];
    let entry = profile.sites[site as usize].entry;
    &profile.entries[entry as usize].name
}

#[test]
fn caller_chains_by_frame_pointer() {
    let Some(program) = build(programs::RECURSION) else {
        return;
    };
    let folder = Folder::new();
    let options = ["--call-graph=fp"];
    record(&folder, &options, &program, &["--seconds", "0.6"])
        .code(0)
        .prints("caller chains were cut off at their greatest depth")
        .prints("Callers are found by frame pointers");
    let (profile, _) = profile(&folder.file("out.vmscope"));
    let samples = &profile.trace.samples;
    let (mut chain, mut deep, mut whole) = (0u64, 0u64, 0u64);
    for (index, &place) in samples.places.iter().enumerate() {
        let callers = callers(&profile, index);
        match name_of(&profile, place) {
            "chain_c" => {
                chain += 1;
                whole += u64::from(callers.starts_with(&["chain_b", "chain_a", "main"]));
            }
            "bottom" => {
                deep += 1;
                let dives = callers.iter().take_while(|name| **name == "dive").count();
                // The chain's first frame is the sample's own.
                assert!(dives >= 120 || dives == 0, "{callers:?}");
            }
            _ => {}
        }
    }
    assert!(chain > 100 && deep > 100, "{chain} {deep}");
    // A sample in the first or last instructions has no frame yet, or none any more.
    assert!(
        whole * 100 >= chain * 98,
        "{whole} of {chain} have their whole chain"
    );
    let truncated = samples.truncated_chains;
    assert!(
        truncated * 100 >= deep * 98 && truncated <= deep + 20,
        "{truncated} of {deep}"
    );
    // Without being asked for, there are none.
    record(&folder, &["--quiet"], &program, &["--seconds", "0.05"]).code(0);
    let bare = vmscope(["report", &folder.file("out.vmscope").to_string_lossy()]).code(0);
    let silent = !bare.stdout.contains("frame pointers");
    bare.check(silent, "no chains were asked for");
}
