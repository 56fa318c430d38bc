//! The collector's time by site on handmade recordings with known costs.

use crate::recordings::lifetimes::{birth, heap};
use crate::recordings::{PROCESS, Recording};
use vmscope_records::{
    Birth, Collection, CollectionKey, CollectionScope, Fate, Record, SiteKey, SpaceUse, TimeNs,
};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::advice::Advised;
use vmscope_symbolizer::lifetimes::cost::CollectorCost;
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping};

/// Nanoseconds per scavenge, per copied byte, and per byte of memory in first use.
const FIXED: u64 = 10_000;
const PER_BYTE: u64 = 50;
const PER_FRESH_BYTE: u64 = 90;

/// Distance of scavenges in nanoseconds.
const APART: u64 = 1_000_000;

/// A scavenge that copied and tenured so many bytes, and lasted as the model says.
fn scavenge(recording: &mut Recording, number: u64, survived: u64, tenured: u64) {
    let eden = space("eden", None, None, 1 << 20);
    let ns = FIXED + PER_BYTE * survived;
    let told = (survived, tenured);
    collection(recording, "scavenge", number, ns, told, vec![eden]);
}

fn space(name: &str, before: Option<u64>, after: Option<u64>, capacity: u64) -> SpaceUse {
    SpaceUse {
        name: name.to_owned(),
        before,
        after,
        capacity: Some(capacity),
    }
}

fn collection(
    recording: &mut Recording,
    kind: &str,
    number: u64,
    ns: u64,
    (survived, tenured): (u64, u64),
    spaces: Vec<SpaceUse>,
) {
    let begin = number * APART;
    let end = TimeNs(begin + ns);
    recording.put(Record::Collection(Box::new(Collection {
        key: CollectionKey(number),
        process: PROCESS,
        time: end,
        kind: kind.to_owned(),
        number,
        begin: Some(TimeNs(begin)),
        end: Some(end),
        scope: CollectionScope::Whole,
        spaces,
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

/// Scavenges of a process, with numbers from `first` on. All tenure their survivors. Old space grows.
/// After the 20th scavenge, a full collection frees all, and gives memory back.
fn growing_old_space(first: u64) -> Lifetimes {
    const KEPT: u64 = 1 << 12;
    let mut recording = heap();
    let (mut old, mut touched) = (0, 0);
    for number in 0..40 {
        if number == 20 {
            let spaces = vec![space("old", Some(old), Some(0), KEPT)];
            let key = first + number;
            collection(&mut recording, "full", key, 1000, (0, 0), spaces);
            (old, touched) = (0, KEPT);
        }
        let survived = 400 + number * number * 37 % 800;
        let (before, after) = (old, old + survived);
        let fresh = after.max(touched) - touched;
        (old, touched) = (after, touched + fresh);
        let spaces = vec![
            space("eden", Some(1 << 20), Some(0), 1 << 20),
            space("survivors", Some(0), Some(0), 1 << 18),
            space("old", Some(before), Some(after), 1 << 16),
        ];
        let ns = FIXED + PER_BYTE * survived + PER_FRESH_BYTE * fresh;
        let key = first + number + number / 20;
        collection(
            &mut recording,
            "scavenge",
            key,
            ns,
            (survived, survived),
            spaces,
        );
    }
    recording.end(1000 * APART);
    recording.lifetimes()
}

#[test]
fn fresh_memory_has_a_price_of_its_own() {
    let work = CollectorCost::of(&growing_old_space(1), Grouping::Site).scavenges;
    assert!(is_near(work.per_byte().value, PER_BYTE as f64), "{work:?}");
    let fresh = work.per_fresh_byte().value;
    assert!(is_near(fresh, PER_FRESH_BYTE as f64), "{work:?}");
    // An older process may have used all of its memory before, up to the shrinking.
    let work = CollectorCost::of(&growing_old_space(7), Grouping::Site).scavenges;
    assert!(work.fit.is_some_and(|fit| fit.explained < 0.99));
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
