//! Events of one kind that a JVM counts, and new ones among them.
//!
//! The VM counts an event at its begin (a memory manager: at its end) and keeps the times of the
//! newest alone. Of several between two polls, all but the newest are only counted. The VM's sum of
//! all durations says how long they were: exactly for one, together for several.

use vmscope_process::{Memory, Poll};
use vmscope_records::{Collection, TimeNs};

use super::manager::Manager;
use super::name::Kind;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// Maximum number of collectors in perf data.
pub(super) const MOST_COLLECTORS: u32 = 8;

/// Events of one kind.
#[derive(Debug)]
pub(super) struct Counted {
    pub kind: Kind,
    pub source: Source,
    name: String,
    /// Figures at the last poll.
    last: Option<Seen>,
    /// Last reported event, while its data are incomplete.
    pub open: Option<Collection>,
}

/// Source of the figures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    PerfData {
        /// The VM's number of the collector.
        number: u32,
        invocations: Slot,
        time: Slot,
        entry: Slot,
        exit: Slot,
    },
    Manager(Manager),
}

/// Figures of an event's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Number of begun events.
    pub begun: u64,
    /// Begin of the newest event in ticks.
    pub entry: i64,
    /// Its duration in ticks; `None` while it lasts.
    pub length: Option<i64>,
    /// Duration of all ended events in ticks.
    pub time: i64,
}

impl Seen {
    /// End of the newest event in ticks.
    pub fn exit(&self) -> Option<i64> {
        self.length.map(|length| self.entry.saturating_add(length))
    }
}

/// Difference of two polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// End, in ticks, of the event that lasted at the earlier poll.
    pub ended: Option<i64>,
    /// Whether an event began.
    pub has_begun: bool,
    /// Number of other ended events …
    pub missed: u64,
    /// … and their duration together, in ticks.
    pub missed_ticks: Option<u64>,
}

impl Step {
    /// The step from `last` to `seen`; `None` if the VM was just changing `seen`.
    fn between(last: Seen, seen: Seen) -> Option<Self> {
        let begun = seen.begun.checked_sub(last.begun)?;
        let has_begun = seen.entry != last.entry;
        if (begun > 0) != has_begun {
            return None;
        }
        let was_open = last.length.is_none();
        if begun == 0 {
            return Some(Self {
                ended: seen.exit().filter(|_| was_open),
                ..Self::default()
            });
        }
        // All that ended but the newest.
        let others = begun - 1 + u64::from(was_open);
        let time = seen.time.saturating_sub(last.time);
        let time = u64::try_from(time.saturating_sub(seen.length.unwrap_or_default())).ok();
        let mut step = Self {
            has_begun,
            ..Self::default()
        };
        if was_open && others == 1 {
            step.ended = time.and_then(|time| last.entry.checked_add_unsigned(time));
        } else if others > 0 {
            (step.missed, step.missed_ticks) = (others, time);
        }
        Some(step)
    }
}

impl Counted {
    /// Collector `number`, if the perf data have it and count events of one kind.
    pub fn find(number: u32, data: &PerfData) -> Option<Self> {
        let slot = |what: &str| {
            let name = format!("sun.gc.collector.{number}.{what}");
            data.layout().slot(&name)
        };
        let name = slot("name")?.text(data.bytes())?;
        let source = Source::PerfData {
            number,
            invocations: slot("invocations")?,
            time: slot("time")?,
            entry: slot("lastEntryTime")?,
            exit: slot("lastExitTime")?,
        };
        Some(Self::new(Kind::of(&name)?, source, name))
    }

    /// Events of a kind from a source.
    pub fn new(kind: Kind, source: Source, name: String) -> Self {
        Self {
            kind,
            source,
            name,
            last: None,
            open: None,
        }
    }

    /// Whether it is collector `number` of the perf data.
    pub fn is_number(&self, wanted: u32) -> bool {
        matches!(self.source, Source::PerfData { number, .. } if number == wanted)
    }

    /// The figures now; `None` if unreadable.
    pub fn seen(&self, data: &PerfData, memory: &dyn Memory) -> Option<Seen> {
        match self.source {
            Source::Manager(manager) => manager.seen(memory).ok(),
            Source::PerfData {
                invocations,
                time,
                entry,
                exit,
                ..
            } => {
                let [entry, exit] = [entry, exit].map(|slot| data.long_at(slot));
                Some(Seen {
                    begun: u64::try_from(data.long_at(invocations)).unwrap_or_default(),
                    entry,
                    length: exit.checked_sub(entry).filter(|length| *length >= 0),
                    time: data.long_at(time),
                })
            }
        }
    }

    /// Whether `seen` equals the figures of the last poll, and nothing is incomplete.
    pub fn is_known(&self, seen: Option<Seen>) -> bool {
        self.open.is_none() && (seen.is_none() || self.last == seen)
    }

    /// Number of events since the VM's start.
    pub fn count(&self) -> u64 {
        self.last.map_or(0, |last| last.begun)
    }

