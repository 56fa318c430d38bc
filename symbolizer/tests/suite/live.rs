//! A growing profile equals the profile of the whole recording.

use crate::recordings::live::{NoFiles, agree, live_of, records_of, rows};
use crate::recordings::shapes::{self, Churn};
use crate::recordings::{Draw, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code};
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, Constituent, CpuMode, DurationNs, Exactness, PcMap, Record,
    Sample, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::addresses::Layout;
use vmscope_symbolizer::annotate::{ByMethod, Located, Taken, annotate, candidates, versions};
use vmscope_symbolizer::time_buckets::{BUCKET, Counts, Stop, TimeBuckets};
use vmscope_symbolizer::zone::{Residencies, Residency};
use vmscope_symbolizer::{Bounds, Filter, Id, Live, Profile, Summary, ThreadId};

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
    assert_eq!(settled.renamed, 2, "both places");
    assert_eq!(
        exactness(&live),
        [
            (Exactness::Exact, Some(BytecodePc(5))),
            (Exactness::Exact, None)
        ]
    );
    assert_eq!(live.omitted().late, 0);
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
    // This code precedes the other, which replaced it at 10.
    live.take(Record::Constituent(Box::new(code(2, 5, 0x1000, 0x1100))));
    // No other code is here.
    live.take(Record::Constituent(Box::new(code(3, 15, 0x3000, 0x3100))));
    live.finish(&NoFiles);
    assert_eq!(names(&live), ["m1", "(not mapped)", "m1", "m3"]);
    assert_eq!(live.omitted().late, 2);
}

/// Endless code turnover at ever new addresses, with a few samples each.
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
    let left = live.omitted();
    assert_eq!((left.late, left.late_samples), (0, 0));
    assert!(left.names > 0);
    let profile = live.profile().read().unwrap();
    let kept = profile.trace.samples.times.len();
    assert_eq!(kept as u64 + left.samples, 300 * 300);
    // Dropping removes whole time buckets.
    assert!(kept <= 5_000 + 5_000 / 8 + 300 + BUCKET, "{kept}");
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
    assert_eq!(profile.omitted, Some(left));
    // All remaining residencies have names; forgotten code has none.
    let residencies = Residencies::of(&profile.trace);
    let code = |residency: &Residency| residency.constituent(&profile.trace).unwrap().name.clone();
    let nameless = residencies
        .all()
        .iter()
        .filter(|residency| code(residency).is_empty());
    assert_eq!(nameless.count(), 0);
    assert!(residencies.all().len() < 30_000);
}

#[test]
fn a_number_that_is_used_again_is_not_taken_for_what_had_it() {
    let bounds = Bounds {
        samples: 5_000,
        ..Bounds::default()
    };
    let mut live = Live::new(true, bounds);
    take(&mut live, &Recording::of("Cog"));
    for round in 0..10 {
        churn(&mut live, round);
    }
    let layout = |profile: &Profile| Layout::of(profile, Residencies::of(&profile.trace));
    let old = layout(&live.profile().read().unwrap());
    for round in 10..300 {
        churn(&mut live, round);
    }
    let profile = live.profile().read().unwrap();
    assert!(!old.is_of(&profile) && layout(&profile).is_of(&profile));
    let first = old.residencies.all().first().unwrap();
    let now = profile.trace.constituent(first.code);
    assert_ne!(now.key, first.key, "the number is another's");
    assert!(first.constituent(&profile.trace).is_none());
}

