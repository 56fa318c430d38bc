//! The key table: every key that the terminal UI knows, what it does and what help says
//! of it. Keys are looked up here, the help screen, the hints at the bottom and the
//! palette are made from it; nothing else knows any key.

use super::views::ViewId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key, a click or a line of the palette asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// End vmscope.
    Quit,
    /// Stop vmscope until the shell lets it go on.
    Suspend,
    /// Show or hide the keys.
    Help,
    /// Draw the whole screen anew.
    Redraw,
    /// Begin to type what to search for.
    Search,
    /// The next match.
    NextMatch,
    /// The match before.
    PreviousMatch,
    /// Open the palette.
    Palette,
    /// End what was begun: a prompt, a selection, a search.
    Cancel,
    /// Show a view.
    Show(ViewId),
    /// The view to the right.
    NextView,
    /// The view to the left.
    PreviousView,
    /// What was shown before.
    Back,
    /// What was shown before going back.
    Forward,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// To the left, or close what is open.
    Left,
    /// To the right, or open what is closed.
    Right,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// Half a screen up.
    HalfUp,
    /// Half a screen down.
    HalfDown,
    /// The first row.
    First,
    /// The last row.
    Last,
    /// Go into what is selected.
    Open,
    /// Expand or collapse, include or leave out what is selected.
    Toggle,
    /// Sort by the next column.
    Sort,
    /// The other way round.
    Reverse,
    /// Group by the next of what the view can group by.
    Group,
    /// Group by the one before.
    GroupBack,
    /// The view's other form.
    Mode,
    /// The next hot place.
    NextHot,
    /// The hot place before.
    PreviousHot,
    /// Nearer.
    ZoomIn,
    /// Further away.
    ZoomOut,
    /// Begin a selection, or end it.
    Select,
    /// Put versions side by side, or end it.
    Compare,
    /// Earlier.
    Earlier,
    /// Later.
    Later,
    /// Only what is selected, in all views.
    Only,
    /// Remove the newest filter.
    DropFilter,
    /// Remove all filters.
    DropFilters,
    /// Copy the view as text.
    Copy,
    /// Write the view to a file.
    Export,
    /// Stop or go on to follow a running process.
    Pause,
    /// Put a mark at this time.
    AddMark,
    /// Save what was recorded.
    Save,
    /// Show the last seconds, or all since the start.
    Span,
    /// One of a view's own choices, by its number in [`super::views::View::choices`].
    Own(u16),
}

/// Where help puts a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Of the view that is shown.
    View,
    /// Moving in it.
    Move,
    /// From view to view.
    Views,
    /// Filters and time.
    Filters,
    /// Everything else.
    General,
    /// Of a running process.
    Live,
}

impl Group {
    /// All, as help orders them.
    pub const ALL: [Group; 6] = [
        Group::View,
        Group::Move,
        Group::Views,
        Group::Filters,
        Group::General,
        Group::Live,
    ];

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Group::View => "This view",
            Group::Move => "Moving",
            Group::Views => "Views",
            Group::Filters => "Filters",
            Group::General => "General",
            Group::Live => "Running process",
        }
    }
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// A key without modifiers.
pub const fn key(code: KeyCode) -> Key {
    Key {
        code,
        modifiers: KeyModifiers::NONE,
    }
}

/// A character's key.
pub const fn ch(c: char) -> Key {
    key(KeyCode::Char(c))
}

const fn ctrl(c: char) -> Key {
    Key {
        code: KeyCode::Char(c),
        modifiers: KeyModifiers::CONTROL,
    }
}

const fn alt(code: KeyCode) -> Key {
    Key {
        code,
        modifiers: KeyModifiers::ALT,
    }
}

impl Key {
    /// Whether it is that key which was pressed. Shift is part of a character; what
    /// terminals say of it beside that is ignored.
    pub fn is(&self, event: &KeyEvent) -> bool {
        let relevant = KeyModifiers::CONTROL | KeyModifiers::ALT;
        self.code == event.code && self.modifiers == event.modifiers & relevant
    }

