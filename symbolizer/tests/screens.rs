//! What is said of the recordings that screens are tested with is so.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "tests may fail by panicking"
)]

mod recordings;

use recordings::{read, screens};
use screens::ms;
use std::collections::BTreeMap;
use std::io::Cursor;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{Collection, ConstituentKind, Content, Record, ThreadRole, TimeNs};
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::{Filter, Profile, Region, Summary, profile_of};

fn profile(file: &[u8]) -> Profile {
    profile_of(read(file).unwrap(), Vec::new(), true)
}

fn records(file: &[u8]) -> Vec<Record> {
    let mut reader = Reader::open(Cursor::new(file)).unwrap();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(Content::ALL).unwrap() {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    records
}

fn all(profile: &Profile) -> Summary {
    Summary::of(profile, &Filter::default())
}

fn between(profile: &Profile, from_ms: u64, to_ms: u64) -> Summary {
    let filter = Filter {
        from: Some(TimeNs(ms(from_ms))),
        to: Some(TimeNs(ms(to_ms))),
        ..Filter::default()
    };
    Summary::of(profile, &filter)
}

/// The regions that have samples.
fn regions(summary: &Summary) -> Vec<(Region, u64)> {
    let counted = Region::ALL.into_iter().zip(summary.regions);
    counted.filter(|(_, samples)| *samples > 0).collect()
}

/// Entries with most samples: name, tier, samples.
fn hottest<'a>(
    profile: &'a Profile,
    summary: &Summary,
    count: usize,
) -> Vec<(&'a str, &'a str, u64)> {
    let entries = profile.entries.iter().zip(&summary.entries);
    let mut all: Vec<_> = entries
        .map(|(entry, &samples)| (entry.name.as_str(), entry.tier.as_str(), samples))
        .collect();
    all.sort_by_key(|&(name, tier, samples)| (std::cmp::Reverse(samples), name, tier));
    all.truncate(count);
    all
}

/// The threads that have samples, most first.
fn threads<'a>(profile: &'a Profile, summary: &Summary) -> Vec<(&'a str, u64)> {
    let name = |index: u32| profile.trace.threads[index as usize].thread.name.as_str();
    let all = summary.threads.iter();
    all.map(|one| (name(one.thread), one.samples)).collect()
}

/// How many callers each sample has that has any.
fn depths(profile: &Profile) -> Vec<(u32, usize)> {
    let samples = &profile.trace.samples;
    let rows = samples.threads.iter().zip(&samples.chains);
    rows.map(|(&thread, &chain)| (thread, profile.trace.chains.callers(chain).count()))
        .collect()
}

/// So many of each kind (and tier) of constituents.
fn constituents(records: &[Record]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for record in records {
        if let Record::Constituent(one) = record {
            let kind = format!("{:?} {}", one.kind, one.tier);
            *kinds.entry(kind.trim().to_owned()).or_default() += 1;
        }
    }
    kinds
}

/// A method's tiers, and from when to when (ms) its code was there.
fn lives<'a>(records: &'a [Record], name: &str) -> Vec<(&'a str, u64, Option<u64>)> {
    let since_begin = |time: TimeNs| (time.0 - ms(0)) / 1_000_000;
    let gone = |key| {
        records.iter().find_map(|record| match record {
            Record::ConstituentGone(gone) if gone.key == key => Some(since_begin(gone.time)),
            _ => None,
        })
    };
    let code = records.iter().filter_map(|record| match record {
        Record::Constituent(one) if one.name == name => Some(one),
        _ => None,
    });
    code.filter(|one| one.kind == ConstituentKind::Method)
        .map(|one| (one.tier.as_str(), since_begin(one.since), gone(one.key)))
        .collect()
}

/// What a recording holds, in words: what is said of it in its documentation.
fn told(profile: &Profile) -> Vec<String> {
    let summary = all(profile);
    let regions = regions(&summary);
    let regions = regions
        .iter()
        .map(|(region, n)| format!("{} {n}", region.name()));
    let hottest = hottest(profile, &summary, 3);
    let hottest = hottest.iter().map(|(name, tier, samples)| {
        let share = 100.0 * summary.share(*samples);
        format!("{name} ({tier}) {share:.2} %")
    });
    let threads = threads(profile, &summary);
    let threads = threads.iter().map(|(name, n)| format!("{name} {n}"));
    vec![
        format!("{} samples", summary.total),
        regions.collect::<Vec<_>>().join(", "),
        hottest.collect::<Vec<_>>().join(", "),
        threads.collect::<Vec<_>>().join(", "),
    ]
}