#[test]
fn a_version_is_compared_with_what_is_kept_one_by_one() {
    let bounds = Bounds {
        samples: 5_000,
        ..Bounds::default()
    };
    let mut live = Live::new(true, bounds);
    take(&mut live, &Recording::of("Cog"));
    for round in 0..60 {
        churn(&mut live, round);
    }
    let profile = live.profile().read().unwrap();
    assert!(profile.time_buckets.dropped() > 0);
    let filter = Filter::default();
    let all = candidates(&profile, &filter);
    let subject = &all.first().unwrap().subject;
    let located = Located::of(&profile, &ByMethod::of(&profile), subject);
    let stop = Stop::new();
    let taken = Taken::of(&profile, &filter);
    let origin = Some(versions(&taken, &located, &stop).unwrap()[0].origin);
    let of_one = annotate(&taken, &located, origin, &stop).unwrap();
    assert_eq!(of_one.total, profile.trace.samples.times.len() as u64);
    let of_all = annotate(&taken, &located, None, &stop).unwrap();
    assert_eq!(of_all.total, 60 * 300);
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

/// A round of 1,000 records: code and function records come at any time, repeatedly and with
/// additions.
fn round(draw: &mut Draw, round: u64) -> Vec<Record> {
    let mut recording = Recording::empty();
    if round == 0 {
        recording = Recording::of("Cog");
        for key in 2..=4 {
            recording.thread(ThreadKey(key), PROCESS, 0, "t", ThreadRole::Other);
        }
    }
    let time = round * 1000 + 1000;
    for _ in 0..draw.below(4) {
        let key = 1 + draw.below(30);
        let start = 0x10_0000 + key * 0x100;
        let mut told = code(key, 500, start, start + 0x100);
        if draw.below(3) > 0 {
            let at = 1 + u32::try_from(draw.below(0x80)).unwrap();
            told.map = PcMap::Boundary {
                rule: BoundaryRule::AfterInstruction,
                exactness: Exactness::Exact,
                entries: vec![(at, BytecodePc(1)), (at + 0x40, BytecodePc(5))],
            };
        }
        recording.constituent(told);
    }
    if draw.below(20) == 0 {
        let cut = 0x10 + draw.below(0xe0);
        let name = format!("f{round}");
        recording.symbols(PROGRAM, &[(0, cut, "main"), (cut, 0x200 - cut, &name)]);
    }
    let mut times: Vec<u64> = (0..900).map(|_| time + draw.below(900)).collect();
    times.sort_unstable();
    for at in times {
        let thread = ThreadKey(1 + u32::try_from(draw.below(4)).unwrap());
        let pc = match draw.below(3) {
            0 => PROGRAM_AT + draw.below(0x200),
            // Fresh addresses force places to be forgotten.
            1 if draw.below(4) == 0 => 0x900_0000 + round * 0x1000 + draw.below(0x1000),
            _ => 0x10_0100 + draw.below(30 * 0x100),
        };
        recording.sample(at, thread, pc);
    }
    records_of(&recording.bytes())
}

/// Counts from the profile's own time buckets, and from fresh ones.
fn counts(profile: &mut Profile, filter: &Filter) -> [(Counts, Summary); 2] {
    let count = |profile: &Profile| {
        let counts = Counts::of(profile, filter, &Stop::new()).unwrap();
        (counts, Summary::with_errors(profile, filter))
    };
    let own = count(profile);
    let mut fresh = TimeBuckets::default();
    let (trace, sites, _) = profile.to_sum_up();
    fresh.append(trace, sites);
    let kept = std::mem::replace(&mut profile.time_buckets, fresh);
    let fresh = count(profile);
    profile.time_buckets = kept;
    [own, fresh]
}

/// Samples since the start, by name and tier.
fn totals(profile: &Profile) -> std::collections::BTreeMap<String, u64> {
    let summary = Summary::with_errors(profile, &Filter::default());
    let mut totals = std::collections::BTreeMap::new();
    for (entry, samples) in profile.entries.iter().zip(summary.entries) {
        *totals.entry(entry.name.clone()).or_insert(0) += samples;
    }
    totals.retain(|_, samples| *samples > 0);
    totals
}

#[test]
fn slices_that_grow_are_those_of_all_samples() {
    for seed in 1..=2 {
        let mut draw = Draw(seed);
        // With and without dropped samples.
        let small = Bounds {
            samples: 30_000,
            age: DurationNs(60_000),
            ..Bounds::default()
        };
        let mut lives = [Bounds::default(), small].map(|bounds| Live::new(true, bounds));
        let mut renamed = 0;
        let mut until = 0;
        for number in 0..150 {
            let told = round(&mut draw, number);
            let settles = draw.below(3) > 0;
            until = if settles {
                number * 1000 + draw.below(2500)
            } else {
                until
            };
            for live in &mut lives {
                told.iter().for_each(|record| live.take(record.clone()));
                if settles {
                    let settled = live.settle(TimeNs(until), &NoFiles);
                    renamed += u64::from(settled.renamed > 0);
                }
            }
            if number % 10 != 9 {
                continue;
            }
            for live in &lives {
                let mut profile = live.profile().write().unwrap();
                let profile = &mut *profile;
                let first = profile
                    .trace
                    .samples
                    .times
                    .first()
                    .copied()
                    .unwrap_or_default();
                assert!(profile.trace.samples.times.is_sorted());
                let last = profile.trace.ending.last_time;
                for _ in 0..4 {
                    // A window within the kept samples.
                    let kept = last.since(first).0.max(1);
                    let from = TimeNs(first.0 + 1 + draw.below(kept));
                    let to = (draw.below(2) == 0).then(|| TimeNs(from.0 + draw.below(kept)));
                    let filter = Filter {
                        from: Some(from),
                        to,
                        threads: (draw.below(2) == 0)
                            .then(|| [0, 2].map(ThreadId::of).into_iter().collect()),
                        ..Filter::default()
                    };
                    let [own, fresh] = counts(profile, &filter);
                    assert_eq!(own.0.sites, fresh.0.sites, "{filter:?} in round {number}");
                    assert_eq!(own.0.threads, fresh.0.threads, "{filter:?}");
                    assert_eq!(own.1.entries, fresh.1.entries);
                    assert_eq!(own.1.regions, fresh.1.regions);
                    assert_eq!(own.1.quality, fresh.1.quality);
                }
                let all = Counts::of(profile, &Filter::default(), &Stop::new()).unwrap();
                let kept = profile.trace.samples.times.len() as u64;
                assert_eq!(all.total, kept + live.omitted().samples);
                if live.omitted().samples == 0 {
                    let [own, fresh] = counts(profile, &Filter::default());
                    assert_eq!(own.0.sites, fresh.0.sites);
                    assert_eq!(own.1.entries, fresh.1.entries);
                }
            }
        }
        assert!(renamed > 20, "{renamed}");
        let [whole, small] = &lives;
        let left = small.omitted();
        assert!(left.samples > 50_000, "{left:?}");
        assert_eq!(whole.omitted().samples, 0);
        // Totals since the start are complete, except for late renames.
        let (whole, small) = (
            whole.profile().read().unwrap(),
            small.profile().read().unwrap(),
        );
        let (whole, mut small) = (totals(&whole), totals(&small));
        let count = |totals: &std::collections::BTreeMap<String, u64>| totals.values().sum::<u64>();
        assert_eq!(count(&whole), count(&small));
        let mut missing = 0;
        for (name, samples) in &whole {
            let known = small.remove(name).unwrap_or(0);
            missing += samples.saturating_sub(known);
        }
        assert!(missing <= left.misnamed, "{missing} {left:?}");
    }
}
