//! The hot list and its matrix, driven by keys.

use crate::queries::entries::GroupBy;
use crate::recordings::{PROGRAM_AT, Recording, THREAD, screens};
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES, profile};
use crate::tui::theme::{Colors, Theme};
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
    goldens("matrix-threads", "mmm");
    goldens("nested", "mb<Space>");
    goldens("nested-methods", "mmj<Right>");
}

#[test]
fn nothing_is_said_to_be_so() {
    let empty = Recording::of("native").end(100_000).bytes();
    for size in SIZES {
        let name = format!("hot-empty-{}x{}", size.0, size.1);
        Driven::open(empty.clone(), size).keys("2").golden(&name);
    }
    let mut driven = Driven::open(empty, SIZES[0]);
    assert!(driven.keys("2m").screen().contains("No samples"));
    let screen = java(SIZES[0])
        .keys(":window: from<Enter>15.2-15.8<Enter>")
        .screen();
    assert!(
        screen.contains("No samples with this filter: x"),
        "{screen}"
    );
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
    assert!(screen.contains("no match for"), "{screen}");
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
    let column = u16::try_from(name.find("name").unwrap()).unwrap();
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
    // The second press of a double click does not turn it round again.
    let press = MouseEventKind::Down(ratatui::crossterm::event::MouseButton::Left);
    let screen = driven.mouse(press, column, header).screen();
    assert!(screen.contains("sorted by name, reversed"), "{screen}");
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

/// Exported CSV without heading.
fn exported(driven: &mut Driven) -> Vec<Vec<String>> {
    driven.effects.clear();
    driven.keys(":export as csv<Enter><Enter>");
    let Some(Effect::Write(_, bytes)) = driven.effects.pop() else {
        panic!("nothing was written: {}", driven.screen());
    };
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let cells = |row: csv::StringRecord| row.iter().map(str::to_owned).collect();
    reader.records().map(|row| cells(row.unwrap())).collect()
}

#[test]
fn every_order_and_grouping_has_all_samples() {
    let mut driven = java(SIZES[2]);
    let sorts = [
        "share",
        "inclusive",
        "name",
        "region",
        "kind",
        "tier",
        "machine code",
        "error",
    ];
    for grouping in GroupBy::ALL {
        // Stacks are of all threads.
        let is_shown = |by: &&str| *by != "inclusive" || grouping != GroupBy::Thread;
        for by in sorts.into_iter().filter(is_shown) {
            let crumb = driven.screen().lines().nth(1).unwrap().to_owned();
            let sorted = format!("sorted by {by}");
            assert!(by == "share" || crumb.contains(&sorted), "{crumb}");
            assert!(grouping == GroupBy::Entry || crumb.contains(grouping.name()));
            let rows = exported(&mut driven);
            let samples = if grouping == GroupBy::Thread { 2 } else { 3 };
            let of_row = |row: &Vec<String>| row[samples].parse::<u64>().unwrap();
            let sum: u64 = rows.iter().map(of_row).sum();
            assert_eq!(sum, 12_564, "{grouping:?} {by}");
            driven.keys("s");
        }
        driven.keys("b");
    }
    driven.keys("BBB");
    assert!(driven.screen().contains("by thread"));
}

#[test]
fn what_is_selected_stays_selected() {
    let mut driven = java(SIZES[0]);
    let before = details(driven.keys("jjj"));
    assert!(before.contains("PhaseIterGVN"), "{before}");
    for keys in ["s", "S", "ssssss", "b", "B", "<Esc>"] {
        assert_eq!(details(driven.keys(keys)), before, "{keys}");
    }
    assert!(!details(driven.keys("g")).contains("PhaseIterGVN"));
}

#[test]
fn rows_expand_and_collapse_in_place() {
    let mut driven = java(SIZES[0]);
    let closed = driven.screen();
    let open = driven.keys("<Right>").screen();
    assert!(open.contains("~4 (line 41)"), "{open}");
    // Into the group, then out again.
    assert!(details(driven.keys("<Right><Right>")).contains("% of its parent"));
    driven.keys("<Left>");
    assert_eq!(driven.screen(), open);
    assert_eq!(driven.keys("<Left>").screen(), closed);
    assert_eq!(driven.keys("<Space><Space>").screen(), closed);
    // A method's versions, each with its ranges.
    let all = driven.keys("b:expand all hot<Enter>").screen();
    assert!(
        all.contains("▾ com.acme.config.Parser.token (3 entries)"),
        "{all}"
    );
    let collapsed = driven.keys(":collapse<Enter>").screen();
    assert!(!collapsed.contains('▾') || collapsed.matches('▾').count() == 1);
}

#[test]
fn enter_opens_the_method_and_f_narrows() {
    let screen = java(SIZES[2]).keys("<Enter>").screen();
    assert!(screen.contains("[3 Method"), "{screen}");
    for (keys, chip) in [
        ("f", "only com.acme.orders.Order"),
        ("<Right>jf", "only com.acme.orders.Order"),
        ("bf", "only com.acme.config.Parse"),
        ("bbf", "in libjvm.so ✕"),
        ("bbbf", "generated ✕"),
        ("bbbbf", "only com.acme"),
        ("bbbbbf", "thread main ✕"),
        ("bbbbbbf", "tier C2 ✕"),
    ] {
        let screen = java(SIZES[2]).keys(keys).screen();
        let crumb = screen.lines().nth(1).unwrap();
        assert!(crumb.contains(chip), "{keys}: {crumb}");
        assert!(!crumb.contains("12,564"), "{keys}: {crumb}");
    }
    // A method with all its versions.
    let screen = java(SIZES[2]).keys("bf").screen();
    assert!(screen.contains(" 1,074 samples"), "{screen}");
}

#[test]
fn the_matrix_has_all_samples_either_way() {
    for keys in ["m", "m+", "mb", "m+b", "mmm", "mmm+", "mmmb"] {
        let mut driven = java(SIZES[0]);
        driven.keys(keys);
        for row in exported(&mut driven) {
            let cells = row.iter().skip(3).filter(|cell| !cell.is_empty());
            let cells: u64 = cells.map(|cell| cell.parse::<u64>().unwrap()).sum();
            assert_eq!(cells.to_string(), row[1], "{keys}: {row:?}");
        }
        let rows = exported(&mut driven);
        let sum: u64 = rows.iter().map(|row| row[1].parse::<u64>().unwrap()).sum();
        assert_eq!(sum, 12_564, "{keys}");
    }
}

#[test]
fn the_matrix_nests_either_way_and_has_all_samples() {
    // Two ways: a row of the grid, the key that changes forms.
    let mut driven = java(SIZES[1]);
    let screen = driven.keys("mbj<Space>").screen();
    assert!(screen.contains("category > method"), "{screen}");
    assert!(details(&mut driven).starts_with(" collector · "));
    for (keys, outer) in [
        ("mm", "method"),
        ("mmb", "category"),
        ("mm+b", "category"),
        ("mmmm", "thread"),
    ] {
        let mut driven = java(SIZES[1]);
        driven.keys(keys);
        let rows = exported(&mut driven);
        let samples = |row: &Vec<String>| row[2].parse::<u64>().unwrap();
        assert_eq!(rows.iter().map(samples).sum::<u64>(), 12_564, "{keys}");
        assert!(
            rows.iter().all(|row| row[0] == outer && !row[5].is_empty()),
            "{keys}"
        );
        driven.keys(":expand all hot<Enter>");
        let rows = exported(&mut driven);
        let (mut whole, mut inside, mut expanded) = (0, 0, 0);
        let is_outer = |row: &&Vec<String>| row[0] == outer;
        assert_eq!(
            rows.iter().filter(is_outer).map(samples).sum::<u64>(),
            12_564
        );
        for row in &rows {
            if is_outer(&row) {
                assert!(
                    inside == 0 || inside == whole,
                    "{keys}: {inside} of {whole}"
                );
                (whole, inside) = (samples(row), 0);
            } else {
                inside += samples(row);
                expanded += 1;
                assert!(!row[3].is_empty() && !row[5].is_empty(), "{row:?}");
            }
        }
        assert!(expanded > 20, "{keys}: {expanded}");
        driven.keys(":collapse all<Enter>");
        assert!(exported(&mut driven).iter().all(|row| row[0] == outer));
    }
}

#[test]
fn the_nested_matrix_is_walked_as_the_list_is() {
    let mut driven = java(SIZES[1]);
    let closed = driven.keys("mmb").screen();
    assert!(details(driven.keys("<Right><Right>")).contains(" of generated · "));
    assert!(details(driven.keys("<Left>")).starts_with(" generated · "));
    assert_eq!(driven.keys("<Left>").screen(), closed);
    assert_eq!(driven.keys("<Space><Space>").screen(), closed);
    assert_eq!(driven.keys("<Enter><Enter>").screen(), closed);
    // The inner row becomes the outer row.
    let inside = details(driven.keys("<Right>jj"));
    let (method, _) = inside.trim().split_once(" · ").unwrap();
    let turned = details(driven.keys("b"));
    assert!(turned.contains(&format!(" of {method} · ")), "{turned}");
    assert!(turned.starts_with(" generated · "));
    assert_eq!(details(driven.keys("b")), inside);
    // Sorted by name, and the other way round; what is selected stays.
    assert!(
        driven
            .keys("s")
            .screen()
            .contains("category > method, by name")
    );
    assert_eq!(details(&mut driven), inside);
    assert!(driven.keys("S").screen().contains("by name, reversed"));
    assert!(driven.keys("s").screen().contains(", by error"));
    // Search finds names in collapsed rows.
    let mut driven = java(SIZES[1]);
    assert!(details(driven.keys("mmb/getnode<Enter>")).contains("HashMap.getNode · "));
    let first = details(&mut driven);
    assert_ne!(details(driven.keys("n")), first);
    assert_eq!(details(driven.keys("N")), first);
    // A method opens, a cell is a filter.
    let screen = driven.keys("<Enter>").screen();
    assert!(
        screen.contains("[3 Method") && screen.contains("getNode"),
        "{screen}"
    );
    let screen = java(SIZES[2]).keys("mmbjf").screen();
    assert!(
        screen.lines().nth(1).unwrap().contains(" collector ✕"),
        "{screen}"
    );
}

#[test]
fn a_cell_is_a_filter_where_filters_can_tell() {
    // The second row is `Parser.token`, the first column what was generated.
    let mut driven = java(SIZES[2]);
    let cell = details(driven.keys("mj<Right>"));
    assert!(
        cell.contains("generated × com.acme.config.Parser.token"),
        "{cell}"
    );
    let samples: String = cell.trim().split(' ').next().unwrap().to_owned();
    let screen = driven.keys("<Enter>").screen();
    // Stubs called by the method are no entries of the method.
    assert!(screen.contains("only com.acme.config.Pars"), "{screen}");
    assert!(!samples.is_empty());
    // Filters can't select compiler samples by method.
    let mut driven = java(SIZES[2]);
    let cell = details(driven.keys("mj<Right><Right><Right><Right>"));
    assert!(cell.contains("compiler × "), "{cell}");
    let screen = driven.keys("<Enter>").screen();
    assert!(screen.contains("the filter also shows"), "{screen}");
    assert!(screen.contains(" compiler ✕"), "{screen}");
    // A thread's are.
    let screen = java(SIZES[2]).keys("mmm<Right><Enter>").screen();
    assert!(screen.contains("thread main ✕"), "{screen}");
    assert!(screen.contains("generated ✕"), "{screen}");
}

#[test]
fn the_matrix_turns_round_and_keeps_its_cell() {
    let mut driven = java(SIZES[2]);
    let cell = details(driven.keys("mj<Right><Right>"));
    let turned = details(driven.keys("b"));
    let (numbers, names) = cell.trim().split_once(": ").unwrap();
    let (_, turned_names) = turned.trim().split_once(": ").unwrap();
    let (column, row) = names.split_once(" × ").unwrap();
    assert!(
        turned_names.starts_with(&format!("{row} × {column}")),
        "{turned}"
    );
    assert!(!numbers.is_empty());
    assert_eq!(details(driven.keys("B")), cell);
    assert!(details(driven.keys("}")).contains(" × "));
}

#[test]
fn no_size_and_no_recording_is_too_odd() {
    let mut one = Recording::of("cog");
    one.sample(1000, THREAD, PROGRAM_AT);
    let ascii = Theme {
        colors: Colors::None,
        unicode: false,
    };
    for bytes in [
        screens::java(),
        one.end(100_000).bytes(),
        Recording::of("native").bytes(),
    ] {
        for theme in [ascii, crate::tui::testing::THEME] {
            let mut driven = Driven::with_theme(profile(bytes.clone()), (80, 24), theme);
            driven.keys("2");
            for keys in [
                "",
                " ",
                "b ",
                "bbbb ",
                "m",
                "+b",
                "m",
                " ",
                "m",
                "G",
                "m",
                "b<Right>sS",
                "}{fX",
                "/x<Esc>",
            ] {
                driven.keys(keys);
                for (columns, rows) in [
                    (60, 16),
                    (61, 17),
                    (79, 24),
                    (104, 30),
                    (170, 50),
                    (300, 80),
                ] {
                    let screen = driven.resize(columns, rows).screen();
                    assert!(theme.unicode || keys.contains('m') || !screen.contains('▾'));
                }
            }
            let _ = exported(&mut driven);
        }
    }
}

/// `main` has no self samples; half of all samples are in callees of `half`.
#[test]
fn callers_without_samples_are_in_the_list_with_what_they_call() {
    use crate::recordings::{PROGRAM, PROGRAM_AT, Recording, THREAD};
    let mut recording = Recording::of("native");
    let functions = [(0, 16, "main"), (16, 16, "half"), (32, 16, "leaf")];
    recording.symbols(PROGRAM, &functions);
    // A caller's address lies behind its call; `half` is recursive.
    let [main, half, leaf] = [8, 24, 32].map(|offset| PROGRAM_AT + offset);
    for time in 1..=100 {
        let stack = match time % 2 {
            0 => vec![leaf, main],
            _ => vec![leaf, half, half, main],
        };
        recording.stack(time, THREAD, stack);
    }
    let mut driven = Driven::open(recording.end(101).bytes(), SIZES[1]);
    let screen = driven.keys("2").screen();
    let row = |name: &str| -> Vec<String> {
        let line = screen.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {screen}"));
        line.split_whitespace().take(2).map(str::to_owned).collect()
    };
    assert_eq!(row("leaf"), ["100.00%", "100.0%"]);
    assert_eq!(row("half"), ["0.00%", "50.0%"]);
    assert_eq!(row("main"), ["0.00%", "100.0%"]);
    assert!(details(driven.keys("/half<Enter>")).contains("50.0% with callees"));
}
