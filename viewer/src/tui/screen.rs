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
//! Drawing is a pure function of the state. The functions that draw also locate clicks.

mod bottom;
mod head;
pub mod help;
mod popup;
mod unopened;

pub use head::{Crumb, Spots, crumbs, spot_at};

use super::app::{App, Stage};
use super::mode::Mode;
use super::theme::Role;
use crate::present::text::{is_harmful, line};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_symbolizer::Profile;

/// Minimum terminal size: columns, rows.
pub const LEAST: (u16, u16) = (60, 16);

fn whole(app: &App) -> Rect {
    Rect::new(0, 0, app.size.0, app.size.1)
}

fn above(app: &App) -> u16 {
    if app.banner.is_empty() { 2 } else { 3 }
}

/// Area of the view.
pub fn body(app: &App) -> Rect {
    let (columns, rows) = app.size;
    let above = above(app);
    Rect::new(0, above, columns, rows.saturating_sub(above + 1))
}

/// Draws the whole screen.
pub fn draw(app: &App, profile: Option<&Profile>, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return unopened::too_small(frame, area);
    }
    match (&app.stage, profile) {
        (Stage::Opening(loading), _) => unopened::opening(app, *loading, frame, area),
        (Stage::Failed(why), _) => unopened::failed(app, why, frame, area),
        (Stage::Open, Some(profile)) => open(app, profile, frame),
        (Stage::Open, None) => {}
    }
    without_harm(frame.buffer_mut());
    if !app.theme.unicode {
        in_ascii(frame.buffer_mut());
    }
}

/// Replaces characters that would act on the terminal, wherever a view has them from. Views escape
/// names themselves, and so show what they hold.
fn without_harm(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().contains(is_harmful) {
            cell.set_symbol("?");
        }
    }
}

/// Replaces Unicode characters by ASCII substitutes.
fn in_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let sign = match cell.symbol() {
            "·" | "…" => ".",
            "×" | "✕" => "x",
            "±" => "+",
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

fn open(app: &App, profile: &Profile, frame: &mut Frame<'_>) {
    let area = whole(app).intersection(frame.area());
    let row = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    frame.render_widget(head::tabs_line(app), row(0));
    head::draw_crumbs(app, frame, row(1));
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
    bottom::draw(app, frame, row(area.height.saturating_sub(1)));
    match &app.mode {
        Mode::Help(first) => help::draw(app, *first, frame),
        Mode::Palette(palette) => popup::palette(app, palette, frame),
        Mode::Normal | Mode::Search(_) | Mode::Ask(..) => {}
    }
}
