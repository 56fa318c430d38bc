//! Programs that can be read, told from others by their files.

use std::sync::Arc;

use crate::common::nodes::nodes;
use vmscope_process::testing::FakeMemory;
use vmscope_process::{MapEntry, ProcessView};
use vmscope_records::{Avma, FileOffset, Pid};
use vmscope_v8::V8;
use vmscope_v8::launch::obstacle;

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
