//! What a live profile omitted, and how far back its samples reach.

use super::{About, TruthLine};
use crate::present::numbers::some;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Profile;

/// What helps against most of it: the file holds everything.
const REMEDY: &str = "record with --output, and look at the file";

/// Tells what was omitted.
pub(super) fn tell(profile: &Profile, lines: &mut Vec<TruthLine>) {
    let Some(omitted) = profile.omitted else {
        return;
    };
    if let Some(kept_from) = profile.time_buckets.kept_from() {
        let session = profile.trace.session.as_ref();
        let begin = session.map_or(TimeNs(0), |session| session.time);
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
            "of them count where they did before more was told of their code",
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
            ("record", "records"),
            "told after their time was shown: samples of then know nothing of them",
            About::Resolution,
        ),
        (
            omitted.names,
            ("time", "times"),
            "a name or range had no room: it counts as `(others)`",
            About::Resolution,
        ),
        (
            omitted.code,
            ("piece of code", "pieces of code"),
            "that were gone lost their bytecodes for want of room: samples keep the names that \
             they had",
            About::Resolution,
        ),
        (
            omitted.threads,
            ("thread", "threads"),
            "that were over are summed up as one of each role, the oldest first",
            About::Resolution,
        ),
        (
            omitted.records,
            ("record", "records"),
            "of counters, collections, compilations and the like dropped for want of room, \
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