    /// As help writes it.
    pub fn name(&self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::Up => "↑".to_owned(),
            KeyCode::Down => "↓".to_owned(),
            KeyCode::Left => "←".to_owned(),
            KeyCode::Right => "→".to_owned(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            KeyCode::BackTab => "Shift-Tab".to_owned(),
            KeyCode::Backspace => "Bksp".to_owned(),
            KeyCode::F(n) => format!("F{n}"),
            other => format!("{other:?}"),
        };
        if self.modifiers == KeyModifiers::CONTROL {
            format!("^{}", name.to_uppercase())
        } else if self.modifiers == KeyModifiers::ALT {
            format!("Alt-{name}")
        } else {
            name
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// What it does.
    pub command: Command,
    /// The keys that do it; the first one is shown where there is little room.
    pub keys: &'static [Key],
    /// A word for the hints at the bottom; empty to leave it out there.
    pub hint: &'static str,
    /// What help says.
    pub help: &'static str,
    /// Where help puts it.
    pub group: Group,
}

/// A row of a view's own table.
pub const fn own(
    command: Command,
    keys: &'static [Key],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    row(Group::View, command, keys, hint, help)
}

const fn row(
    group: Group,
    command: Command,
    keys: &'static [Key],
    hint: &'static str,
    help: &'static str,
) -> Binding {
    Binding {
        command,
        keys,
        hint,
        help,
        group,
    }
}

/// What works in every view.
#[rustfmt::skip]
pub const GLOBAL: &[Binding] = &[
    row(Group::Move, Command::Up, &[key(KeyCode::Up), ch('k')], "", "up"),
    row(Group::Move, Command::Down, &[key(KeyCode::Down), ch('j')], "", "down"),
    row(Group::Move, Command::Left, &[key(KeyCode::Left), ch('h')], "", "left, collapse"),
    row(Group::Move, Command::Right, &[key(KeyCode::Right), ch('l')], "", "right, expand"),
    row(Group::Move, Command::PageUp, &[key(KeyCode::PageUp), ctrl('b')], "", "a screen up"),
    row(Group::Move, Command::PageDown, &[key(KeyCode::PageDown), ctrl('f')], "", "a screen down"),
    row(Group::Move, Command::HalfUp, &[ctrl('u')], "", "half a screen up"),
    row(Group::Move, Command::HalfDown, &[ctrl('d')], "", "half a screen down"),
    row(Group::Move, Command::First, &[key(KeyCode::Home), ch('g')], "", "first"),
    row(Group::Move, Command::Last, &[key(KeyCode::End), ch('G')], "", "last"),
    row(Group::Move, Command::Open, &[key(KeyCode::Enter)], "open", "go into what is selected"),
    row(Group::Views, Command::Show(ViewId::Overview), &[ch('1')], "", "overview"),
    row(Group::Views, Command::Show(ViewId::Hot), &[ch('2')], "", "hot list, matrix"),
    row(Group::Views, Command::Show(ViewId::Method), &[ch('3')], "", "method: bytecodes or lines"),
    row(Group::Views, Command::Show(ViewId::Timeline), &[ch('4')], "", "timeline"),
    row(Group::Views, Command::Show(ViewId::Zone), &[ch('5')], "", "code zone, address space"),
    row(Group::Views, Command::Show(ViewId::Collector), &[ch('6')], "", "collector"),
    row(Group::Views, Command::Show(ViewId::Callers), &[ch('7')], "", "callers: flame graph, tree"),
    row(Group::Views, Command::Show(ViewId::Threads), &[ch('8')], "", "threads"),
    row(Group::Views, Command::Show(ViewId::Truth), &[ch('9')], "", "what limits the truth"),
    row(Group::Views, Command::NextView, &[key(KeyCode::Tab)], "", "next view"),
    row(Group::Views, Command::PreviousView, &[key(KeyCode::BackTab)], "", "previous view"),
    row(Group::Views, Command::Back, &[ch('['), key(KeyCode::Backspace), alt(KeyCode::Left)], "back", "back to what was shown before"),
    row(Group::Views, Command::Forward, &[ch(']'), alt(KeyCode::Right)], "", "forward again"),
    row(Group::Filters, Command::Only, &[ch('f')], "only", "only what is selected, in all views"),
    row(Group::Filters, Command::DropFilter, &[ch('x')], "", "remove the newest filter"),
    row(Group::Filters, Command::DropFilters, &[ch('X')], "", "remove all filters"),
    row(Group::General, Command::Search, &[ch('/')], "search", "search, as you type"),
    row(Group::General, Command::NextMatch, &[ch('n')], "", "next match"),
    row(Group::General, Command::PreviousMatch, &[ch('N')], "", "previous match"),
    row(Group::General, Command::Palette, &[ch(':'), ctrl('p')], "palette", "palette: everything, by name"),
    row(Group::General, Command::Copy, &[ch('y')], "", "copy the view as text"),
    row(Group::General, Command::Export, &[ch('e')], "", "export what is shown: text, CSV, JSON, SVG"),
    row(Group::General, Command::Help, &[ch('?'), key(KeyCode::F(1))], "help", "these keys"),
    row(Group::General, Command::Redraw, &[ctrl('l')], "", "draw the screen anew, ask again for what was stopped"),
    row(Group::General, Command::Cancel, &[key(KeyCode::Esc)], "", "end a prompt, a selection, a search, what takes long"),
    row(Group::General, Command::Suspend, &[ctrl('z')], "", "stop until the shell lets it go on"),
    row(Group::General, Command::Quit, &[ch('q'), ctrl('c')], "quit", "quit"),
];

/// What works while a process is being followed.
#[rustfmt::skip]
pub const LIVE: &[Binding] = &[
    row(Group::Live, Command::Pause, &[ch('p')], "pause", "hold the picture, or go on; sampling goes on meanwhile"),
    row(Group::Live, Command::AddMark, &[ch('M')], "", "put a mark at this time"),
    row(Group::Live, Command::Span, &[ch('w')], "", "the last seconds, or all since the start"),
    row(Group::Live, Command::Save, &[ch('W')], "save", "save what was recorded"),
];

/// The command of a key: a view's own table counts before what works everywhere.
pub fn command_of(event: &KeyEvent, own: &[Binding], live: bool) -> Option<Command> {
    let tables = [own, GLOBAL, if live { LIVE } else { &[] }];
    let mut rows = tables.into_iter().flatten();
    let found = rows.find(|row| row.keys.iter().any(|key| key.is(event)));
    found.map(|row| row.command)
}
