//! Collections between two looks.
//!
//! The VM counts ended collections of two kinds and sums their durations. Of the newest collection it
//! keeps begin and end. Of several collections between two looks, one has times. The others have a
//! number and a total duration.

use vmscope_process::Poll;
use vmscope_records::{Collection, CollectionScope, Phase, TimeNs};

use super::VmClock;
use super::look::Look;

/// Tolerance in nanoseconds between the VM's clock and this one.
pub(super) const TOLERANCE: u64 = 1_000_000;

/// A kind of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scavenge,
    Full,
}

impl Kind {
    const ALL: [Kind; 2] = [Kind::Scavenge, Kind::Full];

    /// Collector and kind in reports.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Scavenge => ("scavenger", "scavenge"),
            Kind::Full => ("global collector", "full"),
        }
    }

    /// Variables: number and summed duration of ended collections.
    fn counters(self) -> (&'static str, &'static str) {
        match self {
            Kind::Scavenge => ("statScavenges", "statScavengeGCUsecs"),
            Kind::Full => ("statFullGCs", "statFullGCUsecs"),
        }
    }
}

/// Numbers of one look. Times are microseconds of the VM's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Number and duration of ended collections, by kind.
    ended: [(u64, u64); 2],
    /// The collection in progress, and its begin.
    open: Option<(Kind, u64)>,
    /// Begin and end of the newest ended collection, if none is in progress.
    newest: Option<(u64, u64)>,
    /// Duration of the newest scavenge.
    scavenge: Option<u64>,
}

impl Seen {
    /// `None` if the VM lacks counters, or is just beginning or ending a collection.
    fn of(look: &Look) -> Option<Self> {
        let mut ended = [(0, 0); 2];
        for (kind, ended) in Kind::ALL.into_iter().zip(&mut ended) {
            let (count, time) = kind.counters();
            *ended = (look.get(count)?, look.get(time)?);
        }
        let times = look.get("gcStartUsecs").zip(look.get("statGCEndUsecs"));
        let kind = match look.get("gcMode") {
            Some(1) => Some(Kind::Full),
            Some(2) => Some(Kind::Scavenge),
            _ => None,
        };
        let lasts = times.is_some_and(|(begin, end)| begin > end);
        if times.is_some() && lasts != kind.is_some() {
            return None;
        }
        Some(Seen {
            ended,
            open: kind.zip(times.map(|(begin, _)| begin)),
            newest: times.filter(|_| !lasts),
            scavenge: look.get("statSGCDeltaUsecs"),
        })
    }

    /// The kind of the newest ended collection, if the changes since `last` show it.
    fn newest_kind(&self, changes: [(u64, u64); 2]) -> Option<Kind> {
        let (begin, end) = self.newest?;
        let length = end.checked_sub(begin)?;
        let [scavenges, fulls] = changes;
        let may_be_full = match fulls {
            (0, _) => false,
            (1, time) => time == length,
            (_, time) => time >= length,
        };
        let may_be_scavenge = scavenges.0 > 0 && self.scavenge.is_none_or(|time| time == length);
        match (may_be_scavenge, may_be_full) {
            (true, false) => Some(Kind::Scavenge),
            (false, true) => Some(Kind::Full),
            _ => None,
        }
    }
}

/// Changes of one kind between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    /// End of the collection that was in progress.
    ended: Option<u64>,
    /// Begin of a new collection, and its end if it has ended.
    new: Option<(u64, Option<u64>)>,
    /// Number and duration of other ended collections.
    missed: (u64, u64),
}

impl Step {
    /// The steps of both kinds; `None` if counters went back.
    fn between(last: &Seen, seen: &Seen) -> Option<[Step; 2]> {
        let mut changes = [(0, 0); 2];
        let counts = last.ended.iter().zip(&seen.ended);
        for (change, (before, after)) in changes.iter_mut().zip(counts) {
            *change = (
                after.0.checked_sub(before.0)?,
                after.1.checked_sub(before.1)?,
            );
        }
        let newest = seen.newest_kind(changes);
        let of = |kind: Kind, change| Self::of(kind, change, (last, seen), newest == Some(kind));
        let [scavenges, fulls] = changes;
        Some([of(Kind::Scavenge, scavenges), of(Kind::Full, fulls)])
    }

