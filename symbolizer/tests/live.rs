//! A profile that grows is the one that the whole recording gives.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

mod recordings;

use recordings::live::{NoFiles, agree, live_of, records_of, rows};
use recordings::shapes::{self, Churn};
use recordings::{Recording, THREAD, code};
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, Constituent, CpuMode, Exactness, PcMap, Record, Sample, TimeNs,
};
use vmscope_symbolizer::{Bounds, Live};

#[test]
fn it_is_the_same_in_any_number_of_steps() {
    let shapes = [
        ("native", shapes::native(4_000)),
        ("still", shapes::jit(4_000, 0, Churn::Still)),
        ("exact", shapes::jit(20_000, 8_000, Churn::Exact)),
        ("polled", shapes::jit(20_000, 8_000, Churn::Polled)),
        ("node", shapes::node(20_000)),
    ];
    for (name, bytes) in shapes {
        for steps in [0, 1, 7, 60] {
            agree(&bytes, steps).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
    }
}

fn names(live: &Live) -> Vec<String> {
    let profile = live.profile().read().unwrap();
    rows(&profile).into_iter().map(|row| row.2.name).collect()
}

fn take(live: &mut Live, recording: &Recording) {
    for record in records_of(&recording.bytes()) {
        live.take(record);
    }
}

#[test]
fn a_map_that_is_told_later_reaches_the_samples_before() {
    let mut live = Live::new(true, Bounds::default());
    let mut recording = Recording::of("Cog");
    recording.constituent(code(1, 10, 0x1000, 0x1100));
    recording
        .sample(20, THREAD, 0x1010)
        .sample(30, THREAD, 0x1030);
    take(&mut live, &recording);
    assert_eq!(live.settle(TimeNs(40), &NoFiles).samples, 2);
    let exactness = |live: &Live| -> Vec<(Exactness, Option<BytecodePc>)> {
        let profile = live.profile().read().unwrap();
        let rows = rows(&profile).into_iter();
        rows.map(|row| (row.3.exactness, row.3.to)).collect()
    };
    assert_eq!(exactness(&live), [(Exactness::MethodOnly, None); 2]);
    let mut told = code(1, 10, 0x1000, 0x1100);
    told.map = PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: vec![(0x8, BytecodePc(1)), (0x20, BytecodePc(5))],
    };
    live.take(Record::Constituent(Box::new(told)));
    let settled = live.settle(TimeNs(50), &NoFiles);
    assert_eq!(settled.renamed_from, Some(0));
    assert_eq!(
        exactness(&live),
        [
            (Exactness::Exact, Some(BytecodePc(5))),
            (Exactness::Exact, None)
        ]
    );
    assert_eq!(live.left().late, 0);
}

#[test]
fn what_comes_too_late_is_counted_and_counts_from_then_on() {
    let mut live = Live::new(true, Bounds::default());
    let mut recording = Recording::of("Cog");
    recording.constituent(code(1, 10, 0x1000, 0x1100));
    for time in [20, 120] {
        recording.sample(time, THREAD, 0x1010);
        recording.sample(time, THREAD, 0x3010);
    }
    take(&mut live, &recording);
    live.settle(TimeNs(100), &NoFiles);
    // It was there before the other, which took its place at 10.
    live.take(Record::Constituent(Box::new(code(2, 5, 0x1000, 0x1100))));
    // Nobody else is there.
    live.take(Record::Constituent(Box::new(code(3, 15, 0x3000, 0x3100))));
    live.finish(&NoFiles);
    assert_eq!(names(&live), ["m1", "(not mapped)", "m1", "m3"]);
    assert_eq!(live.left().late, 2);
}

/// Code that comes and goes for ever, at ever new addresses, each sampled a few times.
fn churn(live: &mut Live, round: u64) {
    let time = round * 1000 + 1000;
    for n in 0..100 {
        let key = round * 100 + n + 1;
        let start = 0x10_0000 + key * 0x100;
        live.take(Record::Constituent(Box::new(Constituent {
            absent_at: Some(TimeNs(time - 50)),
            name: format!("m{}", key % 300),
            ..code(key, time, start, start + 0x100)
        })));
        if key > 300 {
            live.take(Record::ConstituentGone(vmscope_records::ConstituentGone {
                key: vmscope_records::ConstituentKey(key - 300),
                last_seen: TimeNs(time - 50),
                time: TimeNs(time),
                reason: vmscope_records::GoneReason::Unknown,
            }));
        }
        for sample in 0..3 {
            live.take(Record::Sample(Sample {
                time: TimeNs(time + 5 + n * 4 + sample),
                thread: THREAD,
                pc: Avma(start + sample),
                mode: CpuMode::User,
                detail: None,
            }));
        }
    }
    live.settle(TimeNs(time + 900), &NoFiles);
}

#[test]
fn memory_is_bounded_however_long_it_goes_on() {
    let bounds = Bounds {
        samples: 5_000,
        entries: 200,
        ..Bounds::default()
    };
    let mut live = Live::new(true, bounds);
    take(&mut live, &Recording::of("Cog"));
    for round in 0..300 {
        churn(&mut live, round);
    }
    let left = live.left();
    assert_eq!((left.late, left.late_samples), (0, 0));
    assert!(left.names > 0);
    let profile = live.profile().read().unwrap();
    let kept = profile.trace.samples.times.len();
    assert_eq!(kept as u64 + left.samples, 300 * 300);
    assert!(kept <= 5_000 + 5_000 / 8 + 300, "{kept}");
    assert!(
        profile.trace.places.len() < 30_000,
        "{}",
        profile.trace.places.len()
    );
    assert!(profile.entries.len() <= 202, "{}", profile.entries.len());
    let (last, others): (Vec<_>, Vec<_>) = rows(&profile)
        .into_iter()
        .partition(|row| row.2.name != "(others)");
    assert!(!others.is_empty() && !last.is_empty());
    for (time, _, entry, _) in last {
        let key = (time.0 - 1005) / 1000 * 100 + (time.0 - 1005) % 1000 / 4 + 1;
        assert_eq!(entry.name, format!("m{}", key % 300));
    }
}

#[test]
fn steps_say_what_they_did() {
    let bytes = shapes::native(1_000);
    let records = records_of(&bytes);
    let (live, steps) = live_of(&records, &[20_000_000, 40_000_000], Bounds::default());
    let samples: u64 = steps.iter().map(|step| step.samples).sum();
    assert_eq!(samples, 1_000);
    assert!(steps.iter().all(|step| step.samples > 0), "{steps:?}");
    assert_eq!(names(&live).len(), 1_000);
}
