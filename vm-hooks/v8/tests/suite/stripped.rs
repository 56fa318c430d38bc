//! Node.js with exported symbols only: stripped releases, and Debian's package, whose V8 is in `libnode.so`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::common::nodes::{Node, RELEASES, debian, node};
use crate::common::skipped;
use crate::common::stopped::Stopped;
use vmscope_process::AdapterError;
use vmscope_records::{ConstituentKind, InterpreterRules, Record};
use vmscope_v8::launch::obstacle;
use vmscope_v8::testing::{all_code, constituents, new_code};

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

fn check_without_builtins(records: &[Record]) {
    let limits = limits(records);
    let [limit] = &limits[..] else {
        panic!("{limits:?}");
    };
    assert!(limit.contains("no symbols of its builtins"), "{limit}");
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
        if node.release >= 24 {
            // They export no list of isolates.
            let stopped = Stopped::run(&bare, &[], PROGRAM);
            let error = all_code(&stopped.view()).unwrap_err();
            assert!(
                matches!(error, AdapterError::MissingSymbol { .. }),
                "{error}"
            );
            assert!(error.remedy().contains("unstripped"), "{error}");
            let why = obstacle(&bare.program).expect("so its dump is needed");
            assert!(why.contains("stripped"), "{why}");
            continue;
        }
        let (whole, bare) = (read(&node), read(&bare));
        check_without_builtins(&bare);
        let [whole, bare] = [&whole, &bare].map(|records| bytes_of_handlers(records));
        // Gaps between handlers count for the handler before.
        assert!(
            bare >= whole && bare < whole + whole / 4,
            "{node:?}: {bare}, {whole}"
        );
    }
}

#[test]
fn debians_node_has_its_functions() {
    if let Some(node) = debian() {
        let records = read(&node);
        check_without_builtins(&records);
    }
}
