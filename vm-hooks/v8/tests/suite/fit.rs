//! Layouts that V8's objects confirm, against the layouts of known versions.

use vmscope_process::{AdapterError, ProcessView, monotonic_time};
use vmscope_v8::V8;
use vmscope_v8::collector::search;
use vmscope_v8::versions::{CollectorFields, Layout, ScopeFields};

use crate::common::nodes::{Node, node, nodes};
use crate::common::say;
use crate::common::stopped::Stopped;

/// A V8 with enough code and collections for all checks.
fn stopped(node: &Node) -> Stopped {
    Stopped::run(node, &["--allow-natives-syntax"], "optimised.js")
}

fn open(process: &ProcessView) -> V8 {
    V8::open(process).unwrap().expect("V8")
}

/// What the checks find of a layout. They leave WebAssembly's fields as they are in `before`; without
/// modules, scopes of modules, too.
fn found(layout: Layout, before: &Layout) -> Layout {
    Layout {
        scope: ScopeFields {
            counting_type: before.scope.counting_type,
            ..layout.scope
        },
        wasm: before.wasm,
        deopt: before.deopt,
        collector: None,
        spaces: None,
        ..layout
    }
}

fn version(vm: &V8) -> (u32, u32) {
    let mut numbers = vm
        .version
        .split('.')
        .map(|it| it.parse().expect("a number"));
    (
        numbers.next().expect("major"),
        numbers.next().expect("minor"),
    )
}

/// The checks choose a version's own layout among all.
#[test]
fn checks_find_the_own_layout() {
    for node in nodes() {
        let stopped = stopped(&node);
        let process = stopped.view();
        let known = open(&process);
        let own = version(&known);
        // The numbers of kinds are those of the nearest version.
        let (major, _) = own;
        for near in [own, (major, 0), (major, 9), (major + 1, 0)] {
            let mut vm = known.clone();
            let candidates = Layout::nearest(near, &vm.debug);
            let fit = vm.fit_layout(&process, &candidates).expect("a layout");
            say(&format!("{own:?} near {near:?}: {fit:?}"));
            assert_eq!(
                vm.layout,
                found(known.layout, &vm.layout),
                "{own:?} near {near:?}"
            );
        }
    }
}

/// Heap, tracer and events stand where the layouts of known versions have them.
#[test]
fn collectors_are_found_by_what_they_hold() {
    for node in nodes() {
        let stopped = Stopped::run(&node, &[], "collections.js");
        let process = stopped.view();
        let vm = open(&process);
        let known = vm.layout.collector.expect("a known version");
        let expected = CollectorFields {
            counts: None,
            figures: None,
            ..known
        };
        let lifetime = process.started().expect("a start")..=monotonic_time().expect("a clock");
        let isolates = vm.isolates(process.memory()).expect("isolates");
        assert!(isolates.len() > 1, "there is a worker");
        for isolate in isolates {
            let found = search::find(isolate, process.memory(), &lifetime).expect("a collector");
            assert_eq!(found, expected, "{}", vm.version);
        }
    }
}

/// Layouts of other versions are refused, or have the same fields.
#[test]
fn checks_refuse_other_layouts() {
    for node in nodes() {
        let stopped = stopped(&node);
        let process = stopped.view();
        let known = open(&process);
        let own = version(&known);
        let all = Layout::nearest(own, &known.debug);
        let others = all.iter().filter(|other| **other != all[0]);
        for other in others {
            let mut vm = known.clone();
            match vm.fit_layout(&process, &[*other]) {
                Ok(_) => assert_eq!(
                    vm.layout,
                    found(known.layout, &vm.layout),
                    "{own:?}: {other:?}"
                ),
                Err(error) => {
                    let is_refused = matches!(error, AdapterError::OtherVm { .. });
                    assert!(is_refused, "{own:?}: {error}");
                    say(&format!("{own:?}: {error}"));
                }
            }
        }
    }
}

/// Copies that call their V8 by an unknown version are read.
#[test]
fn an_unknown_version_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for release in [22, 24, 26] {
        let Some(known) = node(release) else { continue };
        let program = folder.path().join("node");
        known.as_unknown_version(&program);
        let copy = Node { program, release };
        let stopped = stopped(&copy);
        let vm = open(&stopped.view());
        assert!(vm.version.starts_with("99."), "{}", vm.version);
        let fit = vm.fit.expect("checks");
        assert!(fit.functions > 100 && fit.code > 8, "{fit:?}");
        let original = self::stopped(&known);
        let expected = found(open(&original.view()).layout, &vm.layout);
        assert_eq!(vm.layout, expected, "Node {release}");
    }
}
