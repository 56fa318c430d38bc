//! Long work: off the drawing thread, with progress, stoppable.

use crate::recordings::shapes::long::{self, Popularity};
use crate::recordings::{PROGRAM_AT, Recording, THREAD};
use crate::report::Loading;
use crate::tui::app::{App, update};
use crate::tui::event::{Effect, Event};
use crate::tui::jobs::Slot;
use crate::tui::live::{LiveOrder, LiveState};
use crate::tui::testing::{Driven, SIZES, THEME, key, profile, unopened};
use vmscope_symbolizer::trace::Progress;

fn small() -> Vec<u8> {
    let mut recording = Recording::of("native");
    for time in 0..100 {
        recording.sample(time * 1000, THREAD, PROGRAM_AT + time);
    }
    recording.end(100_000).bytes()
}

fn is_making(slot: Slot) -> bool {
    matches!(slot, Slot::Copy | Slot::Export)
}

#[test]
fn rows_that_are_copied_or_exported_are_not_made_where_the_screen_is_drawn() {
    const LEAST_ROWS: usize = 50_000;
    let large = long::view(400_000, 100_000, Popularity::Uniform);
    let mut driven = Driven::open(large, SIZES[0]);
    driven.keys("2").hold(is_making);
    driven.keys("y");
    // Row builders report progress.
    let told: Vec<_> = driven.held.iter().map(|job| job.stop.told()).collect();
    assert_eq!(told, [(0, 0)]);
    assert!(driven.effects.is_empty());
    let stop = driven.held[0].stop.clone();
    driven.let_go();
    assert!(stop.told().0 > LEAST_ROWS as u64, "{:?}", stop.told());
    let Some(Effect::Copy(text)) = driven.effects.pop() else {
        panic!("nothing is copied: {:?}", driven.effects);
    };
    assert!(text.lines().count() > LEAST_ROWS);
    for extension in ["csv", "json", "txt"] {
        driven.hold(is_making).keys("e<C-u>");
        driven.keys(&format!("hot.{extension}<Enter>"));
        assert_eq!(driven.held[0].stop.told(), (0, 0));
        driven.let_go();
        let Some(Effect::Write(path, bytes)) = driven.effects.pop() else {
            panic!("nothing is written: {:?}", driven.effects);
        };
        assert_eq!(path.extension().and_then(|e| e.to_str()), Some(extension));
        let lines = bytes.split(|byte| *byte == b'\n').count();
        assert!(lines > LEAST_ROWS, "{extension}: {lines}");
    }
}

#[test]
fn what_is_copied_is_what_was_shown_when_the_key_was_pressed() {
    let mut driven = Driven::open(crate::recordings::screens::java(), SIZES[0]);
    let copied = |driven: &mut Driven| match driven.effects.pop() {
        Some(Effect::Copy(text)) => text,
        other => panic!("{other:?}"),
    };
    let at_once = {
        driven.keys("2y");
        copied(&mut driven)
    };
    driven.hold(is_making).keys("y");
    driven.keys("8<Enter>2bb");
    driven.let_go();
    assert_eq!(copied(&mut driven), at_once);
}

#[test]
fn an_export_that_is_stopped_writes_nothing_and_says_so() {
    let mut driven = Driven::open(small(), SIZES[0]);
    driven.hold(is_making).keys("2e<C-u>hot.csv<Enter>");
    (0..3).for_each(|_| driven.event(Event::Tick));
    assert!(!driven.screen().contains("exporting"));
    driven.event(Event::Tick);
    driven.held[0].stop.tell(1, 4);
    driven.golden("shell-exporting-80x24");
    let stopped = driven.keys("<Esc>").screen();
    assert!(stopped.contains("export stopped"), "{stopped}");
    let screen = driven.let_go().screen();
    assert!(driven.effects.is_empty(), "{:?}", driven.effects);
    // The screen shows no older answer.
    assert!(!screen.contains("older 100"), "{screen}");
}

#[test]
fn long_work_is_told_stopped_and_asked_for_again() {
    let mut driven = Driven::open(small(), SIZES[0]);
    driven
        .keys("8")
        .hold(|slot| slot == Slot::Summary)
        .keys("<Enter>");
    (0..4).for_each(|_| driven.event(Event::Tick));
    let screen = driven.screen();
    assert!(
        screen.contains(" counting samples  Esc stops it"),
        "{screen}"
    );
    let stopped = driven.keys("<Esc>").screen();
    assert!(stopped.contains("the screen is out of date"), "{stopped}");
    // The note outlives the message.
    let older = driven.let_go().keys("j").screen();
    assert!(older.contains("older 100 samples"), "{older}");
    driven.golden("shell-older-80x24");
    let newer = driven.keys("<C-l>").screen();
    assert!(!newer.contains("older"), "{newer}");
    assert!(matches!(driven.effects.pop(), Some(Effect::Redraw)));
}

#[test]
fn opening_is_left_at_once_by_each_key_that_leaves() {
    for name in ["q", "<Esc>", "<C-c>"] {
        let mut app = App::new("big.vmscope".to_owned(), THEME, SIZES[0]);
        let far = Progress { done: 1, all: 9 };
        update(&mut app, None, Event::Opening(Loading::Reading(far)));
        for other in ["?", "/", ":", "e", "2"] {
            let effects = update(&mut app, None, Event::Key(key(other)));
            assert!(effects.is_empty(), "{other}: {effects:?}");
        }
        let effects = update(&mut app, None, Event::Key(key(name)));
        assert!(matches!(effects[..], [Effect::Quit]), "{name}: {effects:?}");
    }
}

#[test]
fn a_save_that_failed_is_none() {
    let live = LiveState::default();
    let mut driven = Driven::following(profile(small()), live, SIZES[0]);
    let is_asked = |driven: &mut Driven| {
        let screen = driven.keys("q").screen();
        screen.contains("W saves it, q again quits") && driven.effects.is_empty()
    };
    driven.keys("W<Enter>");
    assert!(matches!(
        driven.effects.pop(),
        Some(Effect::Live(LiveOrder::Save(_)))
    ));
    // Unsaved.
    assert!(is_asked(&mut driven));
    let why = "not saved: No space left on device".to_owned();
    driven.event(Event::Saved(Err(why.clone())));
    assert!(driven.screen().contains(&why));
    assert!(is_asked(&mut driven));
    // Other commands reset the warning.
    driven.keys("2");
    assert!(is_asked(&mut driven));
    driven.event(Event::Saved(Ok(
        "100 samples saved in top.vmscope".to_owned()
    )));
    driven.keys("q");
    assert!(matches!(driven.effects[..], [Effect::Quit]));
}

#[test]
fn each_step_of_opening_is_told() {
    use vmscope_symbolizer::Making;
    let steps = [
        ("reading", Loading::Reading(Progress { done: 3, all: 4 })),
        ("symbols", Loading::Symbols),
        ("names", Loading::Making(Making::Names)),
        ("time-buckets", Loading::Making(Making::TimeBuckets)),
    ];
    let mut seen = Vec::new();
    for (_, step) in steps {
        let screen = unopened("big.vmscope", SIZES[0], vec![Event::Opening(step)]);
        assert!(!seen.contains(&screen), "{screen}");
        seen.push(screen);
    }
}
