//! What tests of Node.js share.

#![allow(clippy::disallowed_methods, reason = "tests print themselves")]
#![allow(clippy::panic, reason = "tests fail by it")]
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod nodes;
pub mod recorded;
pub mod stopped;

use std::io::Write as _;

/// Says loudly that a test proves nothing here.
pub fn skipped(why: &str) {
    say(&format!("SKIPPED: {why}"));
    if let Some(path) = std::env::var_os("VMSCOPE_SKIPPED") {
        let file = std::fs::File::options()
            .create(true)
            .append(true)
            .open(path);
        let _ = file.and_then(|mut file| writeln!(file, "  {why}"));
    }
}

/// Says something on stderr: not by eprintln!, which the test harness keeps to itself where a
/// test passes.
pub fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("stderr");
}
