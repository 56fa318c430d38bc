//! Messages of views without data.

use super::Cx;
use crate::present::text;
use crate::present::text::wrap;
use crate::tui::filter_state::Kind;
use crate::tui::theme::Role;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_records::SampleClock;

/// Maximum line length for reading.
const WIDEST: usize = 90;

/// Maximum width of a filter's label.
const LABEL: usize = 32;

/// Reason for missing samples, with the key or command that helps.
pub fn no_samples(cx: &Cx<'_>) -> String {
    let label = |kind: Kind| text::line(&cx.filters.label(kind, cx.profile, cx.begin), LABEL);
    match cx.filters.kinds() {
        [] => none_at_all(cx),
        [only] => format!(
            "No samples with this filter: x removes it ({}).",
            label(*only)
        ),
        [.., newest] => format!(
            "No samples with these filters: x removes the newest ({}), X all of them.",
            label(*newest)
        ),
    }
}

fn none_at_all(cx: &Cx<'_>) -> String {
    let trace = &cx.profile.trace;
    if !trace.samples.times.is_empty() || cx.profile.time_buckets.dropped() > 0 {
        return "No samples yet at that time.".to_owned();
    }
    if trace.end.is_none() {
        return "No samples yet, or the recording was cut off before the first. 9 shows its limits."
            .to_owned();
    }
    let clock = trace.session.as_ref().map(|session| session.clock);
    let why = match clock {
        Some(SampleClock::Wall) => "no sample reached the file",
        _ => "the threads used no CPU time, or no sample reached the file",
    };
    format!(
        "No samples in this recording: {why}. 9 shows its limits. Record a busy program, or \
         longer: `vmscope record -- COMMAND`, `vmscope attach PID`."
    )
}

/// Draws a message in place of a view. Lines with a leading blank stay unwrapped.
pub fn say(text: &str, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(4).clamp(1, WIDEST);
    let style = cx.theme.style(Role::Text);
    let first = area.y.saturating_add(1);
    for (line, y) in wrapped(text, columns).into_iter().zip(first..area.bottom()) {
        let at = Rect {
            y,
            height: 1,
            ..area
        };
        let line = Line::styled(format!("  {line}"), style);
        frame.render_widget(line, at.intersection(frame.area()));
    }
}

fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let lines = text.lines().flat_map(|line| {
        if line.starts_with(' ') {
            return vec![line.to_owned()];
        }
        let wrapped = wrap(line, columns, 0);
        wrapped.split('\n').map(str::to_owned).collect()
    });
    lines.collect()
}
