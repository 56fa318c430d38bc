//! The report's options do what they say, and its JSON keeps its schema
//! (docs/report-json.md).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::programs::{self, Program};
use crate::common::vmscope::{Folder, can_sample, command, report, run};
use serde_json::Value;

/// A whole recording of a program; `None` where there can't be one.
fn recording(folder: &Folder, program: Program, arguments: &[&str]) -> Option<PathBuf> {
    let program = programs::build(program)?;
    if !can_sample() {
        return None;
    }
    let path = folder.file("out.vmscope");
    let mut command = command(["record", "--quiet", "--output"]);
    command.arg(&path).arg("--").arg(program).args(arguments);
    run(command).code(0);
    Some(path)
}

fn json(path: &Path, options: &[&str]) -> Value {
    report(path, &[&["--json"], options].concat())
        .code(0)
        .json()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn total(document: &Value) -> u64 {
    number(&document["samples"]["total"])
}

fn sum(parts: &Value) -> u64 {
    list(parts)
        .iter()
        .map(|part| number(&part["samples"]))
        .sum()
}

/// Regions, threads, entries and ranges each hold every sample once.
#[track_caller]
fn sums_agree(document: &Value) {
    let total = total(document);
    for part in ["regions", "threads", "entries"] {
        assert_eq!(sum(&document[part]), total, "{part} of {document}");
    }
    for entry in list(&document["entries"]) {
        assert_eq!(sum(&entry["ranges"]), number(&entry["samples"]), "{entry}");
        let region = |part: &&Value| part["region"] == entry["region"];
        let region = list(&document["regions"]).iter().find(region);
        assert!(number(&region.expect("a region")["samples"]) >= number(&entry["samples"]));
    }
    for part in ["categories", "methods", "threads"] {
        assert_eq!(
            sum(&document["matrix"][part]),
            total,
            "{part} of the matrix"
        );
    }
    for category in list(&document["matrix"]["categories"]) {
        for part in ["methods", "threads"] {
            assert_eq!(
                sum(&category[part]),
                number(&category["samples"]),
                "{category}"
            );
        }
    }
    let samples = &document["samples"];
    let kinds = [
        "exact",
        "approximate",
        "method_only",
        "unresolved",
        "doubtful",
    ];
    let kinds: u64 = kinds.iter().map(|kind| number(&samples[kind])).sum();
    assert_eq!(kinds, total, "{samples}");
}

fn field_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                field_names(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| field_names(value, names)),
        _ => {}
    }
}

#[test]
fn the_json_keeps_its_schema_and_its_sums_agree() {
    let folder = Folder::new();
    let arguments = ["--seconds", "0.4"];
    let Some(path) = recording(&folder, programs::INLINED, &arguments) else {
        return;
    };
    let document = json(&path, &[]);
    sums_agree(&document);
    sums_agree(&json(&path, &["--inlined"]));
    let narrowed = json(&path, &["--from", "0.01", "--to", "0.3"]);
    sums_agree(&narrowed);

    // The fields that were promised.
    assert_eq!(document["schema"], "vmscope-report/2.5");
    for (part, fields) in [
        (
            "session",
            "vm command pid seconds clock rate_hz engine limits",
        ),
        (
            "samples",
            "total vm promised lost unresolved doubtful approximate",
        ),
    ] {
        for field in fields.split(' ') {
            assert!(
                document[part].get(field).is_some(),
                "{part}.{field}: {document}"
            );
        }
    }
    let regions = list(&document["regions"])
        .iter()
        .map(|part| &part["region"]);
    let regions: Vec<&str> = regions.filter_map(Value::as_str).collect();
    let all = "generated interpreter gc compiler program library kernel idle unknown";
    assert_eq!(regions.join(" "), all);
    for thread in list(&document["threads"]) {
        for field in ["tid", "name", "role", "samples", "cpu_ns"] {
            assert!(thread.get(field).is_some(), "{field}: {thread}");
        }
    }
    for entry in list(&document["entries"]) {
        for field in ["name", "region", "kind", "tier", "samples", "ranges"] {
            assert!(entry.get(field).is_some(), "{field}: {entry}");
        }
        for range in list(&entry["ranges"]) {
            for field in [
                "from",
                "to",
                "method",
                "via",
                "line",
                "exactness",
                "samples",
            ] {
                assert!(range.get(field).is_some(), "{field}: {range}");
            }
        }
    }

    // And each of them is described.
    let mut names = BTreeSet::new();
    field_names(&document, &mut names);
    field_names(&narrowed, &mut names);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/report-json.md");
    let page = std::fs::read_to_string(page).expect("docs/report-json.md");
    for name in &names {
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not described"
        );
    }
    for (words, what) in [
        ("vmscope-report/2.5", "the version"),
        ("method only", "exactness"),
    ] {
        assert!(page.contains(words), "{what}");
    }
}

