//! Collections of one isolate, from look to look.
//!
//! V8 counts collections exactly, and keeps begin and end of the two newest. Older ones since the last
//! look count as missed.

use vmscope_process::Poll;
use vmscope_records::{Collection, CollectionScope, SpaceUse, TimeNs};

use crate::collector::{Event, Kind, Look, cause};

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
    /// The newest collections with a record.
    recorded: Vec<Recorded>,
    unrecorded: Unrecorded,
    /// Duration of pauses in nanoseconds since the first look, by kind; `None` if V8 does not sum up
    /// pauses.
    times: Option<[u64; 2]>,
}

/// A collection with a record.
#[derive(Debug)]
struct Recorded {
    begin: TimeNs,
    /// Its record, while it lasts.
    open: Option<Collection>,
}

/// What V8 has counted beyond the collections with a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unrecorded {
    /// Number by kind: negative if V8 tells a collection before it counts it.
    counts: [i64; 2],
    /// Duration of pauses in nanoseconds.
    time: i64,
    /// Whether the duration contains a recorded collection, whose end is unknown.
    is_mixed: bool,
}

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
            recorded: Vec::new(),
            unrecorded: Unrecorded::default(),
            times: None,
        }
    }

    /// Number of collections since the last look.
    #[must_use]
    pub fn since_last(&self, look: &Look) -> u32 {
        let last = self.last.as_ref();
        last.map_or(0, |last| look.collections.wrapping_sub(last.collections))
    }

    /// Reports what has changed since the last look. `spaces` reads the spaces after a collection.
    pub fn take(&mut self, look: Look, poll: &mut Poll, spaces: impl Fn() -> Vec<SpaceUse>) {
        let read_at = poll.now();
        let last = match self.last.take() {
            Some(last) => last,
            None => self.begin(&look),
        };
        self.count(&last, &look);
        let latest = read_at.0.saturating_add(TOLERANCE);
        let events = look.events.iter().filter(|event| event.begin.0 <= latest);
        let events: Vec<&Event> = events.collect();
        for event in &events {
            let known = self.recorded.iter().find(|one| one.begin == event.begin);
            if known.is_none() {
                self.unrecorded.counts[event.kind as usize] -= 1;
            }
            if known.is_none_or(|known| known.open.is_some())
                && let Some(length) = event.length()
            {
                let time = &mut self.unrecorded.time;
                *time = time.saturating_sub(i64::try_from(length).unwrap_or(0));
                self.add_time(event.kind, length);
            }
        }
        let is_told = |one: &Recorded| events.iter().any(|event| event.begin == one.begin);
        let lost = |one: &Recorded| one.open.is_some() && !is_told(one);
        self.unrecorded.is_mixed |= self.recorded.iter().any(lost);
        self.recorded.retain(is_told);
        for (at, event) in events.iter().enumerate() {
            let known = self
                .recorded
                .iter()
                .position(|one| one.begin == event.begin);
            let known = known.map(|at| self.recorded.remove(at));
            let collection = match known {
                None => {
                    let later = events.iter().skip(at + 1);
                    let later = later.filter(|later| later.kind == event.kind).count();
                    let number = u64::from(look.count(event.kind)).saturating_sub(later as u64);
                    self.new_collection(event, number, poll)
                }
                Some(Recorded {
                    open: Some(open), ..
                }) if event.end.is_some() => open,
                Some(other) => {
                    self.recorded.push(other);
                    continue;
                }
            };
            self.record(event, (collection, read_at), poll, &spaces);
        }
        self.last = Some(look);
    }

    /// Stands for the look before the first look.
    fn begin(&mut self, look: &Look) -> Look {
        self.times = look.pauses.map(|_| [0; 2]);
        if self.is_new {
            return Look {
                pauses: look.pauses.map(|_| 0),
                ..Look::default()
            };
        }
        for event in &look.events {
            match event.end {
                Some(_) => self.recorded.push(Recorded {
                    begin: event.begin,
                    open: None,
                }),
                None => self.unrecorded.counts[event.kind as usize] += 1,
            }
        }
        look.clone()
    }

    fn count(&mut self, last: &Look, look: &Look) {
        for kind in Kind::ALL {
            let more = look.count(kind).wrapping_sub(last.count(kind));
            let count = &mut self.unrecorded.counts[kind as usize];
            *count = count.saturating_add(i64::from(more.cast_signed()));
        }
        if let Some((before, now)) = last.pauses.zip(look.pauses) {
            let more = i64::try_from(now.saturating_sub(before)).unwrap_or(0);
            self.unrecorded.time = self.unrecorded.time.saturating_add(more);
        }
    }

    /// Record of a new event. Missed collections before the event count with it.
    fn new_collection(&mut self, event: &Event, number: u64, poll: &Poll) -> Collection {
        let count = &mut self.unrecorded.counts[event.kind as usize];
        let missed = u64::try_from(*count).unwrap_or(0);
        *count = (*count).min(0);
        let missed_ns = (missed > 0).then(|| self.missed_time(event.kind)).flatten();
        Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            collector: self.collector.clone(),
            kind: event.kind.name().to_owned(),
            cause: cause(event.reason).to_owned(),
            scope: CollectionScope::Whole,
            number,
            begin: Some(event.begin),
            missed,
            missed_ns,
            ..Collection::default()
        }
    }

    /// Duration of missed collections, if looks missed only this kind.
    fn missed_time(&mut self, kind: Kind) -> Option<u64> {
        let others = Kind::ALL.into_iter().filter(|other| *other != kind);
        let mut others = others.map(|other| self.unrecorded.counts[other as usize]);
        if self.times.is_none() || others.any(|count| count > 0) {
            return None;
        }
        let time = u64::try_from(self.unrecorded.time).ok()?;
        self.unrecorded.time = 0;
        self.add_time(kind, time);
        let is_mixed = std::mem::take(&mut self.unrecorded.is_mixed);
        (!is_mixed).then_some(time)
    }

    fn record(
        &mut self,
        event: &Event,
        (mut collection, read_at): (Collection, TimeNs),
        poll: &mut Poll,
        spaces: impl Fn() -> Vec<SpaceUse>,
    ) {
        collection.time = read_at;
        collection.end = event.end;
        if event.end.is_some() {
            let (before, after) = event.objects;
            collection.spaces = vec![SpaceUse {
                name: "heap".to_owned(),
                before: Some(before),
                after: Some(after),
                capacity: Some(event.memory),
            }];
            collection.spaces.extend(spaces());
            let is_young = event.kind == Kind::Scavenge;
            collection.survived_bytes = is_young.then_some(event.survived);
        }
        self.recorded.push(Recorded {
            begin: event.begin,
            open: event.end.is_none().then(|| collection.clone()),
        });
        poll.collection(collection);
    }

    fn add_time(&mut self, kind: Kind, more: u64) {
        if let Some(times) = &mut self.times {
            let time = &mut times[kind as usize];
            *time = time.saturating_add(more);
        }
    }

    /// Reports exact numbers of collections and the duration of their pauses. A new isolate begins with
    /// zeros at `began`, time of the first look at its process.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&mut self, began: TimeNs, poll: &mut Poll) {
        let Some(look) = &self.last else { return };
        let scope = CollectionScope::Whole;
        let was_new = std::mem::take(&mut self.is_new);
        for kind in Kind::ALL {
            // Missed ones of both kinds: most are scavenges.
            let rest = match kind {
                Kind::Scavenge => u64::try_from(self.unrecorded.time).unwrap_or(0),
                Kind::MarkCompact => 0,
            };
            let time = self.times.map(|times| times[kind as usize] + rest);
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
    /// Duration in nanoseconds; `None` while it lasts.
    fn length(&self) -> Option<u64> {
        Some(self.end?.since(self.begin).0)
    }
}

#[cfg(test)]
mod tests;
