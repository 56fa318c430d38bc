//! Sessions of commands that start others: every program that maps a marker gets its
//! adapter, under its own key, however short it lives, and each adapter one end.
//!
//! Where the kernel forbids perf events, or there is no C compiler, the tests say so on
//! stderr and pass.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panics and skip loudly"
)]

mod marker;

use std::collections::{BTreeMap, BTreeSet};
use std::io::pipe;
use std::process::{Command, Stdio};

use marker::{Log, Marker, Recorded, marker_program, start};
use vmscope_records::{EndReason, LimitKind, ProcessKey, Record};

/// `sh -c` with the marker program as `$M`.
fn shell(script: &str) -> Option<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("M", marker_program()?);
    command.stdin(Stdio::null());
    Some(command)
}

/// Records `script`, whose markers go to `$D`, until it ends.
fn record(script: &str, log: &Log) -> Option<Recorded> {
    let (session, _child) = start(shell(script)?, log)?;
    let outcome = session.finish().unwrap();
    assert_eq!(outcome.reason, EndReason::TargetExited);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    Some(Recorded::read(&log.recording(), outcome.lost))
}

/// Each program that the kernel told a marker of has one adapter, which read that
/// marker, under that program's key; and it had one end.
fn assert_all_found(recorded: &Recorded, log: &Log, markers: usize) {
    let told = recorded.markers();
    assert_eq!(told.len(), markers, "{told:?}");
    let found: BTreeMap<ProcessKey, String> = recorded.found();
    let said: BTreeMap<ProcessKey, String> = told
        .iter()
        .map(|(key, pid)| (*key, format!("dump of {pid}")))
        .collect();
    assert_eq!(found, said);
    let keys: Vec<ProcessKey> = said.keys().copied().collect();
    assert_eq!(log.sorted(|log| &log.recognised), keys, "one adapter each");
    assert_eq!(log.sorted(|log| &log.finished), keys, "one end each");
    assert_eq!(log.lock().over, 1, "the family is told of the end once");
}

#[test]
fn children_grandchildren_and_what_they_become() {
    let log = Log::default();
    let script = "$M $D map & $M $D map sleep=400 & \
                  sh -c '$M $D map & sh -c \"$M $D map sleep=30; true\"; wait'; wait; \
                  exec $M $D map sleep=20";
    let Some(recorded) = record(script, &log) else {
        return;
    };
    assert_all_found(&recorded, &log, 5);
    assert_eq!(
        recorded.vm(),
        "Marker",
        "the first one of a child, then the main one's"
    );
}

#[test]
fn a_dump_that_has_lost_its_name_is_read_by_its_descriptor() {
    let log = Log::default();
    let Some(mut command) = shell("$M $D map unlink wait") else {
        return;
    };
    let (stdin, held_open) = pipe().unwrap();
    command.stdin(stdin);
    let Some((session, _child)) = start(command, &log) else {
        return;
    };
    while log.lock().looked.is_empty() {
        assert!(!session.progress().is_done(), "too early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    drop(held_open);
    let outcome = session.finish().unwrap();
    // Its last poll finds it although neither the name nor the process is there.
    assert_all_found(&Recorded::read(&log.recording(), outcome.lost), &log, 1);
}

#[test]
fn each_program_of_an_exec_chain_ends_by_itself() {
    let log = Log::default();
    let Some(program) = marker_program() else {
        return;
    };
    let folder = log.folder();
    let mut command = Command::new(program);
    // Each child lives long enough for questions to some of them while they run.
    command
        .arg(&folder)
        .args(["map", "sleep=150", "again=7", "wait"]);
    let (stdin, held_open) = pipe().unwrap();
    command.stdin(stdin);
    let Some((session, _child)) = start(command, &log) else {
        return;
    };
    // The last child waits until the seven others have ended.
    while log.lock().finished.len() < 7 {
        assert!(!session.progress().is_done(), "too early");
        std::thread::yield_now();
    }
    assert_eq!(log.lock().over, 0);
    drop(held_open);
    let outcome = session.finish().unwrap();
    let recorded = Recorded::read(&log.recording(), outcome.lost);
    assert_all_found(&recorded, &log, 8);
    let pids: BTreeSet<u32> = recorded.markers().values().copied().collect();
    assert_eq!(pids.len(), 1, "one process, eight programs");
}

#[test]
fn thousands_of_quick_children_cost_little_and_hide_nobody() {
    let log = Log::default();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do $M $D map; \
                  for j in 1 2 3 4 5 6 7 8 9 10; do for k in 1 2 3 4 5 6 7 8 9 10; do \
                  /bin/true; done; done; done";
    let Some(recorded) = record(script, &log) else {
        return;
    };
    assert_all_found(&recorded, &log, 10);
    assert_eq!(recorded.lost, 0);
    let programs = 1 + 10 + 1000;
    let asked = log.lock().asked;
    assert!(
        asked <= 2 * programs + 200,
        "{asked} times for {programs} programs"
    );
}

#[test]
fn mapping_for_ever_asks_seldom() {
    let log = Log::default();
    let script = "for i in 1 2 3 4; do $M $D map storm=20000 & done; wait";
    let Some(recorded) = record(script, &log) else {
        return;
    };
    assert_all_found(&recorded, &log, 4);
    let asked = log.lock().asked;
    assert!(asked < 100, "{asked} times");
}

#[test]
fn who_is_not_ready_is_asked_again_and_others_are_not_kept_from_it() {
    let log = Log::default();
    log.lock().not_ready = 3;
    let other = Log::default();
    let Some(mut command) = shell("$M $D map wait") else {
        return;
    };
    let (stdin, held_open) = pipe().unwrap();
    command.stdin(stdin);
    let families = vec![
        Marker::family("late", &log),
        Marker::family("other", &other),
    ];
    let Some((session, _child)) = marker::start_with(command, &log, families) else {
        return;
    };
    while log.lock().recognised.is_empty() {
        assert!(!session.progress().is_done(), "too early");
        std::thread::yield_now();
    }
    drop(held_open);
    let outcome = session.finish().unwrap();
    let recorded = Recorded::read(&log.recording(), outcome.lost);
    let key = *recorded.markers().first_key_value().unwrap().0;
    assert_eq!(log.lock().recognised, [key]);
    assert_eq!(
        other.lock().recognised,
        [key],
        "once, and not again with the late one"
    );
    assert_eq!(log.lock().not_ready, 0);
    assert_eq!(
        (log.lock().finished.len(), other.lock().finished.len()),
        (1, 1)
    );
    let troubles = recorded.records.iter().filter(
        |record| matches!(record, Record::Limit(limit) if limit.kind == LimitKind::AdapterIncomplete),
    );
    assert_eq!(troubles.count(), 0);
}

#[test]
fn families_are_told_of_the_end_of_what_never_began() {
    let log = Log::default();
    drop(vmscope_sampler::session::Readers::later(vec![
        Marker::family("toy", &log),
    ]));
    assert_eq!(log.lock().over, 1);
}
