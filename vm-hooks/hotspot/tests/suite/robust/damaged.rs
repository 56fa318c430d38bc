//! Snapshots that are damaged at random places: whatever is told, telling it ends, and
//! costs no more than is believed.

use std::sync::Arc;

use proptest::prelude::*;
use vmscope_hotspot::HotSpotAdapter;
use vmscope_process::testing::PAGE_BYTES;
use vmscope_process::{Adapter as _, KeySource, MAX_RECORDS_OF_A_POLL, Poll};
use vmscope_records::{ProcessKey, Record, TimeNs};

use super::readings::{Told, read, write};
use crate::snapshot_files::snapshot;

/// Numbers that break what computes with them.
fn odd_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(u64::from(u32::MAX)),
        Just(i64::MAX.cast_unsigned()),
        Just(0x8000_0000_0000_0000),
        Just(0x7fff_ffff),
        any::<u64>(),
    ]
}

fn is_within_bounds(told: &Told) {
    assert!(told.records.len() <= 4 * MAX_RECORDS_OF_A_POLL);
    for one in told.constituents() {
        assert!(one.start <= one.end, "{one:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_that_are_wrong(
        is_newer in any::<bool>(),
        patches in prop::collection::vec((any::<prop::sample::Index>(), 0..PAGE_BYTES / 4 - 1, odd_number()), 1..200),
    ) {
        let mut other = snapshot(if is_newer { "jdk25" } else { "jdk17" });
        for (page, word, value) in patches {
            let (at, _) = other.pages[page.index(other.pages.len())];
            write(&mut other, at.0 + 4 * word as u64, &value.to_le_bytes());
        }
        is_within_bounds(&read(&other.process()));
    }
}

/// Heaps with impossible lengths.
#[test]
fn a_heap_of_a_size_that_can_t_be() {
    for name in ["jdk17", "jdk25"] {
        let whole = snapshot(name);
        let entries = super::readings::fields(&whole);
        let at = |structure: &str, field: &str| {
            let mut all = entries.iter();
            let found = all.find(|one| one.structure == structure && one.field == field);
            found.unwrap().address
        };
        let array = super::readings::number(&whole, at("CodeCache", "_heaps"), 8).unwrap();
        for value in [0, 1, 17, 0x7fff_ffff, u64::MAX] {
            let mut other = whole.clone();
            write(&mut other, array, &value.to_le_bytes());
            is_within_bounds(&read(&other.process()));
        }
    }
}

/// Code behind an implausible block stays in the zone: no poll observed its end. A later reading
/// finds the same code.
#[test]
fn code_behind_a_block_that_makes_no_sense_is_not_told_gone() {
    let whole = snapshot("jdk17");
    let process = whole.process();
    let walked = vmscope_hotspot::testing::walk(&process, process.memory()).unwrap();
    let behind = &walked.nmethods[walked.nmethods.len() / 2].nmethod.blob;
    let mut damaged = whole.clone();
    // Its block's length, in front of it.
    write(&mut damaged, behind.at.0 - 16, &u64::MAX.to_le_bytes());
    let (keys, mut adapter) = (KeySource::new(), HotSpotAdapter::new());
    let clock = Arc::new(|| TimeNs(7));
    let mut told = Vec::new();
    for snapshot in [&whole, &damaged, &whole] {
        let process = snapshot.process();
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), clock.clone());
        adapter.finish(&process, &mut poll).unwrap();
        told.push(poll.finish());
    }
    let count = |records: &[Record], is_it: fn(&Record) -> bool| {
        records.iter().filter(|record| is_it(record)).count()
    };
    let seen = |record: &Record| matches!(record, Record::Constituent(_));
    let gone = |record: &Record| matches!(record, Record::ConstituentGone(_));
    let lost = |record: &Record| matches!(record, Record::Lost(_));
    assert!(count(&told[0], seen) > 100);
    let counts: Vec<[usize; 3]> = told
        .iter()
        .map(|records| {
            [
                count(records, seen),
                count(records, gone),
                count(records, lost),
            ]
        })
        .collect();
    assert_eq!(
        (counts[0][2], counts[1], counts[2]),
        (0, [0, 0, 1], [0, 0, 0])
    );
}
