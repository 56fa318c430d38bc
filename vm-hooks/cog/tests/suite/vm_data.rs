//! Statistics of the snapshots' VMs.

use std::sync::Arc;

use crate::common::snapshot;
use vmscope_cog::testing::Snapshot;
use vmscope_cog::{CogAdapter, Vm};
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView};
use vmscope_records::{Collection, Counter, ProcessKey, Record, TimeNs};

fn poll(adapter: &mut CogAdapter, process: &ProcessView, seconds: u64) -> Vec<Record> {
    let now = TimeNs(seconds * 1_000_000_000);
    let mut poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(move || now));
    adapter.poll(process, &mut poll).unwrap();
    poll.finish()
}

fn counters(records: &[Record]) -> impl Iterator<Item = &Counter> {
    records.iter().filter_map(|record| match record {
        Record::Counter(counter) => Some(counter),
        _ => None,
    })
}

fn value(records: &[Record], section: &str, name: &str) -> f64 {
    let mut all = counters(records).filter(|one| one.section == section && one.name == name);
    let one = all.next().unwrap_or_else(|| panic!("no {section}, {name}"));
    assert!(all.next().is_none(), "twice: {section}, {name}");
    one.value
}

fn patch(snapshot: &Snapshot, values: &[(&str, u64)]) -> ProcessView {
    let patches = values.iter().map(|(name, value)| {
        let mut symbols = snapshot.symbols.iter();
        let symbol = symbols.find(|symbol| symbol.name == *name).unwrap();
        (
            symbol.address,
            value.to_le_bytes()[..symbol.size as usize].to_vec(),
        )
    });
    snapshot.patched(patches.collect())
}

/// The numbers were read from the snapshot by another program.
#[test]
fn figures_are_the_vms_own_numbers() {
    let process = snapshot("busy").process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let records = poll(&mut adapter, &process, 1);
    for (section, name, expected) in [
        ("Memory", "old", 32_343_808.0),
        ("Memory", "segments", 2.0),
        ("Memory", "grown", 1.0),
        ("GCs", "full", 49.0),
        ("GCs", "full time", 15_415_000.0),
        ("GCs", "mark time", 10_361_000.0),
        ("GCs", "scavenges", 765.0),
        ("GCs", "scavenge time", 39_831_000.0),
        ("GCs", "tenures", 0.0),
        ("GCs", "root table", 6.0),
        ("Compiled Code Compactions", "compactions", 0.0),
        ("Events", "Process switches", 0.0),
        ("Events", "ioProcessEvents calls", 496.0),
        ("Events", "Interrupt checks", 5767.0),
        ("Events", "Event checks", 5723.0),
        ("VM Parameters", "26 heartbeat period in ms", 2.0),
        ("VM Parameters", "42 stack pages", 50.0),
        ("VM Parameters", "44 eden size", 7_340_032.0),
        ("VM Parameters", "46 code zone size", 1_433_600.0),
        ("VM Parameters", "64 entries of the code zone", 875.0),
        (
            "VM Parameters",
            "68 mean live stack pages at scavenges",
            1.0,
        ),
        ("Collections", "scavenger, scavenge", 765.0),
        ("Collections", "global collector, full", 49.0),
        ("Collections", "global collector, full time", 15_415_000.0),
        ("Collections", "code zone, compaction", 0.0),
    ] {
        assert_eq!(
            value(&records, section, name).to_bits(),
            f64::to_bits(expected),
            "{name}"
        );
    }
    let ratio = value(
        &records,
        "VM Parameters",
        "55 heap growth that causes a full collection",
    );
    assert!((ratio - 1.0 / 3.0).abs() < 1e-6, "{ratio}");
    let facts = records.iter().filter_map(|record| match record {
        Record::Fact(fact) => Some((&*fact.name, &*fact.value)),
        _ => None,
    });
    let facts: Vec<_> = facts.collect();
    let expected = [
        ("eden size", "7340032"),
        ("stack pages", "50"),
        ("code size", "1433600"),
    ];
    assert_eq!(facts, expected);
    // Nothing changed.
    assert_eq!(poll(&mut adapter, &process, 3), []);
}

