//! Methods in the interpreter. Samples' registers and frames point to bytecodes and method objects.
//! A method object leads to its class, which lists the method: the adapter searches no other
//! classes, and names a sampled method at once.
//!
//! Samples arrive some tenths of a second late, and a class may be unloaded until then. So the adapter
//! reads methods of young loaders with few classes in advance, and remembers unloaded methods for a
//! while. The reported lifetime of a method is the observed lifetime of its class, whatever the
//! time of the search.

use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use vmscope_process::{AdapterError, Poll, cpu_time};
use vmscope_records::{
    Avma, CodeChange, Constituent, ConstituentGone, ConstituentKey, ConstituentKind, GoneReason,
    MethodKey, PcMap, Stream, TimeNs,
};

use super::counters::ClassCounts;
use super::gone::{Deaths, Gone, Spans};
use super::index::{BytecodeIndex, Entry, Layouts, Place, Sampled, Times};
use super::methods::Methods;
use crate::jvm::Jvm;
use crate::method::ClassesLayout;
use crate::pages::Pages;

/// Pause after a walk over the loaders, as a multiple of its CPU time …
const PAUSE_FACTOR: u32 = 60;

/// … in a bounded session …
const BOUNDED_PAUSE_FACTOR: u32 = 120;

/// … and after an unloading of classes.
const SHORT_PAUSE_FACTOR: u32 = 5;

/// Interval of walks if the VM does not count its classes.
const BLIND: Duration = Duration::from_millis(250);

/// Maximum number of unknown values kept until the next walk.
const MAX_PENDING: usize = 1 << 16;

/// Maximum number of new methods read at once during a recording: a later read, on a sample's
/// demand, may find them gone.
const EAGER: usize = 256;

/// Retention of unloaded methods in nanoseconds: samples arrive late.
const REMEMBERED: u64 = 2_000_000_000;

/// Maximum number of unloaded methods in memory.
const MAX_REMEMBERED: usize = 1 << 14;

/// Reported size of a method's object; only its begin counts.
const OBJECT_BYTES: u64 = 8;

/// State of the search for interpreted methods.
#[derive(Debug)]
pub(super) struct Interpreted {
    layout: Option<ClassesLayout>,
    index: BytecodeIndex,
    /// Unloaded methods that were read, but not reported in time.
    gone: Vec<Gone>,
    pending: FxHashSet<Avma>,
    /// Values whose methods are reported, since the last unloading.
    told: FxHashSet<Avma>,
    /// VM counters from before the last walk.
    counts: Option<ClassCounts>,
    /// Last time for which the last walk's young classes are certainly exact and complete;
    /// `None` before the first walk.
    certain: Option<TimeNs>,
    /// Earliest time since which certainly no class was unloaded; 0 before the first unloading.
    settled: TimeNs,
    /// The last walk ran during an unloading and may include dead classes.
    again: bool,
    deaths: Deaths,
    /// End of the last walk, and its CPU time.
    walked: Instant,
    took: Duration,
    /// Whether the last walk failed.
    has_failed: bool,
}

impl Interpreted {
    pub fn new(jvm: &Jvm, poll: &mut Poll) -> Self {
        let layout = ClassesLayout::of(&jvm.structs);
        if let Err(error) = &layout {
            let text = format!("no names for interpreted methods: {error}");
            poll.limit(text, "");
        }
        Interpreted {
            layout: layout.ok(),
            index: BytecodeIndex::default(),
            gone: Vec::new(),
            pending: FxHashSet::default(),
            told: FxHashSet::default(),
            counts: None,
            certain: None,
            settled: TimeNs(0),
            again: false,
            deaths: Deaths::default(),
            walked: Instant::now(),
            took: Duration::ZERO,
            has_failed: false,
        }
    }

