//! Who keeps objects alive, in handmade recordings.

use crate::recordings::lifetimes::{birth, heap};
use crate::recordings::{PROCESS, Recording};
use vmscope_records::{Birth, Class, ClassKey, Fate, Record};
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::advice::tenured_sets;
use vmscope_symbolizer::lifetimes::cost::CollectorCost;
use vmscope_symbolizer::lifetimes::groups::{GroupKey, Grouping};
use vmscope_symbolizer::lifetimes::holders::holders;

fn name(lifetimes: &Lifetimes, key: GroupKey) -> String {
    let GroupKey::Class(id) = key else {
        panic!("grouped by class")
    };
    lifetimes.classes[id].name.clone()
}

#[test]
fn groups_have_their_holders_with_shares_and_errors() {
    let mut recording = heap();
    recording
        .collection(1, "scavenge", 100, 110)
        .collection(2, "full", 200, 210)
        .births([
            birth(1, 10),
            birth(2, 20),
            Birth {
                bytes: 100,
                weight: 4.0,
                ..birth(3, 30)
            },
            Birth {
                class: ClassKey(2),
                ..birth(4, 40)
            },
        ])
        .held(
            Some(1),
            110,
            &[
                (1, Fate::Survived, Some(2)),
                (2, Fate::Survived, Some(3)),
                (3, Fate::Survived, Some(3)),
                // An unknown class.
                (4, Fate::Survived, Some(77)),
            ],
        )
        // The last collection counts for both; this one comes late.
        .held(Some(2), 210, &[(1, Fate::Survived, None)])
        .end(300);
    let lifetimes = recording.lifetimes();
    assert_eq!(lifetimes.skipped.fates_without_holder, 1);
    let held = holders(&lifetimes, Grouping::Class);
    let names: Vec<String> = held.iter().map(|one| name(&lifetimes, one.key)).collect();
    assert_eq!(names, ["C1", "C2"]);
    // Object 1: 16 bytes, two collections, a root; object 2: 16 bytes; object 3 stands for 400 bytes.
    let first = &held[0];
    assert_eq!(first.survived.value, 32.0 + 16.0 + 400.0);
    let error = 1.96 * (4.0 * 3.0 * 100.0_f64 * 100.0).sqrt();
    assert!((first.survived.error - error).abs() < 1e-9);
    let holdings: Vec<_> = (first.holdings.iter())
        .map(|one| {
            let class = one.holder.map(|id| lifetimes.classes[id].name.as_str());
            (class, one.survived.value)
        })
        .collect();
    assert_eq!(holdings, [(Some("C3"), 416.0), (None, 32.0)]);
    let share = first.holdings[0].share;
    assert!((share.value - 416.0 / 448.0).abs() < 1e-9);
    // The linearized ratio: 100·(1 - share) is the residual of object 3.
    let error = error * (1.0 - share.value) / 448.0;
    assert!((share.error - error).abs() < 1e-9, "{share:?} {error}");
    assert_eq!(
        first.main_holder().map(|id| &*lifetimes.classes[id].name),
        Some("C3")
    );
    assert_eq!(held[1].main_holder(), None);
}

#[test]
fn without_holders_there_is_no_table() {
    let mut recording = heap();
    recording
        .collection(1, "scavenge", 100, 110)
        .births([birth(1, 10)])
        .fates(Some(1), 110, &[(1, Fate::Survived)])
        .end(300);
    assert_eq!(holders(&recording.lifetimes(), Grouping::Class), []);
}

/// Objects of the classes 1 to 3 that a scavenge tenures. They die together: some in each of three full
/// collections. `holder` is the holder's class of each.
fn dying(holder: [Option<u64>; 3]) -> Vec<Vec<String>> {
    let mut recording: Recording = heap();
    for key in 4..=5 {
        recording.put(Record::Class(Class {
            key: ClassKey(key),
            process: PROCESS,
            name: format!("C{key}"),
        }));
    }
    recording.collection(1, "scavenge", 100, 110);
    let objects = || (0..3).flat_map(|class| (0..6).map(move |n| (class, 6 * class as u64 + n)));
    recording.births(objects().map(|(class, object)| Birth {
        class: ClassKey(class as u64 + 1),
        bytes: 16 * (class as u64 + 1),
        ..birth(object, object)
    }));
    let tenured: Vec<_> = objects()
        .map(|(class, object)| (object, Fate::Tenured, holder[class]))
        .collect();
    recording.held(Some(1), 110, &tenured);
    for full in 0..3 {
        let (key, begin) = (full + 2, 100 * full + 200);
        recording.collection(key, "full", begin, begin + 10);
        let dead = objects().filter(|(_, object)| object % 3 == full);
        let dead: Vec<_> = dead.map(|(_, object)| (object, Fate::Died)).collect();
        recording.fates(Some(key), begin + 10, &dead);
    }
    let lifetimes = recording.end(600).lifetimes();
    let cost = CollectorCost::of(&lifetimes, Grouping::Class);
    let sets = tenured_sets(&lifetimes, Grouping::Class, &cost).into_iter();
    let sets = sets.filter(|set| set.len() > 1).map(|set| {
        let mut names: Vec<_> = set.iter().map(|key| name(&lifetimes, *key)).collect();
        names.sort();
        names
    });
    sets.collect()
}

#[test]
fn groups_that_die_together_have_a_common_holder_or_hold_each_other() {
    let all = vec![vec!["C1", "C2", "C3"]];
    // Without holders, the deaths decide.
    assert_eq!(dying([None, None, None]), all);
    assert_eq!(dying([Some(4), Some(4), Some(4)]), all);
    assert_eq!(dying([Some(4), Some(5), Some(4)]), [["C1", "C3"]]);
    // A group and its holder; also two groups that a third one links.
    assert_eq!(dying([Some(2), Some(4), Some(5)]), [["C1", "C2"]]);
    assert_eq!(dying([Some(3), Some(4), Some(4)]), all);
    assert_eq!(dying([Some(4), Some(5), Some(1)]), [["C1", "C3"]]);
    assert_eq!(dying([Some(4), Some(5), None]), Vec::<Vec<String>>::new());
}
