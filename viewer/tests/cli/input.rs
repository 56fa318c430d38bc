//! What users get wrong, and what goes wrong around them: a clear message on stderr, an
//! exit code that is not 0, nothing left behind that looks whole.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::targets::Target;
use crate::common::vmscope::{
    Folder, Run, can_sample, command, nothing_is_left, record, report, run, vmscope,
};
use crate::common::{await_that, is_root, skipped};

/// Nobody's uid on every Linux.
const NOBODY: u32 = 65534;

/// `vmscope attach PID` into `folder`, for a little while.
fn attach(pid: u32, folder: &Folder) -> Run {
    let mut command = command(["attach", &pid.to_string(), "--duration", "0.2"]);
    command.arg("--output").arg(folder.file("out.vmscope"));
    run(command)
}

#[test]
fn pids_that_are_no_targets() {
    let folder = Folder::new();
    // No Linux has so many pids.
    attach(2_147_483_647, &folder)
        .code(1)
        .says("no process 2147483647");
    attach(0, &folder).code(1).says("no process 0");
    vmscope(["attach", "no such name"])
        .code(1)
        .says("is named `no such name`");
    for pid in ["-1", "4294967296", ""] {
        vmscope(["attach", pid]).code(2).says("PID");
    }
    nothing_is_left(&folder);
}

#[test]
fn a_name_finds_one_process() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let program = folder.file("vmscope-named");
    std::fs::copy("/bin/sleep", &program).expect("a program");
    let start = || Command::new(&program).arg("60").spawn().expect("it starts");
    let attach = || {
        let mut command = command(["attach", "vmscope-named", "--quiet", "--duration", "0.1"]);
        command.arg("--output").arg(folder.file("out.vmscope"));
        run(command)
    };
    let mut first = start();
    attach().code(0);
    let mut second = start();
    let said = attach()
        .code(2)
        .says("2 processes are named `vmscope-named`");
    let lists = [&first, &second].map(|one| said.stderr.contains(&format!("{}  ", one.id())));
    said.check(lists == [true; 2], "a list of both");
    for one in [&mut first, &mut second] {
        one.kill().expect("our child");
        one.wait().expect("our child");
    }
    attach().code(1).says("is named `vmscope-named`");
}

#[test]
fn pages_and_completions_are_printed() {
    for (words, holds) in [
        ("man", "annotate"),
        ("man record", "\\-\\-call\\-graph"),
        ("man constituents", "\\-\\-detailed"),
        ("completions bash", "--call-graph"),
        ("completions zsh", "constituents"),
        ("completions fish", "call-graph"),
    ] {
        let words = words.split(' ');
        vmscope(["generate"].into_iter().chain(words))
            .code(0)
            .prints(holds);
    }
    vmscope(["generate", "man", "nothing"])
        .code(2)
        .says("`nothing`");
    for command in [
        "record",
        "attach",
        "report",
        "top",
        "view",
        "annotate",
        "export",
        "dump",
        "constituents",
        "doctor",
    ] {
        vmscope([command, "-h"]).code(0).prints("Examples:");
    }
}

#[test]
fn a_zombie_is_no_target() {
    let folder = Folder::new();
    let mut child = Command::new("true").spawn().expect("true starts");
    let stat = format!("/proc/{}/stat", child.id());
    await_that("it is a zombie", || {
        let text = std::fs::read_to_string(&stat).expect("it is not reaped");
        text.contains(") Z ").then_some(())
    });
    attach(child.id(), &folder).code(1).says("zombie");
    child.wait().expect("our child");
    attach(child.id(), &folder)
        .code(1)
        .says(&format!("no process {}", child.id()));
    nothing_is_left(&folder);
}

#[test]
fn a_kernel_thread_is_no_target() {
    let folder = Folder::new();
    let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if name.trim() != "kthreadd" {
        return skipped("no kernel threads are to be seen here");
    }
    attach(2, &folder).code(1).says("a kernel thread");
    nothing_is_left(&folder);
}

#[test]
fn a_thread_is_no_process() {
    let folder = Folder::new();
    let Some(target) = Target::known_shares(1) else {
        return;
    };
    let pid = target.pid();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let mut tids = tasks.map(|task| task.expect("a task").file_name());
    let tid = tids.find_map(|tid| {
        let tid: u32 = tid.to_str()?.parse().ok()?;
        (tid != pid).then_some(tid)
    });
    let says = format!("attach to {pid}");
    attach(tid.expect("its worker"), &folder)
        .code(1)
        .says(&says);
    nothing_is_left(&folder);
}