    /// Stores `seen`, and passes new ticks to the clock: ticks since the last poll, which began at
    /// `from`. `None` if the VM was just changing them.
    pub fn advance(
        &mut self,
        seen: Seen,
        clock: &mut VmClock,
        (from, to): (Option<TimeNs>, TimeNs),
    ) -> Option<Step> {
        let Some(last) = self.last else {
            self.last = Some(seen);
            return Some(Step {
                has_begun: seen.length.is_none(),
                ..Step::default()
            });
        };
        let step = Step::between(last, seen)?;
        self.last = Some(seen);
        let entry = Some(seen.entry).filter(|_| step.has_begun);
        let exit = seen.exit().filter(|exit| Some(*exit) != last.exit());
        for ticks in [entry, exit].into_iter().flatten() {
            if let Some(from) = from {
                clock.observe(ticks, from, to);
            }
        }
        Some(step)
    }

    /// A record of the newest event.
    pub fn begin(&self, poll: &Poll, step: Step) -> Collection {
        Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            collector: self.name.clone(),
            kind: self.kind.name.to_owned(),
            number: self.count(),
            scope: self.kind.scope,
            missed: step.missed,
            missed_ns: step.missed_ticks,
            ..Collection::default()
        }
    }

    /// Whether perf data have a cause for each event.
    pub fn has_cause(&self) -> bool {
        self.kind != Kind::CYCLE_PAUSE || self.name.starts_with(['Z', 'S'])
    }

    /// Reports the totals; a tick is `per_tick` nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&self, per_tick: f64, poll: &mut Poll) {
        let Some(last) = self.last else { return };
        let figures = (last.begun as f64, Some(last.time as f64 * per_tick));
        poll.collector_totals(&self.name, self.kind.name, self.kind.scope, figures);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Figures at `now` of events with these begins and ends.
    fn seen_at(events: &[(i64, i64)], now: i64) -> Seen {
        let begun = events.iter().filter(|(begin, _)| *begin <= now);
        let newest = begun.clone().next_back().copied().unwrap_or_default();
        let lengths = begun.clone().filter(|(_, end)| *end <= now);
        Seen {
            begun: begun.count() as u64,
            entry: newest.0,
            length: (newest.1 <= now).then_some(newest.1 - newest.0),
            time: lengths.map(|(begin, end)| end - begin).sum(),
        }
    }

    proptest! {
        /// Whenever polls come, all time of events is known by event or by group, and no event was
        /// longer than the longest of both.
        #[test]
        fn durations_are_known_or_bounded(
            gaps in prop::collection::vec((1..100_i64, 1..100_i64), 0..40),
            polls in prop::collection::vec(1..400_i64, 0..40),
        ) {
            let mut at = 0;
            let events: Vec<(i64, i64)> = gaps
                .into_iter()
                .map(|(gap, length)| {
                    let begin = at + gap;
                    at = begin + length;
                    (begin, at)
                })
                .collect();
            let mut last = seen_at(&events, 0);
            let (mut known, mut bounds, mut missed) = (Vec::new(), Vec::new(), 0);
            let mut now = 0;
            for pause in polls.into_iter().chain([10_000]) {
                now += pause;
                let seen = seen_at(&events, now);
                let step = Step::between(last, seen).expect("not while it changes");
                known.extend(step.ended.map(|end| (end - last.entry).unsigned_abs()));
                known.extend(seen.length.filter(|_| step.has_begun).map(i64::unsigned_abs));
                bounds.extend(step.missed_ticks);
                missed += step.missed;
                last = seen;
            }
            let lengths = events.iter().map(|(begin, end)| (end - begin).unsigned_abs());
            prop_assert_eq!(known.len() as u64 + missed, events.len() as u64);
            let all: u64 = known.iter().chain(&bounds).sum();
            prop_assert_eq!(all, lengths.clone().sum::<u64>());
            let most = known.iter().chain(&bounds).max();
            prop_assert!(lengths.max().as_ref() <= most);
        }
    }

    #[test]
    fn one_missed_event_has_a_duration() {
        let events = [(10, 12), (20, 25), (30, 37)];
        let step = |from, to| Step::between(seen_at(&events, from), seen_at(&events, to));
        let missed = Step {
            has_begun: true,
            missed: 1,
            missed_ticks: Some(5),
            ..Step::default()
        };
        assert_eq!(step(15, 40), Some(missed));
        // The event at 20 began before the earlier poll: it is not missed.
        let ended = Step {
            ended: Some(25),
            has_begun: true,
            ..Step::default()
        };
        assert_eq!(step(22, 35), Some(ended));
        assert_eq!(step(22, 40), Some(ended));
    }

    #[test]
    fn figures_that_are_just_changing_are_left_for_the_next_poll() {
        let last = seen_at(&[(10, 12)], 20);
        let next = seen_at(&[(10, 12), (30, 35)], 40);
        // Perf data count an event before they have its begin. A manager counts it after its end.
        let counted = Seen { begun: 2, ..last };
        let ended = Seen { begun: 1, ..next };
        for seen in [counted, ended, Seen { begun: 0, ..last }] {
            assert_eq!(Step::between(last, seen), None);
        }
    }
}
