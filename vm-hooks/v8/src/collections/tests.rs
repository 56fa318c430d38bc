use std::sync::Arc;

use vmscope_process::KeySource;
use vmscope_records::{COLLECTIONS_SECTION, ProcessKey, Record};

use super::*;
use crate::collector::Ring;

const NOW: TimeNs = TimeNs(1_000_000_000);

fn event(kind: Kind, begin: u64, length: u64) -> Event {
    Event {
        kind,
        reason: 1,
        begin: TimeNs(begin),
        end: TimeNs(begin.saturating_add(length)),
        objects: (100, 50),
        memory: 200,
        survived: Some(7),
        is_incremental: false,
        marking: None,
    }
}

/// A look after so many scavenges and mark-compacts.
fn look((scavenges, mark_compacts): (u32, u32), pauses: u64, events: &[Event]) -> Look {
    Look {
        mark_compacts,
        collections: scavenges + mark_compacts,
        pauses: Pauses::Sum(pauses),
        events: events.to_vec(),
        ..Look::default()
    }
}

fn poll() -> Poll {
    Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| NOW))
}

/// Kind, number, begin, end, missed ones and their time of all records of these looks.
type Row = (String, u64, u64, Option<u64>, u64, Option<u64>);

fn rows(collections: &mut Collections, looks: &[Look]) -> Vec<Row> {
    let mut poll = poll();
    for look in looks {
        collections.take(look.clone(), &mut poll, Vec::new);
    }
    let row = |record| match record {
        Record::Collection(one) => Some((
            one.kind,
            one.number,
            one.begin.unwrap_or_default().0,
            one.end.map(|end| end.0),
            one.missed,
            one.missed_ns,
        )),
        _ => None,
    };
    poll.finish().into_iter().filter_map(row).collect()
}

fn row(kind: Kind, number: u64, times: (u64, Option<u64>), missed: (u64, Option<u64>)) -> Row {
    let (begin, end) = times;
    (
        kind.name().to_owned(),
        number,
        begin,
        end,
        missed.0,
        missed.1,
    )
}

use Kind::{MarkCompact, Scavenge};

#[test]
fn collections_before_the_first_look_are_not_told() {
    let old = event(Scavenge, 10, 5);
    let looks = [look((8, 2), 90, &[old]), look((8, 2), 90, &[old])];
    assert_eq!(rows(&mut Collections::new(0, false), &looks), []);
    let told = rows(&mut Collections::new(1, true), &looks);
    let missed = (7, None);
    assert_eq!(told, [row(Scavenge, 8, (10, Some(15)), missed)]);
}

#[test]
fn two_of_many_collections_have_times_and_the_others_a_duration() {
    let looks = [
        look((8, 2), 90, &[event(Scavenge, 10, 5)]),
        look(
            (13, 2),
            131,
            &[event(Scavenge, 40, 6), event(Scavenge, 50, 5)],
        ),
    ];
    let told = rows(&mut Collections::new(0, false), &looks);
    assert_eq!(
        told,
        [
            row(Scavenge, 12, (40, Some(46)), (3, Some(30))),
            row(Scavenge, 13, (50, Some(55)), (0, None)),
        ]
    );
    // V8 10 and 11 keep the ten newest durations, here from the last place on.
    let rings = |position: usize| {
        let mut young = Ring {
            position,
            ..Ring::default()
        };
        for (at, duration) in [(9, 20), (0, 2), (1, 8), (2, 6), (3, 5)] {
            young.durations[at] = duration;
        }
        Pauses::Rings(Box::new([young, Ring::default(), Ring::default()]))
    };
    let from = |position: usize| {
        let mut looks = looks.clone();
        (looks[0].pauses, looks[1].pauses) = (rings(position), rings(4));
        rows(&mut Collections::new(0, false), &looks)
    };
    assert_eq!(from(9)[0], row(Scavenge, 12, (40, Some(46)), (3, Some(30))));
    // Ten collections more than durations.
    let mut looks = looks.map(|mut look| {
        look.pauses = rings(4);
        look
    });
    looks[1].collections += 5;
    let told = rows(&mut Collections::new(0, false), &looks);
    assert_eq!(told[0], row(Scavenge, 17, (40, Some(46)), (8, None)));
}

