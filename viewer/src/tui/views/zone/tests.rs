//! The view, driven by keys and the mouse.

use crate::recordings::screens;
use crate::recordings::{PROCESS, PROGRAM_AT, Recording, THREAD, code};
use crate::tui::testing::{Driven, SIZES};
use ratatui::crossterm::event::{MouseButton, MouseEventKind};
use vmscope_records::{Constituent, ProcessKey, ThreadKey, ThreadRole};

const ZONE: u64 = 0x7f00_0000_0000;

/// A native program: no zone.
fn native() -> Recording {
    let mut recording = Recording::of("native");
    for time in 0..100 {
        recording.sample(time * 1000, THREAD, PROGRAM_AT + time % 40 * 0x40);
    }
    recording.end(100_000);
    recording
}

/// Two zones: in the first, `m1` gives way to `m2` and moves, and `m3` is without samples.
fn zones() -> Recording {
    let mut recording = Recording::of("cog");
    recording.map(PROCESS, 0, ZONE, ZONE + 0x1_0000, 0, None);
    recording.constituent(Constituent {
        tier: "C1".to_owned(),
        ..code(1, 0, ZONE, ZONE + 0x1000)
    });
    recording.constituent(code(2, 40_000, ZONE + 0x2000, ZONE + 0x3000));
    recording.constituent(code(3, 0, ZONE + 0x8000, ZONE + 0x8800));
    recording.constituent(code(4, 0, ZONE + 0x1000_0000, ZONE + 0x1000_1000));
    recording.moved(1, 59_000, 60_000, ZONE + 0xc000);
    recording.gone(2, 79_000, 80_000);
    for time in 0..100 {
        let pc = match time {
            0..40 => ZONE + 0x10,
            40..60 => ZONE + 0x2010,
            60..90 => ZONE + 0xc010,
            _ => ZONE + 0x1000_0010,
        };
        recording.sample(time * 1000, THREAD, pc);
    }
    recording.end(100_000);
    recording
}

fn size_of(size: (u16, u16)) -> String {
    format!("{}x{}", size.0, size.1)
}

#[test]
fn the_plot_in_three_sizes() {
    for size in SIZES {
        let mut driven = Driven::open(screens::java(), size);
        driven
            .keys("5")
            .golden(&format!("zone-plot-{}", size_of(size)));
    }
}

#[test]
fn the_map_in_three_sizes() {
    for size in SIZES {
        let mut driven = Driven::open(screens::java(), size);
        driven
            .keys("5m")
            .golden(&format!("zone-map-{}", size_of(size)));
    }
}

#[test]
fn without_samples_and_without_a_zone() {
    for size in SIZES {
        let mut driven = Driven::open(screens::nothing(), size);
        driven
            .keys("5")
            .golden(&format!("zone-plot-nothing-{}", size_of(size)));
        driven
            .keys("m")
            .golden(&format!("zone-map-nothing-{}", size_of(size)));
        let mut driven = Driven::open(native().bytes(), size);
        driven
            .keys("5m")
            .golden(&format!("zone-map-empty-{}", size_of(size)));
    }
}

#[test]
fn a_selection_is_zoomed_to_and_left_again() {
    let mut driven = Driven::open(screens::java(), SIZES[0]);
    let all = driven.keys("5").screen();
    let selected = driven.keys("gv<Right><Right>").screen();
    assert!(selected.contains("selected 0x"), "{selected}");
    let near = driven.keys("<Enter>").screen();
    assert!(near.contains("zoomed"), "{near}");
    assert!(!driven.keys("-").screen().contains("zoomed"));
    assert!(driven.keys(".").screen().contains("zoomed"));
    driven.keys(",");
    let hottest = driven.keys("{{{{{{{{{{{{{{}}}}}}}}}}}}}}").screen();
    assert!(hottest.contains("samples, "), "{hottest}");
    assert!(all.contains("99.66% of 12,564 samples"), "{all}");
    // A zoomed stretch shows only names of its own entries.
    driven.keys("/OrderBook.match<Enter>+");
    driven.golden("zone-plot-zoomed-80x24");
}

#[test]
fn dragging_zooms_and_the_wheel_goes_back() {
    let mut driven = Driven::open(screens::java(), SIZES[0]);
    driven.keys("5");
    driven.mouse(MouseEventKind::Down(MouseButton::Left), 12, 8);
    driven.mouse(MouseEventKind::Drag(MouseButton::Left), 20, 8);
    driven.mouse(MouseEventKind::Drag(MouseButton::Left), 30, 8);
    assert!(driven.screen().contains("selected 0x"));
    driven.mouse(MouseEventKind::Up(MouseButton::Left), 30, 8);
    assert!(driven.screen().contains("zoomed"));
    driven.mouse(MouseEventKind::ScrollDown, 20, 8);
    assert!(!driven.screen().contains("zoomed"));
}

