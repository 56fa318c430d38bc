//! The collector's time by site on handmade recordings with known costs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

mod recordings;

use recordings::lifetimes::{birth, heap};
use recordings::{PROCESS, Recording};
use vmscope_records::{
    Birth, Collection, CollectionKey, CollectionScope, Fate, Record, SiteKey, SpaceUse, TimeNs,
};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::advice::Advised;
use vmscope_symbolizer::lifetimes::cost::CollectorCost;
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping};

/// Nanoseconds per scavenge, and nanoseconds per copied byte.
const FIXED: u64 = 10_000;
const PER_BYTE: u64 = 50;

/// Distance of scavenges in nanoseconds.
const APART: u64 = 1_000_000;

/// A scavenge that copied and tenured so many bytes, and lasted as the model says.
fn scavenge(recording: &mut Recording, number: u64, survived: u64, tenured: u64) {
    let begin = number * APART;
    let end = TimeNs(begin + FIXED + PER_BYTE * survived);
    let eden = SpaceUse {
        name: "eden".to_owned(),
        capacity: Some(1 << 20),
        ..SpaceUse::default()
    };
    recording.put(Record::Collection(Box::new(Collection {
        key: CollectionKey(number),
        process: PROCESS,
        time: end,
        kind: "scavenge".to_owned(),
        begin: Some(TimeNs(begin)),
        end: Some(end),
        scope: CollectionScope::Whole,
        spaces: vec![eden],
        survived_bytes: Some(survived),
        tenured_bytes: Some(tenured),
        ..Collection::default()
    })));
}

/// Forty scavenges. Before each, site 1 makes 20 objects that die, and site 2 makes between 3 and 8
/// objects that the scavenge tenures at once.
fn two_sites() -> Lifetimes {
    let mut recording = heap();
    let mut object = 0;
    for number in 1..=40_u64 {
        let survivors = 3 + number % 6;
        let before = (number - 1) * APART + APART / 2;
        let mut births: Vec<Birth> = Vec::new();
        let mut fates = Vec::new();
        for one in 0..20 + survivors {
            object += 1;
            let is_survivor = one >= 20;
            let site = SiteKey(if is_survivor { 2 } else { 1 });
            births.push(Birth {
                site: Some(site),
                ..birth(object, before + one)
            });
            fates.push((
                object,
                if is_survivor {
                    Fate::Tenured
                } else {
                    Fate::Died
                },
            ));
        }
        scavenge(&mut recording, number, 16 * survivors, 16 * survivors);
        recording
            .births(births)
            .fates(Some(number), number * APART + 1, &fates);
    }
    recording.end(41 * APART);
    recording.lifetimes()
}

fn site_of(lifetimes: &Lifetimes, key: u64) -> GroupKey {
    let mut sites = lifetimes.sites.enumerated();
    let (id, _) = sites.find(|(_, site)| site.key == SiteKey(key)).unwrap();
    Grouping::Site.key(lifetimes, lifetimes.objects[0].class, Some(id))
}

fn is_near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-6 * wanted.abs().max(1.0)
}

#[test]
fn survivors_pay_for_copies_and_all_pay_for_allocation() {
    let lifetimes = two_sites();
    let cost = CollectorCost::of(&lifetimes, Grouping::Site);
    assert!(is_near(cost.scavenges.fixed().value, FIXED as f64));
    assert!(is_near(cost.scavenges.per_byte().value, PER_BYTE as f64));
    let of = |key| {
        let key = site_of(&lifetimes, key);
        *cost.groups.iter().find(|group| group.key == key).unwrap()
    };
    let (dying, tenured) = (of(1), of(2));
    let survivors: u64 = (1..=40).map(|number| 3 + number % 6).sum();
    let copied = (16 * survivors) as f64;
    assert_eq!(
        (dying.copied_bytes.value, tenured.copied_bytes.value),
        (0.0, copied)
    );
    assert_eq!(
        (dying.surviving.value, tenured.tenured_bytes.value),
        (0.0, copied)
    );
    assert!(is_near(tenured.surviving.value, PER_BYTE as f64 * copied));
    let share = 800.0 / (800 + survivors) as f64;
    let fixed = 40.0 * FIXED as f64;
    assert!(is_near(dying.allocating.value, share * fixed));
    assert!(is_near(tenured.allocating.value, (1.0 - share) * fixed));
    // Every nanosecond belongs to a site.
    assert!(is_near(cost.unattributed, 0.0) || cost.unattributed.abs() < 1.0);
}

#[test]
fn few_collections_give_no_model_and_no_advice() {
    let mut recording = heap();
    scavenge(&mut recording, 1, 16, 0);
    recording
        .births([birth(1, 10)])
        .fates(Some(1), APART + 1, &[(1, Fate::Survived)])
        .end(2 * APART);
    let lifetimes = recording.lifetimes();
    let cost = CollectorCost::of(&lifetimes, Grouping::Site);
    assert_eq!(cost.scavenges.fit, None);
    assert!(is_near(cost.unattributed, cost.scavenges.ns));
    assert_eq!(
        Advised::of(&lifetimes, Grouping::Site, &cost),
        Advised::default()
    );
}
