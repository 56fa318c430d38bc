//! Callers of JavaScript (docs/truth.md §9), by V8's dump. Functions that TurboFan inlines have no names
//! there, so it inlines none here; interpreted functions have code of their own.

use crate::node::tool;
use crate::node_callers::counts;

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
        let counts = counts(&node, &["--jit-env", "--precise"], flags, &[]);
        counts.are_true(&format!("Node, {what}"));
    }
}
