//! Pane of one collection: phases, samples by part and by thread, spaces.

use crate::present::numbers::{brief, bytes_short, count, ratio};
use crate::present::text;
use crate::queries::collection::Inside;
use crate::queries::collections::{InCollector, Row};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;

/// Bars of collector samples by part and by thread, in a limited number of lines.
pub fn bars(title: String, inside: &InCollector, lines: usize, pane: &Pane<'_>) -> Vec<Vec<Bit>> {
    let columns = pane.columns();
    let bar = (columns / 5).clamp(4, 24);
    let name = columns.saturating_sub(bar + 8 + 7 + 2);
    let total = inside.samples();
    let of_row = |(label, samples): &(String, u64)| {
        let share = ratio(*samples, total);
        vec![
            (Role::Text, format!(" {} ", text::name(label, name))),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (Role::Text, format!("{:6.1}%", share * 100.0)),
            (Role::Dim, text::right(&count(*samples), 8)),
        ]
    };
    // Threads get up to half of the lines.
    let threads = inside.threads.len().min(lines / 2);
    let mut all = vec![vec![(Role::Title, title)]];
    all.extend(inside.parts.iter().take(lines - threads).map(of_row));
    all.push(vec![(Role::Title, " by thread".to_owned())]);
    all.extend(inside.threads.iter().map(of_row));
    all
}

/// Draws the pane; `inside` may belong to the collection selected before.
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
    let seen = || format!("{} was observed", row.seen());
    let how = match row.stops {
        true => "stops the program",
        false => "concurrent",
    };
    let remark = format!(
        "at {:.3} s, {}, {how}",
        cx.seconds(row.time),
        row.length().map_or_else(seen, brief)
    );
    let title = vmscope_records::Collection::label(&row.collector, &row.kind);
    pane.heading(frame, &title, &remark);
    let Some(inside) = inside.filter(|inside| inside.key == row.key) else {
        return;
    };
    let one = |role: Role, text: String| vec![(role, text)];
    let mut lines: Vec<Vec<Bit>> = Vec::new();
    let name = pane.columns().saturating_sub(10 + 10 + 7 + 3);
    lines.push(match inside.phases.as_slice() {
        [] => one(Role::Dim, " no phase details".to_owned()),
        _ => {
            let phase = text::name("phase", name);
            let head = format!(" {phase}{:>10}{:>10}{:>8}", "begin", "length", "samples");
            one(Role::Dim, head)
        }
    });
    for phase in &inside.phases {
        let mut label = format!(" {}{}", "  ".repeat(phase.depth), phase.name);
        if !phase.thread.is_empty() {
            label += &format!(" on {}", phase.thread);
        }
        let begin = phase.begin.zip(row.begin);
        let begin = begin.map(|(phase, row)| format!("+{}", brief(phase.since(row).0)));
        let length = phase.length.map_or_else(|| "?".to_owned(), brief);
        let samples = phase.samples.map_or_else(String::new, count);
        lines.push(vec![
            (Role::Text, text::name(&label, name + 1)),
            (Role::Dim, text::right(&begin.unwrap_or_default(), 10)),
            (Role::Text, format!("{length:>10}{samples:>8}")),
        ]);
    }
    if inside.left_out > 0 {
        let text = format!(" ({} more phases)", inside.left_out);
        lines.push(one(Role::Dim, text));
    }
    if inside.is_older {
        let text = " began before the oldest stored sample";
        lines.push(one(Role::Warning, text.to_owned()));
    }
    if let Some(samples) = inside.samples.as_ref().filter(|all| all.samples() > 0) {
        let title = " samples in the collector, by part".to_owned();
        lines.extend(bars(title, samples, usize::MAX, pane));
    }
    if !inside.spaces.is_empty() {
        lines.push(one(Role::Title, " spaces".to_owned()));
    }
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
    let arrow = cx.theme.sign("→", ">");
    for space in &inside.spaces {
        let (before, after) = (bytes(space.before), bytes(space.after));
        let name = text::name(&space.name, 14);
        let text = format!(
            " {name}{before:>7} {arrow} {after:>7} of {}",
            bytes(space.capacity)
        );
        lines.push(one(Role::Text, text));
    }
    for (index, line) in lines.iter().enumerate() {
        pane.line(frame, index + 1, line);
    }
}
