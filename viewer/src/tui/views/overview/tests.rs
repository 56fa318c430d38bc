//! The overview, driven by keys and the mouse.

use crate::recordings::screens;
use crate::tui::testing::{Driven, SIZES};

#[test]
fn it_says_what_the_recording_is_and_where_its_time_went() {
    for (columns, rows) in SIZES {
        let mut driven = Driven::open(screens::java(), (columns, rows));
        driven.golden(&format!("overview-java-{columns}x{rows}"));
        let screen = driven.screen();
        for said in [
            "HotSpot",
            "12,564 samples",
            "99.8",
            "51.50%",
            "match (C2)",
            "23 samples lost",
        ] {
            assert!(screen.contains(said), "{said}:\n{screen}");
        }
    }
    for (name, recording) in [
        ("node", screens::node()),
        ("native", screens::native()),
        ("cog", screens::cog()),
        ("nothing", screens::nothing()),
        ("damaged", screens::damaged()),
    ] {
        Driven::open(recording, SIZES[0]).golden(&format!("overview-{name}-80x24"));
    }
    Driven::open(screens::native(), SIZES[2]).golden("overview-native-200x60");
}

#[test]
fn a_region_an_entry_and_a_thread_are_chosen_with_keys() {
    let mut driven = Driven::open(screens::java(), SIZES[2]);
    let screen = driven.keys("<Down><Enter>").screen();
    assert!(screen.contains(" collector ✕"), "{screen}");
    assert!(screen.contains("1,916 samples"), "{screen}");
    assert!(screen.contains("[2 Hot"), "{screen}");
    // One step back undoes the filter and the change of view.
    let screen = driven.keys("[").screen();
    assert!(
        screen.contains("[1 Overview") && !screen.contains('✕'),
        "{screen}"
    );
    let screen = driven.keys("<Right><Down>f").screen();
    assert!(
        screen.contains("only Parser.token") || screen.contains("Parser.token"),
        "{screen}"
    );
    assert!(screen.contains(" 550 samples"), "{screen}");
    let screen = driven.keys("x<Right><Enter>").screen();
    assert!(
        screen.contains("thread ") && screen.contains('✕') && screen.contains("[2 Hot"),
        "{screen}"
    );
    let screen = driven.keys("[<Left><Home><Enter>").screen();
    assert!(
        screen.contains("3:Method") || screen.contains("[3 Method"),
        "{screen}"
    );
}

#[test]
fn the_mouse_selects_and_opens() {
    let mut driven = Driven::open(screens::java(), SIZES[0]);
    let screen = driven.screen();
    let row = screen
        .lines()
        .position(|line| line.contains("C collector"))
        .expect("a row");
    let row = u16::try_from(row).expect("a row");
    driven.click(5, row);
    let screen = driven.keys("f").screen();
    assert!(screen.contains(" collector ✕"), "{screen}");
    // A search goes to entries.
    let screen = driven.keys("x/checksum<Enter>f").screen();
    assert!(screen.contains("only com.acme.net.Codec"), "{screen}");
}

#[test]
fn what_is_exported_is_all_of_it() {
    let mut driven = Driven::open(screens::java(), SIZES[0]);
    driven.keys("y");
    let copied = driven.effects.iter().find_map(|effect| match effect {
        crate::tui::event::Effect::Copy(text) => Some(text.clone()),
        _ => None,
    });
    let copied = copied.expect("text");
    for said in [
        "Hottest",
        "Resolution",
        "Threads",
        "worker-2",
        "Code cache",
        "G1",
    ] {
        assert!(copied.contains(said), "{said}:\n{copied}");
    }
}

#[test]
fn no_size_and_no_recording_is_too_bad() {
    for recording in [
        screens::java(),
        screens::nothing(),
        screens::damaged(),
        screens::nasty(),
        screens::cog(),
    ] {
        let mut driven = Driven::open(recording, SIZES[0]);
        for view in ["1", "6", "9"] {
            driven.keys(view);
            for (columns, rows) in [
                (60, 16),
                (61, 17),
                (79, 19),
                (109, 29),
                (110, 30),
                (150, 31),
                (160, 45),
                (300, 90),
            ] {
                driven.resize(columns, rows).screen();
                driven.keys("<Down><Right>m<End><PgUp>").screen();
            }
        }
        // A filter that takes nothing.
        driven.keys(":window: from<Enter>0.0001-0.0002<Enter>");
        for view in ["1", "6", "9"] {
            driven.keys(view).screen();
            driven.keys("<Down><Enter>f").screen();
        }
    }
}

#[test]
fn shares_are_of_their_own_whole_while_the_next_answer_is_awaited() {
    use crate::tui::jobs::Slot;
    for (view, said) in [
        ("1", "51.50%"),
        ("6", "1,916 samples in the collector (15.25%)"),
    ] {
        let mut driven = Driven::open(screens::java(), SIZES[0]);
        driven.keys(view).hold(|slot| slot != Slot::Summary);
        let screen = driven
            .keys(":window: from<Enter>11.64-11.65<Enter>")
            .screen();
        assert!(screen.contains(said), "{screen}");
        let screen = driven.let_go().screen();
        assert!(!screen.contains(said), "{screen}");
    }
}

#[test]
fn the_selected_region_is_always_there() {
    use vmscope_symbolizer::Region;
    let regions = Region::ALL.map(|region| (region, 1, Vec::new()));
    let digest = super::Digest {
        regions: regions.to_vec(),
        ..super::Digest::default()
    };
    let last = digest.regions.len() - 1;
    assert_eq!(super::lists::region_at(&digest, 3, last, 2), Some(last));
    assert_eq!(super::lists::region_at(&digest, 3, 0, 0), Some(0));
}
