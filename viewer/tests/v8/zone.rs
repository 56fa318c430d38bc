//! `vmscope constituents` of Node.js beside V8's perf map of the same process, code object by code
//! object.

use serde_json::Value;

use crate::common::vmscope::{Folder, command, run};
use crate::common::whole::list;
use crate::common::{await_that, say};
use crate::running::ready;
use crate::told::Telling;
use crate::v8::nodes::{Node, nodes};

fn number(one: &Value, of: &str) -> u64 {
    let text = one[of].as_str().expect("an address");
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a hexadecimal number")
}

pub fn is_told(one: &Value, telling: &Telling) -> bool {
    let (start, end) = (number(one, "start"), number(one, "end"));
    telling.0.iter().any(|told| {
        let is_same = (told.start, told.start + told.size) == (start, end);
        let is_named = match one["kind"].as_str() {
            Some("method") => {
                (&*told.name.name, &*told.name.tier) == (text(one, "name"), text(one, "tier"))
            }
            _ => true,
        };
        is_same && is_named
    })
}

pub fn text<'v>(one: &'v Value, of: &str) -> &'v str {
    one[of].as_str().unwrap_or_default()
}

/// Functions whose Maglev code came after TurboFan's. V8 drops such code untold. A collection frees it
/// later.
fn made_in_vain(trace: &str) -> Vec<&str> {
    let end = "(target MAGLEV) because: A higher tier is already available]";
    let aborted = trace.lines().filter(|line| line.ends_with(end));
    let function = aborted.filter_map(|line| line.split_once("<JSFunction "));
    let name = function.filter_map(|(_, function)| function.split_once(" (sfi"));
    name.map(|(name, _)| name).collect()
}

fn are_told(node: &Node) {
    let place = Folder::new();
    let words = ["tiers.js", "--forever", "--text"];
    let trace = place.file("trace");
    let trace_to = format!("--redirect-code-traces-to={}", trace.display());
    let flags = [
        "--perf-basic-prof",
        "--trace-opt",
        "--redirect-code-traces",
        &trace_to,
    ];
    let target = ready(node, &flags, &words, &place);
    let pid = target.pid();
    let zone = await_that("vmscope lists the optimised function", || {
        let ran = run(command([
            "constituents",
            "--json",
            "--adapter=v8",
            &pid.to_string(),
        ]));
        let zone: Value = serde_json::from_str(&ran.stdout).ok()?;
        let mut all = list(&zone["constituents"]).iter();
        let is_there = all.any(|one| text(one, "name") == "fib" && text(one, "tier") == "TurboFan");
        is_there.then_some(zone)
    });
    target.end();
    let telling = Telling::of_map(pid);
    let all = list(&zone["constituents"]).iter();
    // V8 does not tell of builtins' entries in its heap.
    let all: Vec<&Value> = all.filter(|one| one["kind"] != "stub").collect();
    let trace = std::fs::read_to_string(trace).expect("V8's trace");
    let mut in_vain = made_in_vain(&trace);
    let aborted = in_vain.len();
    let (mut told, mut wrong) = (0, Vec::new());
    for one in &all {
        let is_vain = |name: &&str| text(one, "tier") == "Maglev" && text(one, "name") == *name;
        if is_told(one, &telling) {
            told += 1;
        } else if let Some(at) = in_vain.iter().position(is_vain) {
            in_vain.swap_remove(at);
        } else {
            wrong.push(one);
        }
    }
    let of_kind = |kind: &str| all.iter().filter(|one| one["kind"] == kind).count();
    say(&format!(
        "constituents of Node {}: {told} of {} as V8 tells them, {aborted} compilations in vain; {} methods, \
         {} regular expressions",
        node.release,
        all.len(),
        of_kind("method"),
        of_kind("regexp"),
    ));
    assert!(of_kind("method") >= 20, "{:#?}", zone["totals"]);
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
}

#[test]
fn code_is_where_v8_tells_it() {
    for node in nodes() {
        are_told(&node);
    }
}
