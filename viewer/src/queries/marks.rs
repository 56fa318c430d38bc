//! The marks that the user set, as far as a report's window has them.

use serde::Serialize;
use vmscope_symbolizer::{Profile, Summary};

/// A text report lists so many.
pub const MAX_LISTED: usize = 100;

/// A mark.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MarkPart<'a> {
    /// Since the recording began.
    pub seconds: f64,
    /// The user's words, as they were given.
    pub text: &'a str,
}

/// The marks in the window of `summary`, by time.
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
