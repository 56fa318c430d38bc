//! Distributions, pretenuring decisions and call graphs of objects in handmade recordings.

use crate::recordings::Draw;
use crate::recordings::lifetimes::{birth, bucket, heap};
use vmscope_records::{Birth, BytecodePc, ClassKey, Fate, MethodKey, SiteKey};
use vmscope_symbolizer::Id;
use vmscope_symbolizer::lifetimes::call_graph::{CallGraph, Selection};
use vmscope_symbolizer::lifetimes::classify::{
    Classification, Parameters, SiteLifetime, max_live_bytes,
};
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping, groups};
use vmscope_symbolizer::lifetimes::histogram::{
    Allocations, Bin, HeatMap, Histogram, Weighting, width_for,
};
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure};
use vmscope_symbolizer::{AllocationSiteId, ClassId};

/// 100 objects, one every 10 ns, by number: class and site 1, 2, 3, 1, …. Objects of class 1 die after
/// 25 ns; others stay. Weights are 2; objects of class 3 have 160 bytes.
fn hundred() -> Lifetimes {
    let mut recording = heap();
    for object in 0..100 {
        let class = 1 + object % 3;
        recording.births([Birth {
            class: ClassKey(class),
            site: Some(SiteKey(class)),
            bytes: if class == 3 { 160 } else { 16 },
            weight: 2.0,
            ..birth(object, 10 * object)
        }]);
        if class == 1 {
            recording.fates(None, 10 * object + 25, &[(object, Fate::Died)]);
        }
    }
    recording.end(1025);
    recording.lifetimes()
}

#[test]
fn histograms_hold_all_objects() {
    let lifetimes = hundred();
    let count = |histogram: &Histogram| {
        let sums = histogram.groups.iter().map(|(key, bins)| {
            let sum = |of: fn(&Bin) -> f64| bins.iter().map(of).sum::<f64>();
            (*key, sum(|bin| bin.dead.value), sum(|bin| bin.alive.value))
        });
        sums.collect::<Vec<_>>()
    };
    let by_class = (Grouping::Class, 1);
    let objects = Histogram::of(
        &lifetimes,
        by_class,
        (Measure::Time, 10.0),
        Weighting::Objects,
    );
    let first = Some(GroupKey::Class(ClassId::of(0)));
    assert_eq!(count(&objects), [(first, 68.0, 0.0), (None, 0.0, 132.0)]);
    let (_, bins) = &objects.groups[0];
    // Each death came 25 ns after the birth.
    assert_eq!((bins.len(), bins[2].dead.value), (3, 68.0));
    assert!((bins[2].dead.error - 1.96 * (34.0 * 2.0_f64).sqrt()).abs() < 1e-9);

    let width = width_for(&lifetimes, Measure::Relative, 20);
    let bytes = Histogram::of(
        &lifetimes,
        (Grouping::All, 1),
        (Measure::Relative, width),
        Weighting::Bytes,
    );
    assert_eq!(
        count(&bytes),
        [(Some(GroupKey::All), 68.0 * 16.0, 66.0 * 16.0 + 66.0 * 160.0)]
    );
    let longest = &bytes.groups[0].1;
    assert_eq!(longest.len(), 20);

    // Any width makes bins.
    for width in [0.0, -1.0, f64::NAN, f64::MIN_POSITIVE] {
        let any = Histogram::of(
            &lifetimes,
            by_class,
            (Measure::Time, width),
            Weighting::Objects,
        );
        assert_eq!(count(&any), count(&objects));
    }
}

