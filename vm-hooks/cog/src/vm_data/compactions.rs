//! Code compactions between two looks.
//!
//! The VM counts ended code compactions, and sums their durations. It keeps no times. A compaction that a
//! look saw in progress began before this look, and ended before the look with the next number. The
//! duration then bounds the error of begin and end.

use vmscope_process::Poll;
use vmscope_records::{Collection, CollectionScope, TimeNs};

use super::collections::{TOLERANCE, tell_total};
use super::look::Look;

/// Collector and kind in reports.
const NAMES: (&str, &str) = ("code zone", "compaction");

/// Variables: number and summed duration in microseconds.
const COUNTERS: (&str, &str) = ("statCodeCompactionCount", "statCodeCompactionUsecs");

/// Code compactions across polls.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    /// Number and duration at the last look.
    last: Option<(u64, u64)>,
    /// Begin of the last look.
    looked: Option<TimeNs>,
    open: Option<Open>,
    /// Compactions without a record since the last record: number and microseconds.
    missed: (u64, u64),
}

/// A compaction that a look saw in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Begin of the last look that saw no compaction; `None` without such a look.
    absent: Option<TimeNs>,
    /// End of the first look that saw it.
    seen: TimeNs,
    /// A later look no longer saw it, and its number did not yet count.
    is_over: bool,
}

impl Compactions {
    /// Reports what has changed since the last look. `read_at`: a time after the look.
    pub fn take(&mut self, look: &Look, read_at: TimeNs, poll: &mut Poll) {
        let numbers = look.get(COUNTERS.0).zip(look.get(COUNTERS.1));
        let Some(now) = numbers else { return };
        let looked = self.looked.replace(poll.began());
        let last = self.last.replace(now).unwrap_or(now);
        let changes = now.0.checked_sub(last.0).zip(now.1.checked_sub(last.1));
        let Some((count, micros)) = changes else {
            self.open = None;
            return;
        };
        if count > 0 {
            let open = self.open.take().filter(|_| count == 1);
            let length = micros.saturating_mul(1000);
            match open.and_then(|open| open.place(length, read_at)) {
                Some(place) => self.tell(now.0, place, read_at, poll),
                None => {
                    self.missed.0 = self.missed.0.saturating_add(count);
                    self.missed.1 = self.missed.1.saturating_add(micros);
                }
            }
        }
        let is_in_progress = look.get("compactionInProgress").is_some_and(|it| it != 0);
        self.open = match (self.open.take(), is_in_progress) {
            (None, true) => Some(Open {
                absent: looked,
                seen: read_at,
                is_over: false,
            }),
            (Some(open), true) => Some(open),
            // The VM counts a compaction right after its end.
            (Some(open), false) if !open.is_over => Some(Open {
                is_over: true,
                ..open
            }),
            (_, false) => None,
        };
    }

    /// Emits the record of a compaction.
    fn tell(&mut self, number: u64, (begin, end): (TimeNs, TimeNs), at: TimeNs, poll: &mut Poll) {
        let (missed, micros) = std::mem::take(&mut self.missed);
        let (collector, kind) = NAMES;
        poll.collection(Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            time: at,
            collector: collector.to_owned(),
            kind: kind.to_owned(),
            number,
            scope: CollectionScope::Whole,
            begin: Some(begin),
            end: Some(end),
            missed,
            missed_ns: (missed > 0).then(|| micros.saturating_mul(1000)),
            ..Collection::default()
        });
    }
}

impl Open {
    /// Latest possible begin and end of a compaction of `length` nanoseconds that had ended at `ended`. The
    /// error is smaller than the length. `None` if the length contradicts the looks.
    fn place(&self, length: u64, ended: TimeNs) -> Option<(TimeNs, TimeNs)> {
        let begin = self.seen.0.min(ended.0.checked_sub(length)?);
        let is_possible = |absent: TimeNs| begin.saturating_add(TOLERANCE) >= absent.0;
        let is_possible = self.absent.is_none_or(is_possible);
        is_possible.then_some((TimeNs(begin), TimeNs(begin.checked_add(length)?)))
    }
}

/// Reports exact number and duration of all code compactions.
pub(super) fn tell_totals(look: &Look, poll: &mut Poll) {
    tell_total(NAMES, COUNTERS, look, poll);
}

#[cfg(test)]
mod tests;
