//! Snapshots of Node.js: the reader finds the compiled functions that V8 itself listed
//! (`tests/snapshots/make`).

use std::collections::{BTreeMap, BTreeSet};

use crate::common::recorded::{NAMES, expected, snapshot};
use vmscope_process::ProcessView;
use vmscope_process::testing::Snapshot;
use vmscope_records::{Avma, Constituent, ConstituentKind, Record};
use vmscope_v8::testing::{Polls, all_code, middles, new_code};

/// A compiled function: size in bytes, sign of its tier, name.
type Compiled = (u64, String, String);

fn sign(tier: &str) -> &'static str {
    match tier {
        "Sparkplug" => "^",
        "Maglev" => "+",
        "TurboFan" => "*",
        _ => "?",
    }
}

fn compiled(records: &[Record]) -> BTreeMap<Avma, Compiled> {
    let methods = new_code(records).filter(|one| one.kind == ConstituentKind::Method);
    let described = |one: &Constituent| {
        let name = match &*one.name {
            "(anonymous)" | "(top level)" => "",
            name => name,
        };
        let size = one.end.0 - one.start.0;
        (
            one.start,
            (size, sign(&one.tier).to_owned(), name.to_owned()),
        )
    };
    methods.map(described).collect()
}

fn listed(name: &str) -> BTreeMap<Avma, Compiled> {
    let parsed = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [start, size, sign, name] = *fields.first_chunk().unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        (
            Avma(number(start)),
            (number(size), sign.to_owned(), name.to_owned()),
        )
    };
    expected(name).lines().map(parsed).collect()
}

/// V8 lists code that it has freed since then.
#[test]
fn compiled_functions_are_those_that_v8_listed() {
    for name in NAMES {
        let records = all_code(&snapshot(name).process()).unwrap();
        let (ours, theirs) = (compiled(&records), listed(name));
        let mut tiers = BTreeSet::new();
        for (start, one) in &ours {
            assert_eq!(Some(one), theirs.get(start), "{name} {start}");
            tiers.insert(one.1.as_str());
        }
        assert!(ours.len() > 40, "{name}: {}", ours.len());
        assert!(
            tiers.contains("^") && tiers.contains("*"),
            "{name}: {tiers:?}"
        );
        let names: BTreeSet<&str> = ours.values().map(|one| one.2.as_str()).collect();
        for function in [
            "numeric",
            "withInlined",
            "polymorphic",
            "recursive",
            "größe",
            "expressions",
        ] {
            assert!(names.contains(function), "{name} {function}");
        }
    }
}

#[test]
fn regular_expressions_are_listed_without_names() {
    for name in NAMES {
        let records = all_code(&snapshot(name).process()).unwrap();
        let is_expression = |one: &&Constituent| one.kind == ConstituentKind::RegExp;
        let expressions: Vec<&str> = new_code(&records)
            .filter(is_expression)
            .map(|one| one.name.as_str())
            .collect();
        assert!(!expressions.is_empty(), "{name}");
        assert!(
            expressions
                .iter()
                .all(|name| *name == "(regular expression)")
        );
    }
}

/// Kinds of changes: new code, gone code.
fn changes(records: &[Record]) -> (usize, usize) {
    let gone = |record: &&Record| matches!(record, Record::ConstituentGone(_));
    (
        new_code(records).count(),
        records.iter().filter(gone).count(),
    )
}

/// The process after V8 has lost its list of code.
fn without_list(snapshot: &Snapshot, lists: &[Avma]) -> ProcessView {
    let mut other = snapshot.clone();
    for at in lists {
        other.write(*at, &[0; 8]);
    }
    other.process()
}

/// Code that stays has no changes, with and without samples.
#[test]
fn code_that_stays_is_told_once() {
    for name in NAMES {
        let process = snapshot(name).process();
        let mut polls = Polls::open(&process).unwrap().unwrap();
        let first = polls.look(&process).unwrap();
        assert!(changes(&first).0 > 40);
        // A regular expression's code counts anew from its first sample on.
        let is_pattern = |one: &&Constituent| one.kind == ConstituentKind::RegExp;
        let patterns = new_code(&first).filter(is_pattern).count();
        let sampled = polls.hits(&process, middles(&first)).unwrap();
        assert_eq!(changes(&sampled), (patterns, patterns), "{name}");
        for records in [
            polls.hits(&process, middles(&first)),
            polls.look(&process),
            polls.hits(&process, Vec::new()),
            polls.finish(&process),
        ] {
            assert_eq!(changes(&records.unwrap()), (0, 0), "{name}");
        }
    }
}

/// Addresses of the root of the list of code, or sizes of the pages of code.
fn lists(snapshot: &Snapshot) -> Vec<Avma> {
    let trusted = "_ZN2v88internal15ThreadIsolation13trusted_data_E";
    let symbol = snapshot.symbols.iter().find(|one| one.name == trusted);
    let process = snapshot.process();
    match symbol {
        Some(symbol) => {
            let map = process.memory().read_u64(Avma(symbol.address.0 + 24));
            vec![Avma(map.unwrap() + 16)]
        }
        None => {
            let code = snapshot.mappings.iter();
            let code = code.filter(|entry| entry.executable && entry.path().is_none());
            code.map(|entry| Avma(entry.start.0 & !0x3ffff)).collect()
        }
    }
}

/// Samples find code that no look at all code has found, and the end of code.
#[test]
fn code_is_found_by_samples() {
    for name in NAMES {
        let snapshot = snapshot(name);
        let whole = snapshot.process();
        let empty = without_list(&snapshot, &lists(&snapshot));
        let all = all_code(&whole).unwrap();
        let mut polls = Polls::open(&empty).unwrap().unwrap();
        let first = polls.look(&empty).unwrap();
        assert_eq!(changes(&first).0, 0, "{name}");
        let mut found = polls.hits(&whole, middles(&all)).unwrap();
        // Functions of Sparkplug's code wait for the next reading of all functions.
        found.extend(polls.look(&whole).unwrap());
        assert_eq!(compiled(&found), compiled(&all), "{name}");
        // Among all are regular expressions' codes before and after their first samples.
        let (new, replaced) = changes(&all);
        assert_eq!(changes(&found), (new - replaced, 0), "{name}");

        let mut damaged = snapshot.clone();
        let code = new_code(&all).find(|one| one.tier == "TurboFan").unwrap();
        let header = match name {
            "node18" => 128,
            "node20" => 16,
            _ => 32,
        };
        damaged.write(Avma(code.start.0 - header), &[0; 128][..header as usize]);
        let records = polls.hits(&damaged.process(), vec![code.start]).unwrap();
        assert_eq!(changes(&records), (0, 1), "{name}");
    }
}
