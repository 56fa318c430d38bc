//! JavaScript with known shares (docs/truth.md §3, §4, §6): functions and lines, as V8's dump tells them:
//! lines of optimised code alone. The debug information that V8 writes for its baseline code counts in
//! bytecodes, not in bytes of code (seen in Node 20), and is of no use.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::agreement::{Detail, agrees, grows_by_that};
use crate::common::vmscope::{Folder, attached_by};
use crate::measured::JITTER;
use crate::node::{Recorded, ready, tool};

const LOOPS: &str = "2000,4000,6000,8000,3000,5000";

fn known_shares(flags: &[&str], arguments: &[&str]) -> Option<Recorded> {
    let arguments = [&["--jitter", JITTER, "--cycles", "1000"], arguments].concat();
    Recorded::node(flags, "known_shares.js", &arguments)
}

#[test]
fn optimised_functions_and_lines() {
    let Some(recorded) = known_shares(&[], &[]) else {
        return;
    };
    let program = &recorded.said[0];
    agrees(
        "optimised",
        &recorded,
        program,
        &[Detail::Functions, Detail::Lines],
    );
}

/// `--no-opt`: V8's baseline compiler makes the code, and tells no lines that are true.
#[test]
fn functions_that_are_not_optimised() {
    let Some(recorded) = known_shares(&["--no-opt"], &["--baseline", "--cycles", "1600"]) else {
        return;
    };
    let program = &recorded.said[0];
    agrees("--no-opt", &recorded, program, &[Detail::Functions]);
    // So nobody may say that he knows the line.
    let profile = &recorded.profile;
    for site in &profile.sites {
        let entry = &profile.entries[site.entry];
        if entry.name.starts_with("share_") {
            assert_eq!(site.frame.line, None, "{entry:?} {site:?}");
        }
    }
}

#[test]
fn a_running_process() {
    if tool("node").is_none() {
        return;
    }
    let (folder, place) = (Folder::new(), Folder::new());
    let arguments = ["--forever", "--jitter", JITTER];
    let mut target = ready(&["--perf-prof"], "known_shares.js", &arguments, &place);
    let working = attached_by(
        &["--adapter", "jitdump"],
        target.pid(),
        &folder.file("out.vmscope"),
        6000,
    );
    target.signal(Signal::SIGTERM);
    let program: Value = serde_json::from_str(&target.wait()).expect("its report");
    let run = working.end().code(0);
    let recorded = Recorded::read(&folder, place, run);
    agrees(
        "attach",
        &recorded,
        &program,
        &[Detail::Functions, Detail::Lines],
    );
}

/// docs/truth.md §6, as in the suite `truth`: `share_b` is made to take twice as long by its
/// loop count alone.
#[test]
fn a_range_slowed_down_grows_by_that_and_no_other_does() {
    let slower = LOOPS.replacen("4000", "8000", 1);
    let before = known_shares(&[], &["--loops", LOOPS]);
    let (Some(before), Some(after)) = (before, known_shares(&[], &["--loops", &slower])) else {
        return;
    };
    grows_by_that(&before, &after, Detail::Lines);
}
