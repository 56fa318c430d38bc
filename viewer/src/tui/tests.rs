//! Tests of all views, driven by keys.

mod screens;
mod working;

use super::jobs::Slot;
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
    assert!(screen.contains("include or exclude"), "{screen}");
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
    assert!(
        screen.contains("vmscope needs a terminal of 60x16"),
        "{screen}"
    );
    assert!(driven.resize(80, 24).screen().contains("Overview"));
}

/// A key has one meaning in all views, or the bottom line states its meaning in this view.
#[test]
fn keys_that_do_different_things_are_at_the_bottom() {
    use super::keys::Command;
    use super::view_id::ViewId;
    let views: Vec<_> = ViewId::ALL.into_iter().map(super::views::make).collect();
    let rows = || views.iter().flat_map(|view| view.bindings());
    for row in rows() {
        let Some(key) = row.keys.first() else {
            continue;
        };
        let has_key = |other: &&super::keys::Binding| other.keys.contains(key);
        let is_other = rows()
            .filter(has_key)
            .any(|other| other.command != row.command);
        let depends_on_view = matches!(row.command, Command::Mode | Command::Group | Command::Sort);
        let is_shown = !row.hint.is_empty();
        assert!(is_shown || !(is_other || depends_on_view), "{row:?}");
    }
}

#[test]
fn no_key_has_two_meanings_in_one_view() {
    use super::keys::{GLOBAL, LIVE};
    use super::view_id::ViewId;
    for id in ViewId::ALL {
        let view = super::views::make(id);
        let all = view.bindings().iter().chain(GLOBAL).chain(LIVE);
        let keys: Vec<String> = all.flat_map(|row| row.keys).map(|key| key.name()).collect();
        let mut once = keys.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), keys.len(), "{id:?}: {keys:?}");
    }
}

/// News of a running process whose profile grew.
fn grown(until: u64, ended: &str) -> super::event::Event {
    use super::live::LiveState;
    super::event::Event::Live(LiveState {
        until: vmscope_records::TimeNs(until),
        ended: ended.to_owned(),
        ..LiveState::default()
    })
}

#[test]
fn a_running_process_is_held_spanned_marked_and_outlived() {
    use super::event::Effect;
    use super::live::{LiveOrder, LiveState};
    let profile = super::testing::profile(small());
    let mut driven = Driven::following(profile, LiveState::default(), SIZES[0]);
    driven.event(grown(50_000, ""));
    let first = driven.screen();
    assert!(
        first.contains("live") && first.contains("last 10 s"),
        "{first}"
    );
    // The profile holds all samples; later samples stay hidden.
    assert!(driven.keys("w").screen().contains("last 30 s"));
    assert!(driven.keys("www").screen().contains("100 samples"));
    let held = driven.keys("p").screen();
    assert!(held.contains("held"), "{held}");
    driven.event(grown(90_000, ""));
    assert_eq!(driven.screen(), held);
    driven.keys("pMhere<Enter>");
    let orders: Vec<_> = driven.effects.drain(..).collect();
    let marked = LiveOrder::Mark("here".to_owned());
    assert!(
        matches!(&orders[..], [Effect::Live(order)] if *order == marked),
        "{orders:?}"
    );
    driven.keys("p");
    driven.event(grown(100_000, "the process has exited"));
    let screen = driven.screen();
    assert!(screen.contains("! the process has exited"), "{screen}");
    assert!(!screen.contains("held"), "{screen}");
    driven.keys("WC<Enter>");
    assert!(matches!(
        driven.effects.pop(),
        Some(Effect::Live(LiveOrder::Save(_)))
    ));
}

#[test]
fn the_last_seconds_go_on_under_other_filters() {
    use super::live::LiveState;
    let profile = super::testing::profile(crate::recordings::screens::java());
    let begin = crate::recordings::screens::BEGIN;
    let second = |n: u64| grown(begin + n * 1_000_000_000, "");
    let mut driven = Driven::following(profile, LiveState::default(), SIZES[0]);
    driven.event(second(11));
    let of_main = driven.keys("8<Enter>").screen();
    assert!(
        of_main.contains("last 10 s ✕") && of_main.contains(" thread main"),
        "{of_main}"
    );
    driven.event(second(13));
    let later = driven.screen();
    assert!(
        later.contains("last 10 s ✕") && later.contains(" thread main"),
        "{later}"
    );
    assert_ne!(of_main.lines().nth(1), later.lines().nth(1));
    let back = driven.keys("[").screen();
    assert!(
        back.contains("last 10 s ✕") && !back.contains(" thread main"),
        "{back}"
    );
    driven.event(second(15));
    assert_ne!(back.lines().nth(1), driven.screen().lines().nth(1));
}

#[test]
fn what_was_recorded_is_not_lost_by_one_key() {
    use super::event::Effect;
    use super::live::LiveState;
    let profile = super::testing::profile(small());
    let mut driven = Driven::following(profile, LiveState::default(), SIZES[0]);
    assert!(
        driven
            .keys("q")
            .screen()
            .contains("W saves it, q again quits")
    );
    assert!(driven.effects.is_empty());
    driven.keys("q");
    assert!(matches!(driven.effects[..], [Effect::Quit]));
}