#[test]
fn a_cycle_begins_with_marking_and_ends_with_its_mark_compact() {
    let mut full = event(MarkCompact, 40, 9);
    full.is_incremental = true;
    let with = |marking: Option<u64>, mut look: Look| {
        look.marking = marking.map(TimeNs);
        look
    };
    let looks = [
        with(Some(3), look((8, 1), 0, &[event(MarkCompact, 5, 5)])),
        with(Some(30), look((8, 1), 0, &[event(MarkCompact, 5, 5)])),
        // The next marking has begun.
        with(Some(60), look((8, 2), 9, &[full])),
    ];
    let mut poll = poll();
    let mut collections = Collections::new(0, false);
    for look in looks {
        collections.take(look, &mut poll, Vec::new);
    }
    let cycle = |record| match record {
        Record::Collection(one) if one.scope == CollectionScope::Cycle => {
            Some((one.begin, one.end))
        }
        _ => None,
    };
    let told: Vec<_> = poll.finish().into_iter().filter_map(cycle).collect();
    assert_eq!(told, [(Some(TimeNs(30)), Some(TimeNs(49)))]);
}

#[test]
fn missed_collections_of_both_kinds_have_no_duration() {
    let looks = [
        look((8, 2), 0, &[]),
        look((10, 4), 50, &[event(Scavenge, 40, 6)]),
    ];
    let told = rows(&mut Collections::new(0, false), &looks);
    assert_eq!(told, [row(Scavenge, 10, (40, Some(46)), (1, None))]);
}

#[test]
fn looks_in_collections_are_left_out() {
    let mut in_collection = look((9, 2), 0, &[event(Scavenge, 20, 1)]);
    in_collection.has_open = true;
    let mut marking = in_collection.clone();
    (marking.has_open, marking.state) = (false, Some(1));
    let looks = [
        look((8, 2), 0, &[]),
        in_collection,
        marking,
        look((8, 3), 9, &[event(MarkCompact, 40, 9)]),
    ];
    let told = rows(&mut Collections::new(0, false), &looks);
    assert_eq!(told, [row(MarkCompact, 3, (40, Some(49)), (0, None))]);
}

#[test]
fn impossible_looks_are_no_panic() {
    let far = event(Scavenge, u64::MAX, 0);
    let looks = [
        look((0, u32::MAX), u64::MAX, &[far]),
        look((7, 0), 0, &[event(MarkCompact, 3, 0), far]),
        look((0, 9), 0, &[]),
    ];
    let told = rows(&mut Collections::new(7, true), &looks);
    assert!(told.iter().all(|row| row.2 == 3), "{told:?}");
}

#[test]
fn a_new_worker_had_no_collections_at_first() {
    let mut poll = poll();
    let mut worker = Collections::new(2, true);
    worker.take(look((4, 1), 70, &[]), &mut poll, Vec::new);
    worker.tell_totals(TimeNs(5), &mut poll);
    worker.tell_totals(TimeNs(5), &mut poll);
    let counter = |record| match record {
        Record::Counter(one) if one.section == COLLECTIONS_SECTION => {
            Some((one.name, one.time, one.value))
        }
        _ => None,
    };
    let told: Vec<_> = poll.finish().into_iter().filter_map(counter).collect();
    let of = |name: &str| -> Vec<_> {
        let rows = told.iter().filter(|(label, ..)| label == name);
        rows.map(|(_, time, value)| (*time, *value)).collect()
    };
    let name = "V8 worker 2, scavenge";
    assert_eq!(of(name), [(TimeNs(5), 0.0), (NOW, 4.0), (NOW, 4.0)]);
    assert_eq!(of("V8 worker 2, scavenge time")[1], (NOW, 70.0));
}
