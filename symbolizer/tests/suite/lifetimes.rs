//! Lifetimes of objects in handmade recordings: reading, exact counts and groups.

use crate::recordings::Recording;
use crate::recordings::lifetimes::{birth, bucket, heap};
use vmscope_records::{Birth, ClassKey, Collection, Fate, ProcessKey, SiteKey, TimeNs};
use vmscope_symbolizer::Id;
use vmscope_symbolizer::lifetimes::Measure;
use vmscope_symbolizer::lifetimes::collections::CollectionKind;
use vmscope_symbolizer::lifetimes::estimate::Estimate;
use vmscope_symbolizer::lifetimes::groups::{Grouping, Thresholds, groups};
use vmscope_symbolizer::lifetimes::life_table::life_tables;
use vmscope_symbolizer::lifetimes::read::{Limits, Skipped};

fn is_near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-9 * wanted.abs().max(1.0)
}

/// Two scavenges and a full collection. Object 1 dies in the first scavenge; object 2 survives it, is
/// tenured by the second, and dies in the full collection; object 3 stays alive.
fn three_objects() -> Recording {
    let mut recording = heap();
    recording
        .collection(3, "full", 300, 330)
        .collection(1, "scavenge", 100, 110)
        .collection(2, "scavenge", 200, 210)
        // A survival may come before the birth.
        .fates(Some(2), 210, &[(2, Fate::Tenured), (3, Fate::Survived)])
        .births([birth(3, 150), birth(1, 50), birth(2, 60)])
        .fates(Some(1), 110, &[(1, Fate::Died), (2, Fate::Survived)])
        .fates(Some(3), 330, &[(2, Fate::Died), (3, Fate::Survived)])
        .end(1000);
    recording
}

#[test]
fn fates_make_lifetimes_with_their_bounds() {
    let lifetimes = three_objects().lifetimes();
    assert_eq!(lifetimes.skipped, Skipped::default());
    assert_eq!((lifetimes.run_ns(), lifetimes.objects.len()), (1000, 3));
    let kinds: Vec<_> = lifetimes.collections.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [
            CollectionKind::Scavenge,
            CollectionKind::Scavenge,
            CollectionKind::Full
        ]
    );
    let [first, second, third] = lifetimes.objects[..] else {
        panic!("three objects")
    };
    let collection = |id: Option<_>| id.map(Id::index);
    assert_eq!(
        (first.death(), collection(first.death_collection)),
        (Some(TimeNs(110)), Some(0))
    );
    assert_eq!(
        (collection(second.tenured), collection(second.last_survived)),
        (Some(1), Some(1))
    );
    assert_eq!(
        (second.scavenges, second.fulls, second.death()),
        (2, 0, Some(TimeNs(330)))
    );
    assert_eq!((third.scavenges, third.fulls, third.death()), (1, 1, None));

    let both = |object, measure| {
        let least = lifetimes.least_lifetime(object, measure).unwrap();
        (least, lifetimes.lifetime(object, measure).unwrap())
    };
    assert_eq!(both(&first, Measure::Time), (0.0, 60.0));
    assert_eq!(both(&second, Measure::Time), (150.0, 270.0));
    assert_eq!(both(&third, Measure::Relative), (0.85, 0.85));
    assert_eq!(both(&second, Measure::Scavenges), (2.0, 2.0));
    // Object 2 begins after 960 bytes and object 3 after 2400: 16 bytes a nanosecond in between, except
    // for object 2's own 16 bytes.
    let (_, until_scavenge) = both(&first, Measure::AllocatedBytes);
    let at_scavenge = 976.0 + (2400.0 - 976.0) * 50.0 / 90.0;
    assert!(
        is_near(until_scavenge, at_scavenge - 800.0),
        "{until_scavenge}"
    );
    assert_eq!(both(&third, Measure::AllocatedBytes), (16.0, 16.0));
}

#[test]
fn collections_between_birth_and_death_count_without_survivals() {
    let mut recording = heap();
    recording
        .collection(1, "scavenge", 100, 110)
        .collection(2, "full", 200, 210)
        .collection(3, "scavenge", 300, 310)
        .collection(4, "full", 400, 410)
        .births([
            birth(1, 50),
            birth(2, 51),
            birth(3, 250),
            birth(4, 390),
            birth(5, 500),
        ])
        .fates(None, 320, &[(1, Fate::Died)])
        .fates(Some(4), 420, &[(2, Fate::Died), (3, Fate::Died)])
        .fates(Some(77), 430, &[(4, Fate::Died)])
        .end(600);
    let lifetimes = recording.lifetimes();
    let rows = lifetimes.objects.iter().map(|one| {
        let last = one.last_survived.map(Id::index);
        (
            one.scavenges,
            one.fulls,
            last,
            one.death_collection.map(Id::index),
        )
    });
    let wanted = [
        (1, 1, Some(1), Some(2)),
        // Dead since the full collection before, or later.
        (2, 1, Some(1), Some(3)),
        (1, 0, None, Some(3)),
        (0, 0, None, Some(3)),
        (0, 0, None, None),
    ];
    assert_eq!(rows.collect::<Vec<_>>(), wanted);
    assert_eq!(lifetimes.skipped.fates_without_collection, 1);
}