#[test]
fn what_takes_longer_than_a_second_is_answered_while_the_profile_grows() {
    let profile = super::testing::profile(small());
    let mut driven = Driven::following(profile, super::live::LiveState::default(), SIZES[0]);
    driven.keys("2").hold(|_| true);
    driven.event(grown(50_000, ""));
    // Each answer triggers the next question: summary, then list.
    for _ in 0..5 {
        let asked = driven.held.len();
        assert!(asked > 0);
        driven.event(grown(60_000, ""));
        assert_eq!(driven.held.len(), asked, "nothing is asked meanwhile");
        assert!(driven.held.iter().all(|job| !job.stop.is_stopped()));
        driven.answer();
        if driven.held.iter().any(|job| job.slot == Slot::Summary) {
            break;
        }
    }
    // All questions are answered: now the grown profile.
    assert!(driven.held.iter().any(|job| job.slot == Slot::Summary));
    // User input needs no waiting.
    let old = driven.held.first().map(|job| job.stop.clone());
    driven.keys(":only region collector<Enter>");
    assert!(old.is_some_and(|stop| stop.is_stopped()));
}

#[test]
fn what_is_left_out_lost_and_recorded_is_shown() {
    use vmscope_symbolizer::Omitted;
    let mut profile = super::testing::profile(small());
    profile.omitted = Some(Omitted {
        late: 7_043,
        late_samples: 12,
        ..Omitted::default()
    });
    let state = super::live::LiveState {
        lost: 3,
        bytes: 4_200_000,
        output: "out.vmscope".to_owned(),
        ..super::live::LiveState::default()
    };
    let mut driven = Driven::following(profile, state, (120, 40));
    let screen = driven.keys("9").screen();
    for told in [
        "7,043 VM events arrived late",
        "arrived late and are resolved with newer VM code",
        "3 lost 4.2 MB in out.vmscope",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
}

#[test]
fn back_and_forward_go_through_views_and_filters() {
    let mut driven = Driven::open(crate::recordings::screens::java(), SIZES[0]);
    driven.keys("8<Enter>2");
    let screen = driven.keys("[").screen();
    assert!(
        screen.contains("8:Threads") && screen.contains("thread main"),
        "{screen}"
    );
    let screen = driven.keys("[").screen();
    assert!(
        screen.contains("8:Threads") && !screen.contains("thread main"),
        "{screen}"
    );
    let screen = driven.keys("[").screen();
    assert!(screen.contains("1:Overview"), "{screen}");
    assert!(driven.keys("[").screen().contains("no earlier screen"));
    let screen = driven.keys("]]]").screen();
    assert!(
        screen.contains("2:Hot") && screen.contains("thread main"),
        "{screen}"
    );
}

/// Recorded text reaches the screen escaped.
#[test]
fn no_name_disturbs_the_screen_or_what_leaves_it() {
    use super::event::Effect;
    let is_odd = |c: char| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c));
    for recording in [
        crate::recordings::screens::nasty(),
        crate::recordings::screens::damaged(),
    ] {
        for size in [(60, 16), (80, 24), (200, 60)] {
            let mut driven = Driven::open(recording.clone(), size);
            for view in 1..=9 {
                let screen = driven.keys(&format!("{view}m")).screen();
                assert!(!screen.contains(is_odd), "{view}: {screen:?}");
                let screen = driven.keys("m<Right>jf").screen();
                assert!(!screen.contains(is_odd), "{view}: {screen:?}");
                driven.keys("Xby");
                if let Some(Effect::Copy(text)) = driven.effects.pop() {
                    assert!(!text.contains(is_odd), "{view}: {text:?}");
                }
            }
        }
    }
}

/// Every view at every allowed size, with each recording.
#[test]
fn no_size_is_too_odd_for_any_view() {
    use crate::recordings::screens::{cog, damaged, java, nasty, node, nothing};
    for recording in [java(), cog(), node(), nothing(), damaged(), nasty()] {
        let mut driven = Driven::open(recording, SIZES[0]);
        for view in 1..=9 {
            driven.keys(&view.to_string());
            for (columns, rows) in [(60, 16), (61, 17), (73, 19), (99, 25), (140, 33), (301, 90)] {
                driven.resize(columns, rows);
                driven.keys("jG<PgUp>}{m").screen();
                driven.keys("b<Right><Left>s+-g").screen();
            }
        }
    }
}

/// Terminals without colours get none, and lose no information.
#[test]
fn without_colours_and_unicode_everything_is_still_told() {
    use super::theme::{Colors, Theme};
    use ratatui::style::Color;
    let bare = Theme {
        colors: Colors::None,
        unicode: false,
    };
    let profile = super::testing::profile(crate::recordings::screens::java());
    let mut driven = Driven::with_theme(profile, SIZES[1], bare);
    for view in 1..=9 {
        let buffer = driven.keys(&view.to_string()).buffer();
        let plain =
            |cell: &ratatui::buffer::Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
        assert!(buffer.content.iter().all(plain), "{view}");
        let text = super::testing::text_of(&buffer);
        let other: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert!(other.is_empty(), "{view}: {other} in\n{text}");
    }
}

/// With filters that exclude everything, each view names the key that helps.
#[test]
fn filters_that_leave_nothing_can_be_undone() {
    let mut driven = Driven::open(crate::recordings::screens::java(), SIZES[0]);
    driven.keys(":names containing<Enter>no such name<Enter>");
    for view in [1, 4, 5, 6, 7, 8, 9] {
        let screen = driven.keys(&view.to_string()).screen();
        // Line breaks may fall anywhere.
        let words: Vec<&str> = screen.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .contains("No samples with this filter: x removes"),
            "{view}: {screen}"
        );
    }
}