#[test]
fn collections_between_polls_are_told_or_counted() {
    let snapshot = snapshot("busy");
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    poll(&mut adapter, &process, 1);
    // Three scavenges and a full collection: the newest, of 700 µs, is a scavenge.
    let begin = 0xe1d1_d732_9999_9999;
    let end = begin + 700;
    let changed = patch(
        &snapshot,
        &[
            ("statScavenges", 768),
            ("statScavengeGCUsecs", 39_831 + 1500),
            ("statSGCDeltaUsecs", 700),
            ("statFullGCs", 50),
            ("statFullGCUsecs", 15_415 + 320),
            ("gcStartUsecs", begin),
            ("statGCEndUsecs", end),
        ],
    );
    let records = poll(&mut adapter, &changed, 2);
    let [scavenge] = collections(&records)[..] else {
        panic!("{records:?}");
    };
    assert_eq!(
        (&*scavenge.collector, &*scavenge.kind),
        ("scavenger", "scavenge")
    );
    assert_eq!((scavenge.number, scavenge.missed), (768, 2));
    assert_eq!(scavenge.missed_ns, Some(800_000));
    // A core file's clock says nothing about this machine's.
    assert_eq!((scavenge.begin, scavenge.end), (None, None));
    assert_eq!(
        value(&records, "GCs", "scavenges").to_bits(),
        768_f64.to_bits()
    );
    assert_eq!(
        value(&records, "Collections", "global collector, full").to_bits(),
        50_f64.to_bits()
    );
}

fn collections(records: &[Record]) -> Vec<&Collection> {
    let collections = records.iter().filter_map(|record| match record {
        Record::Collection(one) => Some(&**one),
        _ => None,
    });
    collections.collect()
}

#[test]
fn code_compactions_are_told_or_counted() {
    let snapshot = snapshot("busy");
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let after = |count, micros, in_progress| {
        let values = [
            ("statCodeCompactionCount", count),
            ("statCodeCompactionUsecs", micros),
            ("compactionInProgress", in_progress),
        ];
        patch(&snapshot, &values)
    };
    poll(&mut adapter, &process, 1);
    let records = poll(&mut adapter, &after(0, 0, 1), 2);
    assert_eq!(collections(&records), Vec::<&Collection>::new());
    let records = poll(&mut adapter, &after(1, 500_000, 0), 3);
    let [compaction] = collections(&records)[..] else {
        panic!("{records:?}");
    };
    let names = (&*compaction.collector, &*compaction.kind);
    assert_eq!(names, ("code zone", "compaction"));
    let time = |ms: u64| Some(TimeNs(ms * 1_000_000));
    assert_eq!((compaction.begin, compaction.end), (time(2000), time(2500)));
    assert_eq!((compaction.number, compaction.missed), (1, 0));
    // No look sees the next two.
    let records = poll(&mut adapter, &after(3, 500_700, 0), 4);
    assert_eq!(collections(&records), Vec::<&Collection>::new());
    for (section, name, expected) in [
        ("Compiled Code Compactions", "compactions", 3.0),
        (
            "Compiled Code Compactions",
            "compaction time",
            500_700_000.0,
        ),
        ("Collections", "code zone, compaction", 3.0),
        ("Collections", "code zone, compaction time", 500_700_000.0),
    ] {
        let value = value(&records, section, name);
        assert_eq!(value.to_bits(), f64::to_bits(expected), "{name}");
    }
    poll(&mut adapter, &after(3, 500_700, 1), 5);
    let records = poll(&mut adapter, &after(4, 500_900, 0), 6);
    let [compaction] = collections(&records)[..] else {
        panic!("{records:?}");
    };
    assert_eq!((compaction.number, compaction.missed), (4, 2));
    assert_eq!(compaction.missed_ns, Some(700_000));
}

#[test]
fn figures_come_once_a_second_and_at_the_end() {
    let snapshot = snapshot("idle");
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    poll(&mut adapter, &process, 1);
    let changed = patch(&snapshot, &[("statProcessSwitch", 12)]);
    assert_eq!(counters(&poll(&mut adapter, &changed, 1)).count(), 0);
    let records = poll(&mut adapter, &changed, 2);
    assert_eq!(
        value(&records, "Events", "Process switches").to_bits(),
        12_f64.to_bits()
    );
    let changed = patch(&snapshot, &[("statProcessSwitch", 13)]);
    let clock = Arc::new(|| TimeNs(2_000_000_001));
    let mut last = Poll::new(KeySource::new(), ProcessKey(1), clock);
    adapter.finish(&changed, &mut last).unwrap();
    let records = last.finish();
    assert_eq!(
        value(&records, "Events", "Process switches").to_bits(),
        13_f64.to_bits()
    );
}

#[test]
fn a_vm_without_statistics_says_so() {
    let mut snapshot = snapshot("idle");
    let is_statistic = |name: &str| name.starts_with("stat") || name.starts_with("gc");
    snapshot
        .symbols
        .retain(|symbol| !is_statistic(&symbol.name));
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let records = poll(&mut adapter, &process, 1);
    let limits = records.iter().filter_map(|record| match record {
        Record::Limit(limit) => Some(&*limit.text),
        _ => None,
    });
    let limits: Vec<&str> = limits.collect();
    assert!(
        limits.contains(&"this VM does not tell its collections"),
        "{limits:?}"
    );
    assert!(
        limits.contains(&"this VM does not count its code compactions"),
        "{limits:?}"
    );
    assert!(counters(&records).all(|one| one.section != "GCs" || one.name == "root table"));
}