#[test]
fn windows_and_threads_narrow_the_report() {
    let folder = Folder::new();
    let arguments = ["--threads", "2", "--cycles", "150"];
    let Some(path) = recording(&folder, programs::KNOWN_SHARES, &arguments) else {
        return;
    };
    let whole = json(&path, &[]);
    let seconds = whole["session"]["seconds"].as_f64().expect("a number");
    let middle = format!("{:.3}", seconds / 2.0);
    let (first, second) = (
        json(&path, &["--to", &middle]),
        json(&path, &["--from", &middle]),
    );
    // Both halves together hold every sample once.
    assert_eq!(total(&first) + total(&second), total(&whole));
    let half = first["session"]["seconds"].as_f64().expect("a number");
    assert!((half - seconds / 2.0).abs() < 0.01, "{half} of {seconds}");
    assert!(first["session"]["filter"].is_object() && whole["session"]["filter"].is_null());

    let one = json(&path, &["--threads", "share-0"]);
    assert_eq!(list(&one["threads"]).len(), 1);
    assert_eq!(one["threads"][0]["name"], "share-0");
    let of_whole = list(&whole["threads"]).iter();
    let mut of_whole = of_whole.filter(|thread| thread["name"] == "share-0");
    assert_eq!(
        of_whole.next().expect("it is there")["samples"],
        one["threads"][0]["samples"]
    );
    let tid = one["threads"][0]["tid"].to_string();
    assert_eq!(total(&json(&path, &["--threads", &tid])), total(&one));
    let both = json(&path, &["--threads", "share-*"]);
    let by_list = json(&path, &["--threads", "share-0,share-1"]);
    assert_eq!(total(&both), total(&by_list));
    sums_agree(&both);

    report(&path, &["--threads", "nobody"])
        .code(2)
        .says("nobody");
    report(&path, &["--from", "2", "--to", "1"])
        .code(2)
        .says("the window is empty: it begins at 2 s and ends at 1 s");
    report(&path, &["--from", "-1"]).code(2).says("seconds");
    report(&path, &["--from", "99999"])
        .code(2)
        .says("--from 99999 is after the recording's end");
}

#[test]
fn the_texts_form_follows_its_options() {
    let folder = Folder::new();
    let arguments = ["--threads", "2", "--cycles", "150"];
    let Some(path) = recording(&folder, programs::KNOWN_SHARES, &arguments) else {
        return;
    };
    // Names come in order; the kernel's many small entries go to ...others...
    let by_name = report(&path, &["--sort", "name", "--min-share", "5"]).code(0);
    let places = [
        "share_a",
        "share_b",
        "share_c",
        "share_d",
        "share_two_lines",
    ];
    let places = places.map(|name| by_name.stdout.find(&format!("  {name} ")));
    let sorted = places.iter().all(Option::is_some) && places.is_sorted();
    let by_name = by_name.check(sorted, "sorted by name");
    // share_a has 7 % of its group.
    let few = report(&path, &["--min-share", "10"])
        .code(0)
        .prints("...others... (");
    // Callers are another section.
    let (entries, _) = few
        .stdout
        .split_once("**Methods")
        .unwrap_or((&few.stdout, ""));
    let gathered = !entries.contains("share_a") && by_name.stdout.contains("share_a");
    few.check(gathered, "share_a is in ...others...");

    for (width, most) in [("72", 72), ("120", 120), ("10", 64)] {
        let run = report(&path, &["--width", width]).code(0);
        let widest = run.stdout.lines().map(|line| line.chars().count()).max();
        run.check(
            widest <= Some(most),
            &format!("{widest:?} > {most} columns"),
        );
    }
    // Native code is split into lines only where it is asked for.
    let all = report(&path, &["--ranges", "all"])
        .code(0)
        .prints("known_shares.c:");
    let none = report(&path, &["--ranges", "none"]).code(0);
    let auto = report(&path, &[]).code(0);
    // Inlined functions with hits have rows of their own, which show the calls' lines.
    let split = |line: &str| line.contains("%    known_shares.c:");
    let unsplit = !none.stdout.contains(".c:") && !auto.stdout.lines().any(split);
    let splits = all.stdout.lines().filter(|line| split(line)).count();
    auto.check(unsplit && splits > 4, "lines only if asked for");
    report(&path, &["--min-share", "101"])
        .code(2)
        .says("percentage");
    report(&path, &["--sort", "luck"]).code(2).says("luck");
}

#[test]
fn inlined_functions_are_entries_only_if_asked_for() {
    let folder = Folder::new();
    let arguments = ["--seconds", "0.4"];
    let Some(path) = recording(&folder, programs::INLINED, &arguments) else {
        return;
    };
    let (split, whole) = (json(&path, &["--inlined"]), json(&path, &[]));
    let of = |document: &Value, name: &str| -> u64 {
        let entries = list(&document["entries"]).iter();
        let named =
            entries.filter(|entry| entry["name"].as_str().is_some_and(|n| n.contains(name)));
        named.map(|entry| number(&entry["samples"])).sum()
    };
    assert!(of(&split, "mix") > of(&split, "relax"), "{split}");
    assert_eq!(of(&whole, "mix"), 0, "{whole}");
    assert!(of(&whole, "relax") >= of(&split, "mix"), "{whole}");
    assert_eq!(total(&split), total(&whole));
    let via = "\"via\": [";
    assert!(report(&path, &["--json"]).stdout.contains(via));
}