#[test]
fn births_have_their_times() {
    let lifetimes = hundred();
    let heat = HeatMap::of(&lifetimes, Measure::Time, 41, Weighting::Objects);
    let sum = |cells: &[f64]| cells.iter().sum::<f64>();
    assert_eq!(heat.cells.iter().map(|row| sum(row)).sum::<f64>(), 200.0);
    // Bins of 25 ns: the first holds objects 0 to 2. Object 0 died after 25 ns; the others live.
    let first: Vec<_> = heat.cells[0]
        .iter()
        .enumerate()
        .filter(|(_, cell)| **cell > 0.0)
        .collect();
    assert_eq!(first, [(0, &2.0), (40, &4.0)]);

    let allocations = Allocations::of(&lifetimes, (Grouping::Class, 1), (Measure::Time, 100.0));
    let largest = &allocations.groups[0];
    assert_eq!(largest.0, Some(GroupKey::Class(ClassId::of(2))));
    // Objects 2, 5 and 8.
    assert_eq!(
        (largest.1[0].objects.value, largest.1[0].bytes.value),
        (6.0, 960.0)
    );
    let all = allocations.groups.iter().flat_map(|(_, bins)| bins);
    assert_eq!(all.map(|bin| bin.objects.value).sum::<f64>(), 200.0);
}

#[test]
fn sites_are_short_lived_long_lived_or_immortal() {
    let mut recording = heap();
    recording.site(4, &[(4, 1)]).site(5, &[(5, 1)]);
    recording.site(6, &[(6, 1)]);
    for (key, begin) in [(1, 1000), (2, 2000), (3, 3000), (5, 7000), (4, 9000)] {
        recording.collection(key, "full", begin, begin + 1);
    }
    let of = |site, object, time, bytes| Birth {
        site: Some(SiteKey(site)),
        bytes,
        weight: 2.0,
        ..birth(object, time)
    };
    let survivors =
        |all: std::ops::Range<u64>| all.map(|key| (key, Fate::Survived)).collect::<Vec<_>>();
    let dead = |all: std::ops::Range<u64>| all.map(|key| (key, Fate::Died)).collect::<Vec<_>>();
    // Site 1: nine of ten die in the first collection. Site 2: two collections. Site 3: all stay.
    recording
        .births((0..10).map(|object| of(1, object, object, 16)))
        .births((10..20).map(|object| of(2, object, object, 16)))
        .births((20..30).map(|object| of(3, object, object, 160)))
        // A site with too few bytes, and a site without observed collections.
        .births([of(4, 40, 40, 0), of(5, 41, 9500, 16)])
        .fates(Some(1), 1001, &dead(0..9))
        .fates(Some(1), 1001, &survivors(9..30))
        .fates(Some(2), 2001, &survivors(9..30))
        .fates(Some(3), 3001, &dead(9..20))
        .fates(Some(3), 3001, &survivors(20..30))
        .fates(Some(4), 9001, &survivors(20..30))
        // Site 6: dies, but in the second half of the run.
        .births([of(6, 42, 42, 32)])
        .fates(Some(5), 7001, &survivors(42..43))
        .fates(Some(4), 9001, &dead(42..43))
        .end(10_000);
    let lifetimes = recording.lifetimes();
    // Objects that died unseen count only at their births: object 9, and the sites 2, 3 and 6.
    assert_eq!(
        max_live_bytes(&lifetimes),
        2.0 * (11.0 * 16.0 + 10.0 * 160.0 + 32.0)
    );
    let made = Classification::of(&lifetimes, &Parameters::default()).unwrap();
    let rows = made
        .sites
        .iter()
        .map(|one| (one.site.unwrap().0.0, one.lifetime, one.is_certain));
    let rows: Vec<_> = rows.collect();
    let wanted = [
        (1, SiteLifetime::Short, true),
        (1, SiteLifetime::Long, true),
        (2, SiteLifetime::Immortal, true),
        (6, SiteLifetime::Immortal, true),
    ];
    assert!(wanted.iter().all(|row| rows.contains(row)), "{rows:?}");
    assert_eq!((rows.len(), made.pruned), (4, (2, 32.0)));
    let short = made.sites.iter().find(|one| !one.is_pretenured()).unwrap();
    assert_eq!((short.short.value, short.long.value), (0.9, 0.1));
    assert!(short.short.error > 0.0);
    // A stricter demand leaves a doubt: site 1 is just short-lived.
    let loose = Parameters {
        long_excess: -0.9,
        ..Parameters::default()
    };
    let made = Classification::of(&lifetimes, &loose).unwrap();
    let first = made
        .sites
        .iter()
        .find(|one| one.short.value == 0.9)
        .unwrap();
    assert!(first.is_pretenured() && !first.is_certain);
}

