//! Duration of every key in every view, for 10,000,000 samples in 100,000 constituents at 200x60:
//! `cargo bench -p vmscope --bench keys -- [every_key] [every_key_called] [every_list]` (default: all).
//!
//! `every_key_called` uses a recording with callers; `every_list` measures every order and grouping of
//! the hot list. `VIEWS='Hot list,Zone'` limits the views of the other two.
//!
//! Two figures, both CPU time, meaningful on busy machines, too: the longest block of the drawing
//! thread (event plus drawing), and the time of the last drawn answer with two idle CPUs.

#![allow(
    clippy::print_stdout,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a tool for measuring"
)]
#![allow(
    dead_code,
    unused_imports,
    reason = "the terminal UI and what it uses, and no more of it"
)]

// A bench can't import a binary's modules, so it compiles them.
#[path = "../src/annotate/mod.rs"]
mod annotate;
#[path = "../src/binaries.rs"]
mod binaries;
#[path = "../src/embed.rs"]
mod embed;
#[path = "../src/export/mod.rs"]
mod export;
#[path = "../src/lifetimes/mod.rs"]
mod lifetimes;
#[path = "../src/memory.rs"]
mod memory;
#[path = "../src/present/mod.rs"]
mod present;
#[path = "../src/print.rs"]
mod print;
#[path = "../src/queries/mod.rs"]
mod queries;
#[path = "../src/record/mod.rs"]
mod record;
#[path = "../../symbolizer/tests/recordings/mod.rs"]
mod recordings;
#[path = "../src/report/mod.rs"]
mod report;
#[path = "../src/signals.rs"]
mod signals;
#[path = "../src/tui/mod.rs"]
mod tui;

use crate::recordings::read;
use crate::recordings::shapes::long::{self, Popularity};
use crate::tui::app::{App, update};
use crate::tui::event::{Effect, Event};
use crate::tui::jobs::{Done, Job, Slot};
use crate::tui::keys::{Binding, Command, GLOBAL};
use crate::tui::screen;
use crate::tui::testing::{THEME, key as named, script};
use crate::tui::view_id::ViewId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::VecDeque;
use std::time::Duration;
use vmscope_symbolizer::{Profile, profile_of};

const SAMPLES: u64 = 10_000_000;
const SIZE: (u16, u16) = (200, 60);
const CODES: u64 = 100_000;
const STACKS: u64 = 200_000;
/// Limit for a keystroke.
const GOAL: Duration = Duration::from_millis(50);
/// Repetitions of slow keys; the minimum counts, since the machine adds the rest.
const TIMES: usize = 3;

/// Durations of a key.
#[derive(Clone, Debug)]
struct Took {
    view: &'static str,
    key: String,
    does: String,
    /// Longest block of the drawing thread.
    held_up: Duration,
    /// Time of the last drawn answer.
    answered: Duration,
    /// Resulting jobs: start, duration.
    jobs: Vec<Piece>,
}

/// Job with start and duration.
type Piece = (Slot, Duration, Duration);

struct Bench {
    app: App,
    profile: Profile,
    terminal: Terminal<TestBackend>,
    /// Jobs of the last event.
    jobs: Vec<Piece>,
}

fn main() {
    // Cargo adds `--bench`.
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    names.retain(|name| !name.starts_with("--"));
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    if is_chosen("every_key") {
        every_key(&long::view(SAMPLES, CODES, Popularity::Zipf));
    }
    if is_chosen("every_key_called") {
        every_key(&long::called(SAMPLES, CODES, STACKS));
    }
    if is_chosen("every_list") {
        every_list();
    }
}

fn every_key(bytes: &[u8]) {
    let mut bench = Bench::open(bytes);
    let mut took = Vec::new();
    let views = std::env::var("VIEWS").ok();
    let is_measured = |id: &ViewId| {
        let views = views.as_deref();
        views.is_none_or(|views| views.split(',').any(|view| view == id.name()))
    };
    for id in ViewId::ALL.into_iter().filter(is_measured) {
        took.extend(bench.view(id));
        println!("{} done, {:?} of CPU time", id.name(), cpu());
    }
    tell(took);
}

