//! Lifetimes of objects, from births and from the observations of collections.
//!
//! A death lies between the last collection that saw the object alive and the collection that
//! observed the death. An object without an observed death is alive at the end: its lifetime is
//! censored (docs/truth.md §10).
//!
//! | module | holds |
//! |---|---|
//! | [`read`] | reading of a recording |
//! | [`collections`] | collections and their kinds |
//! | [`estimate`] | weighted totals and ratios with their errors |
//! | [`life_table`] | survival curves and restricted means |
//! | [`cost`] | the collector's time by group |
//! | [`advice`] | changes that save the collector time |
//! | `deaths` | distributions of lifetimes |
//! | `fresh` | memory that collections use for the first time |
//! | `replay` | the program's collections with other parameters |
//! | [`least_squares`] | fits of durations |
//! | [`groups`] | totals and mean lifetimes by class, site or method |
//! | [`holders`] | classes that keep objects alive |
//! | [`histogram`] | distributions of lifetimes, and allocations over time |
//! | [`classify`] | pretenuring decisions for sites |
//! | [`call_graph`] | callers of allocating methods |

pub mod advice;
pub mod call_graph;
pub mod classify;
pub mod collections;
pub mod cost;
mod deaths;
pub mod estimate;
mod event;
mod fresh;
pub mod groups;
pub mod histogram;
pub mod holders;
pub mod least_squares;
pub mod life_table;
pub mod read;
mod replay;

use crate::ids::{AllocationSiteId, ClassId, CollectionId, IndexVec};
use collections::{CollectionKind, ObservedCollection};
use read::Skipped;
use vmscope_records::{AllocationSite, Class, ProcessKey, SurvivalBucket, TimeNs};

/// A value without a number.
const UNKNOWN: u64 = u64::MAX;

/// Units of lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Nanoseconds.
    Time,
    /// Share of the run: 0 to 1.
    Relative,
    /// Bytes that the process allocated during the lifetime.
    AllocatedBytes,
    /// Survived scavenges. A scavenge does not look at tenured objects, and they do not survive it.
    Scavenges,
    /// Survived full collections.
    FullCollections,
}

impl Measure {
    /// All units.
    pub const ALL: [Self; 5] = [
        Self::Time,
        Self::Relative,
        Self::AllocatedBytes,
        Self::Scavenges,
        Self::FullCollections,
    ];

    /// Whether lifetimes are numbers of collections.
    #[must_use]
    pub const fn is_count(self) -> bool {
        matches!(self, Self::Scavenges | Self::FullCollections)
    }
}

/// An object with a single record. Every table needs most fields, so they lie together, in 72 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    /// Time of allocation.
    pub birth: TimeNs,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of allocated objects that this one represents: finite, at least 1.
    pub weight: f64,
    allocated: u64,
    death: u64,
    /// Class.
    pub class: ClassId,
    /// Allocation site, if known.
    pub site: Option<AllocationSiteId>,
    /// The collection that observed the death, if known.
    pub death_collection: Option<CollectionId>,
    /// The last collection that saw the object alive.
    pub last_survived: Option<CollectionId>,
    /// The collection that moved the object to old space.
    pub tenured: Option<CollectionId>,
    /// Class of its holder in the last collection that saw the object alive: the object that led the
    /// collection to it. `None`: a root, or unknown.
    pub holder: Option<ClassId>,
    /// Survived scavenges, at most 65,535.
    pub scavenges: u16,
    /// Survived full collections, at most 65,535.
    pub fulls: u16,
}

const _: () = assert!(size_of::<Object>() == 72);

impl Object {
    /// Time of the observed death; `None` for an object that was alive at the end.
    #[must_use]
    pub fn death(&self) -> Option<TimeNs> {
        (self.death != UNKNOWN).then_some(TimeNs(self.death))
    }

    /// Bytes that the process allocated before the object, if known.
    #[must_use]
    pub fn allocated_bytes(&self) -> Option<u64> {
        (self.allocated != UNKNOWN).then_some(self.allocated)
    }
}

/// Exact counts of a class and site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Class.
    pub class: ClassId,
    /// Allocation site, if known.
    pub site: Option<AllocationSiteId>,
    /// Time of counting.
    pub time: TimeNs,
    /// Number of allocated objects.
    pub objects: u64,
    /// Bytes of `objects`.
    pub bytes: u64,
    /// Survival of the objects.
    pub buckets: Vec<SurvivalBucket>,
}

