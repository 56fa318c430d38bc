//! What all views have in common, driven by keys.

use super::testing::{Driven, SIZES};
use crate::recordings::{PROGRAM_AT, Recording};

fn small() -> Vec<u8> {
    let mut recording = Recording::of("native");
    for time in 0..100 {
        recording.sample(time * 1000, crate::recordings::THREAD, PROGRAM_AT + time);
    }
    recording.end(100_000).bytes()
}

#[test]
fn the_help_is_the_key_table() {
    let mut driven = Driven::open(small(), SIZES[0]);
    let screen = driven.keys("8?").screen();
    assert!(screen.contains("This view: Threads"), "{screen}");
    assert!(screen.contains("include this thread"), "{screen}");
    assert!(!driven.keys("<Esc>").screen().contains("This view"));
}

#[test]
fn filters_come_and_go_with_keys_and_clicks() {
    let mut driven = Driven::open(small(), SIZES[0]);
    let screen = driven.keys("8<Enter>").screen();
    assert!(screen.contains("thread main ✕"), "{screen}");
    let column = screen.lines().nth(1).unwrap().find('✕').unwrap();
    let column = u16::try_from(column).unwrap();
    assert!(!driven.click(column, 1).screen().contains("thread main"));
    assert!(driven.keys("[").screen().contains("thread main"));
    assert!(!driven.keys("x").screen().contains("thread main"));
}

#[test]
fn a_terminal_that_is_too_small_is_told_what_is_needed() {
    let mut driven = Driven::open(small(), SIZES[0]);
    let screen = driven.resize(40, 10).screen();
    assert!(screen.contains("vmscope needs 60x16"), "{screen}");
    assert!(driven.resize(80, 24).screen().contains("Overview"));
}

#[test]
fn no_key_has_two_meanings_in_one_view() {
    use super::keys::{GLOBAL, LIVE};
    use super::views::ViewId;
    for id in ViewId::ALL {
        let view = id.make();
        let all = view.bindings().iter().chain(GLOBAL).chain(LIVE);
        let keys: Vec<String> = all.flat_map(|row| row.keys).map(|key| key.name()).collect();
        let mut once = keys.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), keys.len(), "{id:?}: {keys:?}");
    }
}
