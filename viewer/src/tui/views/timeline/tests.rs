//! The timeline, driven by keys and the mouse.

#![allow(clippy::panic, reason = "tests fail by it")]

use crate::recordings::screens::{java, nothing};
use crate::recordings::{PROGRAM, PROGRAM_AT, Recording, THREAD};
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES, profile};
use crate::tui::theme::{Colors, Theme};
use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use vmscope_records::{Mark, Record, TimeNs};

/// 80x24: the first of 67 columns, and the second row of the view.
const LEFT: u16 = 13;

#[test]
fn screens() {
    for (columns, rows) in SIZES {
        let mut driven = Driven::open(java(), (columns, rows));
        let name = |what: &str| format!("timeline-{what}-{columns}x{rows}");
        driven.keys("4").golden(&name("full"));
        driven.keys("}}}}}}}}}}}}++++").golden(&name("zoomed"));
        let mut nothing = Driven::open(nothing(), (columns, rows));
        nothing.keys("4").golden(&name("nothing"));
    }
    let theme = Theme {
        colors: Colors::None,
        unicode: false,
    };
    let mut bare = Driven::with_theme(profile(java()), SIZES[0], theme);
    bare.keys("4<Right><Right>").golden("timeline-bare-80x24");
}

#[test]
fn a_window_is_selected_with_keys() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let screen = driven.keys("4<Home><Right><Right>v<Right><Right>").screen();
    assert!(screen.contains("selected 0.597-1.493 s"), "{screen}");
    let screen = driven.keys("<Enter>").screen();
    assert!(screen.contains("0.597-1.493 s ✕"), "{screen}");
    assert!(screen.contains('╞'), "the window is marked: {screen}");
    // The chart still shows the whole recording; `m` shows the window alone, and back.
    assert!(screen.contains("298.5 ms/col"), "{screen}");
    assert!(driven.keys("m").screen().contains("13.4 ms/col"));
    assert!(driven.screen().contains("only the window"));
    // A selection inside the window narrows it.
    let screen = driven.keys("<Home>v<Right><Enter>").screen();
    assert!(screen.contains("0.597-0.624 s ✕"), "{screen}");
    assert!(driven.keys("x").screen().contains("298.5 ms/col"));
}

#[test]
fn escape_gives_a_selection_up() {
    let mut driven = Driven::open(java(), SIZES[0]);
    assert!(driven.keys("4v<Right>").screen().contains("selected"));
    let screen = driven.keys("<Esc>").screen();
    assert!(!screen.contains("selected"), "{screen}");
    assert!(!screen.contains('✕'), "{screen}");
}

#[test]
fn dragging_selects_and_the_wheel_zooms() {
    let mut driven = Driven::open(java(), SIZES[0]);
    driven.keys("4");
    driven.mouse(MouseEventKind::Down(MouseButton::Left), LEFT + 2, 5);
    driven.mouse(MouseEventKind::Drag(MouseButton::Left), LEFT + 4, 5);
    assert!(driven.screen().contains("selected 0.597-1.493 s"));
    driven.mouse(MouseEventKind::Up(MouseButton::Left), LEFT + 4, 5);
    assert!(driven.screen().contains("0.597-1.493 s ✕"));
    driven.keys("x");
    driven.click(LEFT + 9, 5);
    assert!(!driven.screen().contains('✕'), "a click is no window");
    driven.mouse(MouseEventKind::ScrollUp, LEFT + 9, 5);
    assert!(driven.screen().contains("zoomed to"), "{}", driven.screen());
    driven.mouse(MouseEventKind::ScrollDown, LEFT + 9, 5);
    assert!(!driven.screen().contains("zoomed to"));
}

#[test]
fn one_goes_from_event_to_event() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let screen = driven.keys("4}").screen();
    assert!(screen.contains("G1, young 6.2 ms at 0.350 s"), "{screen}");
    let screen = driven.keys("<End>{").screen();
    assert!(screen.contains("18.900 s, end not observed"), "{screen}");
    driven.keys("<End>}");
    assert!(driven.screen().contains("no collection or mark after"));
}

#[test]
fn threads_are_left_out_and_taken_alone() {
    let mut driven = Driven::open(java(), SIZES[0]);
    let screen = driven.keys("4<Down><Space>").screen();
    assert!(screen.contains("without "), "{screen}");
    assert!(
        driven
            .keys("x")
            .screen()
            .lines()
            .all(|line| !line.contains('✕'))
    );
    assert!(driven.keys("4<Down><Enter>").screen().contains("thread "));
}

#[test]
fn marks_and_hostile_names_stay_in_their_row() {
    let mut recording = Recording::of("native");
    recording.symbols(PROGRAM, &[(0, 0x1000, "f")]);
    for time in 0..1000 {
        recording.sample(time * 1000, THREAD, PROGRAM_AT);
    }
    recording.put(Record::Mark(Mark {
        time: TimeNs(500_000),
        text: "\u{1b}[2J漢\u{202e}x".to_owned(),
    }));
    let mut driven = Driven::open(recording.end(1_000_000).bytes(), SIZES[0]);
    let screen = driven.keys("4}").screen();
    assert!(screen.contains("marks"), "{screen}");
    assert!(!screen.contains('\u{1b}') && !screen.contains('\u{202e}'));
}

