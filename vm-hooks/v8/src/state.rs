//! All isolates, from look to look: collections, activity, spaces, and whether code may have moved.

use std::ops::Range;
use std::time::Duration;

use vmscope_process::{AdapterError, Memory, Poll, ProcessView};
use vmscope_records::{Avma, CounterMeaning, TimeNs};

use crate::collections::Collections;
use crate::collector::learn::{Learner, PLACES};
use crate::collector::{Collector, Event, Look, search};
use crate::isolate::{Isolate, Tables};
use crate::spaces::{SpaceNames, Spaces};
use crate::versions::CollectorFields;
use crate::vm::V8;

/// Pauses between looks: the usual pause, and a short pause during many collections.
const PAUSES: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(5)];

/// Maximum number of looks at the end, and the pause between them: collections disturb looks.
const LAST_LOOKS: u32 = 50;
const LAST_PAUSE: Duration = Duration::from_millis(2);

/// Number of collections between two looks that shortens the pause: V8 keeps the two newest.
const MANY_COLLECTIONS: u32 = 2;

/// Time in nanoseconds after a collection that freed code in which the next such collection is likely.
const RECENT: u64 = 1_000_000_000;

/// Length of the first seconds in nanoseconds.
const BEGIN: u64 = 5_000_000_000;

/// Interval of searches for an unknown collector in nanoseconds.
const SEARCH_EVERY: u64 = 500_000_000;

/// Interval of figures in nanoseconds.
const FIGURES_EVERY: u64 = 1_000_000_000;

/// Maximum number of isolates, those that have ended included.
const MAX_ISOLATES: usize = 1 << 12;

/// Names of V8's activities (`StateTag`), by number.
const STATES: [&str; 11] = [
    "JavaScript",
    "collector",
    "parser",
    "bytecode compiler",
    "compiler",
    "other",
    "outside V8",
    "Atomics.wait",
    "idle",
    "logging",
    "idle, outside V8",
];

/// Number of the activity that stands for unknown numbers.
const OTHER: usize = 5;

/// Section of the figures.
const SECTION: &str = "V8";

/// All isolates of a process.
#[derive(Debug, Default)]
pub struct States {
    live: Vec<Watched>,
    ended: Vec<Collections>,
    names: Option<SpaceNames>,
    /// Time of the first look, and of the last figures.
    began: Option<TimeNs>,
    figures_at: Option<TimeNs>,
    /// Looks at V8's activities, and at marking beside JavaScript.
    looks: [u64; STATES.len()],
    marking: u64,
    has_many: bool,
    /// Counters and time of the last look outside of collections that move old objects.
    last: (Stamp, TimeNs),
    /// Whether the last look saw such a collection.
    is_moving: bool,
    /// Whether the last look missed an isolate: the isolate has ended, or a collection began or ended.
    has_missed: bool,
    died_until: Option<TimeNs>,
    whole_until: TimeNs,
    /// Whether some collections are unknown.
    is_incomplete: bool,
    /// Whether a worker has ended.
    has_ended: bool,
    /// Whether V8 does not tell its activities.
    lacks_states: bool,
    /// Fields of collectors, after the first search for them; the time of the last search.
    fields: Option<CollectorFields>,
    searched_at: Option<TimeNs>,
    /// Search for V8's counters, if their places are unknown; their offset.
    learner: Learner,
    learned: Option<u64>,
}

#[derive(Debug)]
struct Watched {
    collector: Collector,
    collections: Collections,
    spaces: Spaces,
}

/// Numbers of isolates, each with a number that changes with each collection that moves old objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(Vec<(u32, u32)>);

impl Stamp {
    /// The counters of all isolates, the present collection included; `None` if one is unknown.
    fn of(collectors: &[&Collector], looks: &[Option<Look>]) -> Option<Self> {
        let each = collectors.iter().zip(looks);
        let each = each.map(|(one, look)| Some((one.number, look.as_ref()?.moves?)));
        each.collect::<Option<_>>().map(Stamp)
    }

