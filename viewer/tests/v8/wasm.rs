//! WebAssembly (docs/truth.md §3, §4): known shares of both compilers' code, of places in functions and of inlined functions;
//! its addresses and names beside V8's perf map.

use std::path::PathBuf;

use serde_json::Value;

use crate::agreement::{Detail, agrees};
use crate::common::vmscope::{Folder, can_sample, command, report, run, vmscope};
use crate::common::whole::list;
use crate::common::{in_turn, say};
use crate::node::Recorded;
use crate::running::{self, ready};
use crate::shares::recorded;
use crate::told::Telling;
use crate::v8::nodes::{Node, nodes};
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
        let recorded = recorded(node, &[], PROGRAM, &["--cycles", "450"]);
        let what = format!("Node {}, WebAssembly", node.release);
        agrees(&what, &recorded, &recorded.said[0], &[Detail::Functions]);
        is_of_tier(&recorded, "TurboFan");
        has_proven_callers(&recorded);
    });
}

/// The machine code tells the callers, from the first reading on, 0.1 to 0.2 s after the start.
fn has_proven_callers(recorded: &Recorded) {
    let samples = &recorded.profile.trace.samples;
    let guessed = samples.chain_ends.guessed;
    recorded.check(
        guessed * 10 < samples.times.len() as u64,
        &format!("{guessed} samples have callers by the frame pointer alone"),
    );
}

#[test]
fn functions_of_webassembly_by_liftoff() {
    if !can_sample() {
        return;
    }
    in_turn(&nodes(), 1).for_each(|node| {
        let arguments = ["--liftoff", "--unnamed", "--cycles", "220"];
        let recorded = recorded(node, &["--liftoff-only"], PROGRAM, &arguments);
        let what = format!("Node {}, Liftoff", node.release);
        agrees(&what, &recorded, &recorded.said[0], &[Detail::Functions]);
        is_of_tier(&recorded, "Liftoff");
        has_proven_callers(&recorded);
    });
}

/// Checks that `part` of `all` samples is a share of `expected`, but for chance and `error`.
fn is_share(what: &str, part: u64, all: u64, expected: f64, error: f64) {
    let [part, all] = [part, all].map(|samples| samples as f64);
    let chance = 4.0 * (expected * (1.0 - expected) / all).sqrt();
    let share = part / all;
    say(&format!(
        "{what}: {share:.3} of {all} samples, expected {expected:.3}"
    ));
    assert!(
        (share - expected).abs() < chance + error,
        "{what}: {share:.3} of {all}"
    );
}

/// A third of `two_loops` is its first loop, a quarter of `outer` and `inner` is `inner`. TurboFan inlines `inner` in new
/// releases. Liftoff's code has places of calls only.
#[test]
fn places_and_callers_in_functions_of_webassembly() {
    if !can_sample() {
        return;
    }
    in_turn(&nodes(), 1).for_each(|node| {
        let place = Folder::new();
        let file = has_callers(node, (&[], &["wasm_places.js"]), &place);
        let path = file.to_str().expect("UTF-8");
        let method = vmscope(["annotate", path, "two_loops", "--json"]);
        let method = method.code(0).json();
        let loops = list(&method["listing"]).iter();
        let loops = loops.filter(|line| text(line, "text") == "loop");
        let begins: Vec<u64> = loops.filter_map(|line| line["bytecode"].as_u64()).collect();
        let [_, second] = begins[..] else {
            panic!("{begins:?}: two loops");
        };
        let (mut first, mut all) = (0, 0);
        for row in list(&method["rows"]) {
            let samples = row["own"]["samples"].as_u64().unwrap_or(0);
            let Some(bytecode) = row["bytecode"].as_u64() else {
                continue;
            };
            all += samples;
            first += if bytecode < second { samples } else { 0 };
        }
        let own = method["own"]["samples"].as_u64().unwrap_or(0);
        assert!(all * 100 > own * 90, "{all} of {own} samples have a place");
        let what = format!("Node {}, the first loop", node.release);
        is_share(&what, first, all, 1.0 / 3.0, 0.02);
    });
    in_turn(&nodes(), 0).step_by(2).for_each(|node| {
        let words = (
            &["--liftoff-only"][..],
            &["wasm_places.js", "--liftoff"][..],
        );
        has_callers(node, words, &Folder::new());
    });
}

/// Checks the share and the caller of `inner`; returns the recording.
fn has_callers(node: &Node, (flags, words): (&[&str], &[&str]), place: &Folder) -> PathBuf {
    let file = place.file("recording");
    running::recorded(ready(node, flags, words, place), &file, 2500);
    let what = format!("Node {} {flags:?}, `inner`", node.release);
    let report = report(&file, &["--json"]).code(0).json();
    let samples = |name: &str| {
        let entries = list(&report["entries"]).iter();
        let own = entries.filter(|entry| text(entry, "name") == name);
        own.filter_map(|entry| entry["samples"].as_u64())
            .sum::<u64>()
    };
    let [inner, outer] = ["inner", "outer"].map(samples);
    is_share(&what, inner, inner + outer, 0.25, 0.03);
    let path = file.to_str().expect("UTF-8");
    let method = vmscope(["annotate", path, "inner", "--json"])
        .code(0)
        .json();
    let callers = list(&method["stacks"]["callers"]);
    let of_outer = callers
        .iter()
        .filter(|caller| text(caller, "method") == "outer");
    let of_outer: u64 = of_outer
        .filter_map(|caller| caller["samples"].as_u64())
        .sum();
    let all = method["stacks"]["inclusive"].as_u64().unwrap_or(0);
    assert!(
        of_outer * 1000 >= all * 995,
        "{what}: {of_outer} of {all} samples have `outer` as caller: {callers:?}"
    );
    file
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
