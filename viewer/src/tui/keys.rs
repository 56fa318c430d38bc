//! Key table: the only place that knows keys. Lookup, help screen, bottom hints and palette derive
//! from it.

use super::view_id::ViewId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Request by key, click or palette line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    Quit,
    /// Stop vmscope until the shell continues it.
    Suspend,
    /// Show or hide the key list.
    Help,
    /// Redraw the whole screen.
    Redraw,
    /// Start a search.
    Search,
    NextMatch,
    PreviousMatch,
    Palette,
    /// End a prompt, a selection or a search.
    Cancel,
    Show(ViewId),
    NextView,
    PreviousView,
    /// Back in the history.
    Back,
    /// Forward in the history.
    Forward,
    Up,
    Down,
    /// Move left, or collapse a row.
    Left,
    /// Move right, or expand a row.
    Right,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    First,
    Last,
    /// Open the selected row.
    Open,
    /// Expand or collapse the selected row, or include or exclude it.
    Toggle,
    /// Sort by the next column.
    Sort,
    /// Reverse the order.
    Reverse,
    /// Next grouping.
    Group,
    /// Previous grouping.
    GroupBack,
    /// Next form of the view.
    Mode,
    /// Next hot row or event.
    NextHot,
    /// Previous hot row or event.
    PreviousHot,
    ZoomIn,
    ZoomOut,
    /// Start or end a selection.
    Select,
    /// Start or end a comparison of versions.
    Compare,
    Earlier,
    Later,
    /// Filter all views by the selected row.
    Only,
    DropFilter,
    DropFilters,
    /// Copy the view as text.
    Copy,
    /// Write the view to a file.
    Export,
    /// Pause or resume a running process's picture.
    Pause,
    /// Add a mark at the current time.
    AddMark,
    /// Save the recording.
    Save,
    /// Switch between the last seconds and the whole session.
    Span,
    /// Palette line of a view, by number ([`super::views::View::choices`]).
    Own(u16),
}

/// Section of the help screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    View,
    Move,
    Views,
    Filters,
    General,
    Live,
}

impl Group {
    /// All sections in display order.
    pub const ALL: [Group; 6] = [
        Group::View,
        Group::Move,
        Group::Views,
        Group::Filters,
        Group::General,
        Group::Live,
    ];

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

pub const fn key(code: KeyCode) -> Key {
    Key {
        code,
        modifiers: KeyModifiers::NONE,
    }
}

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
    /// Whether an event is this key. Shift already shows in the character; terminals report it
    /// inconsistently.
    pub fn is(&self, event: &KeyEvent) -> bool {
        let relevant = KeyModifiers::CONTROL | KeyModifiers::ALT;
        self.code == event.code && self.modifiers == event.modifiers & relevant
    }

    /// Name in help.
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

/// Row of the key table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    pub command: Command,
    /// Keys; narrow places show the first.
    pub keys: &'static [Key],
    /// Word for the bottom hints; empty for none.
    pub hint: &'static str,
    /// Help text.
    pub help: &'static str,
    pub group: Group,
}

/// Row of a view's own key table.
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

/// Keys of every view.
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
    row(Group::Move, Command::Open, &[key(KeyCode::Enter)], "open", "open the selected row"),
    row(Group::Views, Command::Show(ViewId::Overview), &[ch('1')], "", "overview"),
    row(Group::Views, Command::Show(ViewId::Hot), &[ch('2')], "", "hot list, matrix"),
    row(Group::Views, Command::Show(ViewId::Method), &[ch('3')], "", "method: bytecodes or lines"),
    row(Group::Views, Command::Show(ViewId::Timeline), &[ch('4')], "", "timeline"),
    row(Group::Views, Command::Show(ViewId::Zone), &[ch('5')], "", "code zone, address space"),
    row(Group::Views, Command::Show(ViewId::Collector), &[ch('6')], "", "collector"),
    row(Group::Views, Command::Show(ViewId::Callers), &[ch('7')], "", "callers: flame graph, tree"),
    row(Group::Views, Command::Show(ViewId::Threads), &[ch('8')], "", "threads"),
    row(Group::Views, Command::Show(ViewId::Truth), &[ch('9')], "", "accuracy: limits, delivery, resolution"),
    row(Group::Views, Command::Show(ViewId::Costs), &[ch('0')], "", "collector costs by allocation site"),
    row(Group::Views, Command::Show(ViewId::Lifetimes), &[ch('L')], "", "lifetimes of objects"),
    row(Group::Views, Command::NextView, &[key(KeyCode::Tab)], "", "next view"),
    row(Group::Views, Command::PreviousView, &[key(KeyCode::BackTab)], "", "previous view"),
    row(Group::Views, Command::Back, &[ch('['), key(KeyCode::Backspace), alt(KeyCode::Left)], "back", "previous screen"),
    row(Group::Views, Command::Forward, &[ch(']'), alt(KeyCode::Right)], "", "next screen"),
    row(Group::Filters, Command::Only, &[ch('f')], "only", "filter all views by the selection"),
    row(Group::Filters, Command::DropFilter, &[ch('x')], "", "remove the newest filter"),
    row(Group::Filters, Command::DropFilters, &[ch('X')], "", "remove all filters"),
    row(Group::General, Command::Search, &[ch('/')], "search", "search, as you type"),
    row(Group::General, Command::NextMatch, &[ch('n')], "", "next match"),
    row(Group::General, Command::PreviousMatch, &[ch('N')], "", "previous match"),
    row(Group::General, Command::Palette, &[ch(':'), ctrl('p')], "palette", "palette: all commands by name"),
    row(Group::General, Command::Copy, &[ch('y')], "", "copy the view as text"),
    row(Group::General, Command::Export, &[ch('e')], "", "export the view: text, CSV, JSON, SVG"),
    row(Group::General, Command::Help, &[ch('?'), key(KeyCode::F(1))], "help", "show these keys"),
    row(Group::General, Command::Redraw, &[ctrl('l')], "", "redraw, and restart stopped work"),
    row(Group::General, Command::Cancel, &[key(KeyCode::Esc)], "", "end a prompt, selection, search or long-running work"),
    row(Group::General, Command::Suspend, &[ctrl('z')], "", "suspend (resume with fg)"),
    row(Group::General, Command::Quit, &[ch('q'), ctrl('c')], "quit", "quit"),
];

/// Keys for running processes.
#[rustfmt::skip]
pub const LIVE: &[Binding] = &[
    row(Group::Live, Command::Pause, &[ch('p')], "pause", "freeze or resume the screen; sampling continues"),
    row(Group::Live, Command::AddMark, &[ch('M')], "", "add a mark at this time"),
    row(Group::Live, Command::Span, &[ch('w')], "", "show the last seconds, or all since the start"),
    row(Group::Live, Command::Save, &[ch('W')], "save", "save the recording"),
];

/// Command of a key: a view's own table comes first.
pub fn command_of(event: &KeyEvent, own: &[Binding], live: bool) -> Option<Command> {
    let tables = [own, GLOBAL, if live { LIVE } else { &[] }];
    let mut rows = tables.into_iter().flatten();
    let found = rows.find(|row| row.keys.iter().any(|key| key.is(event)));
    found.map(|row| row.command)
}
