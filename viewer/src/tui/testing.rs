//! Drives the terminal UI without a terminal: scripted keys, immediate jobs, screens as text.
//!
//! `BLESS=1 cargo test -p vmscope` rewrites the goldens (`src/tui/goldens`); review each before the
//! commit.

use super::app::{App, update};
use super::event::{Effect, Event};
use super::jobs::{Job, Slot};
use super::live::LiveState;
use super::screen;
use super::theme::{Colors, Theme};
use crate::lifetimes::cache::LifetimesCache;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use std::path::PathBuf;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::lifetimes::Lifetimes;
use vmscope_symbolizer::lifetimes::read::Limits;
use vmscope_symbolizer::{Profile, Trace, profile_of};

/// Terminal sizes of every view's goldens.
pub const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Capabilities of most terminals.
pub const THEME: Theme = Theme {
    colors: Colors::Many,
    unicode: true,
};

/// Profile of a recording.
pub fn profile(bytes: Vec<u8>) -> Profile {
    let mut reader = Reader::open(std::io::Cursor::new(bytes)).expect("a recording");
    let trace = Trace::read(&mut reader).expect("a trace");
    profile_of(trace, Vec::new(), false)
}

/// Terminal UI with a test screen.
pub struct Driven {
    app: App,
    profile: Profile,
    terminal: Terminal<TestBackend>,
    /// Effects without work, in order.
    pub effects: Vec<Effect>,
    /// Slots with held jobs.
    holds: fn(Slot) -> bool,
    /// Held jobs.
    pub held: Vec<Job>,
    at_ms: u64,
}

impl Driven {
    /// Opens a recording.
    pub fn open(bytes: Vec<u8>, size: (u16, u16)) -> Self {
        let profile = profile(bytes.clone());
        let mut app = App::new("test.vmscope".to_owned(), THEME, size);
        app.lifetimes = LifetimesCache::of(move |trace, _| {
            let mut reader = Reader::open(std::io::Cursor::new(&bytes)).ok()?;
            let read = Lifetimes::read(&mut reader, trace, Limits::default());
            Some(read.map_err(|error| error.to_string()))
        });
        Self::of(profile, app, size)
    }

    /// Opens a profile with given terminal capabilities.
    pub fn with_theme(profile: Profile, size: (u16, u16), theme: Theme) -> Self {
        Self::of(
            profile,
            App::new("test.vmscope".to_owned(), theme, size),
            size,
        )
    }

    /// Opens a running process.
    pub fn following(profile: Profile, live: LiveState, size: (u16, u16)) -> Self {
        let app = App::new("java 4711".to_owned(), THEME, size).following(live);
        Self::of(profile, app, size)
    }

    fn of(profile: Profile, app: App, size: (u16, u16)) -> Self {
        let backend = TestBackend::new(size.0, size.1);
        let mut driven = Driven {
            app,
            profile,
            terminal: Terminal::new(backend).expect("a test's terminal"),
            effects: Vec::new(),
            holds: |_| false,
            held: Vec::new(),
            at_ms: 0,
        };
        driven.event(Event::Opened);
        driven
    }

    /// Grows the running process's profile.
    pub fn grow(&mut self, profile: Profile, live: LiveState) {
        self.profile = profile;
        self.event(Event::Live(live));
    }

    /// Handles an event and runs its jobs.
    pub fn event(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in update(&mut self.app, Some(&self.profile), event) {
                match effect {
                    Effect::Work(job) if (self.holds)(job.slot) => self.held.push(job),
                    Effect::Work(job) => events.push(Event::Done(job.run(&self.profile))),
                    other => self.effects.push(other),
                }
            }
        }
    }

    /// Holds the jobs of some slots, like long work.
    pub fn hold(&mut self, slots: fn(Slot) -> bool) -> &mut Self {
        self.holds = slots;
        self
    }

    /// Runs the held jobs and holds no further jobs.
    pub fn let_go(&mut self) -> &mut Self {
        self.holds = |_| false;
        for job in std::mem::take(&mut self.held) {
            self.event(Event::Done(job.run(&self.profile)));
        }
        self
    }

    /// Runs the held jobs, but holds the jobs that follow.
    pub fn answer(&mut self) {
        for job in std::mem::take(&mut self.held) {
            let done = job.run(&self.profile);
            self.event(Event::Done(done));
        }
    }

    /// Types a script: characters, `<Enter>`, `<Esc>`, `<Down>`, `<C-d>` ….
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for event in script(keys) {
            self.event(Event::Key(event));
        }
        self
    }

    /// Clicks, long after the previous click.
    pub fn click(&mut self, column: u16, row: u16) -> &mut Self {
        self.at_ms += 10_000;
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
        self.mouse(MouseEventKind::Up(MouseButton::Left), column, row)
    }

    /// Sends a mouse event.
    pub fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) -> &mut Self {
        let event = MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        };
        self.event(Event::Mouse(event, self.at_ms));
        self
    }

    /// Current screen.
    pub fn buffer(&mut self) -> Buffer {
        let (app, profile) = (&self.app, &self.profile);
        let drawn = self
            .terminal
            .draw(|frame| screen::draw(app, Some(profile), frame));
        drawn.expect("drawn").buffer.clone()
    }

    /// Current screen as text without trailing blanks.
    pub fn screen(&mut self) -> String {
        text_of(&self.buffer())
    }

    /// Resizes the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        self.terminal.backend_mut().resize(columns, rows);
        self.event(Event::Resize(columns, rows));
        self
    }

    /// Compares the screen with a golden.
    pub fn golden(&mut self, name: &str) -> &mut Self {
        let screen = self.screen();
        golden(name, &screen);
        self
    }
}

/// Screen before opening, after some events.
pub fn unopened(name: &str, size: (u16, u16), events: Vec<Event>) -> String {
    let mut app = App::new(name.to_owned(), THEME, size);
    for event in events {
        update(&mut app, None, event);
    }
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    let drawn = terminal.draw(|frame| screen::draw(&app, None, frame));
    text_of(drawn.expect("drawn").buffer)
}

/// Text of a screen.
pub fn text_of(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut skip = 0;
        for x in area.left()..area.right() {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            skip = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Compares a text with a golden, or rewrites the golden (`BLESS=1`).
pub fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tui/goldens");
    let path = path.join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
        std::fs::write(&path, text).expect("the golden");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{name} is not as it was (BLESS=1 writes it anew); was:\n{expected}\nis:\n{text}"
    );
}

/// Keys of a script: characters, `<Enter>`, `<Esc>`, `<C-d>` ….
pub fn script(text: &str) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (event, length) = match rest.find('>').filter(|_| c == '<') {
            Some(end) => (named(&rest[1..end]), end + 1),
            None => {
                let event = KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
                (event, c.len_utf8())
            }
        };
        keys.push(event);
        rest = &rest[length..];
    }
    keys
}

/// Single key of a script.
pub fn key(name: &str) -> KeyEvent {
    script(name).pop().expect("a key")
}

fn named(name: &str) -> KeyEvent {
    let code = match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "S-Tab" => KeyCode::BackTab,
        "Bksp" => KeyCode::Backspace,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "Space" => KeyCode::Char(' '),
        "lt" => KeyCode::Char('<'),
        _ => {
            let control = name.strip_prefix("C-").and_then(|rest| rest.chars().next());
            let c = control.expect("a key that this script knows");
            return KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        }
    };
    KeyEvent::new(code, KeyModifiers::NONE)
}