#[test]
fn callers_share_the_allocations_of_their_callees() {
    let lifetimes = hundred();
    let graph = CallGraph::of(&lifetimes, Selection::default());
    let rows = graph.nodes.iter().map(|one| {
        (
            one.method.0,
            one.own_objects.value,
            one.objects.value,
            one.bytes.value,
        )
    });
    // 68 objects of site 1, 66 of the sites 2 and 3.
    let (one, two, three) = (68.0 * 16.0, 66.0 * 16.0, 66.0 * 160.0);
    let wanted = [
        (1, 134.0, 200.0, one + two + three),
        (2, 66.0, 66.0, three),
        (9, 0.0, 134.0, one + three),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), wanted);
    let edge = |edge: &vmscope_symbolizer::lifetimes::call_graph::Edge| {
        let method = |node: usize| graph.nodes[node].method.0;
        (
            method(edge.caller),
            edge.pc.0,
            method(edge.callee),
            edge.objects.value,
        )
    };
    let edges: Vec<_> = graph.edges.iter().map(edge).collect();
    assert_eq!(edges, [(1, 30, 2, 66.0), (9, 5, 1, 68.0), (9, 6, 1, 66.0)]);

    let class = Some(ClassId::of(2));
    let of_class = CallGraph::of(&lifetimes, Selection { class, from: None });
    assert_eq!((of_class.objects.value, of_class.edges.len()), (66.0, 2));
    let from = Some(MethodKey(1));
    let of_method = CallGraph::of(&lifetimes, Selection { class: None, from });
    let methods: Vec<_> = of_method.nodes.iter().map(|node| node.method.0).collect();
    assert_eq!(
        (methods, of_method.objects.value, of_method.edges.len()),
        (vec![1, 2], 200.0, 1)
    );
    let chains = of_method.chains.iter();
    let chains = chains.map(|one| (one.site.index(), one.frames, one.bytes.value));
    // Without the caller of method 1.
    assert_eq!(
        chains.collect::<Vec<_>>(),
        [(0, 1, one), (1, 1, two), (2, 2, three)]
    );

    let paths = graph.paths(MethodKey(9), MethodKey(2), 10);
    assert_eq!(
        (paths.paths, paths.is_complete),
        (vec![vec![1, 0], vec![2, 0]], true)
    );
    let bounded = graph.paths(MethodKey(9), MethodKey(2), 1);
    assert_eq!((bounded.paths.len(), bounded.is_complete), (1, false));
    assert!(graph.paths(MethodKey(2), MethodKey(9), 10).paths.is_empty());
}

#[test]
fn recursion_counts_an_object_once() {
    let mut recording = heap();
    recording.site(4, &[(7, 1), (7, 2), (8, 3), (7, 2), (7, 2), (6, 1)]);
    recording.births([
        Birth {
            site: Some(SiteKey(4)),
            ..birth(1, 10)
        },
        Birth {
            site: None,
            ..birth(2, 20)
        },
    ]);
    let graph = CallGraph::of(&recording.lifetimes(), Selection::default());
    assert_eq!(
        (graph.objects.value, graph.objects_without_site.value),
        (2.0, 1.0)
    );
    assert!(graph.nodes.iter().all(|node| node.objects.value == 1.0));
    assert!(graph.edges.iter().all(|edge| edge.objects.value == 1.0));
    // 7 → 7, 7 → 8, 8 → 7, 6 → 7.
    assert_eq!(graph.edges.len(), 4);
    assert_eq!(graph.paths(MethodKey(6), MethodKey(8), 10).paths.len(), 1);
}

