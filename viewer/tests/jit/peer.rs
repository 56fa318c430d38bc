//! Agreement with perf (docs/truth.md §8), by the script that publishes it.

use std::path::Path;
use std::process::Command;

use crate::common::say;
use crate::node::tool;

/// Both profile one Node process simultaneously; the comparison is by function, with both errors.
#[test]
fn perf_sees_the_same() {
    let tools = ["node", "perf", "python3"].map(tool);
    if tools.iter().any(Option::is_none) {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/jit_against_perf.py");
    let output = Command::new("python3")
        .arg(script)
        .args([
            "--only",
            "agreement",
            "--seconds",
            "6",
            "--runs",
            "1",
            "--within",
            "7",
        ])
        .args(["--vmscope", env!("CARGO_BIN_EXE_vmscope")])
        .output()
        .expect("python3");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    say(&text);
    assert!(output.status.success(), "{text}\n{errors}");
}
