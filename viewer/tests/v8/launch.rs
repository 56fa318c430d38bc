//! `record` of Node.js: nothing in its environment changes, and nothing is left behind. A V8 that vmscope
//! does not know is recorded by its dump.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::common::programs::script;
use crate::common::vmscope::{Folder, can_sample};
use crate::common::whole::list;
use crate::node::Recorded;
use crate::v8::nodes::{node, nodes};

/// Prints its environment's NODE_OPTIONS, its flags and its version, and works for a while.
const TELLS: &str = "console.log(JSON.stringify({ options: process.env.NODE_OPTIONS ?? '', flags: process.execArgv, version: process.versions.node })); \
     const end = Date.now() + 300; while (Date.now() < end);";

fn limits(recorded: &Recorded) -> Vec<&str> {
    let limits = list(&recorded.document["session"]["limits"]).iter();
    limits.filter_map(|limit| limit["text"].as_str()).collect()
}

#[test]
fn a_readable_node_is_left_alone() {
    if !can_sample() {
        return;
    }
    for node in nodes() {
        let recorded = Recorded::of(&[], &node.program, ["-e", TELLS]);
        let told = &recorded.said[0];
        recorded.check(told["options"] == "", &format!("{told}"));
        let vm = &recorded.document["session"]["vm"];
        recorded.check(vm["version"] == told["version"], &format!("{vm} {told}"));
        assert_eq!(recorded.place.names(), [""; 0], "{node:?}");
    }
}

#[test]
fn files_are_asked_for_with_an_option() {
    let Some(node) = node(22).filter(|_| can_sample()) else {
        return;
    };
    for options in [&["--jit-env"][..], &["--adapter", "jitdump"]] {
        let recorded = Recorded::of(options, &node.program, ["-e", TELLS]);
        let told = recorded.said[0]["options"].as_str().expect("a text");
        recorded.check(told.contains("--perf-prof"), told);
        assert_eq!(recorded.place.names(), [""; 0], "{options:?}");
    }
}

/// Also behind a script's first line.
#[test]
fn a_node_of_an_unknown_version_is_recorded_by_its_dump() {
    let Some(node) = node(24).filter(|_| can_sample()) else {
        return;
    };
    let folder = Folder::new();
    let unknown = folder.file("node");
    node.as_unknown_version(&unknown);
    let started = folder.file("started");
    let text = std::fs::read_to_string(script("bench.js")).expect("a script");
    let text = format!("#!{}\n{text}", unknown.display());
    std::fs::write(&started, text).expect("our folder");
    std::fs::set_permissions(&started, std::fs::Permissions::from_mode(0o755)).expect("our file");
    for program in [&unknown, &started] {
        let bench = script("bench.js");
        let bench = bench.to_str().expect("UTF-8");
        let arguments = match program == &unknown {
            true => vec![bench, "--seconds", "2"],
            false => vec!["--seconds", "2"],
        };
        let recorded = Recorded::of(&[], program, arguments);
        let told = limits(&recorded);
        let is_told = told.iter().any(|text| text.contains("V8 99.6"));
        recorded.check(is_told, &format!("{told:?}"));
        let is_sieve = |entry: &Value| entry["name"] == "sieve" && entry["tier"] == "TurboFan";
        let sieve = recorded.samples(is_sieve);
        recorded.check(sieve > 50, &format!("sieve has {sieve} samples"));
        assert_eq!(recorded.place.names(), [""; 0], "{}", program.display());
    }
}
