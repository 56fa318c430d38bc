//! What tests of snapshots share.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

pub mod image;
pub mod stacks;

use std::path::{Path, PathBuf};

use vmscope_cog::testing::Snapshot;

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/snapshots")
        .join(name)
}

pub fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

pub fn unpacked(name: &str) -> Vec<u8> {
    zstd::decode_all(std::fs::File::open(path(name)).unwrap()).unwrap()
}

pub fn snapshot(name: &str) -> Snapshot {
    let symbols = unpacked(&format!("{name}.symbols.tsv.zst"));
    let core = unpacked(&format!("{name}.core.zst"));
    Snapshot::new(core, &String::from_utf8(symbols).unwrap()).unwrap()
}
