//! Omissions of a live profile, and the reach of its samples.

use super::{About, TruthLine};
use crate::present::numbers::some;
use vmscope_symbolizer::Profile;

/// The file holds everything.
const REMEDY: &str = "record with --output and open the file";

pub(super) fn tell(profile: &Profile, lines: &mut Vec<TruthLine>) {
    let Some(omitted) = profile.omitted else {
        return;
    };
    if let Some(kept_from) = profile.time_buckets.kept_from() {
        let begin = super::start_of(profile);
        let text = format!(
            "before {:.1} s count in totals only, not in windows, charts, callers, addresses, code \
             versions and errors of shares",
            kept_from.since(begin).as_secs_f64()
        );
        lines.push(TruthLine::new(Some(omitted.samples), text, REMEDY));
    }
    let samples = [
        (
            omitted.misnamed,
            "were counted before the VM reported their code: they keep earlier names",
        ),
        (
            omitted.late_samples,
            "arrived late and are resolved with newer VM code",
        ),
    ];
    for (number, text) in samples.into_iter().filter(|(number, _)| *number > 0) {
        lines.push(TruthLine::new(Some(number), text, REMEDY));
    }
    let others = [
        (
            omitted.late,
            ("VM event", "VM events"),
            "arrived late: earlier samples were not updated",
            About::Resolution,
        ),
        (
            omitted.names,
            ("entry or range", "entries or ranges"),
            "beyond the limit: counted as `(others)`",
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
            "merged by role (too many threads), the oldest first",
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
