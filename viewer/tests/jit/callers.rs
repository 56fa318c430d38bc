//! Callers of JavaScript by V8's dump, beside the stacks that V8 itself tells. Functions that
//! TurboFan inlines have no names, so it inlines none here; interpreted functions have code of their
//! own.

use crate::node::{counted_chains, tool};

#[test]
fn chains_are_those_that_v8_tells() {
    let Some(node) = tool("node") else {
        return;
    };
    for (what, flags) in [
        ("all tiers", &["--no-turbo-inlining"][..]),
        ("Sparkplug", &["--no-opt", "--always-sparkplug"]),
        ("interpreter", &["--no-opt", "--no-sparkplug"]),
    ] {
        // Interpreted functions have names.
        let counts = counted_chains(&["--precise", "--adapter", "jitdump"], &node, flags);
        counts.are_true(&format!("Node, {what}"));
    }
}
