//! Help screen: the key table.

use crate::present::text;
use crate::tui::app::App;
use crate::tui::keys::{Binding, GLOBAL, Group, Key, LIVE};
use crate::tui::screen::whole;
use crate::tui::theme::Role;
use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

/// Width of the key column.
const KEYS: usize = 16;

fn area(app: &App) -> Rect {
    let whole = whole(app);
    let width = whole.width.saturating_sub(4).min(76);
    let height = whole.height.saturating_sub(2);
    Rect::new((whole.width - width) / 2, 1, width, height)
}

/// Width of a line.
fn columns(app: &App) -> usize {
    usize::from(area(app).width.saturating_sub(4))
}

/// Number of visible lines.
pub fn height(app: &App) -> usize {
    usize::from(area(app).height.saturating_sub(2))
}

/// Total number of lines.
pub fn lines(app: &App) -> usize {
    all(app).len()
}

fn all(app: &App) -> Vec<Line<'static>> {
    let own = app.view().map_or(&[][..], |view| view.bindings());
    let live: &[Binding] = if app.live.is_some() { LIVE } else { &[] };
    let rows: Vec<&Binding> = own.iter().chain(GLOBAL).chain(live).collect();
    let theme = &app.theme;
    let mut lines = Vec::new();
    for group in Group::ALL {
        let of_group: Vec<_> = rows.iter().filter(|row| row.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        let title = match group {
            Group::View => format!("{}: {}", group.title(), app.current.name()),
            _ => group.title().to_owned(),
        };
        lines.push(Line::styled(title, theme.style(Role::Title)));
        for row in of_group {
            let keys: Vec<String> = row.keys.iter().map(Key::name).collect();
            let keys = text::name(&keys.join(" "), KEYS);
            let mut before = format!("  {keys} ");
            let room = columns(app).saturating_sub(text::width(&before)).max(1);
            for piece in textwrap::wrap(row.help, room) {
                let blank = " ".repeat(text::width(&before));
                lines.push(Line::from(vec![
                    Span::styled(
                        std::mem::replace(&mut before, blank),
                        theme.style(Role::Key),
                    ),
                    Span::raw(piece.into_owned()),
                ]));
            }
        }
    }
    lines.push(Line::default());
    lines.push(Line::raw(
        "Mouse: a click selects, a second click opens, the wheel scrolls,",
    ));
    lines.push(Line::raw(
        "a click on a tab shows its view, a click on a filter removes it.",
    ));
    lines
}

/// Draws the help from line `first` on.
pub fn draw(app: &App, first: usize, frame: &mut Frame<'_>) {
    let area = area(app).intersection(frame.area());
    frame.render_widget(Clear, area);
    let all = all(app);
    let more = all.len().saturating_sub(first + height(app));
    let title = if more > 0 {
        format!(" Keys ({more} more lines below) ")
    } else {
        " Keys ".to_owned()
    };
    frame.render_widget(Block::bordered().title(title), area);
    let visible: Vec<Line> = all.into_iter().skip(first).take(height(app)).collect();
    let inner = area.inner(Margin::new(2, 1));
    frame.render_widget(Paragraph::new(visible), inner);
}
