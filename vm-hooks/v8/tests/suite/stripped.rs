//! Node.js with exported symbols only: stripped releases, and Debian's package, whose V8 is in `libnode.so`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use crate::common::nodes::{Node, RELEASES, debian, node};
use crate::common::skipped;
use crate::common::stopped::Stopped;
use vmscope_records::{ConstituentKind, InterpreterRules, Record};
use vmscope_v8::V8;
use vmscope_v8::launch::obstacle;
use vmscope_v8::testing::{all_code, constituents, new_code};
use vmscope_v8::variables::{Table, Variables};

const PROGRAM: &str = "optimised.js";

/// Optimised functions of the program.
const FUNCTIONS: [&str; 4] = ["numeric", "objects", "recursive", "wide"];

fn limits(records: &[Record]) -> Vec<&str> {
    let limits = records.iter().filter_map(|record| match record {
        Record::Limit(limit) => Some(&*limit.text),
        _ => None,
    });
    limits.collect()
}

fn interpreter(records: &[Record]) -> &InterpreterRules {
    let rules = records.iter().find_map(|record| match record {
        Record::InterpreterRules(rules) => Some(rules),
        _ => None,
    });
    rules.expect("an interpreter")
}

/// Bytes of the handlers of bytecodes.
fn bytes_of_handlers(records: &[Record]) -> u64 {
    let handlers = constituents(records);
    let handlers = handlers.filter(|one| one.kind == ConstituentKind::Interpreter);
    let named = handlers.filter(|one| one.name != "InterpreterEntryTrampoline");
    named.map(|one| one.end.0 - one.start.0).sum()
}

/// Reads a process of `node`.
fn read(node: &Node) -> Vec<Record> {
    let stopped = Stopped::run(node, &[], PROGRAM);
    let view = stopped.view();
    assert_eq!(obstacle(Path::new(&view.program())), None, "{node:?}");
    let records = all_code(&view).unwrap();
    let optimised = new_code(&records).filter(|one| one.tier == "TurboFan");
    let names: BTreeSet<&str> = optimised.map(|one| &*one.name).collect();
    let missing = FUNCTIONS.iter().filter(|name| !names.contains(*name));
    assert_eq!(missing.count(), 0, "{node:?} {names:?}");
    let rules = interpreter(&records);
    assert!(!rules.ranges.is_empty(), "{node:?}");
    records
}

fn check_without_builtins(release: u32, records: &[Record]) {
    let limits = limits(records);
    let expected: &[&str] = match release {
        ..24 => &["no symbols of its builtins"],
        _ => &["no symbols of its builtins", "bytecodes are unknown"],
    };
    assert_eq!(limits.len(), expected.len(), "{limits:?}");
    for (limit, part) in limits.iter().zip(expected) {
        assert!(limit.contains(part), "{limit}");
    }
}

/// A stripped copy of the program; `None` without the tool.
fn stripped(node: &Node, folder: &tempfile::TempDir) -> Option<Node> {
    let program = folder.path().join("node");
    let mut command = Command::new("strip");
    let done = command.arg("-o").arg(&program).arg(&node.program).status();
    if done.is_err() {
        skipped("there is no `strip` here");
        return None;
    }
    assert!(done.unwrap().success());
    let release = node.release;
    Some(Node { program, release })
}

#[test]
fn stripped_releases_have_their_functions() {
    for node in RELEASES.into_iter().filter_map(node) {
        let folder = tempfile::tempdir().unwrap();
        let Some(bare) = stripped(&node, &folder) else {
            return;
        };
        let (whole, bare) = (read(&node), read(&bare));
        check_without_builtins(node.release, &bare);
        let [whole, bare] = [&whole, &bare].map(|records| bytes_of_handlers(records));
        // Gaps between handlers count for the handler before.
        assert!(
            bare >= whole && bare < whole + whole / 4,
            "{node:?}: {bare}, {whole}"
        );
    }
}

fn addresses(table: Option<Table>) -> Range<u64> {
    let Table { address, count } = table.unwrap();
    address.0..address.0 + count * 8
}

#[test]
fn what_variables_hold_tells_their_places() {
    for node in RELEASES.into_iter().filter_map(node).chain(debian()) {
        let stopped = Stopped::run(&node, &[], PROGRAM);
        let view = stopped.view();
        let module = V8::open(&view).unwrap().unwrap().product.module;
        let symbols = view.symbols_beginning(&module, &["_ZN2v88internal"], 1 << 20);
        let named = Variables::by_symbols(&symbols.unwrap());
        let found = Variables::by_contents(&view, &module).unwrap();
        let [platform, other] = [named, found].map(|variables| {
            let platform = view.memory().read_u64(variables.platform.unwrap());
            platform.unwrap()
        });
        assert_eq!(platform, other, "{node:?}");
        // Pointers around a table count for the table. V8 has no pointers at the end of the first.
        let [names, roots] = [named.references, named.roots].map(addresses);
        let [some, all] = [found.references, found.roots].map(addresses);
        assert!(names.contains(&some.start) && some.end > names.end - 0x100);
        assert!(all.start <= roots.start && roots.end <= all.end, "{node:?}");
    }
}

#[test]
fn debians_node_has_its_functions() {
    if let Some(node) = debian() {
        let records = read(&node);
        check_without_builtins(node.release, &records);
    }
}
