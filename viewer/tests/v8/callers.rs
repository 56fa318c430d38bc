//! Callers of JavaScript (docs/truth.md §9), of all tiers, inlined and interpreted ones too.

use crate::common::in_turn;
use crate::common::vmscope::can_sample;
use crate::node_callers::counts;
use crate::v8::nodes::nodes;

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
