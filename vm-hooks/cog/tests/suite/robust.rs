//! Damaged memory: every reading ends, with records or an error.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::common::snapshot;
use proptest::prelude::*;
use vmscope_cog::testing::Snapshot;
use vmscope_cog::{Family, Vm};
use vmscope_process::{
    AdapterError, AdapterFamily as _, KeySource, Memory, MemoryError, Poll, ProcessView,
};
use vmscope_records::{Avma, ProcessKey, Record, TimeNs};

static SNAPSHOTS: LazyLock<[Snapshot; 2]> = LazyLock::new(|| [snapshot("idle"), snapshot("busy")]);

/// Addresses in all code of both snapshots.
static SAMPLED: LazyLock<Vec<Avma>> =
    LazyLock::new(|| SNAPSHOTS.iter().flat_map(Snapshot::sampled).collect());

/// Polls twice. Returns all records, or the error of a poll.
fn read(process: &ProcessView) -> Result<Vec<Record>, AdapterError> {
    let Some(mut adapter) = Family.recognise(process)? else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    let keys = KeySource::new();
    for _ in 0..2 {
        let poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
        let mut poll = poll.with_touched(SAMPLED.clone());
        adapter.poll(process, &mut poll)?;
        all.extend(poll.finish());
    }
    Ok(all)
}

fn is_within_bounds(read: &Result<Vec<Record>, AdapterError>) {
    match read {
        Err(error) => assert!(!error.in_full().is_empty()),
        Ok(records) => {
            assert!(records.len() < 1 << 20);
            for record in records {
                if let Record::Constituent(one) = record {
                    assert!(one.start <= one.end, "{one:?}");
                }
            }
        }
    }
}

/// The code that enters the blocks of a method lies in the method.
#[test]
fn a_block_entry_behind_its_method_is_told() {
    let snapshot = snapshot("idle");
    let vm = Vm::open(&snapshot.process()).unwrap().unwrap();
    let read_zone =
        |process: &ProcessView| vm.with_zone(process.memory(), |_, _| Ok(())).unwrap().0;
    let zone = read_zone(&snapshot.process());
    let mut entries = zone.methods.entries.iter();
    let home = entries.find(|one| !one.blocks.is_empty()).unwrap();
    let process = snapshot.patched(vec![(Avma(home.at.0 + 14), vec![0xff, 0xff])]);
    let damage = read_zone(&process).methods.damage.unwrap();
    assert_eq!(
        (damage.what, damage.value, damage.at),
        ("block entry of a method", 0xffff, home.at)
    );
    is_within_bounds(&read(&process));
}

/// Numbers that break what computes with them, and small ones.
fn odd_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        Just(0x8000_0000_0000_0000),
        Just(0xff00_0000_0000_0000),
        0..1024_u64,
        any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_that_are_wrong(
        which in 0..2_usize,
        patches in prop::collection::vec((any::<u8>(), any::<u32>(), odd_number()), 1..40),
    ) {
        let snapshot = &SNAPSHOTS[which];
        let patches = patches.into_iter().map(|(kind, number, value)| {
            (snapshot.place(kind, number), value.to_le_bytes().to_vec())
        });
        is_within_bounds(&read(&snapshot.patched(patches.collect())));
    }

    #[test]
    fn bytes_that_are_wrong(
        which in 0..2_usize,
        patches in prop::collection::vec((any::<u8>(), any::<u32>(), any::<u8>()), 1..200),
    ) {
        let snapshot = &SNAPSHOTS[which];
        let patches = patches.into_iter().map(|(kind, number, value)| {
            let at = snapshot.place(kind, number).0 + u64::from(number % 8);
            (Avma(at), vec![value])
        });
        is_within_bounds(&read(&snapshot.patched(patches.collect())));
    }
}

fn with_variable(name: &str, value: u64) -> ProcessView {
    let snapshot = &SNAPSHOTS[0];
    let symbol = snapshot.symbols.iter().find(|symbol| symbol.name == name);
    snapshot.patched(vec![(
        symbol.unwrap().address,
        value.to_le_bytes().to_vec(),
    )])
}