#[test]
fn nonsense_is_counted_and_ignored() {
    let mut recording = three_objects();
    let of_class = |class| Birth {
        class: ClassKey(class),
        ..birth(50, 70)
    };
    let of_site = |site| Birth {
        site: Some(SiteKey(site)),
        ..birth(51, 70)
    };
    recording
        .births([birth(1, 90), of_class(9), of_site(9)])
        .births([Birth {
            weight: f64::INFINITY,
            ..birth(52, 70)
        }])
        .fates(
            Some(3),
            330,
            &[(1, Fate::Survived), (3, Fate::Survived), (99, Fate::Died)],
        )
        .fates(Some(1), 110, &[(3, Fate::Survived), (1, Fate::Died)])
        .fates(Some(7), 340, &[(51, Fate::Died)])
        .counts(400, (9, None), 1, &[])
        .counts(400, (1, Some(9)), 1, &[])
        .counts(400, (1, None), 1, &[bucket(0, 0, 1, 1)])
        .counts(
            400,
            (1, None),
            1,
            &[bucket(0, 0, u64::MAX / 16, u64::MAX / 16)],
        );
    let lifetimes = recording.lifetimes();
    let wanted = Skipped {
        births_without_class: 1,
        births_without_site: 1,
        duplicate_births: 1,
        bad_weights: 1,
        fates_without_birth: 1,
        fates_before_birth: 1,
        fates_after_death: 2,
        duplicate_fates: 1,
        fates_without_collection: 1,
        bad_counts: 4,
        ..Skipped::default()
    };
    assert_eq!(lifetimes.skipped, wanted);
    assert_eq!(lifetimes.objects.len(), 4);
    let without: Vec<_> = three_objects().lifetimes().objects;
    assert!(without.iter().all(|one| lifetimes.objects.contains(one)));

    let process = Some(ProcessKey(7));
    let limits = Limits::default();
    let other = three_objects().lifetimes_within(Limits { process, ..limits });
    assert_eq!((other.objects.len(), other.skipped.other_processes), (0, 4));
}

#[test]
fn objects_beyond_the_limit_are_thinned_without_a_bias() {
    // Each object of the first class, one of 50 of the second. Every third object dies; the first
    // deaths come before the births.
    let count = 20_000;
    let mut recording = heap();
    recording.collection(1, "scavenge", 900_000, 900_001);
    let deaths = |early| {
        let dead = (1..=count).filter(move |object| object % 3 == 0);
        let dead = dead.filter(move |object| (*object <= 300) == early);
        dead.map(|object| (object, Fate::Died)).collect::<Vec<_>>()
    };
    recording.fates(Some(1), 900_001, &deaths(true));
    for object in 1..=count {
        let class = 1 + object % 2;
        recording.births([Birth {
            class: ClassKey(class),
            weight: [1.0, 50.0][class as usize - 1],
            ..birth(object, object)
        }]);
    }
    recording.fates(Some(1), 900_001, &deaths(false));
    for max_objects in [100, 3000, 20_000] {
        let limits = Limits {
            max_objects,
            process: None,
        };
        let lifetimes = recording.lifetimes_within(limits);
        let kept = lifetimes.objects.len() as u64;
        // A halving keeps half, give or take 5 deviations.
        let most = max_objects as u64;
        assert!((most / 4..=most).contains(&kept), "{kept} of {most}");
        let wanted = Skipped {
            births_left_out: count - kept,
            ..Skipped::default()
        };
        assert_eq!(lifetimes.skipped, wanted);
        for (class, each) in [(1, 1.0), (2, 50.0)] {
            for only_dead in [false, true] {
                let objects = lifetimes.objects.iter().filter(|one| {
                    let key = lifetimes.classes[one.class].key;
                    key == ClassKey(class) && (!only_dead || one.death().is_some())
                });
                let weights = || objects.clone().map(|one| one.weight / each);
                let error = weights().map(|w| w * (w - 1.0)).sum::<f64>().sqrt();
                let sum = weights().sum::<f64>();
                let all = (1..=count).filter(|object| 1 + object % 2 == class);
                let exact = all.filter(|object| !only_dead || object % 3 == 0).count() as f64;
                assert!(
                    (sum - exact).abs() <= 4.0 * error,
                    "{max_objects}, class {class}: {sum} ± {error} of {exact}"
                );
            }
        }
    }
    let none = Limits {
        max_objects: 0,
        process: None,
    };
    assert!(recording.lifetimes_within(none).objects.len() <= 2);
}

