//! Callers of JavaScript (docs/truth.md §9) beside the stacks that V8 itself tells, in each tier and
//! release. Chains show inlined functions without names, so V8 inlines none here.

use crate::common::vmscope::can_sample;
use crate::node::counted_chains;
use crate::v8::nodes::nodes;

/// The first release with Maglev.
const MAGLEV: u32 = 22;

#[test]
fn chains_are_those_that_v8_tells() {
    if !can_sample() {
        return;
    }
    for node in nodes() {
        for (what, flags) in [
            ("all tiers", &["--no-turbo-inlining"][..]),
            ("Sparkplug", &["--no-opt", "--always-sparkplug"]),
            ("interpreter", &["--no-opt", "--no-sparkplug"]),
        ] {
            let maglev = match (node.release < MAGLEV, what) {
                (true, _) => None,
                (false, "all tiers") => Some("--no-maglev-inlining"),
                (false, _) => Some("--no-maglev"),
            };
            let flags: Vec<&str> = flags.iter().copied().chain(maglev).collect();
            let counts = counted_chains(&[], &node.program, &flags);
            counts.are_true(&format!("Node {}, {what}", node.release));
        }
    }
}
