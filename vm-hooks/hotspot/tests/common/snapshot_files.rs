//! Snapshots of real JVMs (`tests/snapshots/make`).

use std::path::{Path, PathBuf};

use vmscope_process::testing::Snapshot;

/// Folder of the snapshots.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")
}

/// The snapshot of this name, as `jdk17`.
pub fn snapshot(name: &str) -> Snapshot {
    let file = std::fs::File::open(folder().join(format!("{name}.snapshot.zst"))).unwrap();
    let bytes = zstd::decode_all(file).unwrap();
    Snapshot::from_bytes(&bytes).unwrap()
}
