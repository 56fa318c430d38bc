//! Driving the terminal UI without a terminal: keys as a script, jobs done at once, the
//! screen as text.
//!
//! `BLESS=1 cargo test -p vmscope` writes the goldens (`src/tui/goldens`) anew; look at
//! each before it is committed.

use super::app::{App, update};
use super::event::{Effect, Event};
use super::jobs::{Job, Slot};
use super::live::{LiveNews, LiveState};
use super::screen;
use super::theme::{Colors, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use std::path::PathBuf;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::{Profile, Trace, profile_of};

/// The three sizes that every view is looked at in.
pub const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// A terminal with all that most have.
pub const THEME: Theme = Theme {
    colors: Colors::Many,
    unicode: true,
};

/// The profile of a recording.
pub fn profile(bytes: Vec<u8>) -> Profile {
    let mut reader = Reader::open(std::io::Cursor::new(bytes)).expect("a recording");
    let trace = Trace::read(&mut reader).expect("a trace");
    profile_of(trace, Vec::new(), true)
}

/// The terminal UI on a screen of our own.
pub struct Driven {
    app: App,
    profile: Profile,
    terminal: Terminal<TestBackend>,
    /// Effects other than work, in order.
    pub effects: Vec<Effect>,
    /// Whose work is held back.
    holds: fn(Slot) -> bool,
    /// What is.
    pub held: Vec<Job>,
    at_ms: u64,
}

impl Driven {
    /// A recording, opened.
    pub fn open(bytes: Vec<u8>, size: (u16, u16)) -> Self {
        Self::with_theme(profile(bytes), size, THEME)
    }

    /// The same on another terminal.
    pub fn with_theme(profile: Profile, size: (u16, u16), theme: Theme) -> Self {
        Self::of(
            profile,
            App::new("test.vmscope".to_owned(), theme, size),
            size,
        )
    }

    /// A running process.
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

    /// The running process's profile has grown to this one.
    pub fn grow(&mut self, profile: Profile, live: LiveState) {
        self.profile = profile;
        self.event(Event::Live(LiveNews::Grown(live)));
    }

    /// Takes an event, and does all the work that comes of it.
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

    /// From now on holds back the work of these slots, as if it took long.
    pub fn hold(&mut self, slots: fn(Slot) -> bool) -> &mut Self {
        self.holds = slots;
        self
    }

    /// Does what was held back, and holds nothing back any more.
    pub fn let_go(&mut self) -> &mut Self {
        self.holds = |_| false;
        for job in std::mem::take(&mut self.held) {
            self.event(Event::Done(job.run(&self.profile)));
        }
        self
    }

    /// Does the jobs that wait, but none that come of them.
    pub fn answer(&mut self) {
        for job in std::mem::take(&mut self.held) {
            let done = job.run(&self.profile);
            self.event(Event::Done(done));
        }
    }

    /// Types a script: characters, and `<Enter>`, `<Esc>`, `<Down>`, `<C-d>` … .
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for event in script(keys) {
            self.event(Event::Key(event));
        }
        self
    }

    /// A click, long after the one before.
    pub fn click(&mut self, column: u16, row: u16) -> &mut Self {
        self.at_ms += 10_000;
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
        self.mouse(MouseEventKind::Up(MouseButton::Left), column, row)
    }

    /// Any mouse event.
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

    /// The screen as it is now.
    pub fn buffer(&mut self) -> Buffer {
        let (app, profile) = (&self.app, &self.profile);
        let drawn = self
            .terminal
            .draw(|frame| screen::draw(app, Some(profile), frame));
        drawn.expect("drawn").buffer.clone()
    }

    /// The same as text, without blanks at the ends of lines.
    pub fn screen(&mut self) -> String {
        text_of(&self.buffer())
    }

    /// Another size of the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) -> &mut Self {
        self.terminal.backend_mut().resize(columns, rows);
        self.event(Event::Resize(columns, rows));
        self
    }

    /// Compares the screen with the golden of that name.
    pub fn golden(&mut self, name: &str) -> &mut Self {
        let screen = self.screen();
        golden(name, &screen);
        self
    }
}

/// The screen before anything is open, after these events.
pub fn unopened(name: &str, size: (u16, u16), events: Vec<Event>) -> String {
    let mut app = App::new(name.to_owned(), THEME, size);
    for event in events {
        update(&mut app, None, event);
    }
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    let drawn = terminal.draw(|frame| screen::draw(&app, None, frame));
    text_of(drawn.expect("drawn").buffer)
}

/// The text of a screen.
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

/// Compares a text with the golden of that name, or writes it (`BLESS=1`).
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

/// The keys of a script: characters, and `<Enter>`, `<Esc>`, `<C-d>` … .
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

/// The one key of a script.
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
