//! Goldens and keys of the views on lifetimes.

use crate::recordings::lifetimes::{heap, scavenged};
use crate::tui::event::Effect;
use crate::tui::testing::{Driven, SIZES};

fn opened(size: (u16, u16)) -> Driven {
    Driven::open(scavenged().bytes(), size)
}

#[test]
fn both_views_in_three_sizes() {
    for size in SIZES {
        let named = |what: &str| format!("{what}-{}x{}", size.0, size.1);
        let mut driven = opened(size);
        driven.keys("0").golden(&named("costs"));
        driven.keys("L").golden(&named("lifetimes"));
    }
}

#[test]
fn tables_and_groupings_follow_each_other() {
    let mut driven = opened((140, 40));
    let advice = driven.keys("0m").screen();
    assert!(advice.contains("Advice"), "{advice}");
    let kinds = driven.keys("mmmmm").screen();
    assert!(kinds.contains("Collections  (table 1 of"), "{kinds}");
    let classes = driven.keys("mbb").screen();
    assert!(classes.contains("by class"), "{classes}");
    let row = |screen: &str, name: &str| {
        let mut lines = screen.lines().skip(4);
        lines.position(|line| line.trim_start().starts_with(name))
    };
    // C2 survives, so it costs more.
    let (c1, c2) = (row(&classes, "C1 "), row(&classes, "C2 "));
    assert!(c2.is_some() && c2 < c1, "{classes}");
    // By name.
    let sorted = driven.keys("s").screen();
    assert!(row(&sorted, "C1 ") < row(&sorted, "C2 "), "{sorted}");
    let found = driven.keys("/c2<Enter>").screen();
    assert!(found.contains("\n C2\n"), "{found}");
}

#[test]
fn a_site_leads_to_its_method() {
    let mut driven = opened((140, 40));
    let method = driven.keys("L/reader<Enter><Enter>").screen();
    assert!(method.contains("[3 Method"), "{method}");
    assert!(method.contains("Reader>>next"), "{method}");
    // Frame>>add: has no samples.
    let none = driven.keys("L/frame<Enter><Enter>").screen();
    assert!(none.contains("no method with samples"), "{none}");
}

#[test]
fn copies_hold_all_tables_and_charts() {
    let mut driven = opened((80, 24));
    driven.keys("0y");
    let Some(Effect::Copy(text)) = driven.effects.pop() else {
        panic!("no copy: {:?}", driven.effects);
    };
    for part in ["Model: a scavenge takes 1.000 ms", "Collections", "Advice"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn without_lifetimes_the_keys_say_how_to_record_them() {
    let mut driven = Driven::open(crate::recordings::screens::java(), (100, 30));
    for key in ["0", "L"] {
        let screen = driven.keys(key).screen();
        assert!(screen.contains("--lifetimes=1/100"), "{screen}");
        assert!(!screen.contains("0 Collector costs"), "{screen}");
    }
    // Classes alone are no lifetimes.
    let mut driven = Driven::open(heap().end(1000).bytes(), (100, 30));
    let screen = driven.keys("0").screen();
    assert!(screen.contains("has no lifetimes"), "{screen}");
}

#[test]
fn filters_do_not_apply() {
    let mut driven = opened((100, 30));
    let screen = driven.keys("8<Enter>0").screen();
    assert!(screen.contains("Filters do not apply here"), "{screen}");
}
