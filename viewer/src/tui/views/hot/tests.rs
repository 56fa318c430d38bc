//! The hot list and its matrix, driven by keys.

use crate::recordings::{Recording, screens};
use crate::tui::testing::{Driven, SIZES};
use ratatui::crossterm::event::MouseEventKind;

fn java(size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(screens::java(), size);
    driven.keys("2");
    driven
}

/// A golden of each size.
fn goldens(what: &str, keys: &str) {
    for size in SIZES {
        let name = format!("hot-{what}-{}x{}", size.0, size.1);
        java(size).keys(keys).golden(&name);
    }
}

/// The line of the screen that has `text` first.
fn line_with(screen: &str, text: &str) -> u16 {
    let line = screen.lines().position(|line| line.contains(text));
    u16::try_from(line.unwrap_or_else(|| panic!("no {text}:\n{screen}"))).unwrap()
}

/// What is said of the selected row.
fn details(driven: &mut Driven) -> String {
    let screen = driven.screen();
    let lines: Vec<&str> = screen.lines().collect();
    lines[lines.len() - 2].to_owned()
}

#[test]
fn the_list_looks_like_this() {
    goldens("list", "");
    goldens("expanded", "<Right>");
    goldens("methods", "b<Space>");
}

#[test]
fn the_matrix_looks_like_this() {
    goldens("matrix", "m");
    goldens("matrix-parts", "m+");
    goldens("matrix-turned", "mb");
    goldens("matrix-threads", "mm");
}

#[test]
fn nothing_is_said_to_be_so() {
    let empty = Recording::of("native").end(100_000).bytes();
    for size in SIZES {
        let name = format!("hot-empty-{}x{}", size.0, size.1);
        Driven::open(empty.clone(), size).keys("2").golden(&name);
    }
    let mut driven = Driven::open(empty, SIZES[0]);
    assert!(driven.keys("2m").screen().contains("no samples"));
    let screen = java(SIZES[0])
        .keys(":window: from<Enter>15.2-15.8<Enter>")
        .screen();
    assert!(screen.contains("x removes the newest filter"), "{screen}");
}

#[test]
fn search_finds_what_groups_hide() {
    let mut driven = java(SIZES[0]);
    assert!(details(driven.keys("/GETNODE<Enter>")).contains("HashMap.getNode"));
    let first = details(&mut driven);
    let second = details(driven.keys("n"));
    assert!(second.contains("getNode") && second != first, "{second}");
    assert_eq!(details(driven.keys("N")), first);
    // In a closed group of the kernel's.
    let mut driven = java(SIZES[0]);
    driven.keys("bbb/clear_page<Enter>");
    assert!(details(&mut driven).contains("clear_page_erms"));
    assert!(driven.screen().contains("▾ kernel"));
    let screen = driven.keys("/no such thing").screen();
    assert!(screen.contains("nothing here is called"), "{screen}");
}

#[test]
fn the_mouse_selects_opens_and_sorts() {
    let mut driven = java(SIZES[1]);
    let line = line_with(&driven.screen(), "Codec.checksum");
    assert!(details(driven.click(60, line)).contains("Codec.checksum"));
    let header = line_with(&driven.screen(), "share");
    let name = driven
        .screen()
        .lines()
        .nth(usize::from(header))
        .unwrap()
        .to_owned();
    let column = name.chars().position(|c| c == 'n').unwrap();
    let column = u16::try_from(column).unwrap();
    assert!(
        driven
            .click(column, header)
            .screen()
            .contains("sorted by name")
    );
    assert!(
        driven
            .click(column, header)
            .screen()
            .contains("sorted by name, reversed")
    );
    driven.mouse(MouseEventKind::ScrollDown, 10, 10);
    let mut driven = java(SIZES[0]);
    driven.click(40, line);
    driven.mouse(
        MouseEventKind::Down(ratatui::crossterm::event::MouseButton::Left),
        40,
        line,
    );
    assert!(driven.screen().contains("3:Method"), "{}", driven.screen());
}
