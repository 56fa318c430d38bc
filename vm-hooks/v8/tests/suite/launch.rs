//! Programs that can be read, told from others by their files.

use std::sync::Arc;

use crate::common::nodes::nodes;
use crate::common::stopped::Stopped;
use vmscope_process::testing::FakeMemory;
use vmscope_process::{Adapter as _, KeySource, MapEntry, Poll, ProcessView};
use vmscope_records::{Avma, FileOffset, Pid, ProcessKey, TimeNs};
use vmscope_v8::launch::obstacle;
use vmscope_v8::{V8, V8Adapter};

#[test]
fn known_releases_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for node in nodes() {
        assert_eq!(obstacle(&node.program), None, "{node:?}");
        let copy = folder.path().join("node");
        node.as_unknown_version(&copy);
        let why = obstacle(&copy).expect("an unknown version");
        assert!(why.contains("V8 99."), "{why}");
    }
}

/// `record` recognises a program before its version is there.
#[test]
fn the_version_is_known_after_the_start() {
    for node in nodes() {
        let stopped = Stopped::run(&node, &[], "bytecodes.js");
        let process = stopped.view();
        let mut vm = V8::open(&process).unwrap().expect("V8");
        let version = std::mem::take(&mut vm.product.version);
        let release = version.split('.').next().and_then(|it| it.parse().ok());
        assert_eq!(release, Some(node.release), "{version}");
        let mut adapter = V8Adapter::new(vm);
        assert_eq!(adapter.identity().version, "");
        let clock = Arc::new(|| TimeNs(1_000_000_000));
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock);
        adapter.poll(&process, &mut poll).expect("a poll");
        assert_eq!(adapter.identity().version, version);
    }
}

/// Only Node.js has builds with symbols of V8's data.
#[test]
fn a_program_without_symbols_of_v8() {
    let error_of = |path: &str| {
        let code = MapEntry {
            start: Avma(1 << 30),
            end: Avma((1 << 30) + (16 << 20)),
            offset: FileOffset(0),
            device: 1,
            inode: 1,
            name: path.as_bytes().to_vec(),
            readable: true,
            writable: false,
            executable: true,
        };
        let process = ProcessView::fake(Pid(7), Arc::new(FakeMemory::new()), vec![code]);
        V8::open(&process.with_symbols(path, Vec::new())).unwrap_err()
    };
    let deno = error_of("/x/deno");
    let expected = "cannot read Deno: the program does not tell the places of V8's data";
    assert_eq!((deno.in_full().as_str(), deno.remedy()), (expected, ""));
    assert!(error_of("/x/node").remedy().contains("unstripped"));
}
