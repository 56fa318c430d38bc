//! A script's source lines with its samples: `vmscope annotate` of Node.

use crate::common::programs::script;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::say;
use crate::common::vmscope::{Folder, command, report, run};
use crate::common::whole::list;
use crate::node::tool;

/// The loops of `threeLines` run 1 : 2 : 3 times; their lines are what V8 wrote down.
#[test]
fn a_script_has_its_lines_in_the_listing() {
    let Some(node) = tool("node") else {
        return;
    };
    let (folder, place) = (Folder::new(), Folder::new());
    let file = folder.file("out.vmscope");
    let mut record = command(["record", "--quiet", "--jit-env", "--output"]);
    record
        .arg(&file)
        .arg("--")
        .arg(node)
        .arg(script("bench.js"));
    record.args(["--seconds", "3"]).current_dir(place.path());
    run(record).code(0);
    let annotate = |arguments: &[&str]| {
        let mut command = command(["annotate"]);
        command.arg(&file).args(arguments);
        run(command).code(0)
    };
    annotate(&["threeLines", "--width=160"])
        .prints("at an approximate place, from the nearest debug record (marked ~)")
        .prints("TurboFan")
        .prints("// third")
        .prints("; ~ approximate");
    let document = annotate(&["threeLines", "--json"]).json();
    let text = std::fs::read_to_string(script("bench.js")).expect("the script");
    let samples = |comment: &str| {
        let number = text.lines().position(|line| line.ends_with(comment));
        let number = number.expect("a line") + 1;
        let rows = list(&document["rows"]).iter();
        let of_line = rows.filter(|row| row["line"].as_u64() == Some(number as u64));
        let own = of_line.map(|row| row["own"]["samples"].as_u64().expect("a count"));
        own.sum::<u64>()
    };
    let lines = ["// first", "// second", "// third"].map(samples);
    let all = document["all"]["samples"].as_u64().expect("a count");
    say(&format!("threeLines: {lines:?} of {all}"));
    assert!(lines.iter().sum::<u64>() * 10 > all * 8, "{document}");
    // A third of the other line's samples, among 150: chance would turn that round in less than one
    // of ten million runs.
    assert!(all >= 150 && lines[0] < lines[2], "{document}");

    // The report counts the same, in all tiers together.
    let report = report(&file, &["--json"]).code(0).json();
    let entries = list(&report["entries"]).iter();
    let ranges = entries
        .filter(|entry| entry["name"] == "threeLines")
        .flat_map(|entry| list(&entry["ranges"]));
    let count = |value: &Value| value.as_u64().expect("a count");
    let mut wanted = BTreeMap::new();
    for range in ranges {
        *wanted.entry(range["line"].as_u64()).or_insert(0) += count(&range["samples"]);
    }
    let rows = list(&document["rows"]).iter();
    let own = rows.map(|row| (row["line"].as_u64(), count(&row["own"]["samples"])));
    let own: BTreeMap<_, _> = own.filter(|(_, samples)| *samples > 0).collect();
    assert_eq!(own, wanted);
}
