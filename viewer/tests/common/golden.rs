//! What `vmscope` prints of a recording against the files of `tests/golden`.

use std::path::Path;
use std::process::Command;

/// What `vmscope report` prints of a recording.
#[allow(dead_code, reason = "not all tests report")]
pub fn report(file: &[u8], arguments: &[&str]) -> String {
    printed("report", file, arguments)
}

/// What a subcommand prints of a recording.
pub fn printed(subcommand: &str, file: &[u8], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.vmscope");
    std::fs::write(&path, file).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_vmscope"))
        .arg(subcommand)
        .arg(&path)
        .args(arguments)
        .output()
        .expect("vmscope");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Compares a report with a file, or writes it anew.
#[allow(dead_code, reason = "not all tests report")]
pub fn golden(name: &str, file: &[u8], arguments: &[&str]) {
    golden_of("report", name, file, arguments);
}

/// Compares what a subcommand prints with a file, or writes it anew.
pub fn golden_of(subcommand: &str, name: &str, file: &[u8], arguments: &[&str]) {
    let text = printed(subcommand, file, arguments);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("a golden file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{name} is not:\n{text}");
}
