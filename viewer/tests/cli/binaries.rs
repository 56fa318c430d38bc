//! What recordings keep when the binaries are gone, whose they are, and what an ordinary
//! user gets.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::programs;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, Run, Working, await_samples, can_sample, report, run};
use crate::common::whole::{attach, build, json, list, record};
use crate::common::{is_root, skipped};
use nix::sys::signal::Signal;

/// Nobody's uid on every Linux.
const NOBODY: u32 = 65534;

/// Program with its hot code in its own shared library, both in `folder`.
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

    // Replaces the running program's file.
    std::fs::copy("/bin/true", &program).expect("a copy");
    std::fs::copy("/bin/true", folder.file("libspin.so")).expect("a copy");
    named_or_explained(attach(&folder, &target), "was replaced while it ran");
}

/// The names of what ran; ordinary users may see only a reason for missing names.
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
        command.args(["attach", "--full", &target.pid().to_string()]);
        let working = Working::start(command);
        await_samples(&folder.file("recording.vmscope"), 300);
        working.signal(Signal::SIGINT);
        let run = working.end().code(0);
        // The next run must wait for its own samples.
        std::fs::remove_file(folder.file("recording.vmscope")).expect("it is there");
        run
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
    // Other users may lack access to the build folder.
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
    crate::common::await_that("it is the program", || {
        let program = std::fs::read_link(&exe).ok()?;
        program.ends_with("inlined").then_some(())
    });
    let mut attach = as_nobody(&binary);
    attach.args(["attach", "--full", &target.pid().to_string()]);
    let working = Working::start(attach);
    await_samples(&folder.file("recording.vmscope"), 300);
    working.signal(Signal::SIGINT);
    working
        .end()
        .code(0)
        .prints("kernel samples are excluded")
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
