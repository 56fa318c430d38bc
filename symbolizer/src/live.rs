//! A profile that grows while its recording is made.
//!
//! It is the same function as that from a whole recording, taken in steps: [`Live::take`]
//! takes every record as it is told; [`Live::settle`] places and names the samples before
//! a time until which everything is told. What a step costs goes by what is new. A map of
//! code that is told after samples fell on it reaches those samples too: their places get
//! other sites ([`Settled::renamed`]).
//!
//! The samples of a rolling window are kept; of older ones a total stays
//! ([`crate::time_buckets`]). Everything has a bound ([`Bounds`]), and what is omitted is
//! counted ([`Omitted`]).
//!
//! A record that comes after its time was settled counts from then on only
//! ([`Omitted::late`]). Rules of interpreters count for samples that are settled after them.
//!
//! Readers share the [`Profile`] behind a lock, which is held for writing only while a
//! step puts in what is new: never while a file is read.

mod forget;
mod naming;
mod natives;
mod step;
mod telling;
mod threads;

use crate::bounds::{Bounds, Omitted};
use crate::build::Names;
use crate::native::Binaries;
use crate::profile::Profile;
use crate::time_buckets::{Sites, TimeBuckets};
use crate::trace::{Change, Interpreters, Placing, Trace, World};
use crate::zone::{CodeIndex, Growing};
use natives::Natives;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};
use threads::Folded;
use vmscope_records::{
    CollectionKey, MethodKey, ProcessKey, Record, Sample, SymbolOwner, ThreadKey, TimeNs,
};

/// So long a step waits for a moment without readers, before it keeps new ones out.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(1);

/// What a step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Samples that were added to the profile.
    pub samples: u64,
    /// Samples that left the rolling window at its end.
    pub dropped: u64,
    /// Places that have other sites than before.
    pub renamed: u64,
    /// Whether places have other numbers than before. Entries, sites and threads never
    /// have.
    pub renumbered: bool,
}

/// A profile that grows.
#[derive(Debug)]
pub struct Live {
    profile: Arc<RwLock<Profile>>,
    bounds: Bounds,
    /// What was told and is not in the profile yet.
    told: Vec<Record>,
    waiting: VecDeque<Sample>,
    placing: Placing,
    growing: Growing,
    /// Changes that are still to come, by time and the order in which they were told.
    changes: BTreeMap<(TimeNs, u64), Change>,
    changes_told: u64,
    settled: TimeNs,
    names: Names,
    /// Between class and method, once a constituent has shown it.
    separator: Option<String>,
    natives: Natives,
    index: Index,
    folded: Folded,
    /// What is to be named again: constituents, all of a module, all of the VM's code.
    stale_code: FxHashSet<CodeIndex>,
    stale_natives: FxHashSet<SymbolOwner>,
    is_all_stale: bool,
    /// Code that is gone and whose bytecodes were forgotten: its places keep their names.
    stripped: FxHashSet<CodeIndex>,
    /// Interpreters may show at any place what they did not.
    is_shown_anew: bool,
    omitted: Omitted,
}

/// What finds things in the profile.
#[derive(Debug, Default)]
struct Index {
    places_of_code: FxHashMap<CodeIndex, Vec<u32>>,
    places_of_native: FxHashMap<SymbolOwner, Vec<u32>>,
    /// How many samples of each place were dropped.
    dropped_of_place: Vec<u32>,
    collections: FxHashMap<CollectionKey, u64>,
    compilations: FxHashMap<(ThreadKey, TimeNs, u64), u64>,
    /// How many of both were dropped.
    collections_dropped: u64,
    compilations_dropped: u64,
    /// Methods that were told since the last time that some were forgotten.
    fresh_methods: FxHashSet<MethodKey>,
    ended_processes: Vec<(TimeNs, ProcessKey)>,
    /// How much dead code has samples, if it was just counted.
    gone_codes: usize,
    /// When what is not needed any more was last forgotten: how much there was.
    places_then: usize,
    codes_then: usize,
}

impl Live {
    /// An empty profile. With `inlined`, lines and inlined functions of native code are
    /// asked for, and a sample in one belongs to that; that reads debug information, which
    /// can be large.
    #[must_use]
    pub fn new(inlined: bool, bounds: Bounds) -> Self {
        let trace = Trace {
            keep_samples: true,
            ..Trace::default()
        };
        let profile = Profile {
            trace,
            entries: Vec::new(),
            sites: Vec::new(),
            site_of_place: Vec::new(),
            resolved_now: Vec::new(),
            time_buckets: TimeBuckets::default(),
            omitted: Some(Omitted::default()),
        };
        let mut world = World::new(std::iter::empty(), Vec::new(), Interpreters::default());
        world.zones().note_missed();
        Live {
            profile: Arc::new(RwLock::new(profile)),
            bounds,
            told: Vec::new(),
            waiting: VecDeque::new(),
            placing: Placing::new(world),
            growing: Growing::default(),
            changes: BTreeMap::new(),
            changes_told: 0,
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

    /// The profile, for those who show it: always whole, as of the last step.
    #[must_use]
    pub fn profile(&self) -> &Arc<RwLock<Profile>> {
        &self.profile
    }

    /// What was omitted so far.
    #[must_use]
    pub fn omitted(&self) -> Omitted {
        Omitted {
            names: self.names.left_out,
            late: self.omitted.late + self.growing.late,
            ..self.omitted
        }
    }

    /// Until when everything is settled.
    #[must_use]
    pub fn settled(&self) -> TimeNs {
        self.settled
    }

    /// Takes a record of any kind, in the order of the recording. It shows with the next
    /// step; a sample with the first that is after it.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.waiting.push_back(sample),
            other => self.told.push(other),
        }
    }

    /// A step: places and names all samples taken before `until`, until which all that is
    /// known has been told. Native functions that were hit in the step before get their
    /// names from the files that `binaries` gives, each as often as reading it costs two
    /// hundredths of a processor at first, and a thousandth later.
    pub fn settle(&mut self, until: TimeNs, binaries: &dyn Binaries) -> Settled {
        let found = self.natives.resolve(&self.profile, binaries, false);
        self.step(until, found)
    }

    /// The recording is over: everything is settled and has its names.
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
        self.tell(&mut profile);
        let before = profile.trace.samples.times.len();
        self.place(&mut profile, until);
        let added = profile.trace.samples.times.len().saturating_sub(before);
        let renamed = self.name(&mut profile);
        let Profile {
            trace,
            entries,
            sites,
            site_of_place: of_place,
            time_buckets,
            ..
        } = &mut *profile;
        let sites = Sites {
            entries,
            sites,
            of_place,
        };
        time_buckets.append(trace, sites);
        let dropped = self.drop_oldest(&mut profile);
        self.fold_threads(&mut profile);
        let renumbered = self.forget(&mut profile);
        profile.omitted = Some(self.omitted());
        Settled {
            samples: added as u64,
            dropped,
            renamed,
            renumbered,
        }
    }
}

/// The profile for writing. Who waits for it lets no more readers in: one long answer would
/// hold up those who only draw. So for [`PATIENCE`] it is taken between two readers.
fn write(profile: &RwLock<Profile>) -> RwLockWriteGuard<'_, Profile> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match profile.try_write() {
            Ok(profile) => return profile,
            // A panic of a reader leaves it as it was.
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
    profile.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
