//! What the machine refuses: the message names the cause, and `doctor` agrees.

use std::ffi::OsStr;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::common::targets::Target;
use crate::common::vmscope::{Folder, Working, can_sample, nothing_is_left, run, trace_of};
use crate::common::{await_that, is_root, programs, skipped};
use nix::libc::{EACCES, ENOSYS, EPERM};
use nix::sys::signal::Signal;

#[test]
fn a_seccomp_filter_is_named() {
    let Some(program) = programs::build(programs::WITHOUT_PERF).filter(|_| can_sample()) else {
        return;
    };
    let me = std::process::id().to_string();
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    for errno in [EPERM, EACCES, ENOSYS] {
        let refused = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command.arg(errno.to_string());
            command.arg(env!("CARGO_BIN_EXE_vmscope")).args(arguments);
            command
        };
        let mut attach = refused(&["attach", &me, "--output"]);
        attach.arg(&output);
        let mut record = refused(&["record", "--output"]);
        record.arg(&output).args(["--", "true"]);
        for command in [attach, record] {
            let run = run(command).code(2);
            run.says("a seccomp filter (of a container or service) or a security module forbids")
                .says("run `vmscope doctor` for causes and remedies");
            nothing_is_left(&folder);
        }
        run(refused(&["doctor", &me]))
            .code(1)
            .prints("seccomp filter");
    }
}

/// No other process is this user's: what a user may lock is shared.
const USER: &str = "61234";

/// A command of a user without rights, who may lock no memory but for perf events.
fn of_user(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("prlimit");
    command.args(["--memlock=0:0", "setpriv"]);
    if is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.arg(program).stdin(Stdio::null());
    command
}

/// Each recorder takes smaller rings than the one before, until not even the smallest fit.
#[test]
fn recorders_share_the_locked_memory_until_none_is_left() {
    let folder = Folder::new();
    set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("ours");
    // The user may be unable to reach the original.
    let vmscope = folder.file("vmscope");
    std::fs::copy(env!("CARGO_BIN_EXE_vmscope"), &vmscope).expect("a copy");
    let mut doctor = of_user(&vmscope);
    doctor.arg("doctor");
    if run(doctor).status.code() != Some(0) {
        skipped("users without rights can't sample here (kernel.perf_event_paranoid)");
        return;
    }
    let mut busy = of_user("sh");
    busy.args(["-c", "echo ready; while :; do :; done"]);
    let target = Target::ready(busy);
    let pid = target.pid().to_string();
    let mut working = Vec::new();
    let refused = loop {
        assert!(working.len() < 32, "the kernel limits nothing");
        let output = folder.file(&format!("{}.vmscope", working.len()));
        let mut attach = of_user(&vmscope);
        attach
            .args(["attach", "--quiet", &pid, "--output"])
            .arg(&output);
        let one = Working::start(attach);
        let stat = format!("/proc/{}/stat", one.pid());
        let has_ended = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "));
        let has_samples = || trace_of(&output).is_some_and(|trace| trace.samples.times.len() > 50);
        let is_refused = await_that("it records or ends", || {
            has_ended()
                .then_some(true)
                .or(has_samples().then_some(false))
        });
        if is_refused {
            break one.end();
        }
        working.push((one, output));
    };
    refused
        .code(2)
        .says("no locked memory is left for the rings of perf events: user ")
        .says("end other profilers, raise ulimit -l, or run vmscope as root");
    assert!(working.len() > 1, "the second has found nothing");
    for (one, output) in working {
        one.signal(Signal::SIGINT);
        one.end().code(0).says(" lost; ");
        // Small rings and a drain thread without priority may lose some on a busy machine.
        let trace = trace_of(&output).expect("a recording");
        let lost: u64 = trace.lost.iter().map(|lost| lost.count).sum();
        assert!(lost < trace.samples.times.len() as u64, "{lost} lost");
    }
}
