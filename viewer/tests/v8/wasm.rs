//! WebAssembly (docs/truth.md §3, §4): known shares of both compilers' code, and its places and names
//! beside V8's perf map.

use serde_json::Value;

use crate::agreement::{Detail, agrees};
use crate::common::vmscope::{Folder, can_sample, command, run};
use crate::common::whole::list;
use crate::common::{in_turn, say};
use crate::node::Recorded;
use crate::running::ready;
use crate::shares::recorded;
use crate::told::Telling;
use crate::v8::nodes::nodes;
use crate::zone::{is_told, text};

const PROGRAM: &str = "wasm_shares.js";

/// Number of functions of the program.
const FUNCTIONS: usize = 5;

fn is_function(one: &Value) -> bool {
    let begins = ["share_", "export_", "wasm-function"];
    begins
        .iter()
        .any(|begin| text(one, "name").starts_with(begin))
}

/// Checks that nearly all samples of the functions are in code of `tier`.
fn is_of_tier(recorded: &Recorded, tier: &str) {
    let all = recorded.samples(is_function);
    let of_tier = recorded.samples(|entry| is_function(entry) && entry["tier"] == tier);
    recorded.check(
        all > 1500 && of_tier * 100 > all * 98,
        &format!("{of_tier} of {all} samples are in code of {tier}"),
    );
}

#[test]
fn functions_of_webassembly() {
    if !can_sample() {
        return;
    }
    in_turn(&nodes(), 0).for_each(|node| {
        let recorded = recorded(node, &[], PROGRAM, &["--cycles", "700"]);
        let what = format!("Node {}, WebAssembly", node.release);
        agrees(&what, &recorded, &recorded.said[0], &[Detail::Functions]);
        is_of_tier(&recorded, "TurboFan");
        // The machine code tells the callers, from the first reading on, 0.1 to 0.2 s after the start.
        let samples = &recorded.profile.trace.samples;
        let guessed = samples.chain_ends.guessed;
        recorded.check(
            guessed * 10 < samples.times.len() as u64,
            &format!("{guessed} samples have callers by the frame pointer alone"),
        );
    });
}

#[test]
fn functions_of_webassembly_by_liftoff() {
    if !can_sample() {
        return;
    }
    in_turn(&nodes(), 1).for_each(|node| {
        let arguments = ["--liftoff", "--unnamed", "--cycles", "200"];
        let recorded = recorded(node, &["--liftoff-only"], PROGRAM, &arguments);
        let what = format!("Node {}, Liftoff", node.release);
        agrees(&what, &recorded, &recorded.said[0], &[Detail::Functions]);
        is_of_tier(&recorded, "Liftoff");
    });
}

#[test]
fn webassembly_is_where_v8_tells_it() {
    for node in nodes() {
        let place = Folder::new();
        let target = ready(
            &node,
            &["--perf-basic-prof"],
            &[PROGRAM, "--forever"],
            &place,
        );
        let pid = target.pid().to_string();
        let ran = run(command(["constituents", "--json", "--adapter=v8", &pid]));
        let zone: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let pid = target.pid();
        target.end();
        let telling = Telling::of_map(pid);
        let all = list(&zone["constituents"]).iter();
        let all: Vec<&Value> = all.filter(|one| is_function(one)).collect();
        let optimised = all.iter().filter(|one| text(one, "tier") == "TurboFan");
        let count = optimised.count();
        say(&format!(
            "WebAssembly of Node {}: {} pieces of code",
            node.release,
            all.len()
        ));
        assert_eq!(count, FUNCTIONS, "{all:#?}");
        let wrong: Vec<_> = all.iter().filter(|one| !is_told(one, &telling)).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
