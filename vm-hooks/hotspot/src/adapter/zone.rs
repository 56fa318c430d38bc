//! The code zone. It reads the whole code cache at a pace that follows its churn, and reports
//! changes.

mod found;
mod hits;
mod reading;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_process::{AdapterError, Cadence, CodeZone, Poll, ProcessView, SeenCode, cpu_time};
use vmscope_records::{Avma, GoneReason, InterpreterRules, Stream, TimeNs};

use self::reading::Reading;
use super::counters::Unloading;
use super::describe::{KnownFrom, describe};
use super::figures::Figures;
use super::kept::{MAX_BYTES, Nmethods};
use super::methods::Methods;
use super::unloaded::{CountedUnloading, Unloaded};
use crate::code::{Blob, CodeCache, HeapBounds, Nmethod, NmethodId, NmethodState};
use crate::jvm::Jvm;
use crate::pages::Pages;
use crate::sample_needs::{interpreter_sources, leaf_sources};
use crate::stubs::{DispatchStubs, Routine, codelets, stub_routines};

/// Minimum pause between two readings of the code cache.
const SHORTEST: Duration = Duration::from_millis(15);
const LONGEST: Duration = Duration::from_millis(800);

/// Number of changes between two readings that makes the pause shorter.
const MUCH: usize = 2;

/// Minimum pause after a reading, as a multiple of the reading's CPU time without the reports of new
/// code. Readings thus take less than 0.5 % of a processor, even if the VM compiles without end.
/// Sampled code need not wait for them.
const PAUSE_FACTOR: u32 = 240;

/// Maximum bytes per reading of nmethod data outside the code cache: several times the need of
/// the largest code cache. The next reading takes the rest.
const MAX_ELSEWHERE: u64 = 512 << 20;

/// State of an nmethod under construction (all versions).
const NOT_INSTALLED: i8 = -1;

/// First state of an nmethod that no thread runs any more: unloaded, then zombie (up to JDK 19;
/// `CompiledMethod`). Its memory waits for other code.
const DEAD: i8 = 3;

/// State of an nmethod without new calls, which threads may still run (up to JDK 19).
pub(super) const NOT_ENTRANT: i8 = 2;

/// Maximum number of nmethods compared between readings.
const MAX_NOT_ENTRANT: usize = 1 << 10;

/// Identity of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum CodeId {
    Nmethod(NmethodId),
    Routine(Avma, Avma),
}

/// Shorter pause factor after a possible release of code, since the VM reuses freed memory at
/// once.
const SHORT_PAUSE_FACTOR: u32 = 8;

/// Interval, in readings, for heaps without compiled methods. Such heaps change rarely; between
/// full readings the zone skips them unless they grow.
const READINGS: u32 = 16;

/// VM counters of events that create or free code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signs {
    pub compilations: i64,
    /// Number of collections; `None` during a collection, which frees code.
    pub collections: Option<i64>,
    /// Number of collections that may unload classes and free code; excludes the frequent young
    /// collections.
    pub unloadings: Option<i64>,
    /// Whether the VM frees code only in stop-the-world collections.
    pub are_deaths: bool,
}

/// Deaths of classes around a reading of the code cache.
#[derive(Clone, Copy, Debug)]
struct Deaths {
    /// Whether the VM has counted the unloading of code found dead.
    unloading: CountedUnloading,
    /// Whether classes may have died during the reading.
    may_have_died: bool,
}

/// A blob other than an nmethod: end, address of the name, pieces of code.
type Other = (Avma, Avma, Vec<CodeId>);

/// Contents of a JVM's code cache at the last reading.
#[derive(Debug)]
pub(super) struct Zone {
    cache: CodeCache,
    /// Begins of routines inside the stub blobs.
    stubs: Vec<(Avma, String)>,
    codelets: Arc<[Routine]>,
    dispatch: DispatchStubs,
    /// The memory of vtable and itable stubs.
    dispatch_in: Vec<(Avma, Avma)>,
    known: CodeZone<CodeId>,
    nmethods: Nmethods,
    /// Dead nmethods of the last reading, and since: see [`DEAD`].
    dead: FxHashSet<NmethodId>,
    /// Nmethods without new calls at the last reading, which may die before the next. Empty where
    /// no nmethod dies between readings.
    not_entrant: Vec<NmethodId>,
    compare_not_before: Instant,
    unloaded: Unloaded,
    /// [`Methods::unloadings`] at the last complete reading.
    unloadings: u64,
    /// Nmethods with samples outside their maps, which wait for their next map.
    waiting: FxHashSet<NmethodId>,
    /// Blobs by the begin of their code.
    others: FxHashMap<Avma, Other>,
    /// Code of the last reading, and found since then: first address, end address (exclusive),
    /// identity; ascending.
    covered: Vec<(Avma, Avma, CodeId)>,
    /// Number of nmethods found since the last reading.
    came: u64,
    signs: Option<Signs>,
    /// Whether samples hit code missing from the last reading.
    is_awaited: bool,
    readings: u32,
    /// Heaps without compiled methods.
    without_methods: Vec<HeapBounds>,
    heaps: Vec<HeapBounds>,
    cadence: Cadence,
    due: Instant,
    not_before: Instant,
    collected_not_before: Instant,
    has_told_refused: bool,
    max_elsewhere: u64,
    figures: Figures,
}

