//! Subject, conditions, delivery, resolution, limits on the accuracy.

use crate::present::names::pids;
use crate::present::numbers::session_time;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text;
use crate::queries::overview::Overview as Digest;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::truth::flow::whole;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Summary;

/// VM with version; command.
pub fn subject(cx: &Cx<'_>) -> (String, String) {
    let Some(session) = &cx.profile.trace.session else {
        return ("an empty recording".to_owned(), String::new());
    };
    let vm = &session.vm;
    let what = if vm.kind == "native" {
        "native program".to_owned()
    } else {
        format!("{} {}", vm.kind, vm.version).trim_end().to_owned()
    };
    (what, session.command.join(" "))
}

/// Place, time and settings of the sampling.
pub fn conditions(cx: &Cx<'_>) -> Vec<String> {
    let Some(session) = &cx.profile.trace.session else {
        return Vec::new();
    };
    let clock = match session.clock {
        SampleClock::Cpu => "CPU time",
        _ => "wall-clock time",
    };
    let modes = if session.kernel_included {
        "user and kernel"
    } else {
        "user only"
    };
    let period = session.period.as_secs_f64();
    let rate = if period > 0.0 { 1.0 / period } else { 0.0 };
    // Imports do not know the machine.
    let machine = match session.host.is_empty() {
        true => <(String, String)>::default(),
        false => (
            format!("on {}", session.host),
            format!("{} CPUs", session.cpus),
        ),
    };
    let mut all = vec![
        format!("{:.3} s", cx.end.since(cx.begin).as_secs_f64()),
        format!("{rate:.1} Hz of {clock}"),
        pids(&cx.profile.trace),
        session_time(session.wall_clock_unix_ns),
        machine.0,
        machine.1,
        format!("{} engine", session.engine),
        modes.to_owned(),
        session.scheduling.clone(),
        session.kernel.clone(),
    ];
    all.retain(|one| !one.is_empty());
    all
}

/// Received and expected samples, CPUs used.
pub fn delivery(cx: &Cx<'_>, summary: &Summary) -> String {
    let samples = some(summary.total, "sample", "samples");
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let received = match summary.promised {
        Some(promised) if promised >= 1.0 => {
            let share = percent(summary.total as f64 / promised);
            format!("{samples}, {share} of {} expected", whole(promised))
        }
        _ => format!("{samples} (expected number unknown)"),
    };
    let session = cx.profile.trace.session.as_ref();
    match (summary.cpu_used(), session) {
        (Some((_, busy)), Some(session)) => {
            let dot = cx.theme.sign(" · ", "; ");
            format!("{received}{dot}CPU used: {busy:.2} of {}", session.cpus)
        }
        _ => received,
    }
}

/// Samples by resolution.
pub fn worth(summary: &Summary) -> [(&'static str, u64); 5] {
    let quality = &summary.quality;
    [
        ("exact", quality.exact),
        ("approx.", quality.approximate),
        ("method", quality.method_only),
        ("unknown", quality.unresolved),
        ("doubtful", quality.doubtful),
    ]
}

/// Draws subject, conditions, delivery and resolution.
pub fn draw(cx: &Cx<'_>, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let (what, command) = subject(cx);
    let title: [Bit; 2] = [
        (
            Role::Title,
            format!(" {}", text::line(&what, pane.columns() / 2)),
        ),
        (Role::Strong, format!("  {command}")),
    ];
    pane.line(frame, 0, &title);
    let dot = cx.theme.sign(" · ", ", ");
    let mut line = String::from(" ");
    for (index, condition) in conditions(cx).into_iter().enumerate() {
        let piece = format!("{}{condition}", if index > 0 { dot } else { "" });
        if text::width(&line) + text::width(&piece) > pane.columns() {
            continue;
        }
        line.push_str(&piece);
    }
    pane.line(frame, 1, &[(Role::Dim, line)]);
    let Some(summary) = cx.summary else {
        return;
    };
    let window = match cx.filters.window() {
        Some((from, to)) => format!(", in a window of {:.3} s", to.since(from).as_secs_f64()),
        None => String::new(),
    };
    let delivered = format!(" {}{window}", delivery(cx, summary));
    pane.line(frame, 2, &[(Role::Strong, delivered)]);
    let mut bits = vec![(Role::Text, " resolved".to_owned())];
    let roles = [
        Role::Text,
        Role::Text,
        Role::Text,
        Role::Warning,
        Role::Warning,
    ];
    for ((name, samples), role) in worth(summary).into_iter().zip(roles) {
        if samples > 0 {
            let share = ratio(samples, summary.total) * 100.0;
            let comma = if bits.len() > 1 { "," } else { "" };
            bits.push((Role::Dim, format!("{comma} {name}")));
            bits.push((role, format!(" {share:.1}%")));
        }
    }
    pane.line(frame, 3, &bits);
}

/// Draws the worst limits.
pub fn truth(digest: &Digest, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    let all = digest.truth.len();
    if all == 0 {
        let text = " Accuracy: no known limits".to_owned();
        return pane.line(frame, 0, &[(Role::Dim, text)]);
    }
    let room = pane.rows();
    let has_title = room > all.min(3);
    let mut row = 0;
    if has_title {
        let limits = some(all as u64, "limit", "limits");
        pane.heading(frame, &format!(" Accuracy: {limits}"), "9 shows all");
        row = 1;
    }
    let last = room.saturating_sub(1);
    for line in digest.truth.iter().take(room - row) {
        let samples = line
            .samples
            .map_or_else(String::new, |n| some(n, "sample", "samples") + " ");
        let more = if row == last && !has_title && all > room {
            format!("  9: all {}", count(all as u64))
        } else {
            String::new()
        };
        let columns = pane.columns().saturating_sub(3 + text::width(&more));
        let sentence = format!("{samples}{}", line.text);
        pane.line(
            frame,
            row,
            &[
                (Role::Warning, " ! ".to_owned()),
                (
                    Role::Text,
                    text::name(&text::line(&sentence, columns), columns),
                ),
                (Role::Key, more),
            ],
        );
        row += 1;
    }
}