#[test]
fn impossible_variables_are_named_with_their_addresses() {
    for (name, value, what) in [
        ("mzFreeStart", u64::MAX, "code zone's limit"),
        ("limitAddress", 8, "code zone's limit"),
        ("methodZoneBase", 0x5651_8e50_17d9, "code zone's limit"),
    ] {
        let error = read(&with_variable(name, value)).unwrap_err();
        let text = error.in_full();
        assert!(
            text.contains(what) && text.contains("impossible value"),
            "{name}: {text}"
        );
    }
    let error = read(&with_variable("codeBase", 0)).unwrap_err();
    assert!(matches!(error, AdapterError::NotReady { .. }), "{error}");
    for (name, value) in [("gcMode", 2), ("compactionInProgress", 1)] {
        // A later poll may find a pause.
        let records = read(&with_variable(name, value)).unwrap();
        assert_eq!(number_of_constituents(&records), 0, "{name}");
    }
}

fn number_of_constituents(records: &[Record]) -> usize {
    let seen = |record: &&Record| matches!(record, Record::Constituent(_));
    records.iter().filter(seen).count()
}

/// Sentences about limits.
fn limits(records: &[Record]) -> Vec<&str> {
    let limits = records.iter().filter_map(|record| match record {
        Record::Limit(limit) => Some(&*limit.text),
        _ => None,
    });
    limits.collect()
}

#[test]
fn methods_of_impossible_sizes_end_the_walk() {
    let snapshot = &SNAPSHOTS[0];
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let entry = &zone.methods.entries[100];
    for size in [0_u16, 39, u16::MAX] {
        let patched = snapshot.patched(vec![(Avma(entry.at.0 + 12), size.to_le_bytes().to_vec())]);
        let (zone, ()) = vm.with_zone(patched.memory(), |_, _| Ok(())).unwrap();
        let known = zone.methods.entries.len();
        assert!(known == 100 || size == u16::MAX && known == 101, "{known}");
        let Err(error) = read(&patched) else {
            // A method of 64 KiB may end in the middle of another one.
            continue;
        };
        let text = error.in_full();
        assert!(
            text.contains("size of a method") && text.contains(&entry.at.to_string()),
            "{text}"
        );
    }
}

#[test]
fn a_map_without_an_end_and_objects_of_impossible_sizes() {
    let snapshot = &SNAPSHOTS[0];
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let entry = &zone.methods.entries[4];
    let bytes = usize::from(entry.size) - 40;
    let endless = (Avma(entry.at.0 + 40), vec![0x20; bytes]);
    // 2^56 slots, in the word before the header.
    let huge = [
        (
            Avma(entry.method.0 - 8),
            (u64::MAX >> 8).to_le_bytes().to_vec(),
        ),
        (Avma(entry.method.0 + 7), vec![0xff]),
    ];
    for (patches, limit) in [
        (vec![endless], "the map has no end"),
        (huge.to_vec(), "the bytecodes are unreadable"),
    ] {
        let records = read(&snapshot.patched(patches)).unwrap();
        let limits = limits(&records);
        assert!(limits.iter().any(|text| text.contains(limit)), "{limits:?}");
    }
}

/// Memory whose counter of scavenges grows at each look.
struct Restless {
    memory: Arc<dyn Memory>,
    counter: Avma,
    looks: AtomicU64,
    until: u64,
}

impl Memory for Restless {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        if at == self.counter {
            let looks = self.looks.fetch_add(1, Ordering::Relaxed).min(self.until);
            buffer.copy_from_slice(&looks.to_le_bytes());
            return Ok(buffer.len());
        }
        self.memory.read_partial(at, buffer)
    }
}

#[test]
fn a_zone_that_changes_is_read_again() {
    let snapshot = &SNAPSHOTS[1];
    let scavenges = snapshot
        .symbols
        .iter()
        .find(|one| one.name == "statScavenges");
    let restless = |until| {
        let memory = Restless {
            memory: Arc::clone(&snapshot.memory),
            counter: scavenges.unwrap().address,
            looks: AtomicU64::new(0),
            until,
        };
        read(&snapshot.process_with(Arc::new(memory)))
    };
    let records = restless(u64::MAX).unwrap();
    assert_eq!(number_of_constituents(&records), 0);
    let records = restless(7).unwrap();
    assert!(number_of_constituents(&records) > 875);
}