/// Hot list in every order and grouping, matrix in every form.
fn every_list() {
    let mut bench = Bench::open(&long::view(SAMPLES, CODES, Popularity::Zipf));
    bench.keys("2");
    let mut took = Vec::new();
    let mut press = |key: &str, does: String| {
        let (held_up, answered) = bench.take(Event::Key(named(key)));
        took.push(Took {
            view: ViewId::Hot.name(),
            key: key.to_owned(),
            does,
            held_up,
            answered,
            jobs: bench.jobs.clone(),
        });
    };
    for grouping in 0..7 {
        for order in 0..7 {
            press("S", format!("grouping {grouping}, order {order}, reversed"));
            press("S", format!("grouping {grouping}, order {order}"));
            press("s", format!("grouping {grouping}, the order after {order}"));
        }
        press("b", format!("the grouping after {grouping}"));
    }
    for form in 0..5 {
        press("m", format!("the form after {form}"));
        press("b", format!("the form after {form}, turned"));
        press("b", format!("the form after {form}, turned back"));
    }
    tell(took);
}

/// Prints durations, longest first.
fn tell(mut took: Vec<Took>) {
    took.sort_by_key(|took| std::cmp::Reverse(took.held_up.max(took.answered)));
    let heads = ["view", "key", "held up", "answered", "does"];
    let [view, key, held_up, answered, does] = heads;
    println!("{view:10} {key:10} {held_up:>10} {answered:>10}  {does}");
    for one in &took {
        println!(
            "{:10} {:10} {:>8.1}ms {:>8.1}ms  {}",
            one.view,
            one.key,
            one.held_up.as_secs_f64() * 1e3,
            one.answered.as_secs_f64() * 1e3,
            one.does,
        );
        if one.answered > GOAL {
            for (slot, from, took) in &one.jobs {
                let (from, took) = (from.as_secs_f64() * 1e3, took.as_secs_f64() * 1e3);
                println!("{:21} from {from:>5.1}ms {took:>8.1}ms  {slot:?}", "");
            }
        }
    }
    let slow = took.iter().filter(|one| one.answered > GOAL).count();
    let held_up = took.iter().filter(|one| one.held_up > GOAL).count();
    println!(
        "{} keys; {slow} answered after more than {GOAL:?}, {held_up} held up the screen for longer",
        took.len()
    );
}

/// Preparation and key; commands without a key use the palette.
const SCRIPTS: [(&str, &str, &str); 13] = [
    (":window: from<Enter>1-3", "<Enter>", "another window"),
    (":only region generated", "<Enter>", "only a region"),
    (":only thread", "<Enter>", "only a thread"),
    (":only names<Enter>method9", "<Enter>", "only some names"),
    ("/", "9", "search, a letter that many have"),
    ("/method99999", "8", "search, what nothing has"),
    (":by thread", "<Enter>", "callers, by thread"),
    (
        ":by thread<Enter>:window: from<Enter>100-600",
        "<Enter>",
        "callers, by thread, another window",
    ),
    (":window: from<Enter>100-600", "<Enter>", "a window of half"),
    ("}", "t", "callers, only stacks through one"),
    ("m", "b", "callers, turned"),
    ("mb", "}", "callers, hottest path up"),
    ("/9<Enter>", "n", "callers, search on"),
];