impl Zone {
    pub fn new(
        process: &ProcessView,
        jvm: &Jvm,
        pages: &Pages<'_>,
        poll: &mut Poll,
    ) -> Result<Self, AdapterError> {
        let codelets = match codelets(&jvm.structs, pages) {
            Ok(codelets) => codelets,
            Err(error @ AdapterError::NotReady { .. }) => return Err(error),
            Err(error) => {
                let text = format!("parts of the interpreter have no names: {error}");
                poll.limit(text, "");
                Vec::new()
            }
        };
        if let (Some(first), Some(last)) = (codelets.first(), codelets.last())
            && cfg!(target_arch = "x86_64")
        {
            poll.interpreter(
                super::VM,
                vec![(first.start, last.end)],
                interpreter_sources(),
            );
        }
        Ok(Zone {
            cache: CodeCache::new(jvm.code.clone()),
            stubs: stub_routines(process, &jvm.library, &jvm.structs, pages),
            codelets: codelets.into(),
            dispatch: DispatchStubs::of(&jvm.structs),
            dispatch_in: Vec::new(),
            known: CodeZone::new(),
            nmethods: Nmethods::default(),
            dead: FxHashSet::default(),
            not_entrant: Vec::new(),
            compare_not_before: Instant::now(),
            unloaded: Unloaded::default(),
            unloadings: 0,
            waiting: FxHashSet::default(),
            others: FxHashMap::default(),
            covered: Vec::new(),
            came: 0,
            signs: None,
            is_awaited: false,
            readings: 0,
            without_methods: Vec::new(),
            heaps: Vec::new(),
            cadence: Cadence::new(SHORTEST, LONGEST, MUCH),
            due: Instant::now(),
            not_before: Instant::now(),
            collected_not_before: Instant::now(),
            has_told_refused: false,
            max_elsewhere: MAX_ELSEWHERE,
            figures: Figures::default(),
        })
    }

    /// Codelets of the template interpreter, by address.
    pub fn codelets(&self) -> Arc<[Routine]> {
        Arc::clone(&self.codelets)
    }

    /// Address of the routine of that name inside a stub blob.
    pub fn stub(&self, name: &str) -> Option<Avma> {
        let mut stubs = self.stubs.iter();
        stubs.find(|(_, known)| known == name).map(|(at, _)| *at)
    }

    /// Whether to read the code cache now: the pause is over, VM counters have changed, or some
    /// addresses `touched` by samples since the last call lie in new code.
    pub fn is_due(&mut self, touched: &[Avma], signs: Option<Signs>, now: Instant) -> bool {
        for at in touched {
            if !self.is_new(*at) {
                continue;
            }
            self.is_awaited = true;
            let is_elsewhere = |heap: &HeapBounds| !(heap.low <= *at && *at < heap.high);
            self.without_methods.retain(is_elsewhere);
        }
        let both = self.signs.zip(signs);
        if both.is_some_and(|(before, now)| before.unloadings != now.unloadings) {
            return now >= self.collected_not_before;
        }
        if now < self.not_before {
            return false;
        }
        let has_sign = match both {
            Some((before, now)) => before.compilations != now.compilations,
            None => signs.is_some(),
        };
        now >= self.due || has_sign || self.is_awaited
    }

    /// Starts a pause after a failed reading of so much CPU time, whatever the cause.
    pub fn failed(&mut self, took: Duration) {
        let now = Instant::now();
        let pause = took.saturating_mul(PAUSE_FACTOR);
        self.not_before = now + SHORTEST.max(pause);
        self.collected_not_before = self.not_before;
        self.due = self.not_before;
    }

