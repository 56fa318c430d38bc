//! Screens without a recording: progress of opening, failure, terminal too small.

use crate::present::numbers::ratio;
use crate::present::text::line;
use crate::present::text::wrap;
use crate::report::Loading;
use crate::tui::app::App;
use crate::tui::theme::Role;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use vmscope_symbolizer::Making;

/// Draws the minimum size of a terminal.
pub fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (columns, rows) = super::LEAST;
    let text = format!(
        "vmscope needs a terminal of {columns}x{rows}, this one has {}x{}: make it larger; q quits",
        area.width, area.height
    );
    let lines = textwrap::wrap(&text, usize::from(area.width.max(1)));
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|l| Line::raw(l.into_owned()))
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// Steps of opening a recording.
const STEPS: [&str; 4] = [
    "reading",
    "looking up symbols",
    "naming code",
    "summing up over time",
];

/// Draws the progress of opening.
pub fn opening(app: &App, loading: Option<Loading>, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width);
    let (step, within) = match loading {
        None => (0, 0.0),
        Some(Loading::Reading(far)) => (0, ratio(far.done, far.all)),
        Some(Loading::Symbols) => (1, 0.0),
        Some(Loading::Making(Making::Names)) => (2, 0.0),
        Some(Loading::Making(Making::TimeBuckets)) => (3, 0.0),
    };
    let theme = &app.theme;
    let (title, told) = if app.live.is_some() {
        (
            "attached to",
            vec![Span::raw("waiting for the first samples")],
        )
    } else {
        let words = STEPS.get(step).copied().unwrap_or_default();
        let share = if step == 0 {
            format!(" {:3.0}%", within * 100.0)
        } else {
            String::new()
        };
        let told = format!("{words}{share}  ({} of {})", step + 1, STEPS.len());
        ("opening", vec![Span::raw(told)])
    };
    let mut lines = vec![Line::raw(line(&format!("{title} {}", app.name), columns)).centered()];
    if app.live.is_none() {
        // Reading takes longest; the three other steps get a tenth each.
        let share = [within * 0.7, 0.7, 0.8, 0.9].get(step).copied();
        let share = share.unwrap_or_default();
        let bar = theme.bar(share, columns.saturating_sub(12).min(60));
        let line = Line::from(vec![
            Span::raw("["),
            Span::styled(bar, theme.style(Role::Title)),
            Span::raw("]"),
        ]);
        lines.push(line.centered());
    }
    lines.push(Line::from(told).centered());
    lines.push(Line::styled("q quits", theme.style(Role::Dim)).centered());
    let height = u16::try_from(lines.len()).unwrap_or(area.height);
    let middle = Rect {
        y: area.y + area.height.saturating_sub(height) / 2,
        height: height.min(area.height),
        ..area
    };
    frame.render_widget(Paragraph::new(lines), middle);
}

/// Draws the reason of a failed opening.
pub fn failed(app: &App, why: &str, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(4);
    let text = wrap(why, columns, 0);
    let lines: Vec<Line> = text.lines().map(|l| Line::raw(format!("  {l}"))).collect();
    let title = format!("  Cannot open {}", app.name);
    let mut all = vec![
        Line::styled(line(&title, columns), app.theme.style(Role::Bad)),
        Line::default(),
    ];
    all.extend(lines);
    all.extend([Line::default(), Line::raw("  q quits")]);
    frame.render_widget(Paragraph::new(all), area);
}
