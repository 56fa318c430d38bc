//! What tests of Node.js share, here and in `viewer/tests/v8`.

#![allow(clippy::disallowed_methods, reason = "tests print themselves")]
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod nodes;

use std::io::Write as _;

/// Says loudly that a test proves nothing here: not by eprintln!, which the test harness keeps to
/// itself where a test passes.
pub fn skipped(why: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("stderr");
}
