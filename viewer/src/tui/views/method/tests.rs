//! The method's view, driven by keys.

use crate::recordings::screens;
use crate::tui::event::{Effect, Event};
use crate::tui::testing::{Driven, SIZES};

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
    assert!(screen.contains("hot range "), "{screen}");
    assert!(driven.keys(".").screen().contains(" only "));
    // Before the first version are all of them.
    assert!(driven.keys(",").screen().contains("all versions together"));
    assert!(driven.keys("b").screen().contains("callers: of "));
    assert!(driven.keys("b").screen().contains("callees: of "));
    let screen = driven.keys("b").screen();
    assert!(!screen.contains("calle"), "{screen}");
    // Enter on a caller goes there, and `[` back.
    let before = driven.screen();
    let name = |screen: &str| screen.lines().nth(2).unwrap().to_owned();
    let after = driven.keys("b<Enter>").screen();
    assert_ne!(name(&before), name(&after));
    assert_eq!(name(&before), name(&driven.keys("[").screen()));
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
        driven.keys("3bm");
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
    for own in all.clone() {
        view.remember(own);
    }
    assert_eq!(view.own.len(), super::MAX_CHOICES);
    let newest = all.next_back().unwrap();
    assert_eq!(view.own.back().map(|(_, own)| own), Some(&newest));
    let mut numbers: Vec<u16> = view.own.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), super::MAX_CHOICES);
}
