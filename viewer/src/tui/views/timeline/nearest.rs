//! The next collection or mark.

use super::lanes::{collection_in_words, times};
use crate::queries::collections::processes;
use crate::tui::views::Cx;
use vmscope_records::{Collection, TimeNs};

/// The collections and marks that are shown, nearest to a time: the next one not before
/// `after`, or the last one before `before`.
pub fn nearest(
    cx: &Cx<'_>,
    (before, after): (TimeNs, TimeNs),
    is_next: bool,
) -> Option<(TimeNs, String)> {
    let (trace, begin) = (&cx.profile.trace, cx.begin);
    let processes = processes(cx.profile, cx.filters.filter());
    let takes = |one: &&Collection| {
        let processes = processes.as_ref();
        processes.is_none_or(|processes| processes.contains(&one.process))
    };
    let is_beyond = |time: TimeNs| {
        if is_next {
            // What came after the picture was held is not shown.
            time >= after && time <= cx.end
        } else {
            time < before
        }
    };
    let distance = |time: TimeNs| {
        if is_next {
            time.since(after).0
        } else {
            before.since(time).0
        }
    };
    let collections = trace.collections.iter().filter(takes);
    let collections = collections.filter_map(|one| Some((times(one)?, one)));
    let collection = collections
        .filter(|((from, _), _)| is_beyond(*from))
        .min_by_key(|((from, _), _)| distance(*from));
    let marks = trace.marks.iter().filter(|mark| is_beyond(mark.time));
    let mark = marks.min_by_key(|mark| distance(mark.time));
    match (collection, mark) {
        (Some(((from, to), one)), mark)
            if mark.is_none_or(|mark| distance(from) <= distance(mark.time)) =>
        {
            Some((from, collection_in_words(one, (from, to), begin)))
        }
        (_, Some(mark)) => Some((mark.time, format!("mark: {}", mark.text))),
        _ => None,
    }
}
