//! Complete recordings of a program, each in a separate folder.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::programs::{self, Program};
use super::targets::Target;
use super::vmscope::{Folder, Run, can_sample, command, report, run};

/// `vmscope record` of a program into `folder`; the run's stdout is both reports'.
pub fn record(folder: &Folder, options: &[&str], program: &Path, arguments: &[&str]) -> Run {
    let mut command = command(["record", "--full", "--output"]);
    command.arg(folder.file("out.vmscope")).args(options);
    command.arg("--").arg(program).args(arguments);
    run(command)
}

/// `vmscope attach` to a target into `folder`, for half a second.
pub fn attach(folder: &Folder, target: &Target) -> Run {
    attach_for("0.5", folder, target)
}

/// Likewise, for so many seconds.
pub fn attach_for(seconds: &str, folder: &Folder, target: &Target) -> Run {
    let mut command = command(["attach", &target.pid().to_string(), "--full"]);
    command.arg(format!("--duration={seconds}"));
    command.arg("--output").arg(folder.file("out.vmscope"));
    run(command)
}

/// Program, if the machine can build and sample it.
pub fn build(program: Program) -> Option<PathBuf> {
    let path = programs::build(program)?;
    can_sample().then_some(path)
}

/// JSON lines printed by the program.
pub fn said(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with("{\""));
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// The report of the recording in `folder`.
pub fn json(folder: &Folder) -> Value {
    report(&folder.file("out.vmscope"), &["--json"])
        .code(0)
        .json()
}

/// A list in JSON.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}
