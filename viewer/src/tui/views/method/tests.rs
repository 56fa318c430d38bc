//! The method's view, driven by keys.

use crate::recordings::{PROGRAM, PROGRAM_AT, Recording, THREAD, function, screens, stack_sample};
use crate::tui::event::{Effect, Event};
use crate::tui::testing::{Driven, SIZES};
use vmscope_records::{
    Exactness, FileOffset, NativeFrame, NativeLines, Record, SymbolOwner, Symbols,
};

/// Every size of a screen, after some keys.
fn at_all_sizes(name: &str, bytes: &[u8], keys: &str) {
    for (columns, rows) in SIZES {
        let mut driven = Driven::open(bytes.to_vec(), (columns, rows));
        driven.keys(keys);
        driven.golden(&format!("method-{name}-{columns}x{rows}"));
    }
}

#[test]
fn a_java_method_with_bytecodes() {
    at_all_sizes("java", &screens::java(), "3");
    at_all_sizes("java-callers", &screens::java(), "3b");
}

#[test]
fn a_method_of_cog() {
    at_all_sizes("cog", &screens::cog(), "3");
}

#[test]
fn a_function_of_node_by_lines() {
    at_all_sizes("node", &screens::node(), "3");
}

#[test]
fn a_native_function() {
    at_all_sizes("native", &screens::native(), "3b");
}

#[test]
fn nothing_is_said_to_be_nothing() {
    at_all_sizes("nothing", &screens::nothing(), "3");
}

#[test]
fn the_worst_of_names_disturb_nothing() {
    at_all_sizes("nasty", &screens::nasty(), "3b");
}

#[test]
fn keys_walk_hot_lines_versions_and_calls() {
    let mut driven = Driven::open(screens::java(), SIZES[0]);
    let screen = driven.keys("3}").screen();
    assert!(screen.contains("hot line "), "{screen}");
    assert!(driven.keys(".").screen().contains(" only "));
    // A step back from the first version shows all versions.
    assert!(driven.keys(",").screen().contains("all versions"));
    assert!(driven.keys("b").screen().contains("callers: "));
    assert!(driven.keys("b").screen().contains("callees: "));
    let screen = driven.keys("b").screen();
    assert!(!screen.contains("s: of "), "{screen}");
    // Enter on a caller goes there, and `[` back.
    let before = driven.screen();
    let name = |screen: &str| screen.lines().nth(2).unwrap().to_owned();
    let after = driven.keys("b<Enter>").screen();
    assert_ne!(name(&before), name(&after));
    assert_eq!(name(&before), name(&driven.keys("[").screen()));
}

/// The hot list's row of a function that only calls opens its call sites.
#[test]
fn a_function_that_only_calls() {
    let piece = |start, line| NativeLines {
        start: FileOffset(start),
        end: FileOffset(start + 0x10),
        frames: vec![NativeFrame {
            function: "run".into(),
            file: "/build/run.c".into(),
            line,
        }],
        exactness: Exactness::Exact,
    };
    let mut run = function(0, 0x100, "run");
    run.lines = vec![piece(0x10, 12), piece(0x20, 15)];
    let mut recording = Recording::of("native");
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![
            run,
            function(0x100, 0x100, "work"),
            function(0x200, 0x100, "main"),
        ],
        note: String::new(),
    }));
    for time in 1..=1_000u64 {
        let call = if time % 4 == 0 { 0x28 } else { 0x18 };
        let stack = [0x110, call, 0x208].map(|offset| PROGRAM_AT + offset);
        recording.put(stack_sample(time * 1_000_000, THREAD, stack));
    }
    recording.end(1_000_000_000);
    let mut driven = Driven::open(recording.bytes(), SIZES[0]);
    driven
        .keys("2/run<Enter><Enter>")
        .golden("method-called-80x24");
}

/// A method of the made-up Java program, chosen in the palette.
fn opened(name: &str, size: (u16, u16)) -> Driven {
    let mut driven = Driven::open(screens::java(), size);
    driven.keys(&format!("3:method {name}<Enter>"));
    driven
}

#[test]
fn versions_are_side_by_side() {
    for (columns, rows) in SIZES {
        let mut driven = opened("OrderBook.match", (columns, rows));
        driven.keys("v");
        driven.golden(&format!("method-beside-{columns}x{rows}"));
    }
    opened("OrderBook.match", SIZES[0])
        .keys("vm")
        .golden("method-beside-machine-80x24");
    opened("Parser.token", SIZES[1])
        .keys("v,")
        .golden("method-beside-interpreted-120x40");
}

#[test]
fn missing_machine_code_is_explained() {
    let mut driven = opened("Parser.token", SIZES[2]);
    let screen = driven.keys(":version: interpreted<Enter>m").screen();
    assert!(
        screen.contains("the method was interpreted only"),
        "{screen}"
    );
    let screen = driven.keys(":version: inlined<Enter>m").screen();
    assert!(screen.contains("the method ran inlined only"), "{screen}");
    let mut driven = Driven::open(screens::native(), SIZES[2]);
    let screen = driven.keys("3m").screen();
    assert!(screen.contains("of JIT code only"), "{screen}");
}

