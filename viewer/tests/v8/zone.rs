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

fn is_told(one: &Value, telling: &Telling) -> bool {
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

fn text<'v>(one: &'v Value, of: &str) -> &'v str {
    one[of].as_str().unwrap_or_default()
}

fn are_told(node: &Node) {
    let place = Folder::new();
    let words = ["tiers.js", "--forever", "--text"];
    let target = ready(node, &["--perf-basic-prof"], &words, &place);
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
    let wrong = all.iter().filter(|one| !is_told(one, &telling));
    let wrong: Vec<&&Value> = wrong.collect();
    let of_kind = |kind: &str| all.iter().filter(|one| one["kind"] == kind).count();
    say(&format!(
        "constituents of Node {}: {} of {} as V8 tells them; {} methods, {} regular expressions",
        node.release,
        all.len() - wrong.len(),
        all.len(),
        of_kind("method"),
        of_kind("regexp"),
    ));
    assert!(of_kind("method") >= 20, "{:#?}", zone["totals"]);
    let some = &wrong[..wrong.len().min(10)];
    // Once, code of Maglev was missing in V8's own map.
    assert!(wrong.len() <= 1, "{} are wrong: {some:#?}", wrong.len());
}

#[test]
fn code_is_where_v8_tells_it() {
    for node in nodes() {
        are_told(&node);
    }
}
