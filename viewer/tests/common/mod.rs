//! What the integration tests share.

#![allow(clippy::disallowed_methods, reason = "tests print themselves")]
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::panic, reason = "tests fail by it")]

pub mod chains;
pub mod core_files;
pub mod pprof;
pub mod programs;
pub mod ran;
pub mod targets;
pub mod tmux;
pub mod vmscope;
pub mod whole;

use std::io::Write;
use std::time::{Duration, Instant};

/// How long anything that is awaited may take on a machine that is busy with other
/// things. Nobody waits that long for what works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Says loudly that a test proves nothing here.
pub fn skipped(why: &str) {
    say(&format!("SKIPPED: {why}"));
}

/// Says something on stderr: not by eprintln!, which the test harness keeps to itself
/// where a test passes.
pub fn say(text: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "{text}").expect("stderr");
}

/// Polls again and again until `poll` finds something.
///
/// # Panics
/// After the timeout.
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

/// Environment variable: the tests record in all ways, which takes some minutes.
pub const ALL: &str = "VMSCOPE_ALL_SHARES";

/// Every second of `all`, from the one of number `turn` on: releases take turns in tests of many ways. With
/// [`ALL`], all.
pub fn in_turn<T>(all: impl IntoIterator<Item = T>, turn: usize) -> impl Iterator<Item = T> {
    let every = std::env::var_os(ALL).is_some();
    let numbered = (turn..).zip(all);
    numbered.filter_map(move |(number, one)| (every || number.is_multiple_of(2)).then_some(one))
}

/// Whether this process is root's.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}
