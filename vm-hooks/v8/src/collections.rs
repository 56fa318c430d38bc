//! Collections of one isolate, from look to look.
//!
//! V8 counts collections exactly, and keeps begin and end of the two newest. Older ones since the last
//! look count as missed. Marking beside JavaScript and its mark-compact together are a cycle.

use vmscope_process::Poll;
use vmscope_records::{Collection, CollectionScope, SpaceUse, TimeNs};

use crate::collector::{Event, Kind, Look, Pauses, cause};

/// Tolerance in nanoseconds between the time of a look and V8's times.
const TOLERANCE: u64 = 1_000_000;

/// Collections of one isolate.
#[derive(Debug)]
pub struct Collections {
    /// Its name in reports.
    collector: String,
    /// Whether the isolate began after the first look at its process.
    is_new: bool,
    last: Option<Look>,
    /// Number of counted collections without a record, by kind.
    unrecorded: [u64; 2],
    /// Number of recorded collections, by kind, where V8's counters are unknown.
    seen: [u64; 2],
    /// Duration of their pauses in nanoseconds.
    unrecorded_ns: u64,
    /// Duration of other pauses in nanoseconds since the first look, by kind; `None` after pauses of
    /// unknown duration.
    times: [Option<u64>; 2],
    /// Number of counted collections minus number of durations, by kind. V8 writes a duration some
    /// time after the pause. Durations are counted modulo 10.
    without_duration: [i64; 2],
    /// Newest begin of marking, and the begin before.
    markings: [Option<TimeNs>; 2],
}

/// Number of collections without a duration that shows a loss.
const LOST: u64 = 5;

/// Kind of a cycle in reports.
const CYCLE: &str = "marking cycle";

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Scavenge, Kind::MarkCompact];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Scavenge => "scavenge",
            Kind::MarkCompact => "mark-compact",
        }
    }
}

impl Look {
    /// Number of collections of a kind.
    fn count(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Scavenge => self.collections.wrapping_sub(self.mark_compacts),
            Kind::MarkCompact => self.mark_compacts,
        }
    }
}

impl Collections {
    /// Of the isolate with this number. `is_new`: it began after the first look at its process.
    #[must_use]
    pub fn new(number: u32, is_new: bool) -> Self {
        Collections {
            collector: match number {
                0 => "V8".to_owned(),
                _ => format!("V8 worker {number}"),
            },
            is_new,
            last: None,
            unrecorded: [0; 2],
            seen: [0; 2],
            unrecorded_ns: 0,
            times: [Some(0); 2],
            without_duration: [0; 2],
            markings: [None; 2],
        }
    }

    /// Whether a look was taken.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Number of collections since the last look.
    #[must_use]
    pub fn since_last(&self, look: &Look) -> u32 {
        let last = self.last.as_ref();
        let last = last.filter(|last| !look.is_uncounted && !last.is_uncounted);
        last.map_or(0, |last| look.collections.wrapping_sub(last.collections))
    }