    /// Reports the methods that `values` point to. `counts`: VM counters read after the poll's
    /// begin; `recount` reads them again. The last poll misses no class for lack of a walk.
    pub fn poll(
        &mut self,
        (values, is_last): (impl Iterator<Item = Avma>, bool),
        (counts, recount): (Option<ClassCounts>, impl FnOnce() -> Option<ClassCounts>),
        (jvm, pages): (&Jvm, &Pages<'_>),
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let Some(layout) = self.layout else {
            return Ok(());
        };
        let layouts = (&layout, &jvm.methods);
        if counts.is_none() || unloaded(counts) != unloaded(self.counts) || self.again {
            self.told.clear();
        }
        self.await_values(values, poll);
        let mut has_walked = false;
        let is_quiet = counts.is_some() && counts == self.counts && !self.again;
        if is_quiet && self.certain.is_some() {
            self.certain = Some(poll.began());
        } else if is_last || Instant::now() >= self.not_before(counts, poll.is_bounded()) {
            let before = cpu_time();
            let walked = self.walk(layouts, counts, pages, methods, poll);
            self.took = cpu_time().saturating_sub(before);
            self.walked = Instant::now();
            self.has_failed = walked.is_err();
            walked?;
            has_walked = true;
        }
        // Without an unloading, no indexed class has gone. Without VM counters, that is certain
        // only right after a walk.
        let have_gone = unloaded(counts) != unloaded(self.counts);
        let is_current = has_walked || (counts.is_some() && !have_gone);
        let mut values: Vec<Avma> = self.pending.iter().copied().collect();
        values.sort_unstable();
        let were_there = self.tell_dead(&values, methods, poll);
        if is_current {
            let will_walk = !has_walked && !is_quiet;
            let new = self.find(&values, will_walk, layouts, (methods, pages), poll)?;
            let is_same = || unloaded(recount()) == unloaded(counts);
            if !new.is_empty() && !is_same() {
                // The adapter may have read an unloaded class: the next poll reads again.
                new.take_back(&mut self.index);
                self.pending.extend(&values);
            }
        }
        for value in values {
            self.tell(value, pages, methods, poll);
            if were_there.hold(value) {
                self.pending.remove(&value);
            }
        }
        let long_ago = poll.began().0.saturating_sub(REMEMBERED);
        self.gone.retain(|gone| gone.gone_at.0 > long_ago);
        Ok(())
    }

    /// Adds values of samples to the pending ones.
    fn await_values(&mut self, values: impl Iterator<Item = Avma>, poll: &mut Poll) {
        for value in values {
            if self.told.contains(&value) {
                continue;
            }
            if self.pending.len() >= MAX_PENDING {
                poll.limit(
                    format!(
                        "more than {MAX_PENDING} candidates for interpreted methods while classes \
                         were loaded and unloaded: some interpreted methods have no names"
                    ),
                    "",
                );
                return;
            }
            self.pending.insert(value);
        }
    }

    /// Finds and reads the methods of current classes that `values` point to. Afterwards only
    /// methods of new loaders are pending, if a walk is to come.
    fn find(
        &mut self,
        values: &[Avma],
        will_walk: bool,
        layouts: Layouts<'_>,
        (methods, pages): (&mut Methods, &Pages<'_>),
        poll: &mut Poll,
    ) -> Result<Found, AdapterError> {
        let mut found = Found::default();
        let mut awaits = FxHashSet::default();
        for value in values {
            if self.index.find(*value).is_some() {
                continue;
            }
            match self.index.sampled(*value, layouts, pages)? {
                Sampled::New(klass) => found.classes.push(klass),
                Sampled::AfterWalk if will_walk => {
                    awaits.insert(*value);
                }
                Sampled::AfterWalk | Sampled::Nothing => {}
            }
        }
        let times = Times {
            absent_at: self.settled,
            since: poll.now(),
        };
        for klass in &found.classes {
            self.index.seen(*klass, times);
        }
        for value in values {
            let place = self.index.find(*value);
            if let Some(place) = place
                && let Some((entry, _)) = self.index.get_mut(place)
                && pin(entry, methods, pages, poll)
            {
                found.read.push(place);
            }
        }
        self.pending = awaits;
        Ok(found)
    }

    fn walk(
        &mut self,
        layouts: Layouts<'_>,
        counts: Option<ClassCounts>,
        pages: &Pages<'_>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let began_at = poll.began();
        let have_gone = unloaded(counts) != unloaded(self.counts);
        let may_have_gone = self.certain.is_some() && (counts.is_none() || have_gone || self.again);
        let walked = self.index.walk(layouts, pages, may_have_gone)?;
        if may_have_gone {
            methods.renew();
        }
        let now = poll.now();
        let died = unloaded(counts).zip(unloaded(self.counts));
        let died = died.map_or(0, |(now, before)| now.saturating_sub(before));
        let are_unseen = self.deaths.are_unseen(died, walked.dead.len());
        // Unobserved classes may have used a method's memory between the two walks.
        let certain = self.certain.unwrap_or(TimeNs(0));
        let times = Times {
            absent_at: if are_unseen { began_at } else { certain },
            since: now,
        };
        for (klass, _) in &walked.new {
            self.index.seen(*klass, times);
        }
        if self.certain.is_some() && (have_gone || !walked.dead.is_empty()) {
            self.settled = now;
        }
        let last_seen = self.certain.unwrap_or(began_at);
        let gone_at = if are_unseen { last_seen } else { now };
        let mut forgotten = 0_u64;
        for class in walked.dead {
            for entry in class.entries {
                methods.forget(entry.method);
                let gone = Gone {
                    times: class.times,
                    last_seen,
                    gone_at,
                    entry,
                };
                if let Some(told) = gone.entry.told {
                    tell_gone(told, &gone, poll);
                } else if gone.entry.pinned.is_some() {
                    if self.gone.len() < MAX_REMEMBERED {
                        self.gone.push(gone);
                    } else {
                        forgotten += 1;
                    }
                }
            }
        }
        if forgotten > 0 {
            poll.lost(Stream::Adapter, forgotten, began_at);
            poll.limit(
                format!(
                    "more than {MAX_REMEMBERED} interpreted methods were unloaded at once: some \
                     have no names"
                ),
                "",
            );
        }
        if self.certain.is_some() {
            for place in walked.new.into_iter().take(EAGER) {
                if let Some((entry, _)) = self.index.get_mut(place) {
                    pin(entry, methods, pages, poll);
                }
            }
        }
        self.again = have_gone && self.certain.is_some();
        self.certain = Some(began_at);
        self.counts = counts;
        Ok(())
    }

    /// Whether a new walk is needed soon.
    pub fn is_waiting(&self) -> bool {
        self.again || !self.pending.is_empty()
    }

    /// Earliest time of the next walk, for a session with or without a bound on the adapter's
    /// CPU time.
    pub fn not_before(&self, counts: Option<ClassCounts>, is_bounded: bool) -> Instant {
        let have_gone = self.again || unloaded(counts) != unloaded(self.counts);
        // After a failure, another failure is likely.
        let is_urgent = have_gone && !self.has_failed && !is_bounded;
        let factor = match (is_urgent, is_bounded) {
            (true, _) => SHORT_PAUSE_FACTOR,
            (false, true) => BOUNDED_PAUSE_FACTOR,
            (false, false) => PAUSE_FACTOR,
        };
        let least = if counts.is_none() {
            BLIND
        } else {
            Duration::ZERO
        };
        self.walked + self.took.saturating_mul(factor).max(least)
    }

    /// Reports the unloaded methods that contained any of `values` (ascending). Returns their
    /// address ranges.
    fn tell_dead(&mut self, values: &[Avma], methods: &Methods, poll: &mut Poll) -> Spans {
        let hit = |gone: &&mut Gone| gone.is_hit(values);
        for gone in self.gone.iter_mut().filter(hit) {
            if gone.entry.told.is_none() {
                tell_entry(&mut gone.entry, gone.times, None, methods, poll);
                if let Some(told) = gone.entry.told {
                    tell_gone(told, gone, poll);
                }
            }
        }
        Spans::of(self.gone.iter().filter(|gone| gone.is_hit(values)))
    }

    /// Reports the method at `value`, if read and still present.
    fn tell(&mut self, value: Avma, pages: &Pages<'_>, methods: &Methods, poll: &mut Poll) {
        let place = self.index.find(value);
        let Some((entry, times)) = place.and_then(|place| self.index.get_mut(place)) else {
            return;
        };
        if entry.told.is_none()
            && let Some(pinned) = &entry.pinned
            && methods.is_current(pages, pinned)
        {
            tell_entry(entry, times, Some(pages), methods, poll);
        }
        if entry.told.is_some() && self.told.len() < MAX_PENDING {
            self.told.insert(value);
        }
    }
}

/// Classes and methods that one poll has read.
#[derive(Debug, Default)]
struct Found {
    /// Classes (`Klass*`) new to the index.
    classes: Vec<Avma>,
    /// Methods read.
    read: Vec<Place>,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.read.is_empty()
    }

    /// Undoes the reading.
    fn take_back(self, index: &mut BytecodeIndex) {
        for place in self.read {
            if let Some((entry, _)) = index.get_mut(place) {
                entry.pinned = None;
            }
        }
        for klass in self.classes {
            index.take_back(klass);
        }
    }
}

/// Reads an entry's method once. Returns whether this call read the method.
fn pin(entry: &mut Entry, methods: &mut Methods, pages: &Pages<'_>, poll: &mut Poll) -> bool {
    if entry.pinned.is_some() {
        return false;
    }
    if methods.meet_anew(pages, entry.method, poll) {
        entry.pinned = methods.pin(entry.method);
    }
    entry.pinned.is_some()
}

fn unloaded(counts: Option<ClassCounts>) -> Option<i64> {
    counts.map(|counts| counts.unloaded)
}

/// Reports a loaded or unloaded method.
fn tell_entry(
    entry: &mut Entry,
    times: Times,
    pages: Option<&Pages<'_>>,
    methods: &Methods,
    poll: &mut Poll,
) {
    let Some((method, known)) = &entry.pinned else {
        return;
    };
    let memory = pages.map(|pages| pages as &dyn vmscope_process::Memory);
    let key = methods.tell_pinned(memory, known, poll);
    let name = known.info.full_name();
    // Frames of a native method in the interpreter point to where bytecodes would begin.
    let length = (known.info.bytecodes.len() as u64).max(1);
    let mut constituent = |kind, start: Avma, bytes: u64| {
        let new = data(poll, kind, (start, bytes), &name, key, times);
        let key = new.key;
        poll.code(CodeChange::Seen(new));
        key
    };
    entry.told = Some([
        constituent(ConstituentKind::Bytecodes, known.info.bytecodes_at, length),
        constituent(ConstituentKind::MethodObject, *method, OBJECT_BYTES),
    ]);
}

fn tell_gone(told: [ConstituentKey; 2], gone: &Gone, poll: &mut Poll) {
    for key in told {
        poll.code(CodeChange::Gone(ConstituentGone {
            key,
            last_seen: gone.last_seen,
            time: gone.gone_at,
            reason: GoneReason::Unloaded,
        }));
    }
}

/// A constituent for VM data.
fn data(
    poll: &Poll,
    kind: ConstituentKind,
    (start, bytes): (Avma, u64),
    name: &str,
    method: MethodKey,
    times: Times,
) -> Constituent {
    Constituent {
        key: poll.keys().constituent(),
        process: poll.process(),
        since: times.since,
        absent_at: Some(times.absent_at),
        start,
        end: Avma(start.0.saturating_add(bytes)),
        kind,
        tier: String::new(),
        name: name.to_owned(),
        method: Some(method),
        cases: Vec::new(),
        map: PcMap::None,
    }
}
