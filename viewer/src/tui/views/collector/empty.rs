//! The view without collections.

use super::inside::bars;
use crate::present::collections::counted;
use crate::present::numbers::some;
use crate::present::text::wrap;
use crate::queries::collections::Collections;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::no_samples;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;
use ratatui::layout::Rect;

/// Reason, and remedy.
pub fn why(cx: &Cx<'_>, all: &Collections) -> [String; 2] {
    let session = cx.profile.trace.session.as_ref();
    let kind = session.map_or("", |session| session.vm.kind.as_str());
    let (window, threads) = (cx.filters.window(), &cx.filters.filter().threads);
    let has_any = !cx.profile.trace.collections.is_empty();
    let (why, help) = match (window, threads) {
        (Some(_), None) if has_any => (
            "No collection in this window.",
            "x removes the newest filter, X all of them.",
        ),
        (None, Some(_)) if has_any => (
            "No collection in the processes of these threads.",
            "x removes the newest filter, X all of them.",
        ),
        (Some(_), Some(_)) if has_any => (
            "No collection in this window, in the processes of these threads.",
            "x removes the newest filter, X all of them.",
        ),
        _ if all.tells => match all.are_counted() {
            true => {
                let counted = counted(all).unwrap_or_default();
                let why = format!(
                    "The VM counts {counted} here, none of them individually observed (too short)."
                );
                return [why, String::new()];
            }
            false => (
                "The VM counts no collection during this recording.",
                "Record for longer, or with a smaller heap (java -Xmx…).",
            ),
        },
        _ if cx.profile.is_native() => (
            "This native program has no known collector.",
            "vmscope shows collections of JVMs: `vmscope attach PID` or `vmscope record -- java \
             …`.",
        ),
        _ if kind == "HotSpot" => (
            "No data on collections: the JVM's perf data are off or unreadable, or the JVM ended \
             too early.",
            "Start the JVM without -XX:-UsePerfData; 9 shows the reason.",
        ),
        _ => {
            let vm = if kind.is_empty() { "this VM" } else { kind };
            let why = format!(
                "vmscope does not read individual collections of {vm}, only samples in the \
                 collector."
            );
            let help = "The timeline (4) shows these samples over time.".to_owned();
            return [why, help];
        }
    };
    [why.to_owned(), help.to_owned()]
}

/// Draws the reason, and collector samples.
pub fn draw(cx: &Cx<'_>, all: &Collections, area: Rect, frame: &mut Frame<'_>) {
    let pane = Pane {
        theme: cx.theme,
        area: Rect {
            width: area.width.min(90),
            ..area
        },
    };
    let mut lines = vec![Vec::new()];
    let put = |lines: &mut Vec<_>, role: Role, text: &str| {
        let columns = pane.columns().saturating_sub(2).max(3);
        let text = wrap(&format!("  {text}"), columns, 2);
        lines.extend(text.lines().map(|line| vec![(role, line.to_owned())]));
    };
    let [why, help] = why(cx, all);
    put(&mut lines, Role::Strong, &why);
    put(&mut lines, Role::Text, &help);
    lines.push(Vec::new());
    match all.inside.samples() {
        0 if all.total == 0 => put(&mut lines, Role::Dim, &no_samples(cx)),
        0 => put(&mut lines, Role::Dim, "No samples in the collector."),
        total => {
            let samples = some(total, "sample is", "samples are");
            let title = format!(" {samples} in the collector, by part");
            let room = pane.rows().saturating_sub(lines.len() + 2);
            lines.extend(bars(title, &all.inside, room, &pane));
        }
    }
    for (row, line) in lines.iter().enumerate() {
        pane.line(frame, row, line);
    }
}
