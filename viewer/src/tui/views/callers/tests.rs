//! Keys, clicks and screens of the view of callers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

use crate::recordings::{PROGRAM, PROGRAM_AT, Recording, THREAD, screens};
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES};
use ratatui::crossterm::event::MouseEventKind;

fn open(bytes: Vec<u8>, size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(bytes, size);
    driven.keys("7");
    driven
}

fn java() -> Driven {
    open(screens::java(), SIZES[0])
}

/// What a script copies.
fn copied(driven: &mut Driven) -> String {
    driven.keys("y");
    match driven.effects.pop() {
        Some(Effect::Copy(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// The two lines about what is selected.
fn detail(driven: &mut Driven) -> String {
    let screen = driven.screen();
    let lines: Vec<&str> = screen.lines().collect();
    lines[lines.len() - 3..lines.len() - 1].join("\n")
}

#[test]
fn screens() {
    for (columns, rows) in SIZES {
        let mut driven = open(screens::java(), (columns, rows));
        let size = format!("{columns}x{rows}");
        driven.golden(&format!("callers-flame-{size}"));
        driven
            .keys("}")
            .golden(&format!("callers-flame-path-{size}"));
        driven.keys("m").golden(&format!("callers-down-{size}"));
        driven.keys("b}").golden(&format!("callers-up-{size}"));
        let mut driven = open(screens::node(), (columns, rows));
        driven.golden(&format!("callers-empty-{size}"));
        driven
            .keys("<Enter>")
            .golden(&format!("callers-inlined-{size}"));
        let mut driven = open(screens::nothing(), (columns, rows));
        driven.golden(&format!("callers-nothing-{size}"));
    }
    open(screens::native(), SIZES[0])
        .keys("b")
        .golden("callers-native-turned-80x24")
        .keys("m/relax")
        .golden("callers-native-search-80x24");
    open(screens::nasty(), SIZES[0]).golden("callers-nasty-80x24");
}

#[test]
fn frames_are_walked_and_zoomed() {
    let mut driven = open(screens::native(), SIZES[0]);
    assert!(
        detail(&mut driven).contains("all stacks"),
        "{}",
        driven.screen()
    );
    let first = detail(driven.keys("<Down>"));
    let second = detail(driven.keys("<Down>"));
    assert_ne!(first, second);
    assert_eq!(detail(driven.keys("<Up>")), first);
    let beside = detail(driven.keys("<Right>"));
    assert_ne!(beside, first);
    assert_eq!(detail(driven.keys("<Left>")), first);
    driven.keys("<Right><Enter>");
    assert!(driven.screen().contains("all > "), "{}", driven.screen());
    // Backspace goes back by a zoom before it goes back to another view.
    driven.keys("<Bksp>");
    assert!(!driven.screen().contains("all > "), "{}", driven.screen());
    assert_eq!(detail(&mut driven), beside);
    driven.keys("<Enter><Left>");
    assert!(!driven.screen().contains("all > "), "{}", driven.screen());
    driven.keys("<Bksp>");
    assert!(
        !driven.screen().contains("flame graph"),
        "{}",
        driven.screen()
    );
}

#[test]
fn the_mouse_selects_and_zooms() {
    let mut driven = open(screens::native(), SIZES[0]);
    driven.click(40, 4);
    let selected = detail(&mut driven);
    assert!(!selected.contains("all stacks"), "{selected}");
    let (down, up) = (
        MouseEventKind::Down(ratatui::crossterm::event::MouseButton::Left),
        MouseEventKind::Up(ratatui::crossterm::event::MouseButton::Left),
    );
    driven.mouse(down, 40, 4).mouse(up, 40, 4);
    assert!(driven.screen().contains("all > "), "{}", driven.screen());
    driven.mouse(MouseEventKind::ScrollDown, 40, 4);
    // The tree: the sign opens, the row is selected.
    driven.keys("-m<Home>");
    let before = driven.screen();
    let sign = before.lines().nth(4).unwrap().find('▾').unwrap();
    let column = before.lines().nth(4).unwrap()[..sign].chars().count();
    driven.click(u16::try_from(column).unwrap(), 4);
    assert_ne!(driven.screen(), before);
}

#[test]
fn only_stacks_through_a_function() {
    let mut driven = open(screens::native(), SIZES[0]);
    driven.keys("/relax<Enter>t");
    assert!(
        driven.screen().contains("Esc shows all stacks"),
        "{}",
        driven.screen()
    );
    driven.keys("<Down>");
    let screen = driven.screen();
    assert!(screen.contains("through sim::Grid::relax"), "{screen}");
    let text = copied(&mut driven);
    let stacks = text.lines().filter(|line| line.contains(';'));
    assert!(stacks.clone().count() > 0);
    assert!(stacks.clone().all(|line| line.contains("relax")), "{text}");
    // The first press ends the search, the second shows all again.
    driven.keys("<Esc>");
    assert!(
        driven.screen().contains("through sim"),
        "{}",
        driven.screen()
    );
    driven.keys("<Esc>");
    assert!(
        !driven.screen().contains("through sim"),
        "{}",
        driven.screen()
    );
}

#[test]
fn only_what_is_selected_is_a_filter_of_all_views() {
    let mut driven = open(screens::native(), SIZES[0]);
    let screen = driven.keys("/relax<Enter>f").screen();
    assert!(screen.contains("only sim::Grid::relax"), "{screen}");
    assert!(screen.contains('✕'), "{screen}");
    assert!(!screen.contains("only stacks through"), "{screen}");
    assert!(driven.keys("1").screen().contains('✕'));
    assert!(!driven.keys("[[").screen().contains('✕'));
}

#[test]
fn all_of_it_is_copied_and_exported() {
    let mut driven = java();
    let text = copied(&mut driven);
    let count = |line: &str| -> Option<u64> { line.rsplit_once(' ')?.1.parse().ok() };
    let stacks = text.lines().skip_while(|line| *line != "stack").skip(1);
    let total: u64 = stacks.filter_map(count).sum();
    assert_eq!(total, 12_564, "each sample once: {text}");
    assert!(text.contains("4,219 (33.58%) without callers"), "{text}");
    assert!(
        text.contains("59 chains of the recording cut off"),
        "{text}"
    );
    let mut driven = java();
    driven.keys("mb");
    let table = copied(&mut driven);
    let first = table.lines().find(|line| line.contains("OrderBook.match"));
    let first = first.unwrap();
    assert!(first.contains("5.67%") && first.contains("712"), "{first}");
}

#[test]
fn threads_are_the_first_level_on_choice() {
    let mut driven = java();
    driven.keys(":by thread<Enter>");
    let screen = driven.screen();
    assert!(screen.contains("T main"), "{screen}");
    let text = copied(&mut driven);
    assert!(
        text.lines().any(|line| line.starts_with("worker-0 (")),
        "{text}"
    );
    // A selected thread filters all views.
    driven.keys("m<Home>f");
    assert!(
        driven.screen().contains("thread main ✕"),
        "{}",
        driven.screen()
    );
}

#[test]
fn filters_change_the_tree_and_what_was_selected_stays() {
    let mut driven = java();
    driven.keys("m/OrderBook.match<Enter>");
    let before = detail(&mut driven);
    driven.keys(":only region generated<Enter>");
    let after = detail(&mut driven);
    let name = |text: &str| text.lines().next().map(str::to_owned);
    assert_eq!(name(&after), name(&before));
    assert_ne!(after, before);
    driven.keys(":only thread GC Thread#0<Enter>");
    let screen = driven.screen();
    assert!(
        screen.contains("No samples with these filters: x removes the newest"),
        "{screen}"
    );
    driven.keys("X");
    assert!(driven.screen().contains("OrderBook"), "{}", driven.screen());
}

#[test]
fn it_opens_the_method() {
    let mut driven = java();
    driven.keys("/OrderBook.match<Enter>o");
    assert!(
        driven.screen().starts_with("1 Overview 2 Hot 3:Method"),
        "{}",
        driven.screen()
    );
    driven.keys("<Bksp>m<Home>/Codec.checksum<Enter><Enter>");
    assert!(
        driven.screen().starts_with("1 Overview 2 Hot 3:Method"),
        "{}",
        driven.screen()
    );
}

/// A program with seventeen frames that only call the next, above `work` and its two callees.
fn deep() -> Vec<u8> {
    const SIZE: u64 = 0x10;
    let mut recording = Recording::of("native");
    let boots: Vec<String> = (0..=16).map(|number| format!("boot{number}")).collect();
    let names = boots
        .iter()
        .map(String::as_str)
        .chain(["work", "left", "right"]);
    let functions = (0u64..)
        .zip(names)
        .map(|(at, name)| (at * SIZE, SIZE, name));
    recording.symbols(PROGRAM, &functions.collect::<Vec<_>>());
    // A caller's address lies behind the call.
    let stack = |leaf: u64| {
        let callers = (0..18).rev().map(|at| PROGRAM_AT + at * SIZE + 8);
        std::iter::once(PROGRAM_AT + leaf * SIZE).chain(callers)
    };
    for time in 1..100 {
        recording.stack(time, THREAD, stack(if time % 3 == 0 { 18 } else { 19 }));
    }
    recording.end(100).bytes()
}

#[test]
fn runs_of_frames_that_only_call_the_next_are_folded() {
    let mut driven = open(deep(), SIZES[0]);
    let folded = driven.screen();
    assert!(folded.contains("+17 work"), "{folded}");
    let unfolded = driven.keys("z").screen();
    assert!(
        unfolded.contains(" boot3") && !unfolded.contains("+17"),
        "{unfolded}"
    );
    // A folded run is one step, and search finds the frames in it.
    let detail_of = |driven: &mut Driven, keys: &str| detail(driven.keys(keys));
    assert!(detail_of(&mut driven, "z<Down>").contains("work"));
    assert!(detail_of(&mut driven, "<Down>").contains("right"));
    assert!(detail_of(&mut driven, "<Up><Up>").contains("all stacks"));
    assert!(detail_of(&mut driven, "/boot3<Enter>").contains("boot3"));
    assert!(detail_of(&mut driven, "<Down>").contains("right"));
}

#[test]
fn any_size_and_any_recording_can_be_drawn() {
    type Make = fn() -> Vec<u8>;
    let all: [Make; 7] = [
        screens::java,
        screens::cog,
        screens::node,
        screens::native,
        screens::nothing,
        screens::damaged,
        screens::nasty,
    ];
    for make in all {
        let mut driven = open(make(), SIZES[0]);
        for keys in [
            "<Enter>",
            "}",
            "<Enter>",
            "b",
            "m",
            "}",
            "{",
            "b",
            "}",
            "b",
            "<Left>",
            "/a<Enter>n",
        ] {
            driven.keys(keys);
            for size in [
                (60, 16),
                (61, 17),
                (80, 24),
                (119, 30),
                (120, 26),
                (121, 27),
                (200, 60),
                (300, 16),
            ] {
                driven.resize(size.0, size.1).screen();
            }
        }
        for keys in [
            "N", "f", "<Esc>", "<Esc>", "<End>", "<PgUp>", "<Home>", "<PgDn>", "+", "-", "<Space>",
            "yx",
        ] {
            driven.keys(keys).screen();
        }
    }
}

#[test]
fn it_is_exported_as_a_picture() {
    let mut driven = java();
    driven.keys("e");
    driven.keys("<C-u>flame.svg<Enter>");
    let written = driven.effects.iter().any(|effect| match effect {
        Effect::Write(path, bytes) => {
            path.ends_with("flame.svg") && String::from_utf8_lossy(bytes).contains("OrderBook")
        }
        _ => false,
    });
    assert!(written);
}