    /// Reports the collections that have ended since the last look. `spaces` reads the spaces after
    /// them. V8 changes its data during a collection: such a look is left out.
    pub fn take(&mut self, look: Look, poll: &mut Poll, spaces: impl Fn() -> Vec<SpaceUse>) {
        if look.is_in_collection() {
            return;
        }
        let last = match self.last.take() {
            Some(last) => last,
            None => self.before(&look),
        };
        let more = Kind::ALL.map(|kind| {
            if look.is_uncounted || last.is_uncounted {
                return 0;
            }
            let more = look.count(kind).wrapping_sub(last.count(kind));
            // Counters that go back are damaged.
            u64::try_from(more.cast_signed()).unwrap_or(0)
        });
        for (unrecorded, more) in self.unrecorded.iter_mut().zip(more) {
            *unrecorded = unrecorded.saturating_add(more);
        }
        let is_new = |event: &&Event| last.events.iter().all(|old| old.begin != event.begin);
        let latest = poll.now().0.saturating_add(TOLERANCE);
        let events = look.events.iter().filter(is_new);
        let events: Vec<&Event> = events.filter(|event| event.begin.0 <= latest).collect();
        self.add_pauses(more, (&last.pauses, &look.pauses), poll);
        for event in &events {
            let unrecorded = &mut self.unrecorded[event.kind as usize];
            *unrecorded = unrecorded.saturating_sub(1);
            self.unrecorded_ns = self.unrecorded_ns.saturating_sub(event.length());
            self.add_time(event.kind, event.length());
        }
        if look.marking != self.markings[0] {
            self.markings = [look.marking, self.markings[0]];
        }
        for (at, event) in events.iter().enumerate() {
            let later = events.iter().skip(at + 1);
            let later = later.filter(|later| later.kind == event.kind).count();
            let number = match look.is_uncounted {
                true => self.count_seen(event.kind),
                false => u64::from(look.count(event.kind)).saturating_sub(later as u64),
            };
            let is_newest = at + 1 == events.len();
            let spaces = if is_newest { spaces() } else { Vec::new() };
            self.record(event, number, spaces, poll);
            self.record_cycle(event, &last, poll);
        }
        self.last = Some(look);
    }

    /// Number of a seen collection, where V8's counters are unknown.
    fn count_seen(&mut self, kind: Kind) -> u64 {
        let seen = &mut self.seen[kind as usize];
        *seen = seen.saturating_add(1);
        *seen
    }

    /// Adds durations of counted collections to `unrecorded_ns`.
    fn add_pauses(&mut self, collections: [u64; 2], pauses: (&Pauses, &Pauses), poll: &mut Poll) {
        let more = match pauses {
            (Pauses::Sum(before), Pauses::Sum(now)) => now.saturating_sub(*before),
            (Pauses::Rings(before), Pauses::Rings(now)) => {
                let [young, incremental, others] = [0, 1, 2].map(|at| now[at].since(&before[at]));
                let durations = [young.0, incremental.0 + others.0];
                for kind in Kind::ALL {
                    let [collections, durations] =
                        [collections, durations].map(|all| all[kind as usize].cast_signed());
                    let without = &mut self.without_duration[kind as usize];
                    *without = without.saturating_add(collections.saturating_sub(durations));
                    if without.unsigned_abs() >= LOST {
                        self.lose_time(kind, poll);
                    }
                }
                let all = [young.1, incremental.1, others.1];
                all.into_iter().fold(0, u64::saturating_add)
            }
            _ => 0,
        };
        self.unrecorded_ns = self.unrecorded_ns.saturating_add(more);
    }

    /// Drops the duration of a kind's pauses, after V8 has overwritten some.
    fn lose_time(&mut self, kind: Kind, poll: &mut Poll) {
        if self.times[kind as usize].take().is_some() {
            let label = Collection::label(&self.collector, kind.name());
            let why = "V8 keeps ten durations, and a look came too late";
            poll.limit(
                format!("the duration of all pauses of {label} is unknown: {why}"),
                "",
            );
        }
    }

    /// Stands for the look before the first look.
    fn before(&self, look: &Look) -> Look {
        match self.is_new {
            true => Look {
                pauses: match look.pauses {
                    Pauses::Sum(_) => Pauses::Sum(0),
                    Pauses::Rings(_) => Pauses::Rings(Default::default()),
                    Pauses::Unknown => Pauses::Unknown,
                },
                ..Look::default()
            },
            false => look.clone(),
        }
    }