#[test]
fn groups_are_by_class_site_and_method() {
    let lifetimes = hundred();
    let keys = |grouping| {
        let groups = groups(&lifetimes, grouping);
        groups
            .iter()
            .map(|group| (group.key, group.objects.value))
            .collect::<Vec<_>>()
    };
    let method = |key| Some(MethodKey(key));
    let by_method = [
        (GroupKey::Method(method(1)), 134.0),
        (GroupKey::Method(method(2)), 66.0),
    ];
    assert_eq!(keys(Grouping::Method), by_method);
    let site = |method, pc| Some((MethodKey(method), BytecodePc(pc)));
    let by_site = keys(Grouping::Site);
    assert_eq!(by_site[0], (GroupKey::Site(site(1, 10)), 68.0));
    let pairs = keys(Grouping::ClassAndSite);
    assert!(pairs.contains(&(GroupKey::ClassAndSite(ClassId::of(1), site(1, 20)), 66.0)));
    assert_eq!(
        (by_site.len(), pairs.len(), keys(Grouping::All)),
        (3, 3, vec![(GroupKey::All, 200.0)])
    );
    // The share of all objects in all objects has no error, although weights are 2.
    let all = &groups(&lifetimes, Grouping::All)[0];
    assert!(all.objects.error > 0.0 && all.share_of_objects.error < 1e-9);
    assert!(all.share_of_bytes.value == 1.0 && all.share_of_bytes.error < 1e-9);
    let unknown = Grouping::Method.key(&lifetimes, ClassId::of(0), None::<AllocationSiteId>);
    assert_eq!(unknown, GroupKey::Method(None));
}

#[test]
fn no_recording_makes_an_analysis_fail() {
    let mut draw = Draw(7);
    for _ in 0..300 {
        let extremes = [0, 1, 20, 1 << 40, u64::MAX - 1, u64::MAX];
        let mut any = |small: u64| match draw.below(8) {
            0 => extremes[draw.below(6) as usize],
            _ => draw.below(small),
        };
        let mut recording = heap();
        recording.site(4, &[]).end(any(100));
        for key in 0..any(4).min(4) {
            let kind = ["full", "scavenge"][(key % 2) as usize];
            recording.collection(key, kind, any(100), any(100));
        }
        for _ in 0..30 {
            let weight = [1.0, 1.5, 1e300, f64::MAX][(any(4) % 4) as usize];
            recording.births([Birth {
                class: ClassKey(1 + any(3) % 4),
                site: Some(SiteKey(any(6))),
                bytes: any(1000),
                weight,
                allocated_bytes: Some(any(1000)).filter(|bytes| *bytes % 7 > 0),
                ..birth(any(20), any(100))
            }]);
            let fate = [Fate::Died, Fate::Survived, Fate::Tenured][(any(3) % 3) as usize];
            let collection = Some(any(5)).filter(|key| *key > 0);
            recording.fates(
                collection,
                any(200),
                &[(any(20), fate), (any(20), Fate::Died)],
            );
            let counted = [bucket(
                any(3) as u32,
                any(3) as u32,
                any(3) >> 8,
                any(3) >> 8,
            )];
            recording.counts(
                any(100),
                (any(4), Some(any(4))),
                any(9) >> 8,
                &counted[..(any(2) % 2) as usize],
            );
        }
        let mut lifetimes = recording.lifetimes();
        for _ in 0..2 {
            for measure in Measure::ALL {
                let width = width_for(&lifetimes, measure, 10);
                let _ = Histogram::of(
                    &lifetimes,
                    (Grouping::Site, 2),
                    (measure, width),
                    Weighting::Bytes,
                );
                let _ = Allocations::of(&lifetimes, (Grouping::Class, 2), (measure, width));
                let _ = HeatMap::of(&lifetimes, measure, 10, Weighting::Objects);
            }
            for grouping in [Grouping::All, Grouping::ClassAndSite] {
                let objects = groups(&lifetimes, grouping)
                    .iter()
                    .map(|one| one.recorded)
                    .sum::<u64>();
                assert!(objects <= lifetimes.objects.len() as u64);
            }
            let _ = Classification::of(&lifetimes, &Parameters::default());
            let graph = CallGraph::of(&lifetimes, Selection::default());
            assert!(
                graph
                    .edges
                    .iter()
                    .all(|edge| edge.callee < graph.nodes.len())
            );
            // Again without exact counts.
            lifetimes.counts.clear();
        }
    }
}