    fn of(
        kind: Kind,
        (mut count, mut time): (u64, u64),
        (last, seen): (&Seen, &Seen),
        has_newest: bool,
    ) -> Self {
        let begin_in = |seen: &Seen| Some(seen.open.filter(|open| open.0 == kind)?.1);
        let (before, now) = (begin_in(last), begin_in(seen));
        let mut step = Step::default();
        if now.is_some() && now == before {
            return step;
        }
        step.new = now.map(|begin| (begin, None));
        if has_newest && let Some((begin, end)) = seen.newest {
            (count, time) = (count.saturating_sub(1), time.saturating_sub(end - begin));
            if before == Some(begin) {
                step.ended = Some(end);
            } else {
                step.new = Some((begin, Some(end)));
            }
        }
        match before.filter(|_| count == 1 && step.ended.is_none()) {
            Some(begin) => step.ended = begin.checked_add(time),
            None if count > 0 => step.missed = (count, time),
            None => {}
        }
        step
    }
}

/// Collections across polls.
#[derive(Debug, Default)]
pub(super) struct Collections {
    last: Option<(Seen, TimeNs)>,
    /// Record of the collection in progress.
    open: Option<(Kind, Collection)>,
    /// Collections without a record since the last record, by kind: number and microseconds.
    missed: [(u64, u64); 2],
}

impl Collections {
    /// Reports what has changed since the last look. `read_at`: a time after the look.
    pub fn take(&mut self, look: &Look, clock: VmClock, read_at: TimeNs, poll: &mut Poll) {
        let Some(seen) = Seen::of(look) else { return };
        let last = self.last.replace((seen, poll.began()));
        let (before, looked_at) = last.unzip();
        let before = before.unwrap_or(Seen { open: None, ..seen });
        let Some(steps) = Step::between(&before, &seen) else {
            self.open = None;
            return;
        };
        let time_of = |micros, after: Option<TimeNs>| {
            let time = clock.time_of(micros)?;
            let is_past = time.0 <= read_at.0.saturating_add(TOLERANCE);
            let is_new = after.is_none_or(|after| time.0.saturating_add(TOLERANCE) >= after.0);
            (is_past && is_new).then_some(time)
        };
        for (kind, step) in Kind::ALL.into_iter().zip(steps) {
            if let Some(end) = step.ended
                && let Some((_, mut open)) = self.open.take_if(|(of, _)| *of == kind)
            {
                open.end = time_of(end, open.begin);
                open.time = read_at;
                poll.collection(open);
            } else if seen.open.is_none_or(|(of, _)| of != kind) || step.new.is_some() {
                // The open collection counts as missed.
                self.open.take_if(|(of, _)| *of == kind);
            }
            let missed = &mut self.missed[kind as usize];
            missed.0 = missed.0.saturating_add(step.missed.0);
            missed.1 = missed.1.saturating_add(step.missed.1);
            let Some((begin, end)) = step.new else {
                continue;
            };
            let (missed, micros) = std::mem::take(missed);
            let (collector, name) = kind.names();
            let begin = time_of(begin, looked_at);
            let one = Collection {
                key: poll.keys().collection(),
                process: poll.process(),
                time: read_at,
                collector: collector.to_owned(),
                kind: name.to_owned(),
                number: seen.ended[kind as usize].0 + u64::from(end.is_none()),
                scope: CollectionScope::Whole,
                begin,
                end: end.and_then(|end| time_of(end, begin)),
                missed,
                missed_ns: (missed > 0).then(|| micros.saturating_mul(1000)),
                ..Collection::default()
            };
            match end {
                Some(_) => poll.collection(one),
                None => {
                    poll.collection(one.clone());
                    self.open = Some((kind, one));
                }
            }
        }
        self.take_phase(look, read_at, poll);
    }

    /// Adds the phase of the collection in progress. Its begin and end are unknown.
    fn take_phase(&mut self, look: &Look, read_at: TimeNs, poll: &mut Poll) {
        let Some((Kind::Full, open)) = &mut self.open else {
            return;
        };
        let name = match look.get("gcPhaseInProgress") {
            Some(0) => "mark",
            Some(1) => "scavenge",
            Some(2) => "compact",
            _ => return,
        };
        if open.phases.iter().any(|phase| phase.name == name) {
            return;
        }
        open.phases.push(Phase {
            name: name.to_owned(),
            stop_the_world: true,
            ..Phase::default()
        });
        open.time = read_at;
        poll.collection(open.clone());
    }

    /// Reports exact number and duration of all collections.
    pub fn tell_totals(&self, look: &Look, poll: &mut Poll) {
        for kind in Kind::ALL {
            tell_total(kind.names(), kind.counters(), look, poll);
        }
    }
}

/// Reports number and duration of all events of a collector and kind. `counters`: variables of both.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell_total(
    (collector, kind): (&str, &str),
    (count, time): (&str, &str),
    look: &Look,
    poll: &mut Poll,
) {
    if let Some(count) = look.get(count) {
        let time = look.get(time).map(|time| time as f64 * 1000.0);
        let figures = (count as f64, time);
        poll.collector_totals(collector, kind, CollectionScope::Whole, figures);
    }
}

#[cfg(test)]
mod tests;