impl Bench {
    /// Opens the recording and draws the first screen.
    fn open(bytes: &[u8]) -> Self {
        let begin = cpu();
        let profile = profile_of(read(bytes).unwrap(), Vec::new(), false);
        println!(
            "{SAMPLES} samples opened in {:?} of CPU time",
            cpu() - begin
        );
        let mut bench = Bench {
            app: App::new("bench.vmscope".to_owned(), THEME, SIZE),
            profile,
            terminal: Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).unwrap(),
            jobs: Vec::new(),
        };
        let (held_up, answered) = bench.take(Event::Opened);
        println!("first screen: held up {held_up:?}, answered {answered:?}");
        bench
    }

    fn view(&mut self, id: ViewId) -> Vec<Took> {
        let number = ViewId::ALL.iter().position(|other| *other == id);
        let show = char::from_digit(number.map_or(1, |n| n as u32 + 1), 10).unwrap();
        let mut rows = Vec::new();
        self.shown(show);
        let own: Vec<Binding> = self.app.view().unwrap().bindings().to_vec();
        let is_measured = |row: &&Binding| {
            let leaves = [Command::Quit, Command::Suspend, Command::Redraw];
            !leaves.contains(&row.command) && !matches!(row.command, Command::Show(_))
        };
        let mut seen: Vec<Command> = Vec::new();
        for row in own.iter().chain(GLOBAL).filter(is_measured) {
            if seen.contains(&row.command) {
                continue;
            }
            seen.push(row.command);
            let key = *row.keys.first().unwrap();
            let event = event_of(|event| key.is(event));
            let took = |bench: &mut Bench| {
                bench.shown(show);
                bench.take(Event::Key(event))
            };
            rows.push(self.least(id, key.name(), row.help.to_owned(), took));
        }
        for (before, key, does) in SCRIPTS {
            let took = |bench: &mut Bench| {
                bench.shown(show);
                bench.keys(before);
                let event = named(key);
                bench.take(Event::Key(event))
            };
            rows.push(self.least(id, key.to_owned(), does.to_owned(), took));
        }
        let took = |bench: &mut Bench| {
            // A new window, so that no answer is cached.
            let other = if show == '1' { '2' } else { '1' };
            bench.shown(other);
            bench.keys(":window: from<Enter>1-3<Enter>");
            bench.take(Event::Key(named(&show.to_string())))
        };
        let does = "shows the view under another window".to_owned();
        rows.push(self.least(id, show.to_string(), does, took));
        rows
    }

    fn least(
        &mut self,
        id: ViewId,
        key: String,
        does: String,
        mut took: impl FnMut(&mut Bench) -> (Duration, Duration),
    ) -> Took {
        let (mut held_up, mut answered) = took(self);
        let mut jobs = self.jobs.clone();
        for _ in 1..TIMES {
            if held_up.max(answered) > GOAL {
                let again = took(self);
                if again.1 < answered {
                    jobs.clone_from(&self.jobs);
                }
                (held_up, answered) = (held_up.min(again.0), answered.min(again.1));
            }
        }
        Took {
            view: id.name(),
            key,
            does,
            held_up,
            answered,
            jobs,
        }
    }

    /// Shows a view without filters.
    fn shown(&mut self, show: char) {
        self.keys("<Esc><Esc>X");
        self.keys(&show.to_string());
    }

    fn keys(&mut self, keys: &str) {
        for event in script(keys) {
            self.take(Event::Key(event));
        }
    }

    /// Handles an event with all resulting jobs; returns the longest block of the drawing thread
    /// and the time of the last drawn answer.
    fn take(&mut self, event: Event) -> (Duration, Duration) {
        let (mut now, mut held_up) = (Duration::ZERO, Duration::ZERO);
        let mut workers = [Duration::ZERO; 2];
        self.jobs.clear();
        let mut events = vec![(Duration::ZERO, event)];
        while let Some(next) = (0..events.len()).min_by_key(|&at| events[at].0) {
            let (at, event) = events.swap_remove(next);
            now = now.max(at);
            let began = cpu();
            let effects = update(&mut self.app, Some(&self.profile), event);
            let (app, profile) = (&self.app, &self.profile);
            let drawn = self
                .terminal
                .draw(|frame| screen::draw(app, Some(profile), frame));
            drawn.unwrap();
            let took = cpu() - began;
            held_up = held_up.max(took);
            now += took;
            let jobs: VecDeque<Job> = effects.into_iter().filter_map(job_of).collect();
            for job in jobs {
                let worker = workers.iter_mut().min().unwrap();
                let (slot, from) = (job.slot, now.max(*worker));
                let began = cpu();
                let done: Done = job.run(&self.profile);
                let took = cpu() - began;
                *worker = from + took;
                self.jobs.push((slot, from, took));
                events.push((*worker, Event::Done(done)));
            }
        }
        (held_up, now)
    }
}

fn job_of(effect: Effect) -> Option<Job> {
    match effect {
        Effect::Work(job) => Some(job),
        _ => None,
    }
}

/// Key of a command.
fn event_of(is: impl Fn(&KeyEvent) -> bool) -> KeyEvent {
    use KeyCode::{
        BackTab, Backspace, Delete, Down, End, Enter, Esc, Home, Insert, Left, PageDown, PageUp,
        Right, Tab, Up,
    };
    let named = [
        BackTab, Backspace, Delete, Down, End, Enter, Esc, Home, Insert, Left, PageDown, PageUp,
        Right, Tab, Up,
    ];
    let codes = named.into_iter().chain((' '..='~').map(KeyCode::Char));
    let codes: Vec<KeyCode> = codes.chain((1..=12).map(KeyCode::F)).collect();
    let modifiers = [KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT];
    let all = modifiers.into_iter().flat_map(|modifiers| {
        codes
            .iter()
            .map(move |&code| KeyEvent::new(code, modifiers))
    });
    let mut all = all.filter(|event| is(event));
    all.next().unwrap()
}

/// CPU time of this thread.
fn cpu() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .unwrap()
        .into()
}