#[test]
fn ranges_are_left_out_and_included_again() {
    let mut driven = Driven::open(zones().bytes(), SIZES[1]);
    let screen = driven.keys("5").screen();
    assert!(
        screen.contains("100.00% of 100 samples, 2 of 2 ranges"),
        "{screen}"
    );
    let screen = driven.keys("<Down><Space>").screen();
    assert!(
        screen.contains("90.00% of 100 samples, 1 of 2 ranges"),
        "{screen}"
    );
    assert!(screen.contains("- code zone 2"), "{screen}");
    // The last one stays.
    let screen = driven.keys("<Up><Space>").screen();
    assert!(
        screen.contains("at least one range must stay included"),
        "{screen}"
    );
    let screen = driven.keys("<Down><Space>").screen();
    assert!(screen.contains("100.00% of 100 samples"), "{screen}");
}

#[test]
fn ranges_are_sorted_by_a_heading_and_by_the_palette() {
    let mut driven = Driven::open(zones().bytes(), SIZES[1]);
    let first = |screen: &str| {
        let lines = ["code zone 1 ", "code zone 2 "];
        let found = lines.map(|line| screen.find(line).expect(line));
        if found[0] < found[1] { 1 } else { 2 }
    };
    assert_eq!(first(&driven.keys("5").screen()), 1);
    // Most samples first is the order by address, too.
    driven.click(108, 2);
    assert_eq!(first(&driven.screen()), 1);
    driven.click(108, 2);
    assert_eq!(first(&driven.screen()), 2);
    // Keys go by the order on the screen.
    let screen = driven.keys("<Up><Space>").screen();
    assert!(screen.contains("- code zone 2"), "{screen}");
    let screen = driven.keys("<Space>:sort by from<Enter>").screen();
    assert_eq!(first(&screen), 1);
}

#[test]
fn an_address_is_found_and_a_range_selected() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    let screen = driven.keys("5/0x7f000000c010<Enter>").screen();
    assert!(screen.contains("in m1"), "{screen}");
    let screen = driven
        .keys("/0x7f0000000000-0x7f0000003000<Enter>")
        .screen();
    assert!(
        screen.contains("60 samples, 60.00%; Enter zooms"),
        "{screen}"
    );
    let screen = driven.keys("/0x1<Enter>").screen();
    assert!(screen.contains("no match for"), "{screen}");
}

#[test]
fn enter_opens_what_is_under_the_cursor() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    assert!(driven.keys("5<Enter>").screen().contains("3:Method"));
    assert!(driven.keys("[").screen().contains("by address"));
    let screen = driven.keys("f").screen();
    assert!(screen.contains("only m1"), "{screen}");
}

#[test]
fn the_zone_is_shown_as_it_was_then() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    let screen = driven.keys("5m").screen();
    assert!(screen.contains("code zone 1 of 2"), "{screen}");
    // At the end m1 is where it moved to, and m2 is gone.
    let screen = driven.keys("/m1<Enter>").screen();
    assert!(screen.contains("0x7f000000c000"), "{screen}");
    assert!(screen.contains("moved 1 time"), "{screen}");
    let screen = driven.keys("s").screen();
    assert!(screen.contains("from change to change"), "{screen}");
    // Before m2 was gone, before m1 moved, before m2 came.
    let screen = driven.keys(",").screen();
    assert!(screen.contains("0.000 s"), "{screen}");
    let screen = driven.keys(",").screen();
    assert!(screen.contains("1 added, 0 removed"), "{screen}");
    let screen = driven.keys(",,/m1<Enter>").screen();
    assert!(screen.contains("m1: method C1"), "{screen}");
    assert!(
        screen.contains("0x7f0000000000 +4 KiB, 40 samples"),
        "{screen}"
    );
    let screen = driven.keys("/m3<Enter><Enter>").screen();
    assert!(screen.contains("no samples in this code"), "{screen}");
    let screen = driven.keys("b").screen();
    assert!(screen.contains("code zone 2 of 2"), "{screen}");
}

#[test]
fn what_is_copied_is_whole() {
    use crate::tui::event::Effect;
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    driven.keys("5ymy");
    let copied: Vec<&String> = driven
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Copy(text) => Some(text),
            _ => None,
        })
        .collect();
    assert!(copied[0].contains("code zone 2"), "{}", copied[0]);
    assert!(copied[1].contains("m3"), "{}", copied[1]);
}