#[test]
fn java() {
    let file = screens::java();
    assert_eq!(file, screens::java(), "the same every time");
    let profile = profile(&file);
    let trace = &profile.trace;
    assert_eq!(
        told(&profile),
        [
            "12564 samples",
            "generated 6470, interpreter 739, gc 1916, compiler 1790, vm 643, library 631, kernel 368, unknown 7",
            "com.acme.orders.OrderBook.match (C2) 5.67 %, com.acme.config.Parser.token (C2) 4.38 %, com.acme.net.Codec.checksum (C2) 3.48 %",
            "main 3130, worker-1 2116, worker-0 2083, C2 CompilerThre 1763, GC Thread#1 1309, worker-2 1016, GC Thread#0 717, C1 CompilerThre 320, VM Thread 110",
        ]
    );
    let summary = all(&profile);
    let quality = summary.quality;
    assert_eq!(
        summary.promised,
        Some((summary.total + summary.lost) as f64)
    );
    assert_eq!(
        (summary.lost, quality.doubtful, quality.unresolved),
        (23, 9, 101)
    );
    assert_eq!((quality.interpreted, quality.without_method), (711, 28));
    let records = records(&file);
    let kinds = constituents(&records);
    let count = |kind: &str| kinds[kind];
    assert_eq!(
        [count("Stub"), count("Adapter"), count("Interpreter")],
        [28, 22, 26]
    );
    assert_eq!(
        [
            count("Method C1"),
            count("Method C1 profiling"),
            count("Method C2")
        ],
        [3, 36, 29]
    );
    assert_eq!(
        [count("Bytecodes"), count("MethodObject"), count("Free")],
        [40, 40, 32]
    );
    assert_eq!(trace.disordered_samples + trace.malformed_records, 0);
    let of_check = lives(&records, "com.acme.risk.Limits.check");
    assert_eq!(
        of_check,
        [
            ("C1 profiling", 1_200, Some(4_150)),
            ("C2", 4_000, Some(9_010)),
            ("C1 profiling", 9_200, Some(10_550)),
            ("C2", 10_400, None),
        ]
    );
}

#[test]
fn javas_activity_changes_with_time() {
    let profile = profile(&screens::java());
    // Starting, steady, a burst of collections, steady, nothing, steady.
    let of = |from, to| {
        let summary = between(&profile, from, to);
        let regions = [
            Region::Interpreter,
            Region::Compiler,
            Region::Gc,
            Region::Generated,
        ];
        let of_regions = regions.map(|region| summary.regions[region as usize]);
        (from, summary.total, of_regions)
    };
    let times = [0, 3_000, 10_000, 12_000, 15_000, 16_000, 20_000];
    let told: Vec<_> = times.windows(2).map(|pair| of(pair[0], pair[1])).collect();
    assert_eq!(
        told,
        [
            (0, 4294, [717, 967, 84, 1754]),
            (3_000, 3197, [13, 793, 97, 1911]),
            (10_000, 3043, [4, 30, 1620, 1093]),
            (12_000, 956, [2, 0, 50, 822]),
            (15_000, 0, [0; 4]),
            (16_000, 1074, [3, 0, 65, 890]),
        ]
    );
    // The third worker.
    let third = profile
        .trace
        .threads
        .iter()
        .zip(0..)
        .find(|(t, _)| t.thread.name == "worker-2");
    let third = third.unwrap().1;
    let samples = &profile.trace.samples;
    let times = samples.times.iter().zip(&samples.threads);
    let mut times = times
        .filter(|(_, thread)| **thread == third)
        .map(|(time, _)| time.0);
    assert!(times.all(|time| (ms(6_000)..ms(14_000)).contains(&time)));
}

#[test]
fn javas_mutators_stand_still_in_pauses() {
    let profile = profile(&screens::java());
    let trace = &profile.trace;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut of_pauses = 0;
    for one in &trace.collections {
        *kinds.entry(&one.kind).or_default() += 1;
        let whole = one.begin.zip(one.end).filter(|_| one.stop_the_world);
        let inside = one.phases.iter().filter(|phase| phase.stop_the_world);
        let inside = inside.filter_map(|phase| phase.begin.zip(phase.end));
        for (begin, end) in whole.into_iter().chain(inside) {
            assert!(begin < end);
            let rows = trace.samples.times.iter().zip(&trace.samples.threads);
            for (_, &thread) in rows.filter(|(time, _)| (begin..end).contains(time)) {
                let role = trace.threads[thread as usize].thread.role;
                assert_ne!(role, ThreadRole::Mutator, "{} {}", one.kind, one.number);
                let is_new = whole == Some((begin, end)) && role == ThreadRole::Collector;
                of_pauses += usize::from(is_new);
            }
        }
    }
    let kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    assert_eq!(
        kinds,
        [("concurrent", 1), ("full", 1), ("mixed", 4), ("young", 19)]
    );
    assert_eq!(of_pauses, 1_350);
    let unseen = |of: fn(&Collection) -> Option<TimeNs>| {
        trace
            .collections
            .iter()
            .filter(|one| of(one).is_none())
            .count()
    };
    assert_eq!((unseen(|one| one.begin), unseen(|one| one.end)), (2, 1));
}

#[test]
fn javas_mutators_have_callers_and_its_compilers_work() {
    let profile = profile(&screens::java());
    let trace = &profile.trace;
    let depths = depths(&profile);
    for &(thread, depth) in &depths {
        let is_mutator = trace.threads[thread as usize].thread.role == ThreadRole::Mutator;
        assert_eq!(is_mutator, (3..=12).contains(&depth), "{depth}");
    }
    let deep = depths.iter().filter(|(_, depth)| *depth > 0).count();
    assert_eq!((deep, trace.samples.truncated_chains), (8_345, 59));
    let inlined = |depth: usize| {
        let samples = all(&profile).sites;
        let sites = profile.sites.iter().zip(samples);
        sites
            .filter(|(site, _)| site.via.len() == depth)
            .map(|(_, n)| n)
            .sum::<u64>()
    };
    assert_eq!([1, 2, 3, 4].map(inlined), [558, 106, 13, 0]);
    let compilers = Compilers::of(&profile, &Filter::default()).unwrap();
    assert_eq!((compilers.samples, compilers.told), (2_083, 1_213));
    assert_eq!(
        (compilers.between, compilers.unseen, compilers.doubtful),
        (688, 182, 0)
    );
    assert_eq!((compilers.compilations, compilers.methods.len()), (36, 24));
}
