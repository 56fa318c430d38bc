//! Who is where at a time.

use super::now::Limits;
use super::*;
use crate::ids::{CodeId, Id};
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
    let mut zones = Zones::new(history.placements);
    for event in history.events {
        if event.time.0 <= time {
            zones.apply(event);
        }
    }
    match zones.lookup(PROCESS, Layer::Code, Avma(address)) {
        None => Ok(None),
        Some(Claim::Doubtful) => Err(()),
        Some(Claim::One(index, _)) => Ok(Some(code.constituents[index].key.0)),
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
    assert_eq!(code.constituents[CodeId::of(0)].name, "better");
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
    let mut zones = Zones::new(history.placements);
    let changed: Vec<_> = (history.events.into_iter())
        .map(|event| zones.apply(event).map(|at| (at.start, at.end)))
        .collect();
    // The second takes the first one's place, so that the first can't fade or go.
    assert_eq!(changed, [Some((100, 200)), Some((100, 250)), None, None]);
}

const fn key(key: u32) -> ProcessKey {
    ProcessKey(key)
}

/// Zones after all changes of `code`.
fn zones(code: &Code) -> Zones {
    let history = code.history();
    let mut zones = Zones::new(history.placements);
    for event in history.events {
        zones.apply(event);
    }
    zones
}

#[test]
fn what_a_fork_hands_on_does_not_overlap() {
    let mut code = Code::default();
    code.seen(constituent(1, 10, None, 100, 200));
    code.seen(Constituent {
        process: key(2),
        ..constituent(2, 20, None, 150, 160)
    });
    let history = code.history();
    let mut zones = Zones::new(history.placements);
    zones.apply(history.events[0]);
    zones.fork(PROCESS, key(2));
    let changed = zones.apply(history.events[1]);
    let changed = changed.map(|changed| (changed.start, changed.end));
    assert_eq!(changed, Some((100, 200)), "the inherited one is gone");
    zones.fork(key(2), key(3));
    for process in [2, 3] {
        assert_eq!(zones.lookup(key(process), Layer::Code, Avma(120)), None);
        let there = zones.lookup(key(process), Layer::Code, Avma(155));
        assert_eq!(there, Some(Claim::One(CodeId::of(1), 5)), "in {process}");
        assert_eq!(zones.lookup(key(process), Layer::Code, Avma(170)), None);
    }
}

#[test]
fn forks_of_what_has_not_changed_take_no_room() {
    let mut code = Code::default();
    for number in 0..10 {
        code.seen(constituent(
            number,
            10,
            None,
            number * 100,
            number * 100 + 50,
        ));
    }
    let mut zones = zones(&code).limited(Limits {
        living: 15,
        copied: 15,
    });
    for child in 2..1000 {
        // Forks of the parent and of the previous child take turns.
        let parent = if child % 2 == 0 { 1 } else { child - 1 };
        zones.fork(key(parent), key(child));
        assert_eq!(
            zones.lookup(key(child), Layer::Code, Avma(910)),
            Some(Claim::One(CodeId::of(9), 10))
        );
    }
    assert_eq!(zones.refused(), 0);
}

#[test]
fn what_forks_take_is_bounded_and_given_back_and_refusals_are_counted() {
    let many = |since, first| (first..first + 10).map(move |n| (n, since));
    let mut code = Code::default();
    // The parent changes before each fork.
    for (number, since) in (0..20).flat_map(|round| many(10 + round, round * 10)) {
        let start = number % 10 * 100;
        code.seen(constituent(number, since, None, start, start + 50));
    }
    let history = code.history();
    let mut zones = Zones::new(history.placements).limited(Limits {
        living: 25,
        copied: 55,
    });
    let mut events = history.events.into_iter();
    let mut round = |zones: &mut Zones| {
        events
            .by_ref()
            .take(10)
            .for_each(|event| _ = zones.apply(event));
    };
    let has = |zones: &Zones, child| zones.lookup(key(child), Layer::Code, Avma(10)).is_some();
    for child in 2..=4 {
        round(&mut zones);
        zones.fork(PROCESS, key(child));
    }
    assert!(has(&zones, 2) && has(&zones, 3) && !has(&zones, 4));
    assert_eq!(zones.refused(), 1, "two times ten of 25");
    // One that replaced its program gives it back; one that ended when it must.
    zones.disinherit(key(2));
    zones.end(key(3));
    assert!(!has(&zones, 2) && has(&zones, 3));
    for child in 5..=6 {
        round(&mut zones);
        zones.fork(PROCESS, key(child));
        assert!(has(&zones, child), "{child}");
    }
    assert!(!has(&zones, 3));
    zones.disinherit(key(5));
    zones.disinherit(key(6));
    round(&mut zones);
    zones.fork(PROCESS, key(7));
    assert!(has(&zones, 7));
    zones.disinherit(key(7));
    round(&mut zones);
    zones.fork(PROCESS, key(8));
    assert!(!has(&zones, 8), "more than 55 in all");
    assert_eq!(zones.refused(), 2);
}