/// The lifetimes of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifetimes {
    /// The process; `None` without lifetimes and collections.
    pub process: Option<ProcessKey>,
    /// Start of the recording, or the first birth if earlier.
    pub begin: TimeNs,
    /// End of the recording, or the last known time if later.
    pub end: TimeNs,
    /// Classes, by key.
    pub classes: IndexVec<ClassId, Class>,
    /// Allocation sites, by key.
    pub sites: IndexVec<AllocationSiteId, AllocationSite>,
    /// Collections, by their begin.
    pub collections: IndexVec<CollectionId, ObservedCollection>,
    /// Begin of the last scavenge.
    pub last_scavenge: Option<TimeNs>,
    /// Objects with single records, by birth.
    pub objects: Vec<Object>,
    /// Exact counts, by class and site; empty unless the VM counts every object.
    pub counts: Vec<Counts>,
    /// The VM's tenuring threshold, if reported: the share of a survivor space that must be filled
    /// before its objects are tenured. 0 to 1.
    pub tenuring_threshold: Option<f64>,
    /// The way of sampling, if its samples are not independent: the stated errors are too small.
    pub dependent_samples: Option<&'static str>,
    /// Whether the VM reported survivals. Otherwise collections between birth and death count as
    /// survived.
    pub has_survivals: bool,
    /// Ignored records.
    pub skipped: Skipped,
    /// Lifetime records that the recorder lost.
    pub lost: u64,
}

impl Lifetimes {
    /// Duration of the run in nanoseconds.
    #[must_use]
    pub fn run_ns(&self) -> u64 {
        self.end.since(self.begin).0
    }

    /// Whether a scavenge saw the object, alive or dead: the object was allocated in eden.
    fn is_seen_young(&self, object: &Object) -> bool {
        let died_by = object.death_collection.map(|id| self.collections[id].kind);
        object.scavenges > 0
            || object.tenured.is_some()
            || died_by == Some(CollectionKind::Scavenge)
    }

    /// Whether the object was allocated in old space: the next scavenge did not see it.
    #[must_use]
    pub fn is_born_old(&self, object: &Object) -> bool {
        let has_died = object.death_collection.is_some();
        let was_scavenged_since = || self.last_scavenge.is_some_and(|begin| begin > object.birth);
        !self.is_seen_young(object) && (has_died || was_scavenged_since())
    }

    /// Lifetime until the observed death, or until the end of the run; `None` if the unit is unknown.
    #[must_use]
    pub fn lifetime(&self, object: &Object, measure: Measure) -> Option<f64> {
        self.until(object, object.death().unwrap_or(self.end), measure)
    }

    /// The shortest possible lifetime: until the last collection that saw the object alive.
    #[must_use]
    pub fn least_lifetime(&self, object: &Object, measure: Measure) -> Option<f64> {
        let last = object.last_survived.map(|id| self.collections[id].end);
        let alive = match object.death() {
            Some(death) => last.unwrap_or(object.birth).min(death),
            None => self.end,
        };
        self.until(object, alive, measure)
    }

    fn until(&self, object: &Object, time: TimeNs, measure: Measure) -> Option<f64> {
        let ns = time.since(object.birth).0 as f64;
        match measure {
            Measure::Time => Some(ns),
            Measure::Relative => Some(ns / self.run_ns().max(1) as f64),
            Measure::AllocatedBytes => {
                let born = object.allocated_bytes()? as f64;
                Some((self.allocated_at(time)? - born).max(0.0))
            }
            Measure::Scavenges => Some(object.scavenges.into()),
            Measure::FullCollections => Some(object.fulls.into()),
        }
    }

    /// Bytes allocated before `time`, interpolated between the births around it; `None` if unknown.
    #[must_use]
    pub fn allocated_at(&self, time: TimeNs) -> Option<f64> {
        let next = self.objects.partition_point(|object| object.birth <= time);
        let after = self.objects.get(next);
        let after = after.and_then(|one| Some((one.birth.0 as f64, one.allocated_bytes()? as f64)));
        let Some(before) = next.checked_sub(1).map(|last| &self.objects[last]) else {
            return after.map(|(_, allocated)| allocated);
        };
        let allocated = before.allocated_bytes()? as f64 + before.bytes as f64;
        let Some((later, allocated_later)) = after else {
            return Some(allocated);
        };
        let born = before.birth.0 as f64;
        let share = (time.0 as f64 - born) / (later - born);
        Some(allocated + share * (allocated_later - allocated).max(0.0))
    }
}