    /// Stores the VM counters, read after `time`. Without an unloading, all known code was
    /// still present at `time`.
    pub fn count(&mut self, signs: Option<Signs>, time: TimeNs) {
        if let (Some(before), Some(now)) = (self.signs, signs)
            && now.are_deaths
            && now.unloadings.is_some()
            && before.unloadings == now.unloadings
        {
            self.known.is_whole_at(time);
        }
    }

    /// Whether samples hit code missing from the last reading.
    pub fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Whether an address lies in the code cache, but outside code of the last reading.
    fn is_new(&self, at: Avma) -> bool {
        self.holds(at) && !self.covers(at)
    }

    /// Whether code is known at an address.
    fn covers(&self, at: Avma) -> bool {
        self.code_at(at).is_some()
    }

    /// The known code at an address.
    fn code_at(&self, at: Avma) -> Option<CodeId> {
        let after = self.covered.partition_point(|(start, ..)| *start <= at);
        let before = after.checked_sub(1).and_then(|one| self.covered.get(one));
        let holds = before.filter(|(_, end, _)| at < *end);
        holds.map(|(_, _, identity)| *identity)
    }

    /// Whether an address lies in the code cache, or in memory reserved for its growth: code that
    /// the VM creates after a reading may lie there.
    pub fn holds(&self, at: Avma) -> bool {
        let mut heaps = self.heaps.iter();
        heaps.any(|heap| heap.low <= at && at < heap.reserved_end)
    }

    /// Simulates so many bytes of data outside the code cache.
    #[cfg(test)]
    pub fn with_budget(&mut self, bytes: u64) {
        self.max_elsewhere = bytes;
    }

    /// Simulates the end of the pause between comparisons.
    #[cfg(test)]
    pub fn compare_now(&mut self) {
        self.compare_not_before = Instant::now();
    }

    /// Nmethods at an address.
    #[cfg(test)]
    pub fn nmethods_at(&self, at: Avma) -> Vec<NmethodId> {
        self.nmethods.at(&[at])
    }

    /// Simulates a long pause.
    #[cfg(test)]
    pub fn put_off(&mut self) {
        let later = Instant::now() + Duration::from_secs(3600);
        (self.due, self.not_before, self.collected_not_before) = (later, later, later);
    }

    /// Takes the blobs of vtable and itable stubs, which the VM never frees. Samples there show
    /// their callers.
    fn take_dispatch(&mut self, found: Vec<(Avma, Avma)>, poll: &mut Poll) {
        let before = self.dispatch_in.len();
        for blob in found {
            let has_room = self.dispatch_in.len() < InterpreterRules::MAX_RANGES;
            if has_room && !self.dispatch_in.contains(&blob) {
                self.dispatch_in.push(blob);
            }
        }
        if self.dispatch_in.len() > before && cfg!(target_arch = "x86_64") {
            let ranges = self.dispatch_in.clone();
            poll.interpreter(super::LEAF_CODE, ranges, leaf_sources());
        }
    }

    /// Names code found dead before the VM counted its unloading.
    pub fn name_unloaded(&mut self, methods: &mut Methods, poll: &mut Poll) {
        self.unloaded.name(&mut self.nmethods, methods, poll);
    }

    /// Reads the code cache and reports changes. `recount` reads the VM's counters again after the reading.
    pub fn poll(
        &mut self,
        pages: &Pages<'_>,
        methods: &mut Methods,
        (is_last, signs, recount): (bool, Option<Signs>, impl FnOnce() -> Option<Unloading>),
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let before = cpu_time();
        let is_first = self.heaps.is_empty();
        let has_sweeper = !signs.is_some_and(|signs| signs.are_deaths);
        let reading = self.read(pages, (is_last, has_sweeper))?;
        let counted = methods.unloading().zip(recount());
        let has_begun = counted.is_some_and(|(before, now)| now.has_begun_since(&before));
        let changes = methods.unloadings() - self.unloadings;
        let deaths = Deaths {
            // Code found dead by the first reading may have died long ago.
            unloading: CountedUnloading::of(changes, has_begun || is_first),
            may_have_died: counted
                .is_some_and(|(before, now)| now.may_have_unloaded_since(&before)),
        };
        self.covered.clear();
        let covered = reading.seen.iter();
        let covered = covered.map(|code| (code.start, code.end, code.identity));
        self.covered.extend(covered);
        self.covered.sort_unstable();
        let walked = cpu_time().saturating_sub(before);
        let changes = self.report(reading, (is_first, is_last, deaths), pages, methods, poll);
        self.signs = signs;
        self.is_awaited = false;
        self.cadence.found(changes);
        let took = cpu_time().saturating_sub(before);
        let after_collection = match poll.is_bounded() {
            true => PAUSE_FACTOR,
            false => SHORT_PAUSE_FACTOR,
        };
        // Reports of new code cost the same after any pause, and the first reading costs more than
        // the next.
        let pause = match is_first {
            true => took.saturating_mul(SHORT_PAUSE_FACTOR),
            false => walked.saturating_mul(PAUSE_FACTOR),
        };
        let now = Instant::now();
        self.collected_not_before = now + took.saturating_mul(after_collection);
        self.due = now + self.cadence.pause().max(pause);
        self.not_before = now + SHORTEST.max(pause);
        Ok(())
    }

