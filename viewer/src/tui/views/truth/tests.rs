//! The truth, driven by keys and the mouse.

use crate::recordings::screens;
use crate::tui::testing::{Driven, SIZES};

fn open(recording: Vec<u8>, size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(recording, size);
    driven.keys("9");
    driven
}

#[test]
fn all_that_limits_it_is_told_with_its_samples() {
    for (columns, rows) in SIZES {
        let mut driven = open(screens::java(), (columns, rows));
        driven.golden(&format!("truth-java-{columns}x{rows}"));
        let screen = driven.screen();
        for said in ["Losses", "23", "ring was full", "helps: a lower --rate"] {
            assert!(screen.contains(said), "{said}:\n{screen}");
        }
    }
    let mut driven = open(screens::java(), SIZES[0]);
    driven
        .keys("<Right><Right>")
        .golden("truth-java-tables-80x24");
    open(screens::nothing(), SIZES[0]).golden("truth-nothing-80x24");
    open(screens::damaged(), SIZES[1]).golden("truth-damaged-120x40");
}

#[test]
fn a_line_leads_to_what_it_concerns() {
    let mut driven = open(screens::java(), SIZES[0]);
    // What was lost: its time.
    let screen = driven.keys("/ring was<Enter><Enter>").screen();
    assert!(screen.contains("13.400-13.900 s ✕"), "{screen}");
    // What is doubtful: the entry that stands for it.
    let screen = driven.keys("x9/doubtful:<Enter><Enter>").screen();
    assert!(screen.contains(" 9 samples"), "{screen}");
    assert!(
        screen.contains("[2 Hot") || screen.contains("2:Hot"),
        "{screen}"
    );
    // A part: its region and tier.
    let screen = driven.keys("X9/generated C1<Enter><Enter>").screen();
    assert!(screen.contains("tier C1"), "{screen}");
    // The filter hides how many samples were expected, but CPU time was read.
    let screen = driven.keys("9").screen();
    assert!(!screen.contains("CPU time was read"), "{screen}");
    // A limit concerns nothing that could be shown.
    let screen = driven.keys("X9/real-time<Enter><Enter>").screen();
    assert!(screen.contains("this limit has no entries"), "{screen}");
}

#[test]
fn the_mouse_selects_and_scrolls() {
    let mut driven = open(screens::java(), SIZES[2]);
    let screen = driven.screen();
    let row = screen
        .lines()
        .position(|line| line.contains("worker-2"))
        .expect("a thread");
    let line = screen.lines().nth(row).expect("a line");
    let column = line
        .chars()
        .collect::<String>()
        .find("worker-2")
        .expect("a column");
    let column = line.get(..column).expect("a line").chars().count();
    driven.click(
        u16::try_from(column).expect("a column"),
        u16::try_from(row).expect("a row"),
    );
    let screen = driven.keys("<Enter>").screen();
    assert!(screen.contains("thread worker-2 ✕"), "{screen}");
}
