//! Goldens of the screen around and over the views.

use crate::recordings::screens::{java, nothing};
use crate::report::Loading;
use crate::tui::event::Event;
use crate::tui::live::LiveState;
use crate::tui::testing::{Driven, SIZES, golden, profile, unopened};
use vmscope_records::TimeNs;
use vmscope_symbolizer::Making;
use vmscope_symbolizer::trace::Progress;

/// Usual terminal sizes.
const USUAL: [(u16, u16); 3] = [(80, 24), (100, 30), (120, 40)];

fn named(what: &str, size: (u16, u16)) -> String {
    format!("shell-{what}-{}x{}", size.0, size.1)
}

#[test]
fn the_help_in_three_sizes_and_scrolled() {
    for size in SIZES {
        let mut driven = Driven::open(java(), size);
        driven.keys("2?").golden(&named("help", size));
    }
    let mut driven = Driven::open(java(), SIZES[0]);
    driven.keys("2?<PgDn>").golden("shell-help-scrolled-80x24");
    driven.keys("G").golden("shell-help-end-80x24");
}

#[test]
fn the_palette_in_three_sizes() {
    for size in USUAL {
        let mut driven = Driven::open(java(), size);
        driven.keys("8<Enter>2:").golden(&named("palette", size));
        driven.keys("coll").golden(&named("palette-typed", size));
    }
}

#[test]
fn what_is_shown_in_place_of_a_recording() {
    for size in USUAL {
        let far = Progress {
            done: 4_500_000,
            all: 10_000_000,
        };
        for (what, loading) in [
            ("reading", Loading::Reading(far)),
            ("symbols", Loading::Symbols),
            ("time-buckets", Loading::Making(Making::TimeBuckets)),
        ] {
            let screen = unopened("big.vmscope", size, vec![Event::Opening(loading)]);
            golden(&named(&format!("opening-{what}"), size), &screen);
        }
        let why = "cannot read big.vmscope: the recording is empty: it was cut off at its \
                   beginning";
        let screen = unopened("big.vmscope", size, vec![Event::Failed(why.to_owned())]);
        golden(&named("failed", size), &screen);
    }
    for size in [(59, 16), (60, 15), (30, 8)] {
        let mut driven = Driven::open(java(), size);
        driven.golden(&named("small", size));
    }
}

/// Running process with lost samples.
fn losing() -> LiveState {
    LiveState {
        lost: 1_234,
        bytes: 4_200_000,
        output: "out.vmscope".to_owned(),
        until: TimeNs(crate::recordings::screens::BEGIN + 20_000_000_000),
        ..LiveState::default()
    }
}

#[test]
fn a_running_process_in_three_sizes() {
    for size in USUAL {
        let mut driven = Driven::following(profile(java()), losing(), size);
        driven.event(Event::Live(losing()));
        driven.keys("8").golden(&named("live", size));
        driven.keys("wp").golden(&named("held", size));
        let ended = LiveState {
            ended: "the process has exited; 12,564 samples".to_owned(),
            ..losing()
        };
        driven.event(Event::Live(ended));
        driven.golden(&named("ended", size));
    }
}

#[test]
fn what_is_asked_for_is_typed_at_the_bottom() {
    let mut driven = Driven::following(profile(java()), LiveState::default(), SIZES[0]);
    driven.keys("X2");
    let mut bottoms = String::new();
    for keys in [
        "/pars",
        "/nowhere",
        "e",
        "M",
        "W",
        ":window: from<Enter>",
        ":only names containing<Enter>",
        "q",
    ] {
        driven.keys("<Esc>").keys(keys);
        let screen = driven.screen();
        let bottom = screen.lines().last().unwrap_or_default();
        bottoms.push_str(&format!("{keys:28}|{bottom}\n"));
        driven.keys("<Esc>");
    }
    golden("shell-prompts-80", &bottoms);
}

#[test]
fn views_of_nothing_in_the_usual_sizes() {
    for size in [(100, 30), (120, 40)] {
        let mut driven = Driven::open(nothing(), size);
        for (key, view) in [("1", "overview"), ("6", "collector"), ("9", "truth")] {
            let name = format!("{view}-nothing-{}x{}", size.0, size.1);
            driven.keys(key).golden(&name);
        }
    }
}
