//! The lines above the table.

use crate::present::collections::{counted, observed, pause_time};
use crate::present::numbers::{count, percent, ratio, some};
use crate::queries::collections::Collections;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;
use vmscope_symbolizer::Region;

/// Draws collections and collector samples.
pub fn draw(cx: &Cx<'_>, all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let seen = count(all.rows.len() as u64);
    let counted = match counted(all) {
        Some(counted) => format!(" {counted} counted by the VM, {seen} observed"),
        None => format!(" {}", observed(all)),
    };
    let of = match all.narrowed {
        true => ", of the whole process",
        false => "",
    };
    let took = all.took.map_or_else(String::new, |ns| {
        let (from, to) = all.window;
        let elapsed = to.since(from).as_secs_f64().max(1e-9);
        let share = percent(ns / 1e9 / elapsed);
        format!(", stopped for {} ({share})", pause_time(ns))
    });
    let whole = format!(", {} fully timed{took}", count(all.observed));
    let bits = [(Role::Strong, counted + of), (Role::Text, whole)];
    pane.line(frame, 0, &bits);
    if all.total == 0 {
        let text = format!(" {}", no_samples(cx));
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    }
    let parts = all.inside.parts.iter().take(8);
    let parts = parts.map(|(name, samples)| format!("{name} {}", count(*samples)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let of_all = percent(ratio(all.in_collector, all.total));
    let samples = some(all.in_collector, "sample", "samples");
    let samples = format!(" {samples} in the collector ({of_all})");
    let bits = [
        (Role::Region(Region::Gc), samples),
        (Role::Dim, format!(": {parts}")),
    ];
    pane.line(frame, 1, &bits);
}
