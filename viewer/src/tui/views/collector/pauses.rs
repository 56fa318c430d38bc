//! The distribution of the pauses.

use crate::present::numbers::{brief, count, ratio, some};
use crate::present::text;
use crate::queries::collections::Collections;
use crate::queries::pauses::{buckets, percentile};
use crate::tui::theme::Role;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;

/// Median, p90, p99 and the longest, in words. Of fewer than a hundred pauses p99 is the
/// longest.
pub fn figures(pauses: &[u64]) -> String {
    let told = |percent: usize| percentile(pauses, percent).map(brief);
    let (Some(median), Some(p90), Some(p99), Some(&longest)) =
        (told(50), told(90), told(99), pauses.last())
    else {
        return String::new();
    };
    let longest = brief(longest);
    let tail = if pauses.len() < 100 {
        format!("p99 = max {longest}")
    } else {
        format!("p99 {p99}  max {longest}")
    };
    format!("median {median}  p90 {p90}  {tail}")
}

/// How many were observed of how many.
pub fn remark(all: &Collections) -> String {
    let pauses = some(all.pauses.len() as u64, "pause", "pauses");
    let observed = count(all.observed);
    match all.counted {
        Some(counted) => format!("{pauses} in {observed} observed of {counted:.0} collections"),
        None => format!("{pauses} in {observed} observed collections, uncounted by the VM"),
    }
}

/// A bucket's end in words; the last one's may be nowhere.
pub fn edge(ns: u64) -> String {
    if ns == u64::MAX {
        return "...".to_owned();
    }
    brief(ns)
}

/// Draws it.
pub fn draw(all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    pane.heading(frame, "Pauses", &remark(all));
    if all.pauses.is_empty() {
        let text = "no pause was observed from its begin to its end".to_owned();
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    }
    pane.line(frame, 1, &[(Role::Strong, figures(&all.pauses))]);
    let room = pane.rows().saturating_sub(2);
    let buckets = buckets(&all.pauses, room);
    let most = buckets.iter().map(|bucket| bucket.2).max().unwrap_or(0);
    let bar = pane.columns().saturating_sub(30).min(60);
    for (index, &(from, to, pauses)) in buckets.iter().enumerate() {
        let name = format!("{} - {}", edge(from), edge(to));
        let share = ratio(pauses, most);
        let bits: [Bit; 3] = [
            (Role::Text, format!("{} ", text::right(&name, 19))),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (Role::Text, format!(" {}", count(pauses))),
        ];
        pane.line(frame, index + 2, &bits);
    }
}
