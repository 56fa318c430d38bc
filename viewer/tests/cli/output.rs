//! Places that a recording can't be written to, or not whole: no file gets lost, and incomplete
//! recordings say so.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::common::vmscope::{Folder, can_sample, command, nothing_is_left, record, report, run};
use crate::common::{is_root, programs, skipped};

#[test]
fn outputs_that_are_not_ours_to_write() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    std::fs::write(&output, "somebody's letter").expect("a file");
    record(&folder, &[], &["true"])
        .code(2)
        .says("not a recording of yours")
        .says("out.vmscope");
    let text = std::fs::read_to_string(&output).expect("it is there");
    assert_eq!(text, "somebody's letter");
    std::fs::remove_file(&output).expect("it is there");

    let letter = folder.file("letter");
    symlink(&letter, &output).expect("a link");
    record(&folder, &["--keep-last", "1"], &["true"])
        .code(2)
        .says("not a recording of yours");
    assert!(!letter.exists(), "the link was followed");
    std::fs::remove_file(&output).expect("it is there");

    std::fs::create_dir(&output).expect("a folder");
    record(&folder, &[], &["true"]).code(2).says("out.vmscope");
    std::fs::remove_dir(&output).expect("it is empty");

    let lost = folder.file("no such folder/out.vmscope");
    let mut command = command(["record", "--output"]);
    command.arg(&lost).args(["--", "true"]);
    run(command).code(2).says("no such folder/out.vmscope");
    nothing_is_left(&folder);
}

#[test]
fn a_folder_that_is_read_only() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let inner = folder.file("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let vmscope = env!("CARGO_BIN_EXE_vmscope");
    // For root, permissions are none; a read-only mount is.
    let script = if is_root() {
        "mount -t tmpfs -o ro none \"$1\" && exec \"$2\" record --output \"$1/out.vmscope\" -- true"
    } else {
        "chmod 555 \"$1\" && exec \"$2\" record --output \"$1/out.vmscope\" -- true"
    };
    let Some(mut shell) = shell(script) else {
        return;
    };
    shell.arg(&inner).arg(vmscope);
    run(shell).code(2).says("out.vmscope").says("--output");
    assert_eq!(folder.names(), ["inner"]);
}

/// Shell in its own mount namespace, for root; `None`, said, where that is not permitted.
fn shell(script: &str) -> Option<Command> {
    let mut command = if is_root() {
        let mut try_it = Command::new("unshare");
        let output = try_it
            .args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"])
            .stdin(Stdio::null())
            .output();
        if !output.is_ok_and(|output| output.status.success()) {
            skipped("no mounts can be made here");
            return None;
        }
        let mut command = Command::new("unshare");
        command.args(["-m", "sh"]);
        command
    } else {
        Command::new("sh")
    };
    command.args(["-c", script, "sh"]).stdin(Stdio::null());
    Some(command)
}

#[test]
fn a_disk_that_is_full_in_mid_recording() {
    if !can_sample() {
        return;
    }
    if !is_root() {
        return skipped("only root can make a small disk");
    }
    let Some(program) = programs::build(programs::KNOWN_SHARES) else {
        return;
    };
    let folder = Folder::new();
    let script = "mount -t tmpfs -o size=112k none \"$1\" && \"$2\" record --rate 5000 \
                  --output \"$1/out.vmscope\" -- \"$3\" --cycles 600; code=$?; \
                  cp \"$1/out.vmscope\" \"$4\"; exit $code";
    let Some(mut shell) = shell(script) else {
        return;
    };
    let inner = folder.file("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let saved = folder.file("saved.vmscope");
    shell
        .arg(&inner)
        .arg(env!("CARGO_BIN_EXE_vmscope"))
        .arg(program)
        .arg(&saved);
    run(shell)
        .code(2)
        .says("the recording ended early")
        .says("No space left")
        .prints("the recording ends early");
    let after = report(&saved, &[]);
    after
        .code(0)
        .prints("the recording ends early")
        .prints("No space left")
        .prints("share_d");
}

#[test]
fn a_file_that_may_not_grow() {
    if !can_sample() {
        return;
    }
    let Some(program) = programs::build(programs::KNOWN_SHARES) else {
        return;
    };
    let folder = Folder::new();
    // SIGXFSZ ends whoever does not expect it. The unit is 512 or 1024 bytes.
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "ulimit -f 80; exec \"$1\" record --rate 5000 --output \"$2\" -- \"$3\" --cycles 600",
            "sh",
            env!("CARGO_BIN_EXE_vmscope"),
        ])
        .arg(folder.file("out.vmscope"))
        .arg(program);
    run(shell)
        .code(2)
        .says("the recording ended early")
        .says("too large");
    // The disk may lack space for the end record: the recording then counts as truncated.
    let again = report(&folder.file("out.vmscope"), &[])
        .code(0)
        .prints("share_d");
    let is_said = ["the recording ends early", "the recording ends abruptly"];
    let is_said = is_said.iter().any(|text| again.stdout.contains(text));
    again.check(is_said, "that it is not whole");
}