    /// The counter of an isolate; 0 before it begins.
    fn count(&self, number: u32) -> u32 {
        let found = self.0.iter().find(|(other, _)| *other == number);
        found.map_or(0, |(_, count)| *count)
    }

    /// Whether `later` lacks an isolate of `self`.
    fn has_ended(&self, later: &Stamp) -> bool {
        let mut numbers = self.0.iter().map(|(number, _)| *number);
        numbers.any(|number| later.0.iter().all(|(other, _)| *other != number))
    }

    /// The collections between `self`, of a look at `before`, and `later` with its `looks`: a time between that look and
    /// the first pause, and the latest end (0 without collections). `None` if one goes on or its end is unknown.
    fn deaths(
        &self,
        before: TimeNs,
        later: &Stamp,
        looks: &[Option<Look>],
    ) -> Option<Range<TimeNs>> {
        if self.has_ended(later) {
            return None;
        }
        let (mut first, mut last) = (None, TimeNs(0));
        for (&(number, count), look) in later.0.iter().zip(looks) {
            let known = self.count(number);
            if count != known {
                let look = look.as_ref()?;
                let event = look.last_mark_compact()?;
                last = last.max(Some(event.end).filter(|end| *end > before)?);
                let is_only = count == known.wrapping_add(1) && !look.is_uncounted;
                let begin = if is_only { event.begin } else { before };
                first = Some(first.map_or(begin, |first: TimeNs| first.min(begin)));
            }
        }
        Some(first.map_or(before, |first| first.max(before))..last)
    }
}

