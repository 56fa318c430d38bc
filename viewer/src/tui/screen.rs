//! The screen around the view:
//!
//! ```text
//! 1 Overview 2 Hot 3 Method 4 Time …                      tabs
//! java.vmscope › 1.0-2.0 s ✕ › by class     8,121 samples ! 5 limits
//! ! this recording is not whole: …                        where it is not
//! the view
//! ↵ open  / search  ? help …                              hints, message or prompt
//! ```
//!
//! Drawn as a pure function of the state; where something is on it, is told by the same
//! functions that draw it.

pub mod help;
mod popup;

use super::app::{App, Stage};
use super::keys::{Binding, GLOBAL, LIVE};
use super::lens::Kind;
use super::mode::Mode;
use super::theme::Role;
use super::views::ViewId;
use super::widgets::text::{line, width};
use crate::record::live_line::bytes;
use crate::report::words::{count, some};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use vmscope_symbolizer::Profile;

/// What every view can be drawn in.
pub const LEAST: (u16, u16) = (60, 16);

/// A piece of the breadcrumb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crumb {
    /// What it says.
    pub text: String,
    /// The filter that it stands for.
    pub kind: Option<Kind>,
}

/// What can be clicked outside the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spots {
    /// A view's tab.
    Tab(ViewId),
    /// A filter.
    Crumb(Kind),
    /// How much limits the truth.
    Limits,
}

/// The whole screen.
fn whole(app: &App) -> Rect {
    Rect::new(0, 0, app.size.0, app.size.1)
}

/// Rows above the view.
fn above(app: &App) -> u16 {
    if app.banner.is_empty() { 2 } else { 3 }
}

/// Where the view is.
pub fn body(app: &App) -> Rect {
    let (columns, rows) = app.size;
    let above = above(app);
    Rect::new(0, above, columns, rows.saturating_sub(above + 1))
}

/// The breadcrumb of what is shown.
pub fn crumbs(app: &App, profile: &Profile) -> Vec<Crumb> {
    let begin = app.cx(profile).begin;
    let mut crumbs = Vec::new();
    for &kind in app.lens.kinds() {
        let text = match app.span {
            Some(seconds) if kind == Kind::Window => format!("last {seconds} s"),
            _ => app.lens.label(kind, profile, begin),
        };
        let kind = Some(kind);
        crumbs.push(Crumb { text, kind });
    }
    let of_view = app.view().map(|view| view.crumb(&app.cx(profile)));
    if let Some(text) = of_view.filter(|text| !text.is_empty()) {
        crumbs.push(Crumb { text, kind: None });
    }
    crumbs
}

/// Draws all of it.
pub fn draw(app: &App, profile: Option<&Profile>, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(frame, area);
    }
    match (&app.stage, profile) {
        (Stage::Opening(read, all), _) => opening(app, *read, *all, frame, area),
        (Stage::Failed(why), _) => failed(app, why, frame, area),
        (Stage::Open, Some(profile)) => open(app, profile, frame),
        (Stage::Open, None) => {}
    }
    if !app.theme.unicode {
        in_ascii(frame.buffer_mut());
    }
}

/// What a terminal without UTF-8 would garble, as the nearest that it has.
fn in_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let sign = match cell.symbol() {
            "·" | "…" => ".",
            "×" | "✕" => "x",
            "±" => "~",
            "→" | "▸" | "▶" | "↳" | "›" => ">",
            "←" | "◂" => "<",
            "↑" | "▴" => "^",
            "↓" | "▾" | "▼" => "v",
            "─" | "━" | "╌" | "┴" | "┬" | "┼" => "-",
            "│" | "┊" | "├" | "┤" => "|",
            "┌" | "┐" | "└" | "┘" | "╭" | "╮" | "╰" | "╯" => "+",
            _ => "?",
        };
        cell.set_symbol(sign);
    }
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (columns, rows) = LEAST;
    let text = format!(
        "vmscope needs {columns}x{rows}, this terminal has {}x{}: make it larger; q quits",
        area.width, area.height
    );
    let lines = textwrap::wrap(&text, usize::from(area.width.max(1)));
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|l| Line::raw(l.into_owned()))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn opening(app: &App, read: u64, all: u64, frame: &mut Frame<'_>, area: Rect) {
    let share = crate::report::words::ratio(read, all);
    let columns = usize::from(area.width).saturating_sub(12).min(60);
    let middle = Rect {
        y: area.height / 2 - 1,
        height: 3,
        ..area
    };
    let lines = vec![
        Line::raw(line(
            &format!("opening {}", app.name),
            usize::from(area.width),
        ))
        .centered(),
        Line::from(vec![
            Span::styled(app.theme.bar(share, columns), app.theme.style(Role::Title)),
            Span::raw(format!(" {:3.0}%", share * 100.0)),
        ])
        .centered(),
        Line::styled("q quits", app.theme.style(Role::Dim)).centered(),
    ];
    frame.render_widget(Paragraph::new(lines), middle);
}

