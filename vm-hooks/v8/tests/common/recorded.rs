//! Snapshots of Node.js.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test that fails is to panic; not all tests use all helpers"
)]

use std::path::Path;

use vmscope_process::testing::Snapshot;

/// Names of all snapshots.
pub const NAMES: [&str; 5] = ["node18", "node20", "node22", "node24", "node26"];

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    std::fs::read(folder.join(name)).unwrap()
}

/// Bytes of a snapshot.
pub fn bytes(name: &str) -> Vec<u8> {
    zstd::decode_all(&*file(&format!("{name}.snapshot.zst"))).unwrap()
}

pub fn snapshot(name: &str) -> Snapshot {
    Snapshot::from_bytes(&bytes(name)).unwrap()
}

/// V8's own list of compiled functions.
pub fn expected(name: &str) -> String {
    String::from_utf8(file(&format!("{name}.expected.tsv"))).unwrap()
}