#[test]
fn keys_choose_which_versions_are_side_by_side() {
    let mut driven = opened("OrderBook.match", SIZES[1]);
    let crumb = |driven: &mut Driven| {
        let screen = driven.screen();
        screen.lines().nth(1).unwrap().to_owned()
    };
    assert!(crumb(driven.keys("v")).contains("C1 profiling beside C2"));
    assert!(crumb(driven.keys("V")).contains("C2 beside C1 profiling"));
    let mut seen = vec![crumb(&mut driven)];
    for _ in 0..3 {
        let next = crumb(driven.keys("."));
        assert!(next.contains("C2 beside "), "{next}");
        seen.push(next);
    }
    assert!(
        seen.iter()
            .any(|crumb| crumb.contains("beside interpreted"))
    );
    assert_eq!(crumb(driven.keys(",,,")), seen[0]);
    let screen = driven.keys("}").screen();
    assert!(
        screen.contains("hot line ") && screen.contains("; C1 profiling "),
        "{screen}"
    );
    // The palette's version goes beside the one that stays.
    assert!(crumb(driven.keys(":version: interpreted<Enter>")).contains("C2 beside interpreted"));
    let screen = driven.keys("v").screen();
    assert!(screen.contains("all versions"), "{screen}");
    assert!(!crumb(&mut driven).contains("beside"));
    // A version displayed alone stays.
    assert!(crumb(driven.keys(".v")).contains("interpreted beside "));
    // A method that has one version only has nothing beside it.
    let mut driven = Driven::open(screens::cog(), SIZES[0]);
    let screen = driven.keys("3v").screen();
    assert!(screen.contains("nothing to compare"), "{screen}");
}

/// The listing that is exported, as CSV.
fn exported(driven: &mut Driven) -> csv::Reader<std::io::Cursor<Vec<u8>>> {
    driven.effects.clear();
    driven.keys(":export as csv<Enter><Enter>");
    let Some(Effect::Write(_, bytes)) = driven.effects.pop() else {
        panic!("nothing was written: {}", driven.screen());
    };
    csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(std::io::Cursor::new(bytes))
}

#[test]
fn what_is_side_by_side_adds_up_to_all() {
    for method in [
        "OrderBook.match",
        "Parser.token",
        "Limits.exposure",
        "PriceLevel.peek",
    ] {
        let mut driven = opened(method, (300, 60));
        driven.keys("v");
        let mut reader = exported(&mut driven);
        let mut rows = reader.records().map(|row| row.unwrap());
        let head = rows.find(|row| &row[0] == "share").unwrap();
        let sides: Vec<usize> = (head.iter().enumerate())
            .filter(|(_, name)| name.ends_with(": samples"))
            .map(|(at, _)| at)
            .collect();
        assert!(sides.len() > 2, "{head:?}");
        let number = |cell: &str| match cell {
            "" => 0,
            cell => cell.parse::<u64>().unwrap(),
        };
        let mut lines = 0;
        for row in rows {
            for (all, of_side) in [(2, 0), (3, 1)] {
                let sum: u64 = sides.iter().map(|at| number(&row[at + of_side])).sum();
                assert_eq!(sum, number(&row[all]), "{method}: {row:?}");
            }
            lines += 1;
        }
        assert!(lines > 5, "{method}: {lines}");
    }
}

#[test]
fn source_text_is_shown_and_never_written() {
    let mut driven = Driven::open(screens::node(), SIZES[1]);
    driven.keys("3");
    let asked = driven.effects.iter().find_map(|effect| match effect {
        Effect::ReadSource { name, .. } => Some(name.clone()),
        _ => None,
    });
    let asked = asked.expect("a source file is asked for");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "let secret = 1;\n".repeat(2_000)).unwrap();
    let path = file.path().to_str().unwrap();
    let source = crate::annotate::source::Source::find(path, &[], u64::MAX);
    driven.event(Event::Source(asked, source));
    assert!(driven.screen().contains("let secret"));
    driven.keys("y");
    let copied = driven.effects.iter().find_map(|effect| match effect {
        Effect::Copy(text) => Some(text.clone()),
        _ => None,
    });
    let copied = copied.unwrap();
    assert!(copied.contains("listing") && !copied.contains("secret"));
}

#[test]
fn no_size_is_too_small_or_too_large() {
    for bytes in [screens::java(), screens::nasty(), screens::nothing()] {
        let mut driven = Driven::open(bytes, SIZES[0]);
        driven.keys("3bmv");
        for (columns, rows) in [
            (60, 16),
            (61, 17),
            (119, 16),
            (120, 17),
            (200, 16),
            (300, 90),
        ] {
            driven.resize(columns, rows).screen();
            driven
                .keys("}<Space>")
                .click(columns - 2, rows - 3)
                .screen();
            driven.click(3, 5).screen();
        }
    }
}

#[test]
fn the_palette_goes_on_learning() {
    use super::{Method, Own};
    use vmscope_symbolizer::annotate::Origin;
    let mut view = Method::default();
    let mut all = (0..70_000)
        .map(|code| Own::Version(Some(Origin::Code(vmscope_records::ConstituentKey(code)))));
    view.remember_all(all.clone().collect());
    assert_eq!(view.own.len(), super::MAX_CHOICES);
    let newest = all.next_back().unwrap();
    assert_eq!(view.own.back().map(|(_, own)| own), Some(&newest));
    let mut numbers: Vec<u16> = view.own.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), super::MAX_CHOICES);
}