fn failed(app: &App, why: &str, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(4);
    let text = crate::report::words::wrap(why, columns, 0);
    let lines: Vec<Line> = text.lines().map(|l| Line::raw(format!("  {l}"))).collect();
    let title = format!("  {} can't be shown", app.name);
    let mut all = vec![
        Line::styled(line(&title, columns), app.theme.style(Role::Bad)),
        Line::default(),
    ];
    all.extend(lines);
    all.extend([Line::default(), Line::raw("  q quits")]);
    frame.render_widget(Paragraph::new(all), area);
}

fn open(app: &App, profile: &Profile, frame: &mut Frame<'_>) {
    let area = whole(app).intersection(frame.area());
    let row = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    frame.render_widget(tabs_line(app), row(0));
    draw_crumbs(app, frame, row(1));
    if !app.banner.is_empty() {
        let text = line(&format!(" ! {}", app.banner), usize::from(area.width));
        frame.render_widget(Line::styled(text, app.theme.style(Role::Bad)), row(2));
    }
    let body = body(app).intersection(frame.area());
    if let Some(view) = app.view() {
        let cx = super::views::Cx {
            area: body,
            ..app.cx(profile)
        };
        view.draw(&cx, frame, body);
    }
    draw_bottom(app, frame, row(area.height.saturating_sub(1)));
    match &app.mode {
        Mode::Help(first) => help::draw(app, *first, frame),
        Mode::Palette(palette) => popup::palette(app, palette, frame),
        Mode::Normal | Mode::Search(_) | Mode::Ask(..) => {}
    }
}

/// The tabs: what they say and where they begin.
fn tabs(app: &App) -> Vec<(ViewId, String, usize)> {
    let long: usize = ViewId::ALL.iter().map(|id| id.name().len() + 4).sum();
    let is_long = long <= usize::from(app.size.0);
    let mut column = 0;
    let tab = |(id, number): (ViewId, usize)| {
        let text = if is_long {
            format!(" {number} {} ", id.name())
        } else {
            format!("{number} {} ", id.short())
        };
        let begin = column;
        column += text.len();
        (id, text, begin)
    };
    ViewId::ALL.into_iter().zip(1..).map(tab).collect()
}