impl States {
    /// Follows new isolates, and drops isolates that are not in `isolates`.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn follow(
        &mut self,
        isolates: &[Isolate],
        (vm, tables): (&V8, &Tables),
        process: &ProcessView,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let memory = process.memory();
        let is_first = self.began.is_none();
        self.began.get_or_insert(poll.began());
        if self.names.is_none() {
            self.names = Some(SpaceNames::of(&vm.symbols, vm.layout.spaces));
        }
        let has_ended = |one: &mut Watched| {
            !isolates.contains(&one.collector.isolate) || !one.collector.is_same(memory)
        };
        let ended: Vec<Watched> = self.live.extract_if(.., has_ended).collect();
        if !ended.is_empty() && !std::mem::replace(&mut self.has_ended, true) {
            let text = "collections of an ended worker after the last look at it are unknown";
            poll.limit(text.to_owned(), "");
        }
        self.ended
            .extend(ended.into_iter().map(|one| one.collections));
        self.has_missed = false;
        for isolate in isolates {
            if self
                .live
                .iter()
                .any(|one| one.collector.isolate == *isolate)
            {
                continue;
            }
            let order = u32::try_from(self.live.len() + self.ended.len()).unwrap_or(u32::MAX);
            let fields = match self.fields.or(vm.layout.collector) {
                Some(fields) => Ok(fields),
                None => self.search(*isolate, process, poll.now()),
            };
            let collector = fields
                .and_then(|fields| Collector::find(fields, tables, (*isolate, order), memory));
            let mut collector = match collector {
                Ok(collector) => collector,
                Err(AdapterError::NotReady { .. }) => continue,
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    self.tell_incomplete(&error.to_string(), poll);
                    continue;
                }
            };
            if let Some(offset) = self.learned {
                collector.set_counts(offset);
            }
            if !collector.has_state() && !std::mem::replace(&mut self.lacks_states, true) {
                let text = "V8's activities are unknown: vmscope does not find their number";
                poll.limit(text.to_owned(), "");
            }
            if self.live.len() + self.ended.len() >= MAX_ISOLATES {
                self.tell_incomplete("there are too many workers", poll);
                break;
            }
            let names = self.names.as_ref();
            let spaces = names.map(|names| names.spaces(collector.heap, memory));
            self.live.push(Watched {
                collections: Collections::new(collector.number, !is_first),
                spaces: spaces.and_then(Result::ok).unwrap_or_default(),
                collector,
            });
        }
        Ok(())
    }

    /// Whether looks reach all of so many isolates.
    #[must_use]
    pub fn are_followed(&self, isolates: u64) -> bool {
        self.is_incomplete || (!self.has_missed && self.live.len() as u64 == isolates)
    }

    /// Searches the fields of collectors in an isolate, at times.
    fn search(
        &mut self,
        isolate: Isolate,
        process: &ProcessView,
        now: TimeNs,
    ) -> Result<CollectorFields, AdapterError> {
        let not_ready = AdapterError::NotReady { what: "collector" };
        let is_early = |at: TimeNs| now.since(at).0 < SEARCH_EVERY;
        let started = process
            .started()
            .filter(|_| !self.searched_at.is_some_and(is_early));
        let started = started.ok_or(not_ready)?;
        self.searched_at = Some(now);
        // A collection may end during the search.
        let latest = TimeNs(now.0.saturating_add(SEARCH_EVERY));
        let found = search::find(isolate, process.memory(), &(started..=latest))?;
        self.fields = Some(found);
        Ok(found)
    }

    fn tell_incomplete(&mut self, why: &str, poll: &mut Poll) {
        if !std::mem::replace(&mut self.is_incomplete, true) {
            poll.limit(format!("some of V8's collections are unknown: {why}"), "");
        }
    }

    /// Pause until the next look.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let [usual, short] = PAUSES;
        if self.has_many { short } else { usual }
    }

    /// Maximum age of samples. It is short where new code may go soon: between collections that free code; and in the first
    /// seconds, since many programs end soon, while V8 makes code, last at `changed_at`.
    #[must_use]
    pub fn samples_within(&self, changed_at: TimeNs) -> Duration {
        let [usual, _] = PAUSES;
        let (_, now) = self.last;
        let is_recent = |died: TimeNs| died.0 != 0 && now.0.saturating_sub(died.0) < RECENT;
        let dies = !self.is_incomplete && self.died_until.is_some_and(is_recent);
        let begin = self.began.unwrap_or_default().0.saturating_add(BEGIN);
        match dies || (now.0 < begin && is_recent(changed_at)) {
            true => usual,
            false => Duration::MAX,
        }
    }

    /// Latest time at which a collection may have freed or moved code, 0 before any collection; `None`
    /// before the first look.
    #[must_use]
    pub fn died_until(&self) -> Option<TimeNs> {
        self.died_until
    }

    /// Begin of the collection that [`States::died_until`] tells, if V8 tells the begin; otherwise the last look before.
    #[must_use]
    pub fn whole_until(&self) -> TimeNs {
        self.whole_until
    }

    /// Counters that change when a collection moves old objects; `None` if the last look saw such a
    /// collection.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn stamp(&self, memory: &dyn Memory) -> Result<Option<Stamp>, AdapterError> {
        let collectors: Vec<&Collector> = self.live.iter().map(|one| &one.collector).collect();
        let looks = Collector::look(&collectors, memory)?;
        match self.is_incomplete {
            true => Ok(Some(Stamp::default())),
            false => Ok(Stamp::of(&collectors, &looks).filter(|_| !self.is_moving)),
        }
    }

    /// Whether no collection has moved old objects since the last look.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn are_as_seen(&self, memory: &dyn Memory) -> Result<bool, AdapterError> {
        let (seen, _) = &self.last;
        Ok(self.stamp(memory)?.is_some_and(|now| now == *seen))
    }

    /// Looks at all isolates once: reports collections, and figures once a second and at the last
    /// look.
    ///
    /// # Errors
    /// Errors after which no read can succeed.
    pub fn look(
        &mut self,
        memory: &dyn Memory,
        is_last: bool,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let collectors: Vec<&Collector> = self.live.iter().map(|one| &one.collector).collect();
        let began = poll.now();
        let before = self.searched(memory);
        let looks = self.looks(memory, is_last)?;
        self.has_missed = looks.iter().any(Option::is_none);
        let stamp = Stamp::of(&collectors, &looks).filter(|_| !self.is_incomplete);
        let (last, looked_at) = &self.last;
        // Before the collector is found, only a search tells that V8 has not collected.
        let is_blind = self.live.is_empty() && self.searched_at.is_none_or(|at| at < poll.began());
        let died = match &stamp {
            Some(stamp) if !is_blind => last.deaths(*looked_at, stamp, &looks),
            _ => None,
        };
        let ended = died.as_ref().map_or_else(|| poll.now(), |died| died.end);
        let died_until = self.died_until.max(Some(ended));
        if died_until > self.died_until {
            self.whole_until = died.as_ref().map_or(*looked_at, |died| died.start);
            self.died_until = died_until;
        }
        self.is_moving = died.is_none() && looks.iter().flatten().any(Look::is_collecting);
        if let Some(stamp) = stamp.filter(|_| !self.is_moving) {
            let searched = self.searched_at.filter(|_| self.live.is_empty());
            self.last = (stamp, searched.unwrap_or(began));
        }
        if let Some(before) = before {
            let first = looks.first().and_then(Option::as_ref).cloned();
            self.learn(before, first.as_ref(), memory);
        }
        // The search for counters needs looks between two collections.
        let is_recent = |event: &Event| began.since(event.end).0 < RECENT;
        self.has_many = looks.iter().flatten().any(|look| {
            let newest = look.events.last();
            look.is_uncounted && newest.is_some_and(is_recent)
        });
        for (one, look) in self.live.iter_mut().zip(looks) {
            let Some(look) = look else {
                continue;
            };
            one.collector.remember(&look);
            self.has_many |= one.collections.since_last(&look) >= MANY_COLLECTIONS;
            count(&look, (&mut self.looks, &mut self.marking));
            let had_begun = one.collections.has_begun();
            let spaces = &one.spaces;
            one.collections
                .take(look, poll, || spaces.uses(memory).unwrap_or_default());
            if !had_begun {
                // Later totals count from these on.
                let began = self.began.unwrap_or(poll.began());
                one.collections.tell_totals(began, poll);
            }
        }
        let next = self.figures_at.map(|at| at.0.saturating_add(FIGURES_EVERY));
        if is_last || next.is_none_or(|next| poll.began().0 >= next) {
            self.figures_at = Some(poll.began());
            self.tell_figures(poll);
        }
        Ok(())
    }

    /// Bytes of the first heap with V8's counters; `None` if the counters are known.
    fn searched(&self, memory: &dyn Memory) -> Option<Vec<u8>> {
        let first = self.live.first()?;
        if first.collector.has_counts() {
            return None;
        }
        let at = Avma(first.collector.heap.0.wrapping_add(PLACES.start));
        let mut bytes = vec![0; usize::try_from(PLACES.end - PLACES.start).ok()?];
        memory.read_into(at, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Continues the search for V8's counters with the bytes before a look, if they did not change
    /// meanwhile.
    fn learn(&mut self, before: Vec<u8>, look: Option<&Look>, memory: &dyn Memory) {
        let look = look.filter(|look| !look.is_in_collection());
        let Some(look) = look.filter(|_| self.searched(memory).as_ref() == Some(&before)) else {
            return;
        };
        self.learned = self.learner.take(before, &look.events);
        if let Some(offset) = self.learned {
            for one in &mut self.live {
                one.collector.set_counts(offset);
            }
        }
    }

    /// Looks at all isolates. The last looks wait for the end of collections.
    fn looks(&self, memory: &dyn Memory, is_last: bool) -> Result<Vec<Option<Look>>, AdapterError> {
        let collectors: Vec<&Collector> = self.live.iter().map(|one| &one.collector).collect();
        let mut looks = Collector::look(&collectors, memory)?;
        let is_whole = |look: &Option<Look>| {
            let look = look.as_ref();
            look.is_some_and(|look| !look.is_in_collection())
        };
        for _ in 1..LAST_LOOKS {
            if !is_last || looks.iter().all(is_whole) {
                break;
            }
            std::thread::sleep(LAST_PAUSE);
            let again = Collector::look(&collectors, memory)?;
            for (look, again) in looks.iter_mut().zip(again) {
                if !is_whole(look) {
                    *look = again;
                }
            }
        }
        Ok(looks)
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    fn tell_figures(&mut self, poll: &mut Poll) {
        let began = self.began.unwrap_or(poll.began());
        let live = self.live.iter_mut().map(|one| &mut one.collections);
        for collections in live.chain(&mut self.ended) {
            collections.tell_totals(began, poll);
        }
        let states = STATES.iter().zip(self.looks);
        let states = states.filter(|_| !self.lacks_states);
        let marking = ("marking beside JavaScript", self.marking);
        for (name, looks) in states.map(|(name, looks)| (*name, looks)).chain([marking]) {
            let total = CounterMeaning::Total;
            poll.counter(SECTION, name, "looks", total, looks as f64);
        }
    }
}

fn count(look: &Look, (states, marking): (&mut [u64; STATES.len()], &mut u64)) {
    let state = look.state.and_then(|state| usize::try_from(state).ok());
    let state = state.map(|state| if state < STATES.len() { state } else { OTHER });
    if let Some(looks) = state.and_then(|state| states.get_mut(state)) {
        *looks += 1;
    }
    *marking += u64::from(look.is_marking);
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::collector::Kind;

    const BEFORE: TimeNs = TimeNs(100);

    /// A look after so many mark-compacts, the last of which ended at `end`.
    fn look(mark_compacts: u32, end: u64, is_collecting: bool) -> Option<Look> {
        Some(Look {
            mark_compacts,
            has_open: is_collecting,
            events: vec![Event {
                kind: Kind::MarkCompact,
                reason: 0,
                begin: TimeNs(end.saturating_sub(1)),
                end: TimeNs(end),
                objects: (0, 0),
                memory: 0,
                survived: None,
                is_incremental: false,
                marking: None,
            }],
            ..Look::default()
        })
    }

    #[test]
    fn code_dies_in_mark_compacts_and_with_its_isolate() {
        let died = |before: &[(u32, u32)], now: &[(u32, u32)], looks: &[Option<Look>]| {
            let (before, now) = (Stamp(before.to_vec()), Stamp(now.to_vec()));
            let deaths = before.deaths(BEFORE, &now, looks);
            deaths.map(|deaths| (deaths.start.0, deaths.end.0))
        };
        let [same, ended] = [look(3, 90, false), look(4, 120, false)];
        let none = Some((100, 0));
        assert_eq!(died(&[(0, 3)], &[(0, 3)], slice::from_ref(&same)), none);
        let one = slice::from_ref(&ended);
        assert_eq!(died(&[(0, 3)], &[(0, 4)], one), Some((119, 120)));
        // The first of two collections may have begun right after the look.
        assert_eq!(died(&[(0, 2)], &[(0, 4)], one), Some((100, 120)));
        let uncounted = ended.clone().map(|look| Look {
            is_uncounted: true,
            ..look
        });
        let uncounted = slice::from_ref(&uncounted);
        assert_eq!(died(&[(0, 3)], &[(0, 4)], uncounted), Some((100, 120)));
        // The collection goes on, or V8 has forgotten its end.
        assert_eq!(died(&[(0, 3)], &[(0, 4)], &[look(4, 120, true)]), None);
        assert_eq!(died(&[(0, 3)], &[(0, 4)], &[look(4, 90, false)]), None);
        // Two isolates: the later end. A new isolate frees nothing, an ended isolate all its code.
        let two = [ended.clone(), look(2, 140, false)];
        assert_eq!(
            died(&[(0, 3), (1, 1)], &[(0, 4), (1, 2)], &two),
            Some((119, 140))
        );
        let new = [same.clone(), Some(Look::default())];
        assert_eq!(died(&[(0, 3)], &[(0, 3), (1, 0)], &new), none);
        assert_eq!(died(&[(0, 3), (1, 1)], &[(0, 3)], &[same]), None);
    }
}
