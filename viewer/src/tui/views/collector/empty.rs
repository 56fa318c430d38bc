//! What the view says where there is no collection to show.

use super::inside::bars;
use crate::present::numbers::some;
use crate::present::text::wrap;
use crate::queries::collections::Collections;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;

/// Why there is none, and what would give some.
pub fn why(cx: &Cx<'_>, all: &Collections) -> (String, String) {
    let session = cx.profile.trace.session.as_ref();
    let kind = session.map_or("", |session| session.vm.kind.as_str());
    let filter = cx.filters.filter();
    let is_narrowed = filter.threads.is_some() || cx.filters.window().is_some();
    if is_narrowed && !cx.profile.trace.collections.is_empty() {
        let why = match (cx.filters.window(), &filter.threads) {
            (Some(_), None) => "No collection lies in this window of time.",
            (None, _) => "No collection is of these threads' processes.",
            (Some(_), Some(_)) => {
                "No collection of these threads' processes lies in this window of time."
            }
        };
        return (
            why.to_owned(),
            "x removes the newest filter, X all of them.".to_owned(),
        );
    }
    if all.tells {
        let counted = all.counted.unwrap_or(0.0);
        if counted > 0.0 {
            let why = format!(
                "The VM counts {counted:.0} collections here, none of which was seen singly: looks at it fell between them."
            );
            return (why, String::new());
        }
        let why = "No collection happened while this was recorded: the VM tells of them, and counts none.";
        let help = "Record for longer, or with a smaller heap (java -Xmx…).";
        return (why.to_owned(), help.to_owned());
    }
    if cx.profile.is_native() {
        let why = "This is a native program: it has no collector that vmscope knows of.";
        let help = "Collections are told by JVMs: `vmscope attach PID` of a running one, or `vmscope record -- java …`.";
        return (why.to_owned(), help.to_owned());
    }
    if kind == "HotSpot" {
        let why = "This JVM told nothing of its collections: its perf data are off or could not be read, or it was over before.";
        let help = "Start it without -XX:-UsePerfData; 9 says what could not be read.";
        return (why.to_owned(), help.to_owned());
    }
    let vm = if kind.is_empty() { "this VM" } else { kind };
    let why = format!(
        "What vmscope reads of {vm} tells nothing of single collections; its samples are known all the same."
    );
    let help = "Where in time they were, the timeline shows (4).";
    (why, help.to_owned())
}

/// Draws it, with what is known of the collector from samples alone.
pub fn draw(cx: &Cx<'_>, all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let (why, help) = why(cx, all);
    let columns = pane.columns().saturating_sub(4).min(90);
    let mut row = 1;
    for (role, text) in [(Role::Strong, why), (Role::Text, help)] {
        for line in wrap(&text, columns.max(1), 0).lines() {
            pane.line(frame, row, &[(role, format!("  {line}"))]);
            row += 1;
        }
    }
    row += 1;
    let total: u64 = all.threads.iter().map(|(.., samples)| samples).sum();
    if total == 0 {
        let text = match all.total {
            0 => no_samples(cx),
            _ => "No sample is in a collector, either.".to_owned(),
        };
        for line in wrap(&text, columns.max(1), 0).lines() {
            pane.line(frame, row, &[(Role::Dim, format!("  {line}"))]);
            row += 1;
        }
        return;
    }
    let text = format!(
        "  {} in the collector, by part",
        some(total, "sample is", "samples are")
    );
    let width = pane.columns().min(90);
    pane.line(frame, row, &[(Role::Title, text)]);
    let parts = all
        .parts
        .iter()
        .map(|(name, samples)| (name.as_str(), *samples));
    let room = pane.rows().saturating_sub(row + 3);
    let threads = all.threads.len().min(room / 2);
    for line in bars(parts, total, width, pane).iter().take(room - threads) {
        row += 1;
        pane.line(frame, row, line);
    }
    row += 1;
    pane.line(frame, row, &[(Role::Title, "  by thread".to_owned())]);
    let by_thread = all
        .threads
        .iter()
        .map(|(_, name, samples)| (name.as_str(), *samples));
    for line in bars(by_thread, total, width, pane) {
        row += 1;
        pane.line(frame, row, &line);
    }
}