fn tabs_line(app: &App) -> Line<'static> {
    let spans = tabs(app).into_iter().map(|(id, text, _)| {
        let role = if id == app.current {
            Role::Selected
        } else {
            Role::Dim
        };
        // Told apart without colours, too.
        let text = if id == app.current {
            text.replacen(' ', ":", usize::from(!text.starts_with(' ')))
                .replacen(" ", "[", usize::from(text.starts_with(' ')))
        } else {
            text
        };
        Span::styled(text, app.theme.style(role))
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// The breadcrumb's pieces as they are drawn, with where they begin.
fn crumb_spans(app: &App) -> Vec<(Option<Kind>, String, usize)> {
    let cross = app.theme.sign("✕", "x");
    let name = line(&app.name, usize::from(app.size.0) / 3);
    let mut column = 1 + width(&name) + 1;
    let mut pieces = vec![(None, format!(" {name} "), 0)];
    for crumb in &app.crumbs {
        let text = line(&crumb.text, usize::from(app.size.0) / 3);
        let text = match crumb.kind {
            Some(_) => format!(" {text} {cross} "),
            None => format!(" {text} "),
        };
        let columns = width(&text);
        pieces.push((crumb.kind, text, column + 1));
        column += columns + 1;
    }
    pieces
}

/// What stands at the right of the breadcrumb: how it is with a running process, samples,
/// and what limits them.
fn right_of_crumbs(app: &App) -> (String, String) {
    let samples = app.total().map(|n| some(n, "sample", "samples"));
    let limits = match app.limits {
        0 => String::new(),
        n => format!("  ! {} ", some(n as u64, "limit", "limits")),
    };
    let pending = if app.is_pending() { "... " } else { "" };
    let held = match (&app.live, app.paused) {
        (Some(_), true) => "held ",
        (Some(live), false) if live.ended.is_empty() => app.theme.sign("● live ", "live "),
        _ => "",
    };
    let samples = samples.unwrap_or_default();
    let crumbs = crumb_spans(app).pop();
    let crumbs = crumbs.map_or(0, |(_, text, begin)| begin + width(&text));
    let without = width(&format!(" {held}{pending}{samples}{limits}"));
    let room = usize::from(app.size.0).saturating_sub(crumbs + without + 1);
    let recorded = recorded(app, room);
    let text = format!(" {held}{recorded}{pending}{samples}");
    (text, limits)
}

/// What a running process's session has lost and recorded, in words of at most `room`
/// columns; what is lost is said in any.
fn recorded(app: &App, room: usize) -> String {
    let Some(live) = &app.live else {
        return String::new();
    };
    let lost = match live.lost {
        0 => String::new(),
        lost => format!("{} lost ", count(lost)),
    };
    let size = bytes(live.bytes);
    let place = match live.output.as_str() {
        "" => "kept".to_owned(),
        output => format!("in {}", line(output, 40)),
    };
    let all = [format!("{lost}{size} {place}  "), format!("{lost}{size}  ")];
    let fits = all.into_iter().find(|text| width(text) <= room);
    fits.filter(|_| live.bytes > 0).unwrap_or(lost)
}

fn draw_crumbs(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let mut spans = Vec::new();
    for (index, (kind, text, _)) in crumb_spans(app).into_iter().enumerate() {
        if index > 0 {
            spans.push(Span::raw(" "));
        }
        let role = match kind {
            Some(_) => Role::Chip,
            None if index == 0 => Role::Title,
            None => Role::Dim,
        };
        spans.push(Span::styled(text, app.theme.style(role)));
    }
    frame.render_widget(Line::from(spans), area);
    let (text, limits) = right_of_crumbs(app);
    let columns = (width(&text) + width(&limits)).min(usize::from(area.width));
    let columns = u16::try_from(columns).unwrap_or(area.width);
    let right = Rect {
        x: area.right().saturating_sub(columns),
        width: columns,
        ..area
    };
    frame.render_widget(Clear, right);
    let spans = vec![
        Span::raw(text),
        Span::styled(limits, app.theme.style(Role::Warning)),
    ];
    frame.render_widget(Line::from(spans), right);
}

/// What is at a place outside the view.
pub fn spot_at(app: &App, at: Position) -> Option<Spots> {
    let column = usize::from(at.x);
    match at.y {
        0 => {
            let is_here = |(_, text, begin): &&(ViewId, String, usize)| {
                (*begin..begin + text.len()).contains(&column)
            };
            let tabs = tabs(app);
            tabs.iter().find(is_here).map(|(id, ..)| Spots::Tab(*id))
        }
        1 => {
            let (text, limits) = right_of_crumbs(app);
            let from_right = usize::from(app.size.0).saturating_sub(column);
            if from_right <= width(&limits) {
                return Some(Spots::Limits);
            }
            // It is drawn over what is below it.
            if from_right <= width(&limits) + width(&text) {
                return None;
            }
            let mut pieces = crumb_spans(app).into_iter();
            let found =
                pieces.find(|(_, text, begin)| (*begin..begin + width(text)).contains(&column));
            found?.0.map(Spots::Crumb)
        }
        _ => None,
    }
}

fn draw_bottom(app: &App, frame: &mut Frame<'_>, area: Rect) {
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
        // A search says at once that it finds nothing.
        let note = line(&app.message, columns / 2);
        let at = columns.saturating_sub(width(&note));
        let note_area = Rect {
            x: area.x + u16::try_from(at).unwrap_or(0),
            width: u16::try_from(width(&note)).unwrap_or(0),
            ..area
        };
        frame.render_widget(Line::styled(note, theme.style(Role::Warning)), note_area);
        return;
    }
    if !app.message.is_empty() {
        let text = line(&format!(" {}", app.message), columns);
        frame.render_widget(Line::styled(text, theme.style(Role::Strong)), area);
        return;
    }
    frame.render_widget(hints(app, columns), area);
}

/// As many keys with their hints as there is room for: the view's own first, help last and
/// always.
fn hints(app: &App, columns: usize) -> Line<'static> {
    let own = app.view().map_or(&[][..], |view| view.bindings());
    let live = if app.live.is_some() { LIVE } else { &[] };
    let is_help = |row: &&Binding| row.command == super::keys::Command::Help;
    let rows = own
        .iter()
        .chain(live)
        .chain(GLOBAL)
        .filter(|row| !row.hint.is_empty());
    let help = GLOBAL.iter().find(is_help);
    let piece = |row: &Binding| {
        let key = row
            .keys
            .first()
            .map_or_else(String::new, super::keys::Key::name);
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
