//! What a live profile had to leave out, and what of it is known by sums over time only.

use super::{About, TruthLine};
use crate::present::numbers::some;
use vmscope_symbolizer::{Profile, Summary};

/// What helps against most of it: the file holds everything.
const REMEDY: &str = "record with --output, and look at the file";

/// Tells what was left out.
pub(super) fn tell(profile: &Profile, summary: &Summary, lines: &mut Vec<TruthLine>) {
    if summary.decided_whole > 0 {
        let text = "are cut by the window's edges and known by sums over time only: each sum counts \
                    as a whole or not at all";
        lines.push(TruthLine::new(Some(summary.decided_whole), text, REMEDY));
    }
    let Some(left) = profile.left else {
        return;
    };
    let samples = [
        (
            left.samples,
            "of the whole time are known by sums only: their callers, addresses and versions of \
             code are not shown",
        ),
        (
            left.misnamed,
            "of them count where they did before more was told of their code",
        ),
        (
            left.late_samples,
            "came after their time was shown: they count as of then",
        ),
    ];
    for (number, text) in samples.into_iter().filter(|(number, _)| *number > 0) {
        lines.push(TruthLine::new(Some(number), text, REMEDY));
    }
    let others = [
        (
            left.late,
            ("record", "records"),
            "told after their time was shown: samples of then know nothing of them",
            About::Resolution,
        ),
        (
            left.names,
            ("time", "times"),
            "a name or range had no room: it counts as `(others)`",
            About::Resolution,
        ),
        (
            left.code,
            ("piece of code", "pieces of code"),
            "that were gone lost their bytecodes for want of room: samples keep the names that \
             they had",
            About::Resolution,
        ),
        (
            left.threads,
            ("thread", "threads"),
            "that were over are summed up as one of each role, the oldest first",
            About::Resolution,
        ),
        (
            left.merged,
            ("sum over time", "sums over time"),
            "merged with others for want of room: windows that long ago have coarser edges",
            About::Resolution,
        ),
        (
            left.records,
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