    /// Reports the changes since the last reading, and figures. Returns the number of changes.
    fn report(
        &mut self,
        reading: Reading,
        (is_first, is_last, deaths): (bool, bool, Deaths),
        pages: &Pages<'_>,
        methods: &mut Methods,
        poll: &mut Poll,
    ) -> usize {
        (self.dead, self.not_entrant) = (reading.dead, reading.not_entrant);
        self.take_dispatch(reading.dispatch_in, poll);
        for lost in [reading.unread as u64, reading.torn] {
            if lost > 0 {
                poll.lost(Stream::Adapter, lost, poll.began());
            }
        }
        let is_there: FxHashSet<CodeId> = reading.seen.iter().map(|code| code.identity).collect();
        let (nmethods, dispatch_in) = (&mut self.nmethods, &self.dispatch_in);
        let cache = &self.cache;
        let mut came = std::mem::take(&mut self.came);
        let changes = self.known.update(
            poll,
            reading.seen,
            |identity, constituent, poll| {
                if is_first {
                    // Begin of its lifetime unknown.
                    constituent.absent_at = Some(TimeNs(0));
                }
                match identity {
                    CodeId::Routine(start, _) => {
                        let mut dispatch_in = dispatch_in.iter();
                        if dispatch_in.any(|(low, high)| low <= start && start < high) {
                            // Its memory holds nothing before it, and heaps without methods are
                            // not read each time.
                            constituent.absent_at = Some(TimeNs(0));
                        }
                        if let Some((kind, name)) = reading.routines.get(identity) {
                            constituent.kind = kind.clone();
                            constituent.name.clone_from(name);
                        }
                    }
                    CodeId::Nmethod(id) => {
                        came += 1;
                        if let Some(kept) = nmethods.get_mut(id) {
                            let from = match reading.unloaded.contains(id) {
                                false => KnownFrom::Memory(pages),
                                true if deaths.unloading == CountedUnloading::Once => {
                                    KnownFrom::Before
                                }
                                true => KnownFrom::Nothing,
                            };
                            describe(kept, constituent, from, methods, poll);
                            // Its class may have died before its methods were read.
                            if deaths.may_have_died && !is_living(cache, &kept.nmethod, pages) {
                                describe(kept, constituent, KnownFrom::Nothing, methods, poll);
                            }
                        }
                    }
                }
            },
            |_| GoneReason::Unloaded,
        );
        if deaths.unloading == CountedUnloading::NotYet {
            (self.unloaded).wait(reading.unloaded, methods.unloadings(), &self.nmethods);
        }
        if reading.is_whole {
            self.unloadings = methods.unloadings();
        }
        self.figures
            .tell(&self.heaps, reading.counts, came, is_last, poll);
        self.nmethods
            .age(poll.began(), |id| is_there.contains(&CodeId::Nmethod(*id)));
        if self.nmethods.refused > 0 && !self.has_told_refused {
            self.has_told_refused = true;
            poll.limit(
                format!(
                    "too much JIT code (vmscope keeps {} MiB): some JIT code has no bytecodes or \
                     lines",
                    MAX_BYTES >> 20
                ),
                "",
            );
        }
        changes
    }
}

/// Whether the VM still keeps an nmethod as living code.
fn is_living(cache: &CodeCache, nmethod: &Nmethod, pages: &Pages<'_>) -> bool {
    let states = cache.states_of(&[(nmethod.id, nmethod.blob)], pages.memory());
    let state = states.ok().and_then(|states| states.first().copied());
    matches!(state, Some(NmethodState::Present(state)) if state < DEAD)
}

fn seen_code(identity: CodeId, blob: &Blob) -> SeenCode<CodeId> {
    SeenCode {
        identity,
        start: blob.code_begin,
        end: blob.code_end,
    }
}
