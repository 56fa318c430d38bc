//! `vmscope constituents` of Node, by its jitdump.

use std::process::Command;

use serde_json::Value;

use crate::common::await_that;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, command, run};
use crate::common::whole::list;
use crate::node::tool;

const SCRIPT: &str = "function hot(n) { let s = 0; for (let i = 0; i < n; i++) { s = (s * 31 + i) % 1000003; } return s; }
    console.log('ready'); let t = 0; (function again() { for (let i = 0; i < 100; i++) t += hot(100000); setTimeout(again, 1); })();";

#[test]
fn the_code_of_node_is_that_of_its_dump() {
    let Some(node) = tool("node") else {
        return;
    };
    let folder = Folder::new();
    let start = |flags: &[&str]| {
        let mut command = Command::new(&node);
        command.args(flags).args(["-e", SCRIPT]);
        command
            .env_remove("NODE_OPTIONS")
            .current_dir(folder.path());
        Target::ready(command)
    };
    let silent = start(&[]);
    let child = start(&["--perf-prof"]);
    let detailed = [
        "constituents",
        "--json",
        "--detailed",
        "--adapter=jitdump",
        &child.pid().to_string(),
    ];
    let (zone, hot) = await_that("V8 writes of the optimised function", || {
        let ran = run(command(detailed));
        let zone: Value = serde_json::from_str(&ran.stdout).ok()?;
        let mut all = list(&zone["constituents"]).iter();
        let hot = all.find(|one| one["name"] == "hot" && one["tier"] == "TurboFan");
        let hot = hot.cloned();
        Some((zone, hot?))
    });
    assert_eq!(zone["vm"]["kind"], "Node.js");
    assert!(!list(&zone["totals"]).is_empty());
    let chains = list(&hot["map"]["chains"]).iter();
    let has_lines = |chain: &Value| chain[0]["method"] == "hot" && chain[0]["line"].is_u64();
    assert!(chains.clone().any(has_lines), "{hot}");

    // Without a dump or map, the VM is named, and what helps.
    let silent_pid = silent.pid().to_string();
    run(command(["constituents", "--adapter=jitdump", &silent_pid]))
        .code(1)
        .says("Node.js")
        .says("--perf-prof");
}
