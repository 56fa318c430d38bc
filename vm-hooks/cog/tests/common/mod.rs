//! What tests of snapshots share.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

pub mod image;
pub mod stacks;

use std::path::{Path, PathBuf};

use vmscope_cog::describe::{Described, Describer, Name};
use vmscope_cog::map::{Map, MapEntry};
use vmscope_cog::testing::Snapshot;
use vmscope_cog::{Vm, Zone};
use vmscope_process::ProcessView;

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

/// A zone with descriptions of its entries.
pub struct Seen {
    pub vm: Vm,
    pub zone: Zone,
    pub described: Vec<Described>,
}

pub fn seen(process: &ProcessView) -> Seen {
    let vm = Vm::open(process).unwrap().unwrap();
    let memory = process.memory();
    let (zone, described) = vm
        .with_zone(memory, |zone, _| {
            let mut describer = Describer::new(&vm, zone, memory)?;
            let entries = zone.methods.entries.iter();
            let described = entries.map(|entry| describer.describe(entry));
            described.collect::<Result<Vec<_>, _>>()
        })
        .unwrap();
    Seen {
        vm,
        zone,
        described,
    }
}

/// The name of an entry: of a method, `#selector` of others.
pub fn name(described: &Described) -> String {
    match &described.name {
        Name::Method(name) => name.to_string(),
        Name::Selector(selector) => format!("#{selector}"),
        Name::Unknown => "?".to_owned(),
    }
}

/// Entries of a map; none without a frame.
pub fn pairs(map: &Map) -> &[MapEntry] {
    match map {
        Map::Entries(entries) => entries,
        Map::Frameless => &[],
        Map::Flawed(flaw) => panic!("{flaw}"),
    }
}

/// Machine code offsets with bytecodes.
pub fn places(map: &Map) -> Vec<(u32, u32)> {
    let entries = pairs(map).iter();
    entries.map(|one| (one.machine, one.bytecode)).collect()
}