#[test]
fn somebody_elses_process_is_told_apart() {
    if !is_root() {
        return skipped("only root can be somebody else");
    }
    if !can_sample() {
        return;
    }
    let Some(target) = Target::known_shares(1) else {
        return;
    };
    let folder = Folder::new();
    let set = std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777));
    set.expect("our folder");
    // Other users may lack access to the build folder.
    let binary = folder.file("vmscope");
    std::fs::copy(env!("CARGO_BIN_EXE_vmscope"), &binary).expect("a copy");
    let mut command = Command::new(&binary);
    command
        .args(["attach", &target.pid().to_string()])
        .current_dir(folder.path())
        .uid(NOBODY)
        .gid(NOBODY);
    run(command)
        .code(1)
        .says("belongs to")
        .says(&target.pid().to_string());
    assert_eq!(folder.names(), ["vmscope"]);
}

#[test]
fn processes_that_exit_while_they_are_attached_to() {
    if !can_sample() {
        return;
    }
    for round in 0..24 {
        let folder = Folder::new();
        // From gone at once to gone in mid-recording.
        let mut child = Command::new("sleep")
            .arg(format!("0.0{round:02}"))
            .spawn()
            .expect("sleep starts");
        let pid = child.id();
        let reaper = std::thread::spawn(move || child.wait());
        let run = attach(pid, &folder);
        match run.status.code() {
            Some(0) => assert_eq!(folder.names(), ["out.vmscope"]),
            _ => {
                run.code(1).says(&pid.to_string());
                nothing_is_left(&folder);
            }
        }
        reaper.join().expect("no panic").expect("our child");
    }
}

#[test]
fn commands_that_can_not_be_run() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    record(&folder, &[], &["./no such program"])
        .code(127)
        .says("cannot run `./no such program`: no such file\n");
    record(&folder, &[], &["no such program"])
        .code(127)
        .says("no program of this name in the folders of PATH");
    record(&folder, &[], &["/proc/version"])
        .code(126)
        .says("/proc/version");
    record(&folder, &[], &["/"])
        .code(126)
        .says("cannot run `/`: a directory, not a program");
    nothing_is_left(&folder);
    vmscope(["record", "--"]).code(2).says("CMD");
}

#[test]
fn a_command_that_can_not_be_run_costs_no_earlier_recording() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    record(&folder, &["--quiet"], &["true"]).code(0);
    let before = std::fs::read(folder.file("out.vmscope")).expect("a recording");
    record(&folder, &[], &["./no such program"]).code(127);
    // Only the kernel finds that the interpreter is missing: after the session has begun.
    let script = folder.file("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let words = [script.to_str().expect("UTF-8")];
    record(&folder, &[], &words).code(127).says("cannot run");
    assert_eq!(folder.names(), ["out.vmscope", "script"]);
    let after = std::fs::read(folder.file("out.vmscope")).expect("a recording");
    assert!(before == after, "the earlier recording was touched");
}

#[test]
fn a_commands_end_is_passed_on() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    record(&folder, &[], &["sh", "-c", "exit 3"]).code(3);
    record(&folder, &[], &["false"]).code(1).prints("Threads");
    record(&folder, &[], &["sh", "-c", "kill -SEGV $$"]).code(128 + 11);
    record(&folder, &[], &["sh", "-c", "kill -KILL $$"]).code(128 + 9);
    record(&folder, &[], &["true"])
        .code(0)
        .says("the earlier recording was renamed to")
        .says("out.vmscope.old");
    assert_eq!(folder.names(), ["out.vmscope", "out.vmscope.old"]);
    report(&folder.file("out.vmscope"), &[])
        .code(0)
        .prints("true");
}

#[test]
fn rates_that_can_not_be_had() {
    let folder = Folder::new();
    for rate in ["0", "1000000", "NaN", "inf", "-5", "0.0000001"] {
        record(&folder, &["--rate", rate], &["true"])
            .code(2)
            .says("rate");
        let mut command = command(["attach", &std::process::id().to_string()]);
        command.arg("--output").arg(folder.file("out.vmscope"));
        command.arg(format!("--rate={rate}"));
        run(command).code(2).says("rate");
    }
    for duration in ["0", "-1", "NaN", "1e300"] {
        let options = [&format!("--duration={duration}")[..]];
        record(&folder, &options, &["true"]).code(2).says("seconds");
    }
    nothing_is_left(&folder);
}

#[test]
fn recordings_that_can_not_be_created() {
    let folder = Folder::new();
    let to = |path: &str| vmscope(["record", "--quiet", "--output", path, "--", "true"]);
    to(folder.path().to_str().expect("UTF-8"))
        .code(2)
        .says("is a directory: name a file in it with --output");
    nothing_is_left(&folder);
    let missing = to("/no such folder/recording").code(2);
    let errors = missing.stderr.matches("os error").count();
    missing.check(errors == 1, "one error");
}
