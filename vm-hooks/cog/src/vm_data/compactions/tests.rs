use std::sync::Arc;

use proptest::prelude::*;
use vmscope_process::KeySource;
use vmscope_records::{ProcessKey, Record};

use super::*;

/// What looks at these times tell of compactions with these begins and ends, all in milliseconds and
/// ascending; and the number of missed ones.
fn told(events: &[(u64, u64)], looks: &[u64]) -> (Vec<Collection>, u64) {
    let (mut compactions, keys) = (Compactions::default(), KeySource::new());
    let mut told = Vec::new();
    for &at in looks {
        let now = TimeNs(at * 1_000_000);
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(move || now));
        let ended = events.iter().filter(|(_, end)| *end <= at);
        let is_open = events.iter().any(|(begin, end)| *begin <= at && at < *end);
        let look = Look::with(&[
            (COUNTERS.0, ended.clone().count() as u64),
            (
                COUNTERS.1,
                ended.map(|(begin, end)| end - begin).sum::<u64>() * 1000,
            ),
            ("compactionInProgress", is_open.into()),
        ]);
        compactions.take(&look, now, &mut poll);
        told.extend(poll.finish().into_iter().map(|record| match record {
            Record::Collection(one) => *one,
            other => panic!("{other:?}"),
        }));
    }
    (told, compactions.missed.0)
}

fn times(one: &Collection) -> (u64, u64) {
    let [begin, end] = [one.begin, one.end].map(|time| time.unwrap().0 / 1_000_000);
    (begin, end)
}

#[test]
fn a_compaction_that_a_look_saw_has_begin_and_end() {
    let events = [(10, 12), (105, 135), (210, 215)];
    let (told, missed) = told(&events, &[0, 100, 125, 150, 300]);
    // No look saw the first and the last one.
    assert_eq!((told.len(), missed), (1, 1));
    let one = &told[0];
    assert_eq!(
        (one.number, one.missed, one.missed_ns),
        (2, 1, Some(2_000_000))
    );
    assert_eq!(times(one), (120, 150));
}

#[test]
fn a_length_that_contradicts_the_looks_gives_no_times() {
    let [absent, seen, ended] = [5, 6, 7].map(|ms: u64| TimeNs(ms * 1_000_000));
    let open = Open {
        absent: Some(absent),
        seen,
        is_over: false,
    };
    assert_eq!(open.place(9_000_000, ended), None);
    assert_eq!(open.place(u64::MAX, ended), None);
    assert_eq!(open.place(2_000_000, ended), Some((absent, ended)));
}

proptest! {
    /// Every compaction has a record, or counts as missed. Begins are late by less than the length, and
    /// ends are not later than the look that found them.
    #[test]
    fn none_is_lost_or_told_twice(
        gaps in prop::collection::vec((1_u64..80, 1_u64..80), 0..20),
        pauses in prop::collection::vec(1_u64..60, 1..60),
    ) {
        let mut end = 0;
        let events: Vec<(u64, u64)> = gaps
            .iter()
            .map(|(pause, length)| {
                let begin = end + pause;
                end = begin + length;
                (begin, end)
            })
            .collect();
        let mut at = 0;
        let looks = pauses.iter().map(|pause| {
            at += pause;
            at
        });
        let looks: Vec<u64> = std::iter::once(0).chain(looks).collect();
        let (told, missed) = told(&events, &looks);
        let counted = told.iter().map(|one| 1 + one.missed).sum::<u64>() + missed;
        let ended = events.iter().filter(|(_, end)| *end <= at).count() as u64;
        prop_assert_eq!(counted, ended);
        for one in &told {
            let (begin, end) = events[usize::try_from(one.number).unwrap() - 1];
            let found = times(one);
            prop_assert_eq!(found.1 - found.0, end - begin);
            prop_assert!((begin..end).contains(&found.0));
            prop_assert!(found.1 <= one.time.0 / 1_000_000);
        }
    }
}
