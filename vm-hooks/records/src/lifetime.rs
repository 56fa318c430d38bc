//! Object lifetimes: births, survivals and deaths, single or counted.

use crate::{
    BytecodePc, ClassKey, CollectionKey, MethodKey, ObjectKey, ProcessKey, ThreadKey, TimeNs,
};

/// A class, written once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Key.
    pub key: ClassKey,
    /// The process of the class.
    pub process: ProcessKey,
    /// Name as users write it.
    pub name: String,
}

/// An allocation site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocationSite {
    /// Allocating method and, on request, its callers, innermost first, each with a bytecode.
    pub frames: Vec<(MethodKey, BytecodePc)>,
}

/// Counts of objects by their number of survived collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivalBucket {
    /// Survived scavenges (minor collections).
    pub scavenges: u32,
    /// Survived full collections.
    pub fulls: u32,
    /// Objects that died afterwards.
    pub objects: u64,
    /// Bytes of `objects`.
    pub bytes: u64,
    /// Objects alive at the end of the recording: censored, not dead (DESIGN.md §6).
    pub alive_objects: u64,
    /// Bytes of `alive_objects`.
    pub alive_bytes: u64,
}

/// An event in object lifetimes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Lifetime {
    /// Allocation of an object.
    Birth {
        /// Key for later events.
        object: ObjectKey,
        /// The process of the heap.
        process: ProcessKey,
        /// Time of allocation.
        time: TimeNs,
        /// Allocating thread.
        thread: ThreadKey,
        /// Class.
        class: ClassKey,
        /// Size in bytes.
        bytes: u64,
        /// Allocation site.
        site: AllocationSite,
        /// Number of allocated objects that this one represents: the inverse of its sampling
        /// probability; at least 1.
        weight: f64,
        /// Bytes allocated in the process before it, if reported.
        allocated_bytes: Option<u64>,
    },
    /// An object survived a collection.
    Survived {
        /// The object.
        object: ObjectKey,
        /// Time of observation.
        time: TimeNs,
        /// The collection.
        collection: CollectionKey,
        /// Whether the collection tenured it.
        tenured: bool,
    },
    /// A dead object.
    Death {
        /// The object.
        object: ObjectKey,
        /// Time of observation.
        time: TimeNs,
        /// The observing collection, if known.
        collection: Option<CollectionKey>,
    },
    /// A censored object: alive at the end of the recording.
    StillAlive {
        /// The object.
        object: ObjectKey,
        /// End of the recording.
        time: TimeNs,
    },
    /// Counts from a VM that counts every object.
    Aggregate {
        /// The process of the heap.
        process: ProcessKey,
        /// Time of reading; later counts supersede earlier ones.
        time: TimeNs,
        /// Class.
        class: ClassKey,
        /// Allocation site.
        site: AllocationSite,
        /// Number of allocated objects.
        objects: u64,
        /// Bytes of `objects`.
        bytes: u64,
        /// Survival of the objects.
        buckets: Vec<SurvivalBucket>,
    },
}

impl Lifetime {
    /// Time of the event or observation.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        match *self {
            Lifetime::Birth { time, .. }
            | Lifetime::Survived { time, .. }
            | Lifetime::Death { time, .. }
            | Lifetime::StillAlive { time, .. }
            | Lifetime::Aggregate { time, .. } => time,
        }
    }
}
