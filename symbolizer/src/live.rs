//! A profile that grows while its recording is made.
//!
//! The profile of a recording, computed in steps: [`Live::take`] takes each record,
//! [`Live::settle`] places and names all samples before a time, and needs all earlier records.
//! The cost of a step grows with the new samples alone. A late map of code
//! also changes older samples: their places get other sites ([`Settled::renamed`]).
//!
//! The profile keeps the samples of a rolling window, and a total of older ones
//! ([`crate::time_buckets`]). All data have bounds ([`Bounds`]); omissions are counted
//! ([`Omitted`]).
//!
//! A record after its settled time changes later samples only ([`Omitted::late`]); so do an
//! interpreter's rules.
//!
//! Readers share the [`Profile`] behind a lock. A step writes under the lock, but never reads
//! files under it.

mod cleanup;
mod naming;
mod natives;
mod records;
mod step;
mod threads;

use crate::bounds::{Bounds, Omitted};
use crate::build::Names;
use crate::ids::{IndexVec, PlaceId};
use crate::native::Binaries;
use crate::profile::Profile;
use crate::time_buckets::TimeBuckets;
use crate::trace::{Changes, Interpreters, Placing, Trace, World};
use crate::zone::{CodeId, Growing};
use natives::Natives;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};
use threads::Folded;
use vmscope_records::{
    CollectionKey, MethodKey, ProcessKey, Record, Sample, SymbolOwner, ThreadKey, TimeNs,
};

/// A step waits this long for a pause between readers; then it blocks new readers.
const PATIENCE: Duration = Duration::from_secs(5);

/// The interval of its attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The number of new samples in the profile.
    pub samples: u64,
    /// The number of samples that left the rolling window.
    pub dropped: u64,
    /// The number of known places with new sites.
    pub renamed: u64,
    /// Whether places have new indices. Entries, sites and threads keep theirs.
    pub renumbered: bool,
}

/// A profile that grows.
#[derive(Debug)]
pub struct Live {
    profile: Arc<RwLock<Profile>>,
    bounds: Bounds,
    /// Records for the next step.
    records: Vec<Record>,
    waiting: VecDeque<Sample>,
    placing: Placing,
    growing: Growing,
    /// Pending changes, by time and recording order.
    changes: Changes,
    changes_taken: u64,
    settled: TimeNs,
    names: Names,
    /// The separator of class and method, once a constituent has shown it.
    separator: Option<String>,
    natives: Natives,
    index: Index,
    folded: Folded,
    /// Stale names: of constituents, of modules, of everything.
    stale_code: FxHashSet<CodeId>,
    stale_natives: FxHashSet<SymbolOwner>,
    is_all_stale: bool,
    /// Dead code without maps: its places keep their names.
    stripped: FxHashSet<CodeId>,
    /// Interpreters may show methods at other places than before.
    is_shown_anew: bool,
    omitted: Omitted,
}

/// Indices into the profile.
#[derive(Debug, Default)]
struct Index {
    places_of_code: FxHashMap<CodeId, Vec<PlaceId>>,
    places_of_native: FxHashMap<SymbolOwner, Vec<PlaceId>>,
    /// Dropped samples.
    dropped_of_place: IndexVec<PlaceId, u32>,
    collections: FxHashMap<CollectionKey, u64>,
    compilations: FxHashMap<(ThreadKey, TimeNs, u64), u64>,
    /// Numbers of dropped collections and compilations.
    collections_dropped: u64,
    compilations_dropped: u64,
    /// New methods since the last cleanup.
    fresh_methods: FxHashSet<MethodKey>,
    ended_processes: Vec<(TimeNs, ProcessKey)>,
    /// Dead pieces of code with samples, as of the last cleanup; 0 once used.
    gone_codes: usize,
    /// Places and constituents after the last cleanup.
    places_then: usize,
    codes_then: usize,
}

