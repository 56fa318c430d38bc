//! Line below the view: prompt, message, progress, or hints.

use crate::present::numbers::ratio;
use crate::present::text::{line, width};
use crate::tui::app::{App, Slow};
use crate::tui::keys::{Binding, Command, GLOBAL, Key, LIVE};
use crate::tui::mode::Mode;
use crate::tui::theme::Role;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Keys that end a search, shown beside it.
const SEARCH_KEYS: &str = "Enter keep  Tab filter  Esc back";

/// Draws the line.
pub fn draw(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let theme = &app.theme;
    let columns = usize::from(area.width);
    let (prompt, input) = match &app.mode {
        Mode::Search(input) => ("/", Some(input)),
        Mode::Ask(ask, input) => (ask.prompt(), Some(input)),
        _ => ("", None),
    };
    if let Some(input) = input {
        let room = columns.saturating_sub(width(prompt) + 1);
        let scroll = input.visual_scroll(room);
        let text: String = input.value().chars().skip(scroll).collect();
        let text = line(&text, room);
        let spans = vec![
            Span::styled(prompt, theme.style(Role::Key)),
            Span::raw(text),
        ];
        frame.render_widget(Line::from(spans), area);
        let column = width(prompt) + input.visual_cursor().saturating_sub(scroll);
        let column = u16::try_from(column).unwrap_or(0);
        frame.set_cursor_position((area.x + column, area.y));
        // A failed search shows while the user types, otherwise the keys that end it.
        let (note, role) = match &app.mode {
            Mode::Search(_) if app.message.is_empty() => (SEARCH_KEYS, Role::Dim),
            _ => (app.message.as_str(), Role::Warning),
        };
        let note = line(note, columns / 2);
        let at = columns.saturating_sub(width(&note));
        let note_area = Rect {
            x: area.x + u16::try_from(at).unwrap_or(0),
            width: u16::try_from(width(&note)).unwrap_or(0),
            ..area
        };
        frame.render_widget(Line::styled(note, theme.style(role)), note_area);
        return;
    }
    if let Some(slow) = app.slow() {
        return frame.render_widget(working(app, &slow, columns), area);
    }
    if !app.message.is_empty() {
        let text = line(&format!(" {}", app.message), columns);
        frame.render_widget(Line::styled(text, theme.style(Role::Strong)), area);
        return;
    }
    frame.render_widget(hints(app, columns), area);
}

/// Progress of long work, and the key that stops it.
fn working(app: &App, slow: &Slow, columns: usize) -> Line<'static> {
    let far = match slow.told {
        (_, 0) => String::new(),
        (done, all) => format!(", {:.0}%", ratio(done, all) * 100.0),
    };
    let text = line(&format!(" {}{far}  ", slow.slot.words()), columns);
    let theme = &app.theme;
    Line::from(vec![
        Span::styled(text, theme.style(Role::Strong)),
        Span::styled("Esc", theme.style(Role::Key)),
        Span::styled(" stops it", theme.style(Role::Dim)),
    ])
}

/// Key hints in the available width: the view's own keys first, help last and always.
fn hints(app: &App, columns: usize) -> Line<'static> {
    let own = app.view().map_or(&[][..], |view| view.bindings());
    let live = if app.live.is_some() { LIVE } else { &[] };
    let is_help = |row: &&Binding| row.command == Command::Help;
    let rows = own
        .iter()
        .chain(live)
        .chain(GLOBAL)
        .filter(|row| !row.hint.is_empty());
    let help = GLOBAL.iter().find(is_help);
    let piece = |row: &Binding| {
        let key = row.keys.first().map_or_else(String::new, Key::name);
        (key, row.hint)
    };
    let room = |(key, hint): &(String, &str)| width(key) + width(hint) + 3;
    let reserved = help.map_or(0, |row| room(&piece(row)));
    let mut left = columns.saturating_sub(reserved + 1);
    let mut spans = vec![Span::raw(" ")];
    let mut put = |(key, hint): (String, &'static str)| {
        spans.push(Span::styled(key, app.theme.style(Role::Key)));
        spans.push(Span::styled(
            format!(" {hint}  "),
            app.theme.style(Role::Dim),
        ));
    };
    let mut seen = Vec::new();
    for row in rows.filter(|row| !is_help(row)) {
        let piece = piece(row);
        let needed = room(&piece);
        if needed > left || seen.contains(&row.command) {
            continue;
        }
        seen.push(row.command);
        left -= needed;
        put(piece);
    }
    if let Some(row) = help {
        put(piece(row));
    }
    Line::from(spans)
}
