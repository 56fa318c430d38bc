//! Chains of callers in programs/callers.js (docs/truth.md §9) beside the stacks that V8 itself tells.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::chains::{Counts, chains_of};
use crate::common::programs::script;
use crate::common::vmscope::{Folder, command, run};
use crate::common::whole::said;

/// Chains of `vmscope record OPTIONS -- NODE FLAGS callers.js ARGUMENTS`.
pub fn counts(node: &Path, options: &[&str], flags: &[&str], arguments: &[&str]) -> Counts {
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let mut recording = command(["record", "--quiet", "--output"]);
    recording
        .arg(&file)
        .args(options)
        .arg("--")
        .arg(node)
        .args(flags);
    let program = recording.arg(script("callers.js"));
    program.args(["--seconds", "2"]).args(arguments);
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
    assert_eq!(chains.len(), 11 + 2 * arguments.len(), "{chains:?}");
    // Code that ran before the first reading has no name.
    let mut export = command(["export", "--to", "collapsed", "--output", "-", "--from=0.5"]);
    export.arg(&file);
    let exported = run(export).code(0);
    Counts::of(&exported.stdout, &chains, function, &["_start"])
}