impl Live {
    /// An empty profile. With `inlined`, samples in inlined native functions count for these,
    /// and native code has lines: that reads debug information, which can be large.
    #[must_use]
    pub fn new(inlined: bool, bounds: Bounds) -> Self {
        let trace = Trace {
            keep_samples: true,
            max_memory: u64::MAX,
            ..Trace::default()
        };
        let profile = Profile {
            trace,
            entries: IndexVec::default(),
            sites: IndexVec::default(),
            site_of_place: IndexVec::default(),
            resolved_now: Vec::new(),
            time_buckets: TimeBuckets::default(),
            steps: 0,
            omitted: Some(Omitted::default()),
        };
        let mut world = World::new(
            std::iter::empty(),
            IndexVec::default(),
            Interpreters::default(),
        );
        world.zones().note_missed();
        Live {
            profile: Arc::new(RwLock::new(profile)),
            bounds,
            records: Vec::new(),
            waiting: VecDeque::new(),
            placing: Placing::new(world),
            growing: Growing::default(),
            changes: Changes::new(),
            changes_taken: 0,
            settled: TimeNs(0),
            names: Names::new(inlined, bounds.entries, bounds.sites),
            separator: None,
            natives: Natives::new(inlined),
            index: Index::default(),
            folded: Folded::default(),
            stale_code: FxHashSet::default(),
            stale_natives: FxHashSet::default(),
            is_all_stale: false,
            stripped: FxHashSet::default(),
            is_shown_anew: false,
            omitted: Omitted::default(),
        }
    }

    /// The profile as of the last step, for views.
    #[must_use]
    pub fn profile(&self) -> &Arc<RwLock<Profile>> {
        &self.profile
    }

    /// The omissions so far.
    #[must_use]
    pub fn omitted(&self) -> Omitted {
        Omitted {
            names: self.names.left_out,
            late: self.omitted.late + self.growing.late,
            ..self.omitted
        }
    }

    /// The end of the settled time.
    #[must_use]
    pub fn settled(&self) -> TimeNs {
        self.settled
    }

    /// Takes a record of any kind, in recording order. The next step applies it; samples wait
    /// for a step that reaches their time.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.waiting.push_back(sample),
            other => self.records.push(other),
        }
    }

    /// One step: places and names all samples before `until`, and needs all earlier records.
    /// Reads symbols of native functions from the files of `binaries`: each
    /// file may use 2 % of a processor at first, 0.1 % later.
    pub fn settle(&mut self, until: TimeNs, binaries: &dyn Binaries) -> Settled {
        let found = self.natives.resolve(&self.profile, binaries, false);
        self.step(until, found)
    }

    /// Ends the recording: settles and names everything.
    pub fn finish(&mut self, binaries: &dyn Binaries) -> Settled {
        let first = self.settle(TimeNs(u64::MAX), binaries);
        let found = self.natives.resolve(&self.profile, binaries, true);
        let second = self.step(TimeNs(u64::MAX), found);
        Settled {
            samples: first.samples + second.samples,
            dropped: first.dropped + second.dropped,
            renamed: first.renamed + second.renamed,
            renumbered: first.renumbered || second.renumbered,
        }
    }

    fn step(&mut self, until: TimeNs, found: Vec<vmscope_records::Symbols>) -> Settled {
        let until = until.max(self.settled);
        let profile = Arc::clone(&self.profile);
        let mut profile = write(&profile);
        self.put_symbols(&mut profile, found);
        self.take_records(&mut profile);
        let before = profile.trace.samples.times.len();
        self.place(&mut profile, until);
        let added = profile.trace.samples.times.len().saturating_sub(before);
        let renamed = self.name(&mut profile);
        let (trace, sites, time_buckets) = profile.to_sum_up();
        time_buckets.append(trace, sites);
        let dropped = self.drop_oldest(&mut profile);
        self.fold_threads(&mut profile);
        let renumbered = self.forget(&mut profile);
        profile.omitted = Some(self.omitted());
        profile.steps += 1;
        Settled {
            samples: added as u64,
            dropped,
            renamed,
            renumbered,
        }
    }
}

/// Locks the profile for writing. A waiting writer blocks new readers, so that one long query
/// would stop all drawing. Therefore it only tries between readers, up to [`PATIENCE`].
fn write(profile: &RwLock<Profile>) -> RwLockWriteGuard<'_, Profile> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match profile.try_write() {
            Ok(profile) => return profile,
            // A reader's panic leaves the profile intact.
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
    profile.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
