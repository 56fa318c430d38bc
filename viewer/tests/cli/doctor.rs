//! `vmscope doctor` as it is called: output, exit codes, messages.

use std::process::{Command, Output};

use crate::common::targets::Target;
use serde_json::Value;

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmscope"))
        .arg("doctor")
        .args(arguments)
        .output()
        .expect("vmscope")
}

#[test]
fn the_exit_code_says_what_the_json_says() {
    let me = std::process::id().to_string();
    for arguments in [vec!["--json"], vec!["--json", &me]] {
        let output = doctor(&arguments);
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let works = document["works"].as_bool().expect("true or false");
        assert_eq!(output.status.code(), Some(i32::from(!works)));
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn what_can_not_be_attached_to_is_exit_code_1() {
    // No Linux has so many pids.
    let output = doctor(&["2147483647"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("no such process"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn what_is_not_a_pid_is_exit_code_2() {
    let output = doctor(&["node"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!output.stderr.is_empty());
}

/// What doctor says of a process as JSON and as text.
fn both(pid: u32) -> (Value, String) {
    let pid = pid.to_string();
    let json = doctor(&["--json", &pid]).stdout;
    let text = String::from_utf8(doctor(&[&pid]).stdout).expect("UTF-8");
    (serde_json::from_slice(&json).expect("JSON"), text)
}

#[test]
fn a_native_process_has_no_vm() {
    let Some(target) = Target::known_shares(1) else {
        return;
    };
    let (document, text) = both(target.pid());
    if document["process"]["vms"].is_null() {
        crate::common::skipped("the process can't be looked at here");
        return;
    }
    assert_eq!(document["process"]["vms"], serde_json::json!([]));
    assert!(text.contains("no known VM"), "{text}");
}

#[test]
fn node_is_asked_what_it_is_and_what_can_be_read() {
    let mut command = Command::new("node");
    command.args(["-e", "console.log('ready'); setInterval(() => {}, 1000)"]);
    if Command::new("node").arg("--version").output().is_err() {
        crate::common::skipped("there is no `node` here");
        return;
    }
    let target = Target::ready(command);
    let (document, text) = both(target.pid());
    let vms = &document["process"]["vms"];
    // The files that Node.js could write are not asked for.
    assert_eq!(vms.as_array().map(Vec::len), Some(1), "{document}");
    let (family, kind) = (&vms[0]["family"], &vms[0]["kind"]);
    assert_eq!((family, kind), (&"v8".into(), &"Node.js".into()), "{vms}");
    for fact in ["V8", "isolates"] {
        let mut facts = vms[0]["facts"].as_array().expect("a list").iter();
        assert!(facts.any(|one| one["name"] == fact), "{vms}");
    }
    assert!(vms[0]["found"]["code"].as_u64() > Some(0), "{vms}");
    assert!(text.contains("isolates: 1"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
