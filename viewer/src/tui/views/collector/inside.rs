//! The pane about one collection: its phases, its samples by part and by thread.

use crate::present::numbers::{brief, bytes_short, count, ratio};
use crate::present::text;
use crate::queries::collection::Inside;
use crate::queries::collections::Row;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;

/// Names with samples, as bars.
pub fn bars<'a>(
    rows: impl Iterator<Item = (&'a str, u64)>,
    total: u64,
    columns: usize,
    pane: &Pane<'_>,
) -> Vec<Vec<Bit>> {
    let bar = (columns / 5).clamp(4, 24);
    let name = columns.saturating_sub(bar + 8 + 7 + 2);
    let of_row = |(label, samples): (&str, u64)| {
        let share = ratio(samples, total);
        vec![
            (Role::Text, format!(" {} ", text::name(label, name))),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (
                Role::Text,
                text::right(&format!("{:.1}%", share * 100.0), 7),
            ),
            (Role::Dim, text::right(&count(samples), 8)),
        ]
    };
    rows.map(of_row).collect()
}

/// Draws what is inside a row; `inside` may be of another one that was selected before.
pub fn draw(
    cx: &Cx<'_>,
    row: Option<&Row>,
    inside: Option<&Inside>,
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    let Some(row) = row else {
        return pane.heading(frame, "No collection is selected", "");
    };
    let at = format!("at {:.3} s", cx.seconds(row.time));
    let length = row
        .length()
        .map_or_else(|| format!("{} was observed", row.seen()), brief);
    let how = if row.stops {
        "the world stands still"
    } else {
        "beside the program"
    };
    let title = vmscope_records::Collection::label(&row.collector, &row.kind);
    pane.heading(frame, &title, &format!("{at}, {length}, {how}"));
    let Some(inside) = inside.filter(|inside| inside.key == row.key) else {
        return;
    };
    let mut lines: Vec<Vec<Bit>> = Vec::new();
    let name = pane.columns().saturating_sub(10 + 10 + 7 + 3);
    if inside.phases.is_empty() {
        let text = " no phase of it was observed".to_owned();
        lines.push(vec![(Role::Dim, text)]);
    } else {
        let head = format!(
            " {}{}{}{}",
            text::name("phase", name),
            text::right("begin", 10),
            text::right("length", 10),
            text::right("samples", 8)
        );
        lines.push(vec![(Role::Dim, head)]);
    }
    for phase in &inside.phases {
        let on = if phase.thread.is_empty() {
            String::new()
        } else {
            format!(" on {}", phase.thread)
        };
        let label = format!("{}{}{on}", "  ".repeat(phase.depth), phase.name);
        let begin = phase
            .begin
            .zip(row.begin)
            .map_or_else(String::new, |(phase, row)| {
                format!("+{}", brief(phase.since(row).0))
            });
        let length = phase.length.map_or_else(|| "?".to_owned(), brief);
        let samples = phase.samples.map_or_else(String::new, count);
        lines.push(vec![
            (Role::Text, format!(" {}", text::name(&label, name))),
            (Role::Dim, text::right(&begin, 10)),
            (Role::Text, text::right(&length, 10)),
            (Role::Text, text::right(&samples, 8)),
        ]);
    }
    if inside.left_out > 0 {
        let text = format!(" ({} more phases are not shown)", inside.left_out);
        lines.push(vec![(Role::Dim, text)]);
    }
    if inside.is_older {
        let text = " it began before the samples that are kept".to_owned();
        lines.push(vec![(Role::Warning, text)]);
    }
    let total = inside.samples.unwrap_or(0);
    if total > 0 {
        let text = " samples in the collector, by part".to_owned();
        lines.push(vec![(Role::Title, text)]);
        let parts = inside
            .parts
            .iter()
            .map(|(name, samples)| (name.as_str(), *samples));
        lines.extend(bars(parts, total, pane.columns(), pane));
        lines.push(vec![(Role::Title, " by thread".to_owned())]);
        let threads = inside.threads.iter();
        let threads = threads.map(|(_, name, samples)| (name.as_str(), *samples));
        lines.extend(bars(threads, total, pane.columns(), pane));
    }
    if !inside.spaces.is_empty() {
        lines.push(vec![(Role::Title, " spaces".to_owned())]);
    }
    for space in &inside.spaces {
        let told = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
        let arrow = cx.theme.sign("→", ">");
        let text = format!(
            " {}{} {arrow} {} of {}",
            text::name(&space.name, 14),
            text::right(&told(space.before), 7),
            text::right(&told(space.after), 7),
            told(space.capacity),
        );
        lines.push(vec![(Role::Text, text)]);
    }
    for (index, line) in lines.iter().enumerate() {
        pane.line(frame, index + 1, line);
    }
}
