//! Checks the documented facts about the screen recordings.

use crate::recordings::screens::{self, ms};
use crate::screens_support::{
    all, between, constituents, depths, lives, profile, records, threads, told,
};
use std::collections::BTreeMap;
use vmscope_records::{Collection, GoneReason, Record, ThreadRole, TimeNs};
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::{Filter, Region, Stop};

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
        (23, 9, 129)
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
fn javas_methods() {
    let file = screens::java();
    let profile = profile(&file);
    let listed = profile.trace.methods.values();
    let mut listed: Vec<&str> = listed
        .filter(|method| !method.listing.is_empty())
        .map(|method| method.name.as_str())
        .collect();
    listed.sort_unstable();
    assert_eq!(listed, ["checksum", "getNode", "match", "peek", "visit"]);
    assert_eq!(profile.trace.methods.len(), 40);
    let lines = profile
        .trace
        .methods
        .values()
        .map(|method| method.lines.len());
    assert!(lines.min() > Some(0));
    // Doubtful samples lie where one method replaced another.
    let doubtful = |from, to| between(&profile, from, to).quality.doubtful;
    assert_eq!((doubtful(0, 20_000), doubtful(6_900, 7_100)), (9, 9));
    let records = records(&file);
    let token = lives(&records, "com.acme.config.Parser.token");
    assert_eq!(token[0], ("C1 profiling", 800, Some(7_100)));
    let resize = lives(&records, "java.util.HashMap.resize");
    assert_eq!(resize, [("C1 profiling", 7_100, None)]);
    assert_eq!(between(&profile, 13_400, 13_900).lost, 23);
    assert_eq!(between(&profile, 14_000, 15_000).lost, 0);
}