    /// Reports a collection. The record counts missed collections of its kind.
    fn record(&mut self, event: &Event, number: u64, spaces: Vec<SpaceUse>, poll: &mut Poll) {
        let missed_ns = self.missed_time(event.kind);
        let (before, after) = event.objects;
        let mut all = vec![SpaceUse {
            name: "heap".to_owned(),
            before: Some(before),
            after: Some(after),
            capacity: Some(event.memory),
        }];
        all.extend(spaces);
        let is_young = event.kind == Kind::Scavenge;
        poll.collection(Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            time: poll.now(),
            collector: self.collector.clone(),
            kind: event.kind.name().to_owned(),
            cause: cause(event.reason).to_owned(),
            scope: CollectionScope::Whole,
            number,
            begin: Some(event.begin),
            end: Some(event.end),
            missed: std::mem::take(&mut self.unrecorded[event.kind as usize]),
            missed_ns,
            spaces: all,
            survived_bytes: event.survived.filter(|_| is_young),
            ..Collection::default()
        });
    }

    /// Reports the cycle that a mark-compact ends: from the begin of marking to the pause's end.
    fn record_cycle(&self, event: &Event, last: &Look, poll: &mut Poll) {
        if !event.is_incremental || event.kind != Kind::MarkCompact {
            return;
        }
        let before = last.events.iter();
        let before = before.filter(|one| one.kind == Kind::MarkCompact);
        let after = before.map(|one| one.end).max().unwrap_or_default();
        let known = self.markings.into_iter().chain([event.marking]).flatten();
        let begin = known.filter(|begin| (after..=event.begin).contains(begin));
        let Some(begin) = begin.max() else { return };
        poll.collection(Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            time: poll.now(),
            collector: self.collector.clone(),
            kind: CYCLE.to_owned(),
            cause: cause(event.reason).to_owned(),
            scope: CollectionScope::Cycle,
            begin: Some(begin),
            end: Some(event.end),
            ..Collection::default()
        });
    }

    /// Duration of missed collections, if looks missed only this kind.
    fn missed_time(&mut self, kind: Kind) -> Option<u64> {
        self.times[kind as usize]?;
        if self.has_unknown_pauses() {
            return None;
        }
        let missed = |kind: Kind| self.unrecorded[kind as usize] > 0;
        let are_others = Kind::ALL
            .iter()
            .any(|other| *other != kind && missed(*other));
        if are_others || !missed(kind) {
            return None;
        }
        let time = std::mem::take(&mut self.unrecorded_ns);
        self.add_time(kind, time);
        Some(time)
    }

    fn has_unknown_pauses(&self) -> bool {
        let last = self.last.as_ref();
        last.is_some_and(|last| last.pauses == Pauses::Unknown)
    }

    fn add_time(&mut self, kind: Kind, more: u64) {
        if let Some(time) = &mut self.times[kind as usize] {
            *time = time.saturating_add(more);
        }
    }

    /// Reports exact numbers of collections and the duration of their pauses. A new isolate begins with
    /// zeros at `began`, time of the first look at its process.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&mut self, began: TimeNs, poll: &mut Poll) {
        let Some(look) = self.last.as_ref().filter(|look| !look.is_uncounted) else {
            return;
        };
        let scope = CollectionScope::Whole;
        let was_new = std::mem::take(&mut self.is_new);
        for kind in Kind::ALL {
            // Missed ones of both kinds: most are scavenges.
            let rest = match kind {
                Kind::Scavenge => self.unrecorded_ns,
                Kind::MarkCompact => 0,
            };
            let time = self.times[kind as usize].filter(|_| look.pauses != Pauses::Unknown);
            let time = time.map(|time| time.saturating_add(rest));
            if was_new {
                poll.happened_at(Some(began));
                let none = (0.0, time.map(|_| 0.0));
                poll.collector_totals(&self.collector, kind.name(), scope, none);
                poll.happened_at(None);
            }
            let figures = (f64::from(look.count(kind)), time.map(|time| time as f64));
            poll.collector_totals(&self.collector, kind.name(), scope, figures);
        }
    }
}

impl Event {
    /// Duration in nanoseconds.
    fn length(&self) -> u64 {
        self.end.since(self.begin).0
    }
}

#[cfg(test)]
mod tests;