#[test]
fn counts_are_exact_and_the_newest_count() {
    let mut recording = heap();
    recording
        .counts(10, (1, Some(1)), 50, &[bucket(0, 0, 50, 0)])
        .counts(
            90,
            (1, Some(1)),
            100,
            &[
                bucket(0, 0, 60, 10),
                bucket(1, 0, 10, 5),
                bucket(4, 2, 6, 9),
            ],
        )
        .counts(80, (1, Some(1)), 70, &[bucket(0, 0, 70, 0)])
        .counts(90, (2, None), 300, &[bucket(0, 0, 300, 0)])
        // The thinned sample tells the lifetimes in time.
        .births([
            Birth {
                weight: 32.0,
                ..birth(1, 40)
            },
            Birth {
                weight: 64.0,
                ..birth(2, 60)
            },
        ])
        .fates(None, 80, &[(1, Fate::Died)])
        .end(100);
    let lifetimes = recording.lifetimes();
    let by_class = groups(&lifetimes, Grouping::Class);
    let [two, one] = &by_class[..] else {
        panic!("{by_class:?}")
    };
    let exact = |value| Estimate { value, error: 0.0 };
    assert_eq!(
        (one.objects, one.bytes, one.alive),
        (exact(100.0), exact(1600.0), exact(24.0))
    );
    assert_eq!(
        (one.share_of_objects, one.mean_bytes, one.recorded),
        (exact(0.25), exact(16.0), 2)
    );
    assert_eq!(
        (two.objects, two.alive, two.recorded),
        (exact(300.0), exact(0.0), 0)
    );
    assert_eq!(two.mean_lifetime(Measure::Time), None);

    // 10 living objects saw no scavenge: 90 are exposed to the first scavenge, and 60 of these died.
    let tables = life_tables(&lifetimes, Grouping::Class, Measure::Scavenges);
    let (_, table) = tables.iter().find(|(key, _)| *key == one.key).unwrap();
    let steps: Vec<_> = table
        .steps
        .iter()
        .map(|one| (one.lifetime, one.at_risk, one.deaths))
        .collect();
    assert_eq!(
        steps,
        [(0.0, 90.0, 60.0), (1.0, 25.0, 10.0), (4.0, 6.0, 6.0)]
    );
    let mean = one.mean_lifetime(Measure::Scavenges).unwrap();
    assert!(is_near(mean.restricted.value, 1.0 / 3.0 + 3.0 / 3.0 * 0.6));
    assert_eq!(mean.to_end, exact((10.0 + 5.0 + 4.0 * 15.0) / 100.0));
    let fulls = one.mean_lifetime(Measure::FullCollections).unwrap();
    assert_eq!(fulls.to_end, exact(2.0 * 15.0 / 100.0));
    // Both sampled objects lived for 40 ns.
    let time = one.mean_lifetime(Measure::Time).unwrap();
    assert!(is_near(time.to_end.value, 40.0) && time.to_end.error < 1e-6);
}

#[test]
fn short_lived_and_most_allocated_groups_are_known() {
    let mut recording = heap();
    let of = |class, object, time| Birth {
        class: ClassKey(class),
        ..birth(object, time)
    };
    // Class 1 dies young; class 2 stays; class 3 was born late, and nothing is known of its deaths.
    for object in 0..200 {
        recording.births([of(1, object, 4 * object)]);
        recording.fates(None, 4 * object + 20, &[(object, Fate::Died)]);
    }
    recording.births([of(2, 1000, 10), of(2, 1001, 20), of(2, 1002, 20)]);
    recording.births([of(3, 1003, 990)]).end(1000);
    let lifetimes = recording.lifetimes();
    let groups = groups(&lifetimes, Grouping::Class);
    let thresholds = Thresholds::default();
    let rows = groups.iter().map(|group| {
        (
            group.is_most_allocated(&thresholds),
            group.is_short_lived(&thresholds),
        )
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [(true, Some(true)), (true, Some(false)), (false, None)]
    );
    let mean = groups[0].mean_lifetime(Measure::Relative).unwrap();
    assert!(is_near(mean.restricted.value, 0.02) && is_near(mean.least.value, 0.0));
}

#[test]
fn kinds_of_collections_have_known_words() {
    let kind = |collector: &str, kind: &str| {
        CollectionKind::of(&Collection {
            collector: collector.to_owned(),
            kind: kind.to_owned(),
            ..Collection::default()
        })
    };
    for (collector, words) in [
        ("scavenger", "scavenge"),
        ("G1 Young Generation", ""),
        ("G1", "mixed"),
    ] {
        assert_eq!(
            kind(collector, words),
            CollectionKind::Scavenge,
            "{collector}"
        );
    }
    for (collector, words) in [
        ("compactor", "full"),
        ("PS MarkSweep", ""),
        ("ZGC Major Cycles", ""),
    ] {
        assert_eq!(kind(collector, words), CollectionKind::Full, "{collector}");
    }
}
