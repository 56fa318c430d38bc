//! The lines above the table.

use super::Collector;
use crate::present::numbers::{count, percent, ratio, some};
use crate::queries::collections::Collections;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;
use vmscope_symbolizer::Region;

impl Collector {
    pub(super) fn head(cx: &Cx<'_>, all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
        let seen = count(all.rows.len() as u64);
        let counted = match all.counted {
            Some(counted) => {
                format!("{counted:.0} collections by the VM's count, {seen} seen")
            }
            None => format!("{seen} collections seen"),
        };
        let observed = format!(", {} whole", count(all.observed));
        let took = all.took.map_or_else(String::new, |ns| {
            let (from, to) = all.window;
            let elapsed = to.since(from).as_secs_f64().max(1e-9);
            format!(", {:.0} ms ({})", ns / 1e6, percent(ns / 1e9 / elapsed))
        });
        let of = if all.narrowed {
            ", of the whole process"
        } else {
            ""
        };
        pane.line(
            frame,
            0,
            &[
                (Role::Strong, format!(" {counted}{of}")),
                (Role::Text, format!("{observed}{took}")),
            ],
        );
        let parts = all.parts.iter().take(8);
        let parts = parts.map(|(name, samples)| format!("{name} {}", count(*samples)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        if all.total == 0 {
            let text = format!(" {}", no_samples(cx));
            return pane.line(frame, 1, &[(Role::Dim, text)]);
        }
        let of_all = percent(ratio(all.in_collector, all.total));
        let samples = some(all.in_collector, "sample", "samples");
        let samples = format!(" {samples} in the collector ({of_all})");
        pane.line(
            frame,
            1,
            &[
                (Role::Region(Region::Gc), samples),
                (Role::Dim, format!(": {parts}")),
            ],
        );
    }
}
