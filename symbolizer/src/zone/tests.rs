//! Who is where at a time.

use super::*;
use vmscope_records::{
    Avma, Constituent, ConstituentGone, ConstituentKey, ConstituentKind, ConstituentMoved,
    GoneReason, PcMap, ProcessKey, TimeNs,
};

const PROCESS: ProcessKey = ProcessKey(1);

fn constituent(key: u64, since: u64, absent_at: Option<u64>, start: u64, end: u64) -> Constituent {
    Constituent {
        key: ConstituentKey(key),
        process: PROCESS,
        since: TimeNs(since),
        absent_at: absent_at.map(TimeNs),
        start: Avma(start),
        end: Avma(end),
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: format!("m{key}"),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

fn gone(key: u64, last_seen: u64, time: u64) -> ConstituentGone {
    let (last_seen, time) = (TimeNs(last_seen), TimeNs(time));
    ConstituentGone {
        key: ConstituentKey(key),
        last_seen,
        time,
        reason: GoneReason::Freed,
    }
}

/// Who is at `address` at `time`: the key, `None`, or doubt.
fn who(code: &Code, time: u64, address: u64) -> Result<Option<u64>, ()> {
    let history = code.history();
    let mut zones = Zones::new(history.stays);
    for event in history.events {
        if event.time.0 <= time {
            zones.apply(event);
        }
    }
    match zones.lookup(PROCESS, Avma(address)) {
        None => Ok(None),
        Some(Claim::Doubtful) => Err(()),
        Some(Claim::One(index, _)) => Ok(Some(code.constituents[index as usize].key.0)),
    }
}

#[test]
fn a_place_that_is_reused_between_two_looks_is_doubtful_meanwhile() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.gone(gone(1, 20, 30));
    code.seen(constituent(2, 30, Some(20), 150, 250));
    assert_eq!(who(&code, 5, 160), Ok(None));
    assert_eq!(who(&code, 15, 160), Ok(Some(1)));
    assert_eq!(who(&code, 25, 160), Err(()), "both may have been there");
    assert_eq!(
        who(&code, 25, 120),
        Ok(Some(1)),
        "only the old one reaches there"
    );
    assert_eq!(
        who(&code, 25, 220),
        Ok(Some(2)),
        "only the new one reaches there"
    );
    assert_eq!(who(&code, 30, 160), Ok(Some(2)));
    assert_eq!(who(&code, 30, 120), Ok(None));
}

#[test]
fn a_moved_constituent_is_at_its_old_place_before_and_its_new_one_after() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.moved(ConstituentMoved {
        key: ConstituentKey(1),
        last_seen: TimeNs(20),
        time: TimeNs(30),
        to: Avma(400),
    });
    assert_eq!(who(&code, 15, 150), Ok(Some(1)));
    assert_eq!(who(&code, 15, 450), Ok(None));
    assert_eq!(who(&code, 25, 150), Ok(Some(1)));
    assert_eq!(who(&code, 25, 450), Ok(Some(1)));
    assert_eq!(who(&code, 35, 150), Ok(None));
    assert_eq!(who(&code, 35, 450), Ok(Some(1)));
}

#[test]
fn code_that_is_overwritten_without_notice_is_gone() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.seen(constituent(2, 20, None, 50, 150));
    assert_eq!(who(&code, 15, 120), Ok(Some(1)));
    assert_eq!(who(&code, 20, 120), Ok(Some(2)));
    assert_eq!(who(&code, 20, 180), Ok(None), "half a method is no method");
}

#[test]
fn code_that_one_look_saw_may_be_gone_right_after_it() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, Some(5), 100, 200));
    code.gone(gone(1, 10, 20));
    code.seen(constituent(2, 20, Some(10), 100, 200));
    assert_eq!(
        who(&code, 10, 150),
        Err(()),
        "both may be there after the look"
    );
    assert_eq!(who(&code, 15, 150), Err(()));
    assert_eq!(who(&code, 20, 150), Ok(Some(2)));
}

#[test]
fn code_whose_end_is_not_told_ends_where_other_code_may_begin() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.seen(constituent(2, 30, Some(20), 100, 200));
    assert_eq!(who(&code, 15, 150), Ok(Some(1)));
    assert_eq!(who(&code, 25, 150), Err(()));
    assert_eq!(who(&code, 30, 150), Ok(Some(2)));
}

#[test]
fn times_that_run_backwards_leave_nothing_behind() {
    let mut code = Code::default();
    code.seen(constituent(1, 30, None, 100, 200));
    code.gone(gone(1, 40, 20));
    code.seen(constituent(2, 30, None, 300, 400));
    code.gone(gone(2, 30, 30));
    code.seen(constituent(3, 50, Some(20), 500, 600));
    code.gone(gone(3, 50, 40));
    assert_eq!(who(&code, 60, 150), Ok(None));
    assert_eq!(who(&code, 60, 350), Ok(None));
    assert_eq!(who(&code, 30, 550), Ok(Some(3)), "it may have been there");
    assert_eq!(who(&code, 60, 550), Ok(None));
}

#[test]
fn more_known_later_changes_the_map_not_the_time() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    let mut again = constituent(1, 50, Some(40), 100, 200);
    again.name = "better".into();
    code.seen(again);
    assert_eq!(who(&code, 15, 120), Ok(Some(1)));
    assert_eq!(code.constituents[0].name, "better");
}

#[test]
fn two_of_one_look_at_one_place_are_doubtful_until_that_look() {
    // A perf map read at 10 and 20 has two new lines for one place: the later one is
    // there at 20; either may have been there before.
    let mut code = Code::default();
    code.seen(constituent(1, 20, Some(10), 100, 200));
    code.seen(constituent(2, 20, Some(10), 150, 250));
    assert_eq!(who(&code, 5, 160), Ok(None));
    assert_eq!(who(&code, 15, 160), Err(()), "either");
    assert_eq!(who(&code, 15, 120), Ok(Some(1)), "no other reaches there");
    assert_eq!(who(&code, 15, 220), Ok(Some(2)));
    assert_eq!(who(&code, 20, 160), Ok(Some(2)), "the later line");
    assert_eq!(who(&code, 20, 120), Ok(None), "half a method is no method");
}

#[test]
fn three_that_may_have_come_stay_doubtful_when_one_leaves() {
    let mut code = Code::default();
    code.seen(constituent(1, 40, Some(10), 100, 200));
    code.seen(constituent(2, 50, Some(10), 100, 200));
    code.seen(constituent(3, 60, Some(10), 100, 200));
    code.gone(gone(1, 5, 30));
    assert_eq!(who(&code, 20, 150), Err(()));
    assert_eq!(who(&code, 35, 150), Err(()), "two are left");
    assert_eq!(
        who(&code, 50, 150),
        Err(()),
        "the third may have come already"
    );
    assert_eq!(who(&code, 60, 150), Ok(Some(3)));
}

#[test]
fn a_zone_tells_where_it_changed() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.seen(constituent(2, 20, None, 150, 250));
    code.gone(gone(1, 30, 40));
    let history = code.history();
    let mut zones = Zones::new(history.stays);
    let changed: Vec<_> = (history.events.into_iter())
        .map(|event| zones.apply(event).map(|at| (at.start, at.end)))
        .collect();
    // The second takes the first one's place, so that the first can't fade or go.
    assert_eq!(changed, [Some((100, 200)), Some((100, 250)), None, None]);
}
