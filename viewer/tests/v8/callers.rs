//! Callers of JavaScript (docs/truth.md §9), of all tiers, inlined and interpreted ones too.

use crate::common::vmscope::{Folder, can_sample, command, profile, run};
use crate::common::{in_turn, say};
use crate::node_callers::counts;
use crate::v8::nodes::nodes;
use vmscope_symbolizer::trace::ChainEnds;

#[test]
fn chains_are_those_that_v8_tells() {
    if !can_sample() {
        return;
    }
    for (turn, node) in nodes().iter().enumerate() {
        let slow = [
            ("Sparkplug", &["--no-opt", "--always-sparkplug"][..]),
            ("interpreter", &["--no-opt", "--no-sparkplug"]),
        ];
        for (what, flags) in in_turn(slow, turn).chain([("all tiers", &[][..])]) {
            let counts = counts(&node.program, &[], flags, &["--deoptimise"]);
            // Code has no name before its first reading, and after a collection.
            counts.have_none_wrong(&format!("Node {}, {what}", node.release));
        }
    }
}

/// A program of 0.3 s: the first samples come before vmscope knows its V8.
const SHORT: &str = "const end = Date.now() + 300; require('http'); while (Date.now() < end);";

/// A program of 2 s in a loop that V8 replaces by optimised code while it executes.
const LOOP: &str =
    "function hot(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i % 7; return sum; }
const end = Date.now() + 2000; let sum = 0; while (Date.now() < end) sum += hot(1e5);";

/// Records a program on each Node.js. `check` gets the number of its samples, the ends of their chains, and a text of both.
fn recorded(program: &str, rate: &str, check: impl Fn(u64, &ChainEnds, &str)) {
    if !can_sample() {
        return;
    }
    for node in nodes() {
        let folder = Folder::new();
        let file = folder.file("out.vmscope");
        let mut record = command(["record", "--quiet", rate, "--output"]);
        record.arg(&file).arg("--").arg(&node.program);
        record.args(["-e", program]);
        run(record).code(0);
        let samples = profile(&file).0.trace.samples;
        let (all, ends) = (samples.times.len() as u64, samples.chain_ends);
        let shown = format!("Node {}: {all} samples, {ends:?}", node.release);
        say(&shown);
        assert!(all > 300, "{shown}");
        check(all, &ends, &shown);
    }
}

#[test]
fn the_first_samples_of_a_program_have_callers() {
    // Before they waited for V8's rules: up to 175 of 1,600.
    recorded(SHORT, "--rate=5000", |_, ends, shown| {
        assert!(ends.broken <= 20, "{shown}");
    });
}

#[test]
fn callers_of_hot_loops_are_certain() {
    // Code for on-stack replacement has no begin of a function. Before its frame was known: up to 62 %.
    recorded(LOOP, "--rate=1400", |all, ends, shown| {
        assert!(ends.guessed * 8 < all, "{shown}");
    });
}
