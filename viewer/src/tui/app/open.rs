//! Handling an opened or grown recording.

use super::{App, Stage};
use crate::report::beginning;
use crate::tui::live::LiveState;
use vmscope_records::{DurationNs, TimeNs};
use vmscope_symbolizer::Profile;

impl App {
    /// Handles the opened recording.
    pub(super) fn open(&mut self, profile: &Profile) {
        self.stage = Stage::Open;
        self.generation += 1;
        self.has_grown = false;
        self.has_lifetimes = !profile.trace.classes.is_empty() && self.lifetimes.has_source();
        let until = self.live.as_ref().map(|live| live.until);
        self.bounds = bounds(profile, until);
        self.follow_span();
        self.banner = banner(profile, self.live.as_ref());
    }
}

/// First and last instant shown.
pub(super) fn bounds(profile: &Profile, until: Option<TimeNs>) -> (TimeNs, TimeNs) {
    let trace = &profile.trace;
    let begin = beginning(profile);
    let told = trace.end.as_ref().map(|end| end.time);
    let last_sample = trace.samples.times.last().copied().unwrap_or(begin);
    // The last instant is included; a running process ends at its settled time.
    let end = until.unwrap_or_else(|| told.unwrap_or(trace.ending.last_time).max(last_sample));
    (begin, end.max(begin.plus(DurationNs(1))))
}

/// Warning about the recording as a whole; may be empty.
pub(super) fn banner(profile: &Profile, live: Option<&LiveState>) -> String {
    if let Some(live) = live {
        return live.ended.clone();
    }
    let trace = &profile.trace;
    let damages = trace.ending.damage_count;
    let mut parts = Vec::new();
    if damages > 0 {
        let places = crate::present::numbers::some(damages, "damaged place", "damaged places");
        parts.push(format!("{places} skipped"));
    }
    match &trace.end {
        _ if trace.unread.is_some() => parts.push("read in part: too large".to_owned()),
        None => parts.push("cut off before its end".to_owned()),
        Some(end) if end.reason.is_early() => {
            parts.push(format!("ended early: {}", end.detail));
        }
        Some(_) => {}
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("incomplete recording: {} (9 for details)", parts.join("; "))
    }
}

/// Parses a typed window: `1.5-3`, `1.5 3`, in seconds from the beginning.
pub(super) fn parse_window(text: &str, bounds: (TimeNs, TimeNs)) -> Option<(TimeNs, TimeNs)> {
    let text = text.trim();
    let at = text.find(|c: char| matches!(c, '-' | ',') || c.is_whitespace())?;
    let (from, rest) = text.split_at(at);
    let rest = rest.trim_start();
    let to = rest.strip_prefix(['-', ',']).unwrap_or(rest);
    let time_of = |seconds: &str| -> Option<TimeNs> {
        let seconds: f64 = seconds.trim_start().parse().ok()?;
        let offset = std::time::Duration::try_from_secs_f64(seconds).ok()?;
        Some(bounds.0.plus(DurationNs::from(offset)))
    };
    let (from, to) = (time_of(from)?, time_of(to)?);
    let to = to.min(TimeNs(bounds.1.0.saturating_add(1)));
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_typed_in_several_ways() {
        let bounds = (TimeNs(1_000_000_000), TimeNs(11_000_000_000));
        let window = Some((TimeNs(2_500_000_000), TimeNs(4_000_000_000)));
        for text in ["1.5-3", "1.5 3", " 1.5 - 3 ", "1.5,3"] {
            assert_eq!(parse_window(text, bounds), window, "{text}");
        }
        for text in [
            "", "1", "3-1", "a-b", "99-100", "1e400-2", "1-2-3", "-5-3", "1--3", "1 2 3",
        ] {
            assert_eq!(parse_window(text, bounds), None, "{text}");
        }
    }
}
