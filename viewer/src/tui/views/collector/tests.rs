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
            "27 collections counted by the VM",
            "25 observed",
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
    // Longest first: concurrent cycle, then full collection.
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
    for (columns, rows) in SIZES {
        let mut nothing = open(screens::nothing(), (columns, rows));
        nothing.golden(&format!("collector-nothing-{columns}x{rows}"));
    }
    for (name, recording) in [("node", screens::node()), ("native", screens::native())] {
        open(recording, SIZES[0]).golden(&format!("collector-{name}-80x24"));
    }
    open(screens::node(), SIZES[2]).golden("collector-node-200x60");
    let mut driven = open(screens::java(), SIZES[0]);
    let screen = driven.keys(":window: from<Enter>15.1-15.9<Enter>").screen();
    assert!(screen.contains("No collection in this window"), "{screen}");
}

#[test]
fn a_collection_is_the_window_of_all_views() {
    let mut driven = open(screens::java(), SIZES[0]);
    let screen = driven.keys("s<Home><Down><Enter>").screen();
    assert!(screen.contains("11.640-11.827 s ✕"), "{screen}");
    // The next collection in time, and back.
    let screen = driven.keys(".").screen();
    assert!(screen.contains("11.880-11.892 s ✕"), "{screen}");
    let screen = driven.keys(",").screen();
    assert!(screen.contains("11.640-11.827 s ✕"), "{screen}");
    // A collection with an unobserved end has no window.
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

#[test]
fn without_room_above_the_table_a_part_takes_its_place() {
    let mut driven = open(screens::java(), (60, 16));
    assert!(driven.screen().contains("cause"), "{}", driven.screen());
    for said in ["Duration, log", "Pauses", "Inside", "cause"] {
        let screen = driven.keys("m").screen();
        assert!(
            said == "Inside" || screen.contains(said),
            "{said}:\n{screen}"
        );
    }
}

#[test]
fn collections_of_processes_that_are_left_out_are_not_shown() {
    use crate::recordings::{PROCESS, PROGRAM_AT, Recording, THREAD};
    use vmscope_records::{
        Collection, CollectionKey, CollectionScope, ProcessKey, Record, ThreadKey, ThreadRole,
        TimeNs,
    };
    let (process, thread) = (ProcessKey(2), ThreadKey(2));
    let mut recording = Recording::of("HotSpot");
    recording.process(process, 0, 77, Some(PROCESS));
    recording.thread(thread, process, 0, "the other", ThreadRole::Other);
    for time in 0..100 {
        let one = if time < 60 { THREAD } else { thread };
        recording.sample(time * 1000, one, PROGRAM_AT);
    }
    recording.put(Record::Collection(Box::new(Collection {
        key: CollectionKey(1),
        process: PROCESS,
        time: TimeNs(30_000),
        collector: "G1".into(),
        kind: "young".into(),
        cause: "Full".into(),
        number: 1,
        begin: Some(TimeNs(10_000)),
        end: Some(TimeNs(20_000)),
        scope: CollectionScope::Whole,
        missed: 0,
        missed_ns: None,
        phases: Vec::new(),
        spaces: Vec::new(),
        survived_bytes: None,
        tenured_bytes: None,
        survived_objects: None,
        cpu_ns: None,
    })));
    let mut driven = Driven::open(recording.end(100_000).bytes(), SIZES[0]);
    assert!(driven.keys("6").screen().contains("1 collection observed"));
    // Only the thread of a process without collections.
    let screen = driven.keys("8/the other<Enter>f6").screen();
    assert!(
        screen.contains("No collection in the processes of these threads"),
        "{screen}"
    );
}

#[test]
fn collections_before_the_kept_samples_have_no_samples() {
    let mut profile = crate::tui::testing::profile(screens::java());
    let until = vmscope_records::TimeNs(screens::ms(15_000));
    let samples = &mut profile.trace.samples;
    assert!(profile.time_buckets.drop_before(samples, until) > 0);
    let mut driven = Driven::with_theme(profile, SIZES[0], crate::tui::testing::THEME);
    let screen = driven.keys("6").golden("collector-older-80x24").screen();
    let old = screen.lines().find(|line| line.contains("Metadata"));
    // Both sample columns are blank.
    assert!(
        old.is_some_and(|line| !line.ends_with(char::is_numeric)),
        "{screen}"
    );
}
