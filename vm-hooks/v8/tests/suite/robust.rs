//! Damaged memory: every reading ends, with records or an error.

use std::sync::LazyLock;

use crate::common::recorded::{NAMES, bytes, snapshot};
use proptest::prelude::*;
use vmscope_process::testing::{FakeMemory, Patchable, Snapshot};
use vmscope_process::{AdapterError, MAX_RECORDS_OF_A_POLL};
use vmscope_records::{Avma, Record};
use vmscope_v8::V8;
use vmscope_v8::debug::Debug;
use vmscope_v8::object::{Heap, Tagged};
use vmscope_v8::testing::{all_code, constituents, new_code};
use vmscope_v8::versions::Layout;

static SNAPSHOTS: LazyLock<[Patchable; NAMES.len()]> =
    LazyLock::new(|| NAMES.map(|name| Patchable::new(&bytes(name)).unwrap()));

fn is_within_bounds(read: &Result<Vec<Record>, AdapterError>) {
    match read {
        Err(error) => assert!(!error.in_full().is_empty()),
        Ok(records) => {
            assert!(records.len() < 3 * MAX_RECORDS_OF_A_POLL);
            for one in constituents(records) {
                assert!(one.start < one.end && one.name.len() <= 4 * 512, "{one:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_and_pointers_that_are_wrong(
        which in 0..4_usize,
        patches in prop::collection::vec(any::<u8>(), 12..768),
    ) {
        is_within_bounds(&all_code(&SNAPSHOTS[which].process(&patches)));
    }
}

fn word(snapshot: &Snapshot, at: u64) -> u64 {
    snapshot.process().memory().read_u64(Avma(at)).unwrap()
}

fn symbol(snapshot: &Snapshot, name: &str) -> u64 {
    let found = snapshot.symbols.iter().find(|one| one.name.contains(name));
    found.unwrap().address.0
}

fn with_word(snapshot: &Snapshot, at: u64, value: u64) -> Snapshot {
    let mut other = snapshot.clone();
    other.write(Avma(at), &value.to_le_bytes());
    other
}

fn limits(records: &[Record]) -> Vec<&str> {
    let limits = records.iter().filter_map(|record| match record {
        Record::Limit(limit) => Some(&*limit.text),
        _ => None,
    });
    limits.collect()
}

/// Nodes of V8's list of code that are their own children, or lie nowhere.
#[test]
fn lists_of_code_without_an_end() {
    // Earlier releases have no such list.
    for name in &NAMES[2..] {
        let snapshot = snapshot(name);
        let map = word(&snapshot, symbol(&snapshot, "trusted_data_") + 24);
        let root = word(&snapshot, map + 16);
        for (left, right, limit) in [
            (root, 0, "changed while vmscope read it"),
            (root, root, "more code than vmscope lists"),
            (8, u64::MAX, "unreadable"),
        ] {
            let other = with_word(&snapshot, root + 16, left);
            let other = with_word(&other, root + 24, right);
            let records = all_code(&other.process()).unwrap();
            let limits = limits(&records);
            assert!(
                limits.iter().any(|text| text.contains(limit)),
                "{name} {limits:?}"
            );
        }
    }
}

/// Pages of impossible sizes have no code; objects of impossible sizes end their page.
#[test]
fn pages_and_code_of_impossible_sizes() {
    for name in ["node18", "node20"] {
        let whole = snapshot(name);
        let known = new_code(&all_code(&whole.process()).unwrap()).count();
        let code = whole.mappings.iter();
        let code = code.filter(|entry| entry.executable && entry.path().is_none());
        let pages: Vec<u64> = code.map(|entry| entry.start.0 & !0x3ffff).collect();
        for (offset, value) in [
            (0, 0),
            (0, 1 << 63),
            (24, u64::MAX),
            (32, u64::MAX),
            (32, 0),
        ] {
            let mut other = whole.clone();
            for page in &pages {
                other.write(Avma(page + offset), &u64::to_le_bytes(value));
            }
            let records = all_code(&other.process()).unwrap();
            assert_eq!(new_code(&records).count(), 0, "{name} {offset} {value:x}");
        }
        let records = all_code(&whole.process()).unwrap();
        let first = new_code(&records).min_by_key(|one| one.start).unwrap();
        for size in [0_u32, u32::MAX, 1 << 31] {
            // The size of the code is behind its object's header.
            let process = whole.process();
            let vm = V8::open(&process).unwrap().unwrap();
            let object = match vm.layout.stream.code {
                None => first.start.0 - vm.layout.stream.start,
                Some(at) => word(&whole, first.start.0 - vm.layout.stream.start + at) - 1,
            };
            let mut other = whole.clone();
            other.write(Avma(object + vm.layout.code.size), &size.to_le_bytes());
            let records = all_code(&other.process()).unwrap();
            let found = new_code(&records);
            assert!(
                { found }.all(|one| one.start != first.start),
                "{name} {size}"
            );
            assert!(new_code(&records).count() < known);
        }
    }
}

/// The list of isolates leads to itself, nowhere, or is empty.
#[test]
fn lists_of_isolates() {
    for name in NAMES {
        let snapshot = snapshot(name);
        let known = new_code(&all_code(&snapshot.process()).unwrap()).count();
        let platform = word(&snapshot, symbol(&snapshot, "9platform_E"));
        let node = word(&snapshot, platform + 0x40);
        let cyclic = with_word(&snapshot, node, node);
        let records = all_code(&cyclic.process()).unwrap();
        assert_eq!(new_code(&records).count(), known, "{name}");
        for (at, value) in [(node, 8), (node + 8, 8), (platform + 0x40, 0)] {
            let error = all_code(&with_word(&snapshot, at, value).process()).unwrap_err();
            assert!(!error.in_full().is_empty());
        }
    }
}

const MAP: u64 = 0x1000;
const STRING: u64 = 0x2000;

/// A string of `kind` (its type) with this length and these fields.
fn string(kind: u16, length: u32, fields: [u64; 2]) -> FakeMemory {
    let mut memory = FakeMemory::new();
    let mut map = vec![0; 64];
    map[12..14].copy_from_slice(&kind.to_le_bytes());
    memory.put(Avma(MAP), map);
    let mut bytes = (MAP + 1).to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(fields.iter().flat_map(|field| field.to_le_bytes()));
    memory.put(Avma(STRING), bytes);
    memory
}

#[test]
fn strings_without_an_end() {
    const ONE_BYTE: u16 = 8;
    let layout = Layout::new((12, 4), &Debug::default()).unwrap();
    let own = STRING + 1;
    let negative = (-5_i64 << 32).cast_unsigned();
    for (what, kind, fields, is_read) in [
        ("both parts are the string", 1, [own, own], false),
        ("the second part is the string", 1, [8, own], false),
        ("a slice of itself", 3, [own, 0], false),
        (
            "a slice of itself, from a negative place",
            3,
            [own, negative],
            false,
        ),
        ("forwarded to itself", 5, [own, 0], false),
        (
            "external characters at no address",
            2,
            [0, u64::MAX - 4],
            false,
        ),
        ("an unknown type", 4, [own, own], false),
        ("characters", 0, [0x6161_6161_6161_6161; 2], true),
    ] {
        for length in [1 << 31, u32::MAX] {
            let memory = string(kind | ONE_BYTE, length, fields);
            let heap = Heap {
                memory: &memory,
                layout: &layout,
            };
            let read = heap.string(Tagged(own), 16);
            assert_eq!(read.is_ok(), is_read, "{what}");
            if let Err(error) = read {
                assert!(!error.in_full().is_empty());
            }
        }
    }
}

/// Lists of functions of impossible lengths.
#[test]
fn arrays_of_impossible_lengths() {
    let layout = Layout::new((12, 4), &Debug::default()).unwrap();
    for length in [-1_i64, i64::from(i32::MAX), i64::from(i32::MIN)] {
        let mut memory = FakeMemory::new();
        let mut array = vec![0; 64];
        array[8..16].copy_from_slice(&(length << 32).to_le_bytes());
        memory.put(Avma(STRING), array);
        let heap = Heap {
            memory: &memory,
            layout: &layout,
        };
        let array = Tagged(STRING + 1);
        assert!(heap.bytes(array, 1 << 20, "array").is_err(), "{length}");
        assert_eq!(heap.item(array, 0, "array").is_ok(), length > 0);
        assert!(heap.item(array, 1 << 61, "array").is_err());
    }
}