#[test]
fn javas_activity_changes_with_time() {
    let profile = profile(&screens::java());
    // Startup, steady, a burst of collections, steady, idle, steady.
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
        .enumerated()
        .find(|(_, one)| one.thread.name == "worker-2");
    let third = third.unwrap().0;
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
        let whole = one.begin.zip(one.end).filter(|_| one.scope.is_pause());
        let inside = one.phases.iter().filter(|phase| phase.stop_the_world);
        let inside = inside.filter_map(|phase| phase.begin.zip(phase.end));
        for (begin, end) in whole.into_iter().chain(inside) {
            assert!(begin < end);
            let rows = trace.samples.times.iter().zip(&trace.samples.threads);
            for (_, &thread) in rows.filter(|(time, _)| (begin..end).contains(time)) {
                let role = trace.threads[thread].thread.role;
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
    let full = trace.collections.iter().find(|one| one.kind == "full");
    let times = full.and_then(|one| one.begin.zip(one.end));
    assert_eq!(times, Some((TimeNs(ms(11_640)), TimeNs(ms(11_827)))));
}

#[test]
fn javas_mutators_have_callers_and_its_compilers_work() {
    let profile = profile(&screens::java());
    let trace = &profile.trace;
    let depths = depths(&profile);
    for &(thread, depth) in &depths {
        let is_mutator = trace.threads[thread].thread.role == ThreadRole::Mutator;
        assert_eq!(is_mutator, (3..=12).contains(&depth), "{depth}");
    }
    let deep = depths.iter().filter(|(_, depth)| *depth > 0).count();
    assert_eq!((deep, trace.samples.chain_ends.depth), (8_345, 59));
    let inlined = |depth: usize| {
        let samples = all(&profile).sites;
        let sites = profile.sites.iter().zip(samples);
        sites
            .filter(|(site, _)| site.via.len() == depth)
            .map(|(_, n)| n)
            .sum::<u64>()
    };
    assert_eq!([1, 2, 3, 4].map(inlined), [558, 106, 13, 0]);
    let compilers = Compilers::of(&profile, &Filter::default(), &Stop::new()).unwrap();
    assert_eq!((compilers.samples, compilers.told), (2_083, 1_213));
    assert_eq!(
        (compilers.between, compilers.unseen, compilers.doubtful),
        (688, 182, 0)
    );
    assert_eq!((compilers.compilations, compilers.methods.len()), (36, 24));
}

#[test]
fn cog() {
    let file = screens::cog();
    let profile = profile(&file);
    assert_eq!(
        told(&profile),
        [
            "7263 samples",
            "generated 5935, interpreter 536, gc 235, compiler 75, vm 144, library 185, kernel 153",
            "Integer>>benchFib () 16.23 %, Integer>>benchmark () 10.23 %, interpret () 7.38 %",
            "squeak 7220, heartbeat 43",
        ]
    );
    // All generated code resolves, before and after the compaction.
    let summary = all(&profile);
    assert_eq!(
        summary.quality.exact,
        summary.regions[Region::Generated as usize]
    );
    let records = records(&file);
    let moves = records
        .iter()
        .filter(|record| matches!(record, Record::ConstituentMoved(_)));
    let gone = |record: &&Record| matches!(record, Record::ConstituentGone(gone) if gone.reason == GoneReason::Flushed);
    let flushed = records.iter().filter(gone);
    assert_eq!((moves.count(), flushed.count()), (17, 5));
    let kinds = constituents(&records);
    let count = |kind: &str| kinds[kind];
    assert_eq!(
        [count("Trampoline"), count("Enilopmart"), count("Method")],
        [10, 2, 20]
    );
    assert_eq!(
        [count("ClosedPic"), count("OpenPic"), count("Free")],
        [3, 1, 2]
    );
    let samples = |name: &str, from, to| {
        let summary = between(&profile, from, to);
        let entries = profile.entries.iter().zip(summary.entries);
        entries
            .filter(|(entry, _)| entry.name == name)
            .map(|(_, n)| n)
            .sum::<u64>()
    };
    let dist = "Point>>dist:";
    assert!(samples(dist, 0, 3_000) > 0);
    assert_eq!(samples(dist, 3_000, 6_000), 0, "flushed");
    assert!(samples("Float>>truncated", 3_000, 6_000) > 0, "moved");
    let cases = profile.entries.iter().map(|entry| entry.cases.len()).max();
    assert_eq!(cases, Some(3));
}

#[test]
fn node() {
    let profile = profile(&screens::node());
    assert_eq!(
        told(&profile),
        [
            "11837 samples",
            "generated 6846, interpreter 503, gc 1220, compiler 447, vm 1307, library 299, kernel 1215",
            "parseRow (TurboFan) 14.56 %, splitCells (TurboFan) 9.89 %, vfs_read () 7.96 %",
            "node 9148, V8Worker 660, V8Worker 634, libuv-worker 352, libuv-worker 352, libuv-worker 348, libuv-worker 343",
        ]
    );
    assert!(profile.trace.samples.chains.is_empty() && profile.trace.collections.is_empty());
    // All generated code has lines.
    let lines = profile.sites.iter().zip(all(&profile).sites);
    let has_line = lines.filter(|(site, _)| site.frame.line.is_some());
    assert_eq!(has_line.map(|(_, n)| n).sum::<u64>(), 6846);
    let records = records(&screens::node());
    let tiers = [("Sparkplug", 300), ("Maglev", 700), ("TurboFan", 1_500)];
    let row = lives(&records, "parseRow");
    assert_eq!(row, tiers.map(|(tier, since)| (tier, since, None)));
}

#[test]
fn native() {
    let profile = profile(&screens::native());
    assert_eq!(
        told(&profile),
        [
            "7660 samples",
            "vm 6326, library 1066, kernel 268",
            "sim::Grid::relax() () 17.17 %, sim::blend() () 14.06 %, sim::Particle::advance() () 11.66 %",
            "grid 2472, grid 2392, particles 2021, sim 775",
        ]
    );
    assert!(profile.is_native());
    assert_eq!(all(&profile).quality.exact, 6326, "the program has lines");
    assert!(
        depths(&profile)
            .iter()
            .all(|(_, depth)| (1..=4).contains(depth))
    );
}

#[test]
fn poor_and_damaged_ones() {
    let nothing = profile(&screens::nothing());
    assert_eq!(told(&nothing), ["0 samples", "", "", ""]);
    assert_eq!(nothing.trace.threads.len(), 0);

    let damaged = profile(&screens::damaged());
    let trace = &damaged.trace;
    let why: Vec<&str> = trace.ending.damages.iter().map(|one| one.why).collect();
    assert_eq!(
        why,
        ["a chunk does not match its checksum", "a chunk is cut off"]
    );
    assert_eq!(trace.end, None);
    let summary = all(&damaged);
    assert_eq!((summary.total, summary.quality.unresolved), (10_886, 5_947));
    assert!(trace.symbols.is_empty());
    let last = trace.samples.times.last().unwrap();
    assert_eq!((last.0 - ms(0)) / 1_000_000, 12_992);
    let nameless = threads(&damaged, &summary)[5];
    assert_eq!(nameless, ("", 922));
}

#[test]
fn nasty() {
    let profile = profile(&screens::nasty());
    let summary = all(&profile);
    assert_eq!(
        told(&profile)[..2],
        ["4718 samples", "generated 3583, vm 1135"]
    );
    let sampled = profile.entries.iter().zip(&summary.entries);
    let sampled: Vec<&str> = sampled
        .filter(|(_, samples)| **samples > 0)
        .map(|(entry, _)| entry.name.as_str())
        .collect();
    for name in screens::nasty::NAMES {
        // Unnamed code is unknown.
        let name = if name.is_empty() {
            "(generated code, unnamed)"
        } else {
            name
        };
        assert!(sampled.contains(&name), "{name:?}");
    }
    let longest = sampled.iter().map(|name| name.chars().count()).max();
    assert_eq!(longest, Some(screens::nasty::LONG));
    let roles = profile
        .trace
        .threads
        .iter()
        .map(|thread| thread.thread.role);
    assert_eq!(roles.collect::<Vec<_>>(), [ThreadRole::Mutator; 17]);
}
