use std::sync::Arc;

use proptest::prelude::*;
use vmscope_process::KeySource;
use vmscope_records::{ProcessKey, Record};

use super::*;

/// A collection: kind, begin and end in microseconds.
type Event = (Kind, u64, u64);

/// The VM's numbers at `now`.
fn seen_at(events: &[Event], now: u64) -> Seen {
    let mut seen = Seen::default();
    let begun = events.iter().filter(|(_, begin, _)| *begin <= now);
    for &(kind, begin, end) in begun {
        if end > now {
            (seen.open, seen.newest) = (Some((kind, begin)), None);
            continue;
        }
        let ended = &mut seen.ended[kind as usize];
        *ended = (ended.0 + 1, ended.1 + end - begin);
        seen.newest = Some((begin, end));
        if kind == Kind::Scavenge {
            seen.scavenge = Some(end - begin);
        }
    }
    seen
}

fn step(events: &[Event], from: u64, to: u64) -> [Step; 2] {
    Step::between(&seen_at(events, from), &seen_at(events, to)).unwrap()
}

const EVENTS: [Event; 4] = [
    (Kind::Scavenge, 10, 13),
    (Kind::Scavenge, 20, 25),
    (Kind::Full, 30, 47),
    (Kind::Scavenge, 60, 61),
];

#[test]
fn one_collection_between_looks_has_times() {
    let [scavenges, fulls] = step(&EVENTS, 5, 15);
    assert_eq!(scavenges.new, Some((10, Some(13))));
    assert_eq!((scavenges.missed, fulls), ((0, 0), Step::default()));
    let [scavenges, fulls] = step(&EVENTS, 5, 28);
    assert_eq!(scavenges.new, Some((20, Some(25))));
    assert_eq!((scavenges.missed, fulls), ((1, 3), Step::default()));
}

#[test]
fn the_duration_shows_the_kind_of_the_newest() {
    let [scavenges, fulls] = step(&EVENTS, 15, 50);
    assert_eq!((scavenges.new, scavenges.missed), (None, (1, 5)));
    assert_eq!(fulls.new, Some((30, Some(47))));
    let [scavenges, fulls] = step(&EVENTS, 28, 70);
    assert_eq!(scavenges.new, Some((60, Some(61))));
    assert_eq!((fulls.new, fulls.missed), (None, (1, 17)));
    // Equal durations: which one was the last stays open.
    let equal = [(Kind::Full, 10, 14), (Kind::Scavenge, 20, 24)];
    let steps = step(&equal, 5, 30);
    assert!(steps.iter().all(|step| step.new.is_none()));
    assert_eq!(steps.map(|step| step.missed), [(1, 4), (1, 4)]);
}

#[test]
fn a_collection_that_a_look_saw_ends_in_the_next() {
    let [_, fulls] = step(&EVENTS, 28, 40);
    assert_eq!(fulls.new, Some((30, None)));
    let [_, fulls] = step(&EVENTS, 40, 50);
    assert_eq!((fulls.ended, fulls.new), (Some(47), None));
    let [scavenges, fulls] = step(&EVENTS, 40, 70);
    assert_eq!(
        (fulls.ended, scavenges.new),
        (Some(47), Some((60, Some(61))))
    );
}

#[test]
fn counters_that_go_back_tell_nothing() {
    let (early, late) = (seen_at(&EVENTS, 15), seen_at(&EVENTS, 70));
    assert_eq!(Step::between(&late, &early), None);
}

proptest! {
    /// Whenever looks come, every collection is told once or counted as missed, and all time is told.
    #[test]
    fn nothing_is_told_twice_or_left_out(
        gaps in prop::collection::vec((1..50_u64, 1..50_u64, any::<bool>()), 0..40),
        pauses in prop::collection::vec(1..200_u64, 0..40),
    ) {
        let mut at = 0;
        let events: Vec<Event> = gaps
            .into_iter()
            .map(|(gap, length, is_full)| {
                let begin = at + gap;
                at = begin + length;
                (if is_full { Kind::Full } else { Kind::Scavenge }, begin, at)
            })
            .collect();
        let mut now = 0;
        let mut opened = [None; 2];
        let (mut number, mut time) = ([0; 2], [0; 2]);
        for pause in pauses.into_iter().chain([10_000]) {
            let from = now;
            now += pause;
            for (at, step) in step(&events, from, now).into_iter().enumerate() {
                if let Some(end) = step.ended {
                    let begin = opened[at].take().unwrap();
                    prop_assert!(events.iter().any(|one| (one.1, one.2) == (begin, end)));
                    number[at] += 1;
                    time[at] += end - begin;
                }
                number[at] += step.missed.0;
                time[at] += step.missed.1;
                match step.new {
                    Some((begin, Some(end))) => {
                        prop_assert!(events.iter().any(|one| (one.1, one.2) == (begin, end)));
                        number[at] += 1;
                        time[at] += end - begin;
                    }
                    Some((begin, None)) => opened[at] = Some(begin),
                    None => {}
                }
            }
        }
        let ended = seen_at(&events, now).ended;
        prop_assert_eq!(ended.map(|one| one.0), number);
        prop_assert_eq!(ended.map(|one| one.1), time);
    }
}

