//! `vmscope doctor` as it is called: output, exit codes, messages.

use std::process::{Command, Output};

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
    assert!(text.contains("there is no such process"), "{text}");
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
