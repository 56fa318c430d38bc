//! Workers and child processes: each has its own isolate and code.

use crate::common::programs::script;
use crate::common::vmscope::can_sample;
use crate::common::{in_turn, say};
use crate::node::Recorded;
use crate::v8::nodes::nodes;

#[test]
fn functions_of_workers_and_child_processes() {
    if !can_sample() {
        return;
    }
    for node in in_turn(nodes(), 1) {
        let recorded = Recorded::of(&[], &node.program, [script("family.js")]);
        recorded.check(recorded.said.len() == 4, &format!("{:?}", recorded.said));
        let (mut told, mut seen) = (Vec::new(), 0);
        for member in &recorded.said {
            let name = &member["function"];
            let samples = recorded.samples(|entry| entry["name"] == *name && entry["tier"] != "");
            seen += usize::from(samples >= 100);
            told.push(format!("{name} {samples}"));
        }
        // A worker may end before the first reading of its code.
        recorded.check(seen >= 2, &format!("{told:?}"));
        let named = recorded.named();
        say(&format!(
            "Node {}: {told:?}, {named:.4} named",
            node.release
        ));
        // Code that ran before each process's first reading has no name.
        recorded.check(named >= 0.5, &format!("{named} named"));
    }
}
