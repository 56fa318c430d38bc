//! The collector, driven by keys and the mouse.

use crate::recordings::screens;
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES};

fn open(recording: Vec<u8>, size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(recording, size);
    driven.keys("6");
    driven
}

#[test]
fn collections_are_a_table_a_chart_and_a_distribution() {
    for (columns, rows) in SIZES {
        let mut driven = open(screens::java(), (columns, rows));
        driven.golden(&format!("collector-java-{columns}x{rows}"));
        let screen = driven.screen();
        for said in [
            "27 collections by the VM's count",
            "25 seen",
            "1,916 samples",
            "y young",
        ] {
            assert!(screen.contains(said), "{said}:\n{screen}");
        }
    }
    let mut driven = open(screens::java(), SIZES[0]);
    driven.keys("m").golden("collector-java-pauses-80x24");
    let screen = driven.screen();
    assert!(screen.contains("of 27 collections"), "{screen}");
    // The longest first: the concurrent cycle, then the full one.
    driven
        .keys("ms<Home><Down>")
        .golden("collector-java-inside-80x24");
    assert!(
        driven.screen().contains("mark live objects"),
        "{}",
        driven.screen()
    );
}

#[test]
fn where_nothing_is_told_it_says_why() {
    for (name, recording) in [
        ("node", screens::node()),
        ("native", screens::native()),
        ("nothing", screens::nothing()),
    ] {
        open(recording, SIZES[0]).golden(&format!("collector-{name}-80x24"));
    }
    open(screens::node(), SIZES[2]).golden("collector-node-200x60");
    let mut driven = open(screens::java(), SIZES[0]);
    let screen = driven.keys(":window: from<Enter>15.1-15.9<Enter>").screen();
    assert!(
        screen.contains("No collection lies in this window"),
        "{screen}"
    );
}

#[test]
fn a_collection_is_the_window_of_all_views() {
    let mut driven = open(screens::java(), SIZES[0]);
    let screen = driven.keys("s<Home><Down><Enter>").screen();
    assert!(screen.contains("11.640-11.827 s ✕"), "{screen}");
    // The next one in time, and back.
    let screen = driven.keys(".").screen();
    assert!(screen.contains("11.880-11.892 s ✕"), "{screen}");
    let screen = driven.keys(",").screen();
    assert!(screen.contains("11.640-11.827 s ✕"), "{screen}");
    // One that was not observed whole has none.
    let screen = driven
        .keys("xsssssssss<End><Home>/System.gc<Enter><Enter>")
        .screen();
    assert!(
        screen.contains("no end of this collection was observed"),
        "{screen}"
    );
}

#[test]
fn the_selection_stays_on_its_collection() {
    let mut driven = open(screens::java(), SIZES[1]);
    driven.keys("m/Compaction<Enter>");
    assert!(
        driven.screen().contains("G1, full  at 11.640 s"),
        "{}",
        driven.screen()
    );
    let screen = driven.keys("sS").screen();
    assert!(screen.contains("G1, full  at 11.640 s"), "{screen}");
    assert!(screen.contains("by duration, reversed"), "{screen}");
}

#[test]
fn a_click_on_the_chart_selects_the_nearest() {
    let mut driven = open(screens::java(), SIZES[1]);
    driven.keys("m");
    let screen = driven.screen();
    let place = screen.lines().enumerate().find_map(|(row, line)| {
        let column = line.chars().position(|c| c == 'f')?;
        (row > 4 && row < 14 && (10..60).contains(&column)).then_some((column, row))
    });
    let (column, row) = place.expect("the full collection");
    driven.click(
        u16::try_from(column).expect("a column"),
        u16::try_from(row).expect("a row"),
    );
    driven.keys("<Enter>");
    assert!(
        driven.screen().contains("11.640-11.827 s ✕"),
        "{}",
        driven.screen()
    );
}

#[test]
fn what_is_exported_has_raw_numbers() {
    let mut driven = open(screens::java(), SIZES[0]);
    driven.keys("y");
    let copied = driven.effects.iter().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text.clone()),
        _ => None,
    });
    let copied = copied.expect("text");
    for said in [
        "Collections",
        "no begin",
        "Pauses",
        "G1 Humongous Allocation",
        "by thread",
    ] {
        assert!(copied.contains(said), "{said}:\n{copied}");
    }
}
