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
            "No collection lies in this window of time.",
            "x removes the newest filter, X all of them.",
        ),
        (None, Some(_)) if has_any => (
            "No collection is of these threads' processes.",
            "x removes the newest filter, X all of them.",
        ),
        (Some(_), Some(_)) if has_any => (
            "No collection of these threads' processes lies in this window of time.",
            "x removes the newest filter, X all of them.",
        ),
        _ if all.tells => match all.counted {
            Some(number) if number > 0.0 => {
                let counted = counted(all).unwrap_or_default();
                let why = format!(
                    "The VM counts {counted} here, none of which was seen singly: \
                     looks at it fell between them."
                );
                return [why, String::new()];
            }
            _ => (
                "No collection happened while this was recorded: the VM tells of them, and counts \
                 none.",
                "Record for longer, or with a smaller heap (java -Xmx…).",
            ),
        },
        _ if cx.profile.is_native() => (
            "This is a native program: it has no collector that vmscope knows of.",
            "Collections are told by JVMs: `vmscope attach PID` of a running one, or `vmscope \
             record -- java …`.",
        ),
        _ if kind == "HotSpot" => (
            "This JVM told nothing of its collections: its perf data are off or could not be \
             read, or it was over before.",
            "Start it without -XX:-UsePerfData; 9 says what could not be read.",
        ),
        _ => {
            let vm = if kind.is_empty() { "this VM" } else { kind };
            let why = format!(
                "What vmscope reads of {vm} tells nothing of single collections; its samples are \
                 known all the same."
            );
            let help = "Where in time they were, the timeline shows (4).".to_owned();
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
        0 => put(
            &mut lines,
            Role::Dim,
            "No sample is in a collector, either.",
        ),
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
