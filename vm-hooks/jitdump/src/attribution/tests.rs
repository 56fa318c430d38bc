use std::process::{Child, Command};

use vmscope_records::Pid;

use super::*;

fn requests(command: &[&str]) -> FileRequests {
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let launch = vmscope_process::Launch {
        command: command.clone(),
        folder_is_writable: true,
        files: Some(vmscope_process::FilesReason::Asked),
        ..Default::default()
    };
    let changes = crate::launch::launch_environment(&launch);
    let old = |name: &str| (name == "NODE_OPTIONS").then(|| "--no-warnings".into());
    FileRequests::new(&changes, old, &command)
}

/// A process with these command-line words, these variables, and the environment that `requests`
/// sets.
struct Sleeper(Child);

impl Sleeper {
    fn new(requests: &FileRequests, variables: &[(&str, &str)], word: &str) -> (Self, ProcessView) {
        let mut command = Command::new("tail");
        command.args(["-f", "/dev/null", "--", word]).env_clear();
        for (_, name, value) in &requests.set {
            command.env(name, std::ffi::OsStr::from_bytes(value));
        }
        command.envs(variables.iter().copied());
        command.stderr(std::process::Stdio::null());
        // std has seen the exec succeed when this returns.
        let child = command.spawn().unwrap();
        let view = ProcessView::open(Pid(child.id())).unwrap();
        (Sleeper(child), view)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn of(kind: VmKind, command: &[&str], variables: &[(&str, &str)], word: &str) -> (bool, bool) {
    let requests = requests(command);
    let (_sleeper, process) = Sleeper::new(&requests, variables, word);
    let environment = process.environment().unwrap();
    let ours = requests.of(kind, &process, Some(&environment));
    (ours.files, ours.logs)
}

const OURS: (bool, bool) = (true, true);
const NOT_OURS: (bool, bool) = (false, false);

#[test]
fn what_is_as_vmscope_set_it_is_ours() {
    for kind in [VmKind::V8, VmKind::CPython, VmKind::DotNet] {
        assert_eq!(
            of(kind, &["npm", "run", "x"], &[], "x.js"),
            OURS,
            "{kind:?}"
        );
    }
    let plain = [("PWD", "/home/me/x-perf-prof"), ("LANG", "C")];
    assert_eq!(of(VmKind::V8, &["node"], &plain, "--log-level=debug"), OURS);
    // Erlang's launcher passes its variables on in the command line.
    assert_eq!(of(VmKind::Beam, &["erl"], &[], "-JPperf true"), OURS);
}

#[test]
fn what_somebody_else_asks_for_is_theirs() {
    let node = &["node", "x.js"][..];
    for (kind, word) in [
        (VmKind::V8, "--perf-prof"),
        (VmKind::V8, "--perf_basic_prof"),
        (VmKind::CPython, "-Xperf"),
        (VmKind::CPython, "-X perf"),
        (VmKind::Beam, "-JPperf true"),
        (VmKind::Php, "x"),
        (VmKind::Other, "x"),
    ] {
        assert_eq!(of(kind, node, &[], word), NOT_OURS, "{kind:?} {word}");
    }
    assert_eq!(
        of(VmKind::Beam, &["erl"], &[], "-JPperf true -JPperf true"),
        NOT_OURS
    );
    for (kind, variable) in [
        (VmKind::V8, ("NODE_OPTIONS", "--perf-prof")),
        (VmKind::V8, ("NODE_OPTIONS", "")),
        (
            VmKind::V8,
            ("npm_lifecycle_script", "node --perf-prof x.js"),
        ),
        (VmKind::DotNet, ("COMPlus_PerfMapEnabled", "1")),
        (VmKind::CPython, ("PYTHONPERFSUPPORT", "true")),
    ] {
        assert_eq!(of(kind, node, &[variable], "x"), NOT_OURS, "{variable:?}");
    }
    let flags = [("ERL_FLAGS", "+JPperf true")];
    assert_eq!(of(VmKind::Beam, &["erl"], &flags, "x"), NOT_OURS);
}

#[test]
fn logs_that_somebody_asks_for_stay() {
    for word in [
        "--prof",
        "--log-code",
        "--log_all",
        "--logfile=x.log",
        "--no-logfile-per-isolate",
    ] {
        assert_eq!(
            of(VmKind::V8, &["node"], &[], word),
            (true, false),
            "{word}"
        );
    }
    for word in ["--profile", "--cpu-prof", "--log-file=x", "--login", "log"] {
        assert_eq!(of(VmKind::V8, &["node"], &[], word), OURS, "{word}");
    }
}

#[test]
fn one_that_is_over_is_like_all_others() {
    let over = || ProcessView::exited(Pid(1), Vec::new());
    let of = |requests: &FileRequests| {
        let ours = requests.of(VmKind::V8, &over(), None);
        (ours.files, ours.logs)
    };
    assert_eq!(of(&requests(&["sh", "-c", "node x.js"])), OURS);
    assert_eq!(
        of(&requests(&["sh", "-c", "node --perf-prof x.js"])),
        NOT_OURS
    );
    assert_eq!(
        of(&requests(&["sh", "-c", "node --prof x.js"])),
        (true, false)
    );
    // Once a process has a changed value of a requested variable.
    let mut requests = requests(&["make"]);
    let mut see = |variables: &[(&str, &str)], word| {
        let (_sleeper, process) = Sleeper::new(&requests, variables, word);
        let environment = process.environment().unwrap();
        requests.note(&process, Some(&environment));
        of(&requests)
    };
    assert_eq!(see(&[("CC", "gcc")], "-c 'node x.js'"), OURS);
    assert_eq!(see(&[], "-c 'node --prof x.js'"), (true, false));
    assert_eq!(see(&[], "-c 'node --perf-prof x.js'"), NOT_OURS);
}
