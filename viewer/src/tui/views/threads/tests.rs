//! The threads' view, driven by keys and the mouse.

#![allow(clippy::panic, reason = "tests fail by it")]

use crate::recordings::screens::{java, nothing};
use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording};
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES};
use vmscope_records::{ThreadKey, ThreadRole};

/// Names of visible rows.
fn order(screen: &str) -> Vec<String> {
    let rows = screen.lines().skip(3);
    let rows = rows.filter(|line| line.starts_with(['+', '-', '*']));
    let name = |line: &str| line.split_whitespace().nth(1).unwrap_or("").to_owned();
    rows.map(name).collect()
}

#[test]
fn screens() {
    for (columns, rows) in SIZES {
        let mut driven = Driven::open(java(), (columns, rows));
        let name = |what: &str| format!("threads-{what}-{columns}x{rows}");
        driven.keys("8").golden(&name("full"));
        driven.keys("b<Down>").golden(&name("by-role"));
        let mut nothing = Driven::open(nothing(), (columns, rows));
        nothing.keys("8").golden(&name("nothing"));
    }
}

#[test]
fn threads_are_sorted_both_ways_and_stay_selected() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let forward = order(&driven.keys("8").screen());
    assert_eq!(forward.len(), 9);
    let mut backward = order(&driven.keys("S").screen());
    backward.reverse();
    assert_eq!(forward, backward);
    let by_name = order(&driven.keys("Ssss").screen());
    let mut sorted = by_name.clone();
    sorted.sort();
    assert_eq!(by_name, sorted);
}

#[test]
fn a_group_is_left_out_as_a_whole_and_can_be_closed() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let screen = driven.keys("8b").screen();
    assert!(screen.contains("by role"), "{screen}");
    assert!(screen.contains("mutator"), "{screen}");
    let open = order(&screen).len();
    let closed = driven.keys("<Home><Left>").screen();
    assert!(order(&closed).len() < open, "{closed}");
    let screen = driven.keys("<Space>").screen();
    assert!(screen.lines().any(|line| line.starts_with('-')), "{screen}");
    let screen = driven.keys("<Space>").screen();
    assert!(
        !screen.lines().any(|line| line.starts_with('-')),
        "{screen}"
    );
}

#[test]
fn the_palette_chooses_by_role() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let screen = driven.keys("8:only role collector<Enter>").screen();
    assert!(screen.contains("2 of 9 threads included"), "{screen}");
    let screen = driven.keys(":invert<Enter>").screen();
    assert!(screen.contains("7 of 9 threads included"), "{screen}");
    let screen = driven.keys(":threads include all<Enter>").screen();
    assert!(screen.contains("9 of 9 threads included"), "{screen}");
    driven.keys("<Home>:exclude this one<Enter>");
    assert!(driven.screen().contains("8 of 9 threads included"));
}

#[test]
fn a_click_at_the_sign_includes() {
    let mut driven = Driven::open(java(), SIZES[0]);
    driven.keys("8").click(0, 4);
    assert!(driven.screen().contains("8 of 9 threads included"));
    driven.click(5, 6);
    assert!(driven.screen().contains("8 of 9 threads included"));
}

#[test]
fn ten_thousand_threads_are_a_list_like_any_other() {
    let mut recording = Recording::of("native");
    recording.symbols(PROGRAM, &[(0, 0x1000, "f")]);
    for n in 0..10_000 {
        let key = ThreadKey(10 + n);
        let name = format!("pool-{}-{n}", n % 3);
        recording.thread(key, PROCESS, 0, &name, ThreadRole::Mutator);
    }
    for time in 0..20_000 {
        recording.sample(time, ThreadKey(10 + time as u32 % 10_000), PROGRAM_AT);
    }
    let mut driven = Driven::open(recording.end(20_000).bytes(), SIZES[2]);
    let screen = driven.keys("8").screen();
    assert!(
        screen.contains("10,001 of 10,001 threads included; 1 thread did"),
        "{screen}"
    );
    let screen = driven.keys("/pool-1-9999<Enter>").screen();
    assert!(screen.contains("pool-1-9999"), "{screen}");
    let screen = driven.keys("<Esc>bb<Home>").screen();
    assert!(screen.contains("pool-#-# (10,000 threads)"), "{screen}");
    assert!(driven.keys("4").screen().contains("10,000 threads"));
}

#[test]
fn what_is_copied_has_all_threads() {
    let mut driven = Driven::open(java(), (60, 16));
    driven.keys("8b<Left>y");
    let Some(Effect::Copy(text)) = driven.effects.last() else {
        panic!("{:?}", driven.effects);
    };
    assert_eq!(text.lines().count(), 3 + 9, "{text}");
    assert!(text.contains("worker-2"), "{text}");
}

/// Threads `pool-0` …, each with a sample every microsecond until `until`.
fn pool(threads: u32, until: u64) -> vmscope_symbolizer::Profile {
    let mut recording = Recording::of("jit");
    recording.symbols(PROGRAM, &[(0, 0x1000, "f")]);
    for n in 0..threads {
        let key = ThreadKey(10 + n);
        recording.thread(key, PROCESS, 0, &format!("pool-{n}"), ThreadRole::Mutator);
    }
    for time in (0..until).step_by(1000) {
        for n in 0..threads {
            recording.sample(time, ThreadKey(10 + n), PROGRAM_AT);
        }
    }
    crate::tui::testing::profile(recording.end(until).bytes())
}

#[test]
fn threads_that_begin_later_are_included_unless_some_were_chosen() {
    use crate::tui::live::LiveState;
    use vmscope_records::TimeNs;
    let until = |time| LiveState {
        until: TimeNs(time),
        ..LiveState::default()
    };
    // Includes the recording's own thread.
    let mut driven = Driven::following(pool(2, 10_000), until(10_000), SIZES[0]);
    let screen = driven.keys("8/pool-1<Enter><Space>").screen();
    assert!(screen.contains("2 of 3 threads included"), "{screen}");
    assert!(screen.contains("without pool-1 ✕"), "{screen}");
    driven.grow(pool(5, 20_000), until(20_000));
    let screen = driven.screen();
    assert!(screen.contains("5 of 6 threads included"), "{screen}");
    assert!(screen.contains("80 samples"), "{screen}");
    // The inverted choice holds that thread alone, permanently.
    let screen = driven.keys(":invert<Enter>").screen();
    assert!(screen.contains("thread pool-1 ✕"), "{screen}");
    driven.grow(pool(7, 20_000), until(20_000));
    let screen = driven.screen();
    assert!(screen.contains("1 of 8 threads included"), "{screen}");
    assert!(
        driven
            .keys("<Space>")
            .screen()
            .contains("at least one thread")
    );
}
