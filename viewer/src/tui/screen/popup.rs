//! Palette over the view.

use crate::present::text;
use crate::tui::app::App;
use crate::tui::palette::Palette;
use crate::tui::screen::whole;
use crate::tui::theme::Role;
use ratatui::Frame;
use ratatui::layout::{Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

pub fn palette(app: &App, palette: &Palette, frame: &mut Frame<'_>) {
    let whole = whole(app);
    let width = whole.width.saturating_sub(4).min(80);
    let height = whole.height.saturating_sub(4).min(20);
    let area = Rect::new((whole.width - width) / 2, 2, width, height);
    let area = area.intersection(frame.area());
    frame.render_widget(Clear, area);
    let fitting = palette.fitting();
    let title = format!(" Commands ({}) ", fitting.len());
    frame.render_widget(Block::bordered().title(title), area);
    let inner = area.inner(Margin::new(2, 1));
    let columns = usize::from(inner.width);
    let mut lines = vec![Line::from(vec![
        Span::styled(": ", app.theme.style(Role::Key)),
        Span::raw(text::line(palette.input.value(), columns.saturating_sub(3))),
    ])];
    let rows = usize::from(inner.height).saturating_sub(1);
    let first = (palette.selected + 1).saturating_sub(rows);
    for (index, item) in fitting.enumerate().skip(first).take(rows) {
        let is_chosen = index == palette.selected;
        let mark = if is_chosen { "> " } else { "  " };
        let room = columns.saturating_sub(12);
        let label = format!("{mark}{}", text::name(&item.text, room.saturating_sub(2)));
        let role = if is_chosen {
            Role::Selected
        } else {
            Role::Text
        };
        lines.push(Line::from(vec![
            Span::styled(label, app.theme.style(role)),
            Span::styled(text::right(&item.key, 10), app.theme.style(Role::Key)),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inner);
    let column = palette.input.visual_cursor().min(columns.saturating_sub(3));
    let column = u16::try_from(column).unwrap_or(0);
    frame.set_cursor_position((inner.x + 2 + column, inner.y));
}