#[test]
fn no_size_and_no_recording_is_too_much() {
    let mut empty = Recording::of("jit");
    // Code at the last address; code without bytes.
    let mut odd = Recording::of("jit");
    odd.constituent(code(1, 0, u64::MAX - 0x100, u64::MAX));
    odd.constituent(code(2, 0, 0x1000, 0x1000));
    odd.constituent(code(3, 0, 0, u64::MAX));
    odd.moved(1, 10, 20, u64::MAX - 4);
    for time in 0..50 {
        odd.sample(time, THREAD, u64::MAX - 0x80 + time);
    }
    let all = [
        empty.end(10).bytes(),
        odd.end(100).bytes(),
        zones().bytes(),
        native().bytes(),
        screens::java(),
    ];
    for bytes in all {
        let mut driven = Driven::open(bytes, SIZES[0]);
        for form in ["5", "m"] {
            driven.keys(form);
            for columns in [60, 61, 79, 119, 120, 121, 200, 300] {
                for rows in [16, 17, 24, 100] {
                    driven.resize(columns, rows).screen();
                    driven.keys("<Right><Down>}}{v<Left>+++.,.bBsGg-x");
                    driven.click(columns / 2, rows / 2).screen();
                    driven.click(columns - 3, rows - 4).screen();
                }
            }
        }
    }
}

#[test]
fn cells_are_not_drawn_under_the_addresses_of_others() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    assert!(driven.keys("5m").screen().contains("+000000"));
    // Next zone, cells still missing.
    let screen = driven.hold(|_| true).keys("b").screen();
    assert!(screen.contains("code zone 2 of 2"), "{screen}");
    assert!(!screen.contains("+000000"), "{screen}");
    assert!(driven.let_go().screen().contains("+000000"));
    // Another time: the drawn time matches the drawn cells.
    let driven = driven.keys("bs");
    let before = driven.screen();
    let time = before.lines().find(|line| line.contains('●'));
    let screen = driven.hold(|_| true).keys(",,").screen();
    assert_eq!(screen.lines().find(|line| line.contains('●')), time);
    let screen = driven.let_go().screen();
    assert!(
        screen.contains("1 removed") || screen.contains("1 added"),
        "{screen}"
    );
}

#[test]
fn keys_of_the_other_form_say_so() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    assert!(
        driven
            .keys("5b")
            .screen()
            .contains("this key is for the map")
    );
    assert!(
        driven
            .keys("mv")
            .screen()
            .contains("this key is for the plot")
    );
}

#[test]
fn back_zooms_out_before_it_leaves() {
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    for form in ["5", "5m"] {
        let whole = driven.keys(form).screen();
        let zoomed = driven.keys("+").screen();
        assert_ne!(zoomed, whole);
        assert_eq!(driven.keys("[").screen(), whole);
        if form == "5" {
            assert_eq!(driven.keys("]").screen(), zoomed);
            assert_eq!(driven.keys("[").screen(), whole);
        }
        assert!(driven.keys("[").screen().contains("1:Overview"));
    }
}

/// What is free is told by those adapters that tell of free space.
#[test]
fn what_nobody_told_of_is_not_called_free() {
    let map = |recording: Vec<u8>| Driven::open(recording, SIZES[1]).keys("5m").screen();
    let some = map(screens::java());
    assert!(
        some.contains(": not reported") && some.contains(". free "),
        "{some}"
    );
    let none = map(zones().bytes());
    assert!(none.contains(": not reported"), "{none}");
    assert!(!none.contains("free"), "{none}");
    let told = map(screens::cog());
    assert!(told.contains(" . free  "), "{told}");
    let mut driven = Driven::open(zones().bytes(), SIZES[0]);
    let screen = driven.keys("5m<End><Left><Enter>").screen();
    assert!(!screen.contains("free"), "{screen}");
}

#[test]
fn code_of_forked_processes_is_said_to_be_in_their_parents_map() {
    let mut recording = zones();
    let (child, thread) = (ProcessKey(2), ThreadKey(2));
    recording.process(child, 10_000, 4711, Some(PROCESS));
    recording.thread(thread, child, 10_000, "child", ThreadRole::Mutator);
    recording.sample(20_000, thread, ZONE + 0x20);
    let bytes = recording.end(100_000).bytes();
    let screen = Driven::open(bytes, SIZES[2]).keys("5m").screen();
    assert!(
        screen.contains("with samples of 1 forked process"),
        "{screen}"
    );
    let screen = Driven::open(zones().bytes(), SIZES[2]).keys("5m").screen();
    assert!(!screen.contains("forked"), "{screen}");
}

/// Narrow ranges show no name rather than half a name.
#[test]
fn names_of_ranges_are_left_out_rather_than_cut() {
    let mut recording = Recording::of("jit");
    for range in 0..24 {
        let start = ZONE + range * 0x1000_0000;
        recording.constituent(code(range + 1, 0, start, start + 0x1000));
        for time in 0..=range {
            recording.sample(time * 1000 + range, THREAD, start + 0x40 * time);
        }
    }
    let bytes = recording.end(100_000).bytes();
    for size in SIZES {
        let screen = Driven::open(bytes.clone(), size).keys("5").screen();
        let names = screen.lines().nth(usize::from(size.1) - 6).unwrap();
        assert!(names.contains("zone 24"), "{names}\n{screen}");
        assert!(!names.contains("..."), "{names}\n{screen}");
    }
}
