//! Omissions of a live profile, and the reach of its samples.

use super::{About, TruthLine};
use crate::present::numbers::some;
use vmscope_symbolizer::Profile;

/// The file holds everything.
const REMEDY: &str = "record with --output, and look at the file";

pub(super) fn tell(profile: &Profile, lines: &mut Vec<TruthLine>) {
    let Some(omitted) = profile.omitted else {
        return;
    };
    if let Some(kept_from) = profile.time_buckets.kept_from() {
        let begin = super::start_of(profile);
        let text = format!(
            "are from before {:.1} s and only in totals: windows, charts, callers, addresses, \
             versions of code and errors of shares reach back to then",
            kept_from.since(begin).as_secs_f64()
        );
        lines.push(TruthLine::new(Some(omitted.samples), text, REMEDY));
    }
    let samples = [
        (
            omitted.misnamed,
            "were counted before later reports of their code",
        ),
        (
            omitted.late_samples,
            "came after their time was shown: they count as of then",
        ),
    ];
    for (number, text) in samples.into_iter().filter(|(number, _)| *number > 0) {
        lines.push(TruthLine::new(Some(number), text, REMEDY));
    }
    let others = [
        (
            omitted.late,
            ("late VM event", "late VM events"),
            "of times already shown: earlier samples were not updated",
            About::Resolution,
        ),
        (
            omitted.names,
            ("time", "times"),
            "too many names or ranges: further ones count as `(others)`",
            About::Resolution,
        ),
        (
            omitted.code,
            ("piece of code", "pieces of code"),
            "removed by the VM lost their bytecodes for lack of memory: samples keep earlier names",
            About::Resolution,
        ),
        (
            omitted.threads,
            ("exited thread", "exited threads"),
            "merged by role, the oldest first",
            About::Resolution,
        ),
        (
            omitted.records,
            ("record", "records"),
            "of counters, collections, compilations and the like dropped for lack of memory, \
             the oldest first",
            About::Losses,
        ),
    ];
    for (number, (one, many), text, about) in others {
        if number > 0 {
            let text = format!("{} {text}", some(number, one, many));
            lines.push(TruthLine::new(None, text, REMEDY).about(about));
        }
    }
}
