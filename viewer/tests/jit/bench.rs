//! A Node program of all sorts, from start to report.

use crate::common::say;
use crate::common::whole::list;
use crate::node::{Recorded, ratio};

/// Issue 4: named functions with tiers hold at least 98 % of user samples.
#[test]
fn nearly_all_has_a_name_and_each_line_of_a_hot_loop_its_samples() {
    let Some(recorded) = Recorded::node(&[], "bench.js", &["--seconds", "4"]) else {
        return;
    };
    let program = &recorded.said[0];
    let entry_is = |name: &'static str| move |entry: &serde_json::Value| entry["name"] == name;
    recorded.check(
        recorded.named() >= 0.98,
        &format!("{} named", recorded.named()),
    );

    // JavaScript has a tier, and the hot functions are mostly optimised.
    let script = |entry: &serde_json::Value| {
        entry["region"] == "generated" && (entry["kind"] == "method" || entry["kind"] == "regexp")
    };
    let without =
        recorded.samples(|entry| script(entry) && entry["tier"] == "" && entry["kind"] == "method");
    recorded.check(
        without == 0,
        &format!("{without} samples of methods without a tier"),
    );
    for name in ["fib", "sieve", "sumAreas", "allocate", "threeLines"] {
        let all = recorded.samples(entry_is(name));
        recorded.check(all >= 30, &format!("{name} has {all} samples"));
        let tiers = list(&recorded.document["entries"]).iter();
        let of_it: Vec<_> = tiers.filter(|entry| entry["name"] == name).collect();
        recorded.check(
            of_it[0]["tier"] == "TurboFan",
            &format!("{name}: {}", of_it[0]),
        );
        recorded.check(
            of_it[0]["file"]
                .as_str()
                .is_some_and(|file| file.ends_with("bench.js")),
            &format!("{name}: {}", of_it[0]["file"]),
        );
    }
    let regexp = recorded.samples(|entry| entry["kind"] == "regexp");
    recorded.check(
        regexp >= 100,
        &format!("{regexp} samples of the regular expression"),
    );

    // A call site with many shapes: every shape's method has samples or is inlined.
    let areas = recorded.samples(entry_is("area"));
    recorded.check(areas >= 30, &format!("area has {areas} samples"));

    // V8's own parts are told apart.
    for region in ["generated", "gc", "compiler", "vm"] {
        let samples = recorded.samples(|entry| entry["region"] == region);
        recorded.check(samples >= 5, &format!("{region} has {samples} samples"));
    }

    // Three loops on three lines, as 1 : 2 : 3 by their counts.
    let lines: Vec<u64> = ["first", "second", "third"]
        .iter()
        .map(|line| program["lines"][line].as_u64().expect("a line"))
        .collect();
    let mut hits = [0_u64; 3];
    let mut all = 0;
    for entry in list(&recorded.document["entries"]) {
        if entry["name"] != "threeLines" || entry["tier"] != "TurboFan" {
            continue;
        }
        for range in list(&entry["ranges"]) {
            let samples = range["samples"].as_u64().expect("a count");
            all += samples;
            let at = lines.iter().position(|line| range["line"] == *line);
            if let Some(at) = at {
                hits[at] += samples;
            }
        }
    }
    let told = format!("{hits:?} of {all} samples of threeLines on the lines {lines:?}");
    recorded.check(all >= 100 && ratio(hits.iter().sum(), all) > 0.95, &told);
    // What the counts promise, within a bound of six standard errors of so few samples.
    for (hit, part) in hits.iter().zip([1.0, 2.0, 3.0]) {
        let share = ratio(*hit, all);
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let error = (share * (1.0 - share) / all as f64).sqrt();
        let truth = part / 6.0;
        recorded.check((share - truth).abs() < 6.0 * error + 0.02, &told);
    }
    say(&format!(
        "bench.js: {:.2} % of {} user samples named; {told}",
        100.0 * recorded.named(),
        recorded.user_samples(),
    ));
}

/// The same without compilers: V8's interpreter, bytecode by bytecode.
#[test]
fn an_interpreter_by_its_bytecodes() {
    let flags = ["--no-opt", "--no-sparkplug"];
    let Some(recorded) = Recorded::node(&flags, "bench.js", &["--seconds", "2"]) else {
        return;
    };
    let handlers = recorded
        .samples(|entry| entry["region"] == "interpreter" && entry["tier"] == "bytecode handler");
    let share = ratio(handlers, recorded.user_samples());
    recorded.check(share >= 0.2, &format!("{share} in bytecode handlers"));
    let add = recorded.samples(|entry| entry["name"] == "Add" && entry["region"] == "interpreter");
    recorded.check(add > 0, "no Add");
    let optimised =
        recorded.samples(|entry| entry["tier"] == "TurboFan" && entry["kind"] == "method");
    recorded.check(optimised == 0, &format!("{optimised} optimised"));
}

/// Workers and child processes: each one's functions are its own.
#[test]
fn workers_and_child_processes() {
    let Some(recorded) = Recorded::node(&[], "family.js", &[]) else {
        return;
    };
    recorded.check(recorded.said.len() == 4, &format!("{:?}", recorded.said));
    for member in &recorded.said {
        let name = &member["function"];
        let samples = recorded.samples(|entry| entry["name"] == *name && entry["tier"] != "");
        recorded.check(samples >= 200, &format!("{name} has {samples} samples"));
    }
    recorded.check(
        recorded.named() >= 0.97,
        &format!("{} named", recorded.named()),
    );
    // Both processes are in the report.
    let mut pids: Vec<&serde_json::Value> = list(&recorded.document["threads"])
        .iter()
        .map(|thread| &thread["pid"])
        .collect();
    pids.sort_by_key(|pid| pid.as_u64());
    pids.dedup();
    recorded.check(pids.len() >= 2, &format!("{pids:?}"));
}