/// The records of looks at these milliseconds, with the VM's values. The VM's clock shows 10 s at 0 ms.
fn told(looks: &[(u64, &[(&'static str, u64)])]) -> Vec<Collection> {
    let clock = VmClock::showing(10_000_000, TimeNs(0));
    let (mut collections, keys) = (Collections::default(), KeySource::new());
    let mut told = Vec::new();
    for (at, values) in looks {
        let at = TimeNs(at * 1_000_000);
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(move || at));
        let unchanged = [
            ("statScavengeGCUsecs", 0),
            ("statFullGCUsecs", 0),
            ("statSGCDeltaUsecs", 0),
            ("gcMode", 0),
        ];
        let look = Look::with(&[&unchanged[..], values].concat());
        collections.take(&look, clock, at, &mut poll);
        told.extend(poll.finish().into_iter().filter_map(|record| match record {
            Record::Collection(one) => Some(*one),
            _ => None,
        }));
    }
    told
}

/// Values before the first collection.
const NONE: [(&str, u64); 4] = [
    ("statScavenges", 0),
    ("statFullGCs", 0),
    ("gcStartUsecs", 0),
    ("statGCEndUsecs", 0),
];

fn ms(time: u64) -> Option<TimeNs> {
    Some(TimeNs(time * 1_000_000))
}

#[test]
fn the_newest_collection_has_the_vms_times() {
    let scavenge = [
        ("statScavenges", 2),
        ("statFullGCs", 0),
        ("statScavengeGCUsecs", 5000),
        ("statSGCDeltaUsecs", 2000),
        ("gcStartUsecs", 10_030_000),
        ("statGCEndUsecs", 10_032_000),
    ];
    let told = told(&[(1, &NONE), (40, &scavenge)]);
    let [one] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!((one.begin, one.end), (ms(30), ms(32)));
    assert_eq!((one.missed, one.missed_ns), (1, Some(3_000_000)));
}

#[test]
fn a_collection_in_progress_has_phases_and_later_its_end() {
    let full = |phase| {
        [
            ("statScavenges", 0),
            ("statFullGCs", 0),
            ("gcMode", 1),
            ("gcPhaseInProgress", phase),
            ("gcStartUsecs", 10_020_000),
            ("statGCEndUsecs", 0),
        ]
    };
    let ended = [
        ("statScavenges", 0),
        ("statFullGCs", 1),
        ("statFullGCUsecs", 50_000),
        ("gcStartUsecs", 10_020_000),
        ("statGCEndUsecs", 10_070_000),
    ];
    let told = told(&[(1, &NONE), (30, &full(0)), (50, &full(2)), (80, &ended)]);
    let last = told.last().unwrap();
    assert!(
        told.iter()
            .all(|one| one.key == last.key && one.begin == ms(20))
    );
    let phases: Vec<&str> = last.phases.iter().map(|phase| &*phase.name).collect();
    assert_eq!(phases, ["mark", "compact"]);
    assert_eq!((last.end, last.missed), (ms(70), 0));
}

#[test]
fn times_before_the_last_look_or_in_the_future_are_unknown() {
    let scavenge = |begin, end| {
        [
            ("statScavenges", 1),
            ("statFullGCs", 0),
            ("statScavengeGCUsecs", end - begin),
            ("statSGCDeltaUsecs", end - begin),
            ("gcStartUsecs", begin),
            ("statGCEndUsecs", end),
        ]
    };
    let early = told(&[(100, &NONE), (200, &scavenge(10_020_000, 10_021_000))]);
    assert_eq!(early[0].begin, None);
    let late = told(&[(100, &NONE), (200, &scavenge(10_900_000, 10_901_000))]);
    assert_eq!((late[0].begin, late[0].end), (None, None));
}
