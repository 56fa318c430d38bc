//! User marks within a report's window.

use serde::Serialize;
use vmscope_symbolizer::{Profile, Summary};

/// Maximum number of marks in a text report.
pub const MAX_LISTED: usize = 100;

/// A mark.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MarkPart<'a> {
    /// Seconds since the recording began.
    pub seconds: f64,
    /// Text as typed.
    pub text: &'a str,
}

/// Marks within the window of `summary`, by time.
pub fn marks_of<'a>(profile: &'a Profile, summary: &Summary) -> Vec<MarkPart<'a>> {
    let trace = &profile.trace;
    let Some(session) = &trace.session else {
        return Vec::new();
    };
    let (from, to) = summary.window;
    let marks = trace.marks.iter();
    let marks = marks.filter(|mark| from <= mark.time && mark.time <= to);
    let part = |mark: &'a vmscope_records::Mark| MarkPart {
        seconds: mark.time.since(session.time).as_secs_f64(),
        text: &mark.text,
    };
    marks.map(part).collect()
}
