//! Distribution of pauses.

use crate::present::collections::{counted, observed, pauses_in_words};
use crate::present::numbers::{brief, count, ratio, some};
use crate::queries::collections::Collections;
use crate::queries::pauses::buckets;
use crate::tui::theme::Role;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;

/// Bound of a bucket; the last one may be open.
pub fn edge(ns: u64) -> String {
    match ns {
        u64::MAX => "...".to_owned(),
        ns => brief(ns),
    }
}

/// Draws figures and histogram.
pub fn draw(all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let pauses = some(all.pauses.len() as u64, "pause", "pauses");
    let remark = match counted(all) {
        Some(counted) => format!("{pauses} of known length, of {counted}"),
        None => format!("{pauses} in {}", observed(all)),
    };
    pane.heading(frame, "Pauses", &remark);
    if all.pauses.is_empty() {
        let text = "no pause was fully timed".to_owned();
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    }
    pane.line(frame, 1, &[(Role::Strong, pauses_in_words(all))]);
    let buckets = buckets(&all.pauses, pane.rows().saturating_sub(2));
    let most = buckets.iter().map(|bucket| bucket.2).max().unwrap_or(0);
    let bar = pane.columns().saturating_sub(30).min(60);
    for (index, &(from, to, pauses)) in buckets.iter().enumerate() {
        let name = format!("{} - {}", edge(from), edge(to));
        let share = ratio(pauses, most);
        let bits = [
            (Role::Text, format!("{name:>19} ")),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (Role::Text, format!(" {}", count(pauses))),
        ];
        pane.line(frame, index + 2, &bits);
    }
}
