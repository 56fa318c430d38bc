//! `vmscope dump` on native programs: busy, waiting and stopped threads, signal handlers, core files.

use crate::common::core_files::CoreFolder;
use crate::common::programs::{ASSEMBLY, IN_SIGNAL, build};
use crate::common::targets::Target;
use crate::common::vmscope::{command, run, vmscope};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

fn dump(pid: u32) -> Value {
    run(command(["dump", "--json", &pid.to_string()]))
        .code(0)
        .json()
}

fn frames(thread: &Value) -> Vec<&str> {
    let frames = thread["frames"].as_array().expect("frames").iter();
    frames.filter_map(|frame| frame["name"].as_str()).collect()
}

#[test]
fn each_thread_has_its_stack_also_in_a_stopped_process() {
    let Some(mut target) = Target::known_shares(2) else {
        return;
    };
    // A stopped process stays stopped.
    for round in 0..3 {
        let stopped = round > 0;
        if round == 1 {
            target.stop();
        }
        let dump = dump(target.pid());
        assert_eq!(dump["schema"], "vmscope-dump/1.1");
        let threads = dump["threads"].as_array().expect("threads");
        assert_eq!(threads.len(), 3, "{dump}");
        for thread in threads {
            assert!(thread["cut_off"].is_null(), "{thread}");
            let frames = frames(thread);
            if thread["name"] == "known_shares" {
                // It waits for the others.
                assert_eq!(frames.last(), Some(&"_start"), "{thread}");
                assert!(frames.contains(&"main"), "{thread}");
            } else {
                assert!(
                    frames.contains(&"work") || frames[0].starts_with("share_"),
                    "{thread}"
                );
                assert!(frames.contains(&"start_thread"), "{thread}");
            }
            assert_eq!(thread["state"] == "stopped", stopped, "{thread}");
        }
        assert!(target.is_running());
    }
    // The target continues when its user permits.
    target.signal(Signal::SIGCONT);
    let pid = target.pid().to_string();
    vmscope(["dump", &pid])
        .code(0)
        .prints("\"share-0\" tid ")
        .prints("known_shares.c:")
        .prints("3 threads");
    let told = target.end();
    assert!(told.contains("share_two_lines"), "{told}");
}

/// The chain of the program `in_signal`; the C library may have no name for the signal frame.
fn is_interrupted_chain(thread: &Value) {
    let frames = frames(thread);
    let known: Vec<&str> = (frames.iter().copied())
        .filter(|name| !name.starts_with("__") && !name.starts_with("(no symbol)"))
        .collect();
    let expected = ["in_handler", "handler", "inner", "outer", "main", "_start"];
    assert_eq!(known, expected, "{thread}");
    assert_eq!(frames.len(), expected.len() + 3, "{thread}");
    assert!(thread["cut_off"].is_null(), "{thread}");
}

#[test]
fn a_signal_handler_has_the_interrupted_code_as_its_caller() {
    let Some(program) = build(IN_SIGNAL) else {
        return;
    };
    let target = Target::ready(Command::new(program));
    is_interrupted_chain(&dump(target.pid())["threads"][0]);
}

/// A saved register lies above the return address; the frame pointer is a number.
#[cfg(target_arch = "x86_64")]
#[test]
fn assembly_without_an_unwind_table_has_its_caller() {
    let Some(program) = build(ASSEMBLY) else {
        return;
    };
    let target = Target::ready(Command::new(program));
    for _ in 0..5 {
        let dump = dump(target.pid());
        let thread = &dump["threads"][0];
        let frames = frames(thread);
        assert_eq!(frames[..3], ["in_assembly", "outer", "main"], "{thread}");
        assert_eq!(frames.last(), Some(&"_start"), "{thread}");
        assert!(thread["cut_off"].is_null(), "{thread}");
    }
}

#[test]
fn a_core_file_has_the_stacks_of_the_crash() {
    let (Some(program), Some(folder)) = (build(IN_SIGNAL), CoreFolder::new()) else {
        return;
    };
    let mut command = Command::new(&program);
    command.arg("crash");
    let mut child = folder.spawn(&command);
    let pid = child.id();
    let status = child.wait().expect("our child");
    assert_eq!(status.signal(), Some(Signal::SIGSEGV as i32));
    let file = folder.file();
    let file = file.to_str().expect("UTF-8");
    let dump = run(command_of_core(file, &["--json"])).code(0).json();
    assert_eq!(dump["pid"], pid);
    assert_eq!(dump["core"]["signal"], "SIGSEGV");
    assert_eq!(dump["core"]["crashed_tid"], pid);
    assert!(dump["wall_clock_unix_ns"].is_null());
    is_interrupted_chain(&dump["threads"][0]);
    run(command_of_core(file, &[]))
        .code(0)
        .prints(&format!(", SIGSEGV in thread {pid}: 1 thread"))
        .prints("in_signal.c:");

    // vmscope reads no program file other than the dumped ones.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let root = elsewhere.path().to_str().expect("UTF-8");
    let dump = run(command_of_core(file, &["--json", "--root", root]))
        .code(0)
        .json();
    assert!(
        !frames(&dump["threads"][0]).contains(&"in_handler"),
        "{dump}"
    );

    // A truncated file has registers, and perhaps no stack.
    let bytes = std::fs::read(file).expect("readable");
    for part in 0..16 {
        let cut = elsewhere.path().join("cut");
        std::fs::write(&cut, &bytes[..bytes.len() * part / 16]).expect("room");
        let ran = run(command_of_core(cut.to_str().expect("UTF-8"), &["--json"]));
        let is_file = ran.status.success();
        assert!(is_file || ran.status.code() == Some(2), "{part}: {ran:?}");
    }
}

fn command_of_core(file: &str, more: &[&str]) -> Command {
    command(
        ["dump", "--core", file]
            .into_iter()
            .chain(more.iter().copied()),
    )
}

#[test]
fn what_has_no_stacks_is_an_error() {
    let program = std::env::current_exe().expect("this program");
    let program = program.to_str().expect("UTF-8");
    vmscope(["dump", "--core", program])
        .code(2)
        .says("not a core file");
    vmscope(["dump", "--core", "/nonexistent"])
        .code(2)
        .says("/nonexistent");
    vmscope(["dump"]).code(2).says("PID|NAME");
    vmscope(["dump", "4194305"]).code(1).says("4194305");
    vmscope(["dump", "no such program"])
        .code(1)
        .says("no process");
}
