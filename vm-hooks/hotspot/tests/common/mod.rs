//! What tests of JVMs share, here and in `viewer/tests/jvm`.

#![allow(clippy::disallowed_methods, reason = "tests print themselves")]
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::panic, reason = "tests fail by it")]

pub mod attach;
pub mod java;
pub mod jdks;
pub mod jvm;
pub mod oracle;
pub mod running;

use std::io::Write as _;
use std::time::{Duration, Instant};

/// Maximum wait on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

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

/// Polls again and again until `poll` finds something.
///
/// # Panics
/// If the awaited state does not occur.
pub fn await_that<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