#[test]
fn nothing_panics_at_any_size() {
    for bytes in [java(), Recording::of("native").end(0).bytes()] {
        let mut driven = Driven::open(bytes, SIZES[0]);
        driven.keys("4}}++v<Right>");
        for (columns, rows) in [
            (60, 16),
            (61, 17),
            (79, 18),
            (100, 200),
            (400, 16),
            (60, 60),
        ] {
            driven.resize(columns, rows).screen();
            driven.keys("<Right>,.-<End>=<PgDn><Up><Home>");
            driven.screen();
        }
    }
}

#[test]
fn what_is_copied_has_all_of_it() {
    let mut driven = Driven::open(java(), SIZES[0]);
    driven.keys("4y");
    let Some(Effect::Copy(text)) = driven.effects.last() else {
        panic!("{:?}", driven.effects);
    };
    for words in [
        "Timeline, 0.000 to 20.000 s",
        "worker-2",
        "G1 Compaction Pause",
        "RingOverrun",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_comes_after_the_hold_is_not_shown() {
    use crate::recordings::PROCESS;
    use crate::tui::live::LiveState;
    use vmscope_records::{ThreadKey, ThreadRole};
    // After the pause, only the other thread has samples, and a mark appears.
    let other = ThreadKey(7);
    let grown = |until: u64| {
        let mut recording = Recording::of("jit");
        recording.symbols(PROGRAM, &[(0, 0x1000, "f")]);
        recording.thread(other, PROCESS, 0, "other", ThreadRole::Mutator);
        for time in (0..until).step_by(1000) {
            let thread = if time < 75_000 { THREAD } else { other };
            recording.sample(time, thread, PROGRAM_AT);
        }
        if until > 150_000 {
            recording.put(Record::Mark(Mark {
                time: TimeNs(150_000),
                text: "later".to_owned(),
            }));
        }
        let live = LiveState {
            until: TimeNs(until),
            ..LiveState::default()
        };
        (profile(recording.end(until).bytes()), live)
    };
    let (small, live) = grown(100_500);
    let mut driven = Driven::following(small, live, SIZES[0]);
    let held = driven.keys("4Xp<Space>").screen();
    let (large, live) = grown(400_500);
    driven.grow(large, live);
    // A new answer equals the old one.
    assert_eq!(driven.keys("X<Space>").screen(), held);
    let screen = driven.keys("X<End>}").screen();
    assert!(screen.contains("no collection or mark after"), "{screen}");
    assert!(driven.keys("p}").screen().contains("no collection"));
}

#[test]
fn a_drag_ends_wherever_the_button_is_let_go() {
    let mut driven = Driven::open(java(), SIZES[0]);
    driven.keys("4");
    driven.mouse(MouseEventKind::Down(MouseButton::Left), LEFT + 2, 5);
    driven.mouse(MouseEventKind::Drag(MouseButton::Left), LEFT + 4, 1);
    driven.mouse(MouseEventKind::Up(MouseButton::Left), LEFT + 4, 0);
    let screen = driven.screen();
    assert!(screen.contains("0.597-1.493 s ✕"), "{screen}");
    // Drags that began outside the view have no effect.
    driven.keys("x");
    driven.mouse(MouseEventKind::Down(MouseButton::Left), LEFT + 2, 1);
    driven.mouse(MouseEventKind::Up(MouseButton::Left), LEFT + 4, 0);
    assert!(!driven.screen().contains('✕'));
}

#[test]
fn back_zooms_out_before_it_leaves() {
    let mut driven = Driven::open(java(), SIZES[0]);
    assert!(driven.keys("4++").screen().contains("zoomed to"));
    assert!(driven.keys("[").screen().contains("zoomed to"));
    let screen = driven.keys("[").screen();
    assert!(!screen.contains("zoomed to"), "{screen}");
    assert!(screen.contains("4:Time"), "{screen}");
    assert!(driven.keys("[").screen().contains("1:Overview"));
}

#[test]
fn where_nothing_is_shown_a_key_that_shows_more_is_told() {
    let mut driven = Driven::open(java(), SIZES[0]);
    // From 15 to 16 s nothing ran.
    let screen = driven
        .keys("4:window: from<Enter>15.1-15.9<Enter>m")
        .screen();
    assert!(
        screen.contains("No samples from 15.100 to 15.900 s: m shows the whole"),
        "{screen}"
    );
    let screen = driven.keys("m").screen();
    assert!(!screen.contains("No samples"), "{screen}");
    let screen = driven
        .keys(":names containing<Enter>no such name<Enter>")
        .screen();
    assert!(
        screen.contains("No samples with these filters: x removes the newest"),
        "{screen}"
    );
    assert!(!driven.keys("x").screen().contains("No samples with"));
}

#[test]
fn the_timeline_is_of_the_samples_that_are_kept() {
    let mut profile = profile(java());
    let half = TimeNs(crate::recordings::screens::ms(15_000));
    let samples = &mut profile.trace.samples;
    assert!(profile.time_buckets.drop_before(samples, half) > 0);
    let begin = profile.trace.session.as_ref().map(|session| session.time);
    let from = profile.time_buckets.kept_from().unwrap();
    let from = from.since(begin.unwrap()).as_secs_f64();
    let mut driven = Driven::with_theme(profile, SIZES[1], crate::tui::testing::THEME);
    let screen = driven.keys("4<Home>").screen();
    assert!(screen.contains(&format!(" from {from:.0} s")), "{screen}");
    // The first column starts at the first kept sample.
    assert!(screen.contains(&format!("{from:.3} s ")), "{screen}");
    driven.keys("y");
    let Some(Effect::Copy(text)) = driven.effects.pop() else {
        panic!("copy stopped");
    };
    assert!(text.contains(&format!("{from:.3}")), "{text}");
}
