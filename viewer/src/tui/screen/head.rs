//! Two lines above the view: tabs; breadcrumb, with sample counts at the right.

use crate::present::numbers::{count, some};
use crate::present::text::{line, start, width};
use crate::record::live_line::bytes;
use crate::tui::app::App;
use crate::tui::filter_state::Kind;
use crate::tui::theme::Role;
use crate::tui::view_id::ViewId;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;
use vmscope_symbolizer::Profile;

/// Columns of a tab's name where all names do not fit.
const LEAST: usize = 4;

/// Piece of the breadcrumb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crumb {
    pub text: String,
    /// Filter behind the piece.
    pub kind: Option<Kind>,
}

/// Clickable spot outside the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spots {
    Tab(ViewId),
    Crumb(Kind),
    /// Number of limits on the accuracy.
    Limits,
}

/// Breadcrumb of filters and view.
pub fn crumbs(app: &App, profile: &Profile) -> Vec<Crumb> {
    let begin = app.cx(profile).begin;
    let mut crumbs = Vec::new();
    for &kind in app.filters.kinds() {
        let text = match app.span {
            Some(seconds) if kind == Kind::Window => format!("last {seconds} s"),
            _ => app.filters.label(kind, profile, begin),
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

/// Tabs: view, text, first column.
fn tabs(app: &App) -> Vec<(ViewId, String, usize)> {
    // The last tab needs no blank behind it.
    let room = usize::from(app.size.0) + 1;
    let fits = |name: &dyn Fn(ViewId) -> usize| app.tabs().map(name).sum::<usize>() <= room;
    let is_long = fits(&|id| id.name().len() + 4);
    let is_short = fits(&|id| id.short().len() + 3);
    let mut column = 0;
    let tab = |id: ViewId| {
        let number = id.key();
        let text = if is_long {
            format!(" {number} {} ", id.name())
        } else if is_short || id == app.current {
            format!("{number} {} ", id.short())
        } else {
            format!("{number} {} ", start(id.short(), LEAST))
        };
        let begin = column;
        column += text.len();
        (id, text, begin)
    };
    app.tabs().map(tab).collect()
}

/// Line of tabs.
pub fn tabs_line(app: &App) -> Line<'static> {
    let spans = tabs(app).into_iter().map(|(id, text, _)| {
        let role = if id == app.current {
            Role::Selected
        } else {
            Role::Dim
        };
        // The current tab also differs without colours.
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

/// Pieces of the breadcrumb: filter, text, first column.
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

/// Right end of the breadcrumb: state of a running process, sample count; number of limits.
fn right_of_crumbs(app: &App) -> (String, String) {
    let samples = app.total().map(|n| some(n, "sample", "samples"));
    let limits = match app.limits() {
        0 => String::new(),
        n => format!("  ! {} ", some(n as u64, "limit", "limits")),
    };
    let pending = match (app.is_pending(), app.is_older()) {
        (true, _) => "... ",
        (false, true) => "older ",
        (false, false) => "",
    };
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

/// Lost and recorded data of a running process in at most `room` columns; losses always show.
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

/// Draws the breadcrumb and its right end.
pub fn draw_crumbs(app: &App, frame: &mut Frame<'_>, area: Rect) {
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

/// Clickable spot at a position outside the view.
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
            // The right end covers the breadcrumb.
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
