//! Node.js with exported symbols only: stripped releases, and Debian's package, whose V8 is in `libnode.so`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use crate::common::nodes::{Node, RELEASES, debian, node};
use crate::common::skipped;
use crate::common::stopped::Stopped;
use vmscope_process::ProcessView;
use vmscope_records::{InterpreterRules, Record};
use vmscope_v8::V8;
use vmscope_v8::bytecodes::InstructionSet;
use vmscope_v8::contents::Contents;
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

/// V8's builtins by name: distance from the interpreter's entry, and size.
fn builtins(vm: &V8) -> BTreeMap<&str, (u64, u64)> {
    let entry = "Builtins_InterpreterEntryTrampoline";
    let entry = vm.builtins().find(|symbol| symbol.name == entry).unwrap();
    let each = vm.builtins().map(|symbol| {
        let distance = symbol.address.0.wrapping_sub(entry.address.0);
        (&*symbol.name, (distance, symbol.size))
    });
    each.collect()
}

fn instructions(view: &ProcessView, vm: &V8) -> InstructionSet {
    let isolate = vm.isolates(view.memory()).unwrap()[0];
    let tables = vm.tables(isolate, view.memory()).unwrap();
    InstructionSet::read(view, vm, (isolate, &tables)).unwrap()
}

#[test]
fn stripped_releases_have_the_same_builtins_and_instructions() {
    for node in RELEASES.into_iter().filter_map(node) {
        let folder = tempfile::tempdir().unwrap();
        let Some(bare) = stripped(&node, &folder) else {
            return;
        };
        let processes = [&node, &bare].map(|node| Stopped::run(node, &[], PROGRAM));
        let views = processes.each_ref().map(|process| process.view());
        let [whole, bare] = views
            .each_ref()
            .map(|view| V8::open(view).unwrap().unwrap());
        let [by_symbols, found] = [&whole, &bare].map(builtins);
        assert!(found.len() > 2_000, "{node:?}: {}", found.len());
        for (name, (at, size)) in &by_symbols {
            let Some((found_at, found_size)) = found.get(name) else {
                // Symbols of data and of the whole block begin with the same word.
                assert!(
                    !found.values().any(|(found_at, _)| found_at == at),
                    "{node:?}: {name}"
                );
                continue;
            };
            // The next builtin begins at most a block of 64 bytes behind.
            assert_eq!(found_at, at, "{node:?}: {name}");
            assert!(
                (*size..size + 128).contains(found_size),
                "{node:?}: {name}, {size}, {found_size}"
            );
        }
        let missing = found.keys().filter(|name| !by_symbols.contains_key(*name));
        assert_eq!(missing.count(), 0, "{node:?}");
        let [whole, bare] =
            [(&views[0], &whole), (&views[1], &bare)].map(|(view, vm)| instructions(view, vm));
        assert!(bare.has_operands(), "{node:?}");
        assert!(bare == whole, "{node:?}");
    }
}

#[test]
fn stripped_releases_have_their_functions() {
    for node in RELEASES.into_iter().filter_map(node) {
        let folder = tempfile::tempdir().unwrap();
        let Some(bare) = stripped(&node, &folder) else {
            return;
        };
        check(&read(&bare), &node);
    }
}

/// The records name builtins, and tell of nothing that is missing.
fn check(records: &[Record], node: &Node) {
    assert_eq!(limits(records), [""; 0], "{node:?}");
    let named = |name: &str| constituents(records).filter(|one| one.name == name).count();
    for name in [
        "LdaZero",
        "KeyedLoadIC_Megamorphic",
        "InterpreterEntryTrampoline",
    ] {
        assert!(named(name) > 0, "{node:?}: {name}");
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
        let contents = Contents::read(&view, &module).unwrap();
        let found = Variables::by_contents(&view, &module, &contents).unwrap();
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
        check(&read(&node), &node);
    }
}
