//! Callers of JavaScript (docs/truth.md §9) beside the stacks that V8 itself tells. Functions that
//! TurboFan inlines have no names, so it inlines none here; interpreted functions have code of their
//! own.

use std::collections::BTreeSet;

use crate::common::chains::{Counts, chains_of};
use crate::common::programs::script;
use crate::common::vmscope::{Folder, command, run};
use crate::common::whole::said;
use crate::node::tool;

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
        let folder = Folder::new();
        let file = folder.file("out.vmscope");
        // Interpreted functions have names.
        let mut recording = command(["record", "--quiet", "--precise", "--output"]);
        recording.arg(&file).arg("--").arg(&node).args(flags);
        recording.arg(script("callers.js")).args(["--seconds", "3"]);
        recording.current_dir(folder.path());
        let recorded = run(recording).code(0);
        let told = &said(&recorded.stdout)[0];
        let functions: BTreeSet<&str> = (told["functions"].as_array().expect("names").iter())
            .filter_map(|name| name.as_str())
            .collect();
        let function = |frame: &str| {
            let frame = frame.strip_prefix("get ").unwrap_or(frame);
            let name = frame.split([' ', '(', '_']).next()?;
            let name = name.rsplit('.').next()?;
            functions.contains(name).then(|| name.to_owned())
        };
        let chains = chains_of(&told["chains"], function);
        assert_eq!(chains.len(), 11, "{chains:?}");
        let mut export = command(["export", "--to", "collapsed", "--output", "-"]);
        export.arg(&file);
        let exported = run(export).code(0);
        let counts = Counts::of(&exported.stdout, &chains, function, &["_start"]);
        counts.are_true(&format!("Node, {what}"));
    }
}
