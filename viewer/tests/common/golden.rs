//! What `vmscope` prints of a recording against the files of `tests/golden`.

use std::path::Path;
use std::process::Command;
use unicode_width::UnicodeWidthStr;

/// What `vmscope report --full` prints of a recording.
#[allow(dead_code, reason = "not all tests report")]
pub fn report(file: &[u8], arguments: &[&str]) -> String {
    printed("report", file, &[&["--full"], arguments].concat())
}

/// What a subcommand prints of a recording.
pub fn printed(subcommand: &str, file: &[u8], arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("x.vmscope"), file).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_vmscope"))
        .arg(subcommand)
        .current_dir(folder.path())
        .arg("x.vmscope")
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

/// Compares a full report with a file, or writes it anew.
#[allow(dead_code, reason = "not all tests report")]
pub fn golden(name: &str, file: &[u8], arguments: &[&str]) {
    golden_of("report", name, file, &[&["--full"], arguments].concat());
}

/// Compares what a subcommand prints with a file, or writes it anew.
pub fn golden_of(subcommand: &str, name: &str, file: &[u8], arguments: &[&str]) {
    golden_text(name, &printed(subcommand, file, arguments));
}

/// Compares a text with a file, or writes it anew.
pub fn golden_text(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("a golden file");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{name} is not:\n{text}");
}

/// No line is wider than `width`, and none disturbs a terminal.
#[allow(dead_code, reason = "not all tests ask for widths")]
#[track_caller]
pub fn fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{width}: {line}");
        assert!(
            !line.contains(['\u{1b}', '\u{202e}', '\r', '\t']),
            "{line:?}"
        );
    }
}

/// The default report has at most 50 lines at 100 columns.
#[allow(dead_code, reason = "not all tests ask for widths")]
#[track_caller]
pub fn fits_one_screen(file: &[u8], width: usize) {
    let text = printed("report", file, &[&format!("--width={width}")]);
    fits(&text, width);
    let lines = text.lines().count();
    assert!(width < 100 || lines <= 50, "{lines} lines:\n{text}");
}
