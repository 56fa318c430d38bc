//! Lifetimes of objects: births, survivals and deaths, single or counted.

use crate::{
    BytecodePc, ClassKey, CollectionKey, MethodKey, ObjectKey, ProcessKey, ThreadKey, TimeNs,
};

/// A class, named once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Its key.
    pub key: ClassKey,
    /// Whose class.
    pub process: ProcessKey,
    /// Its name as its users write it.
    pub name: String,
}

/// Where an object was allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocationSite {
    /// The allocating method, then its callers where they were asked for,
    /// innermost first, each with the bytecode.
    pub frames: Vec<(MethodKey, BytecodePc)>,
}

/// How many of the counted objects survived exactly so many collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurvivalBucket {
    /// Scavenges (minor collections) survived.
    pub scavenges: u32,
    /// Full collections survived.
    pub fulls: u32,
    /// Objects that died after that many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects still alive after that many, when the recording ended: censored,
    /// not dead (DESIGN.md §6).
    pub alive_objects: u64,
    /// Their bytes.
    pub alive_bytes: u64,
}

/// An event in objects' lives.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Lifetime {
    /// An object was allocated.
    Birth {
        /// The object, for the events to come.
        object: ObjectKey,
        /// Whose heap.
        process: ProcessKey,
        /// When.
        time: TimeNs,
        /// By which thread.
        thread: ThreadKey,
        /// Of which class.
        class: ClassKey,
        /// Its size in bytes.
        bytes: u64,
        /// Where.
        site: AllocationSite,
        /// How many allocated objects this one stands for: the inverse of the
        /// probability that it was sampled; at least 1.
        weight: f64,
        /// Bytes allocated in the process before it, where the VM tells.
        allocated_bytes: Option<u64>,
    },
    /// An object survived a collection.
    Survived {
        /// Which object.
        object: ObjectKey,
        /// When that was observed.
        time: TimeNs,
        /// Which collection.
        collection: CollectionKey,
        /// Whether it was moved to the old space by it.
        tenured: bool,
    },
    /// An object was found dead.
    Death {
        /// Which object.
        object: ObjectKey,
        /// When that was observed.
        time: TimeNs,
        /// The collection that observed it, where known.
        collection: Option<CollectionKey>,
    },
    /// An object was alive when the recording ended: censored.
    StillAlive {
        /// Which object.
        object: ObjectKey,
        /// When the recording ended.
        time: TimeNs,
    },
    /// Births, survivals and deaths already counted by a VM that counts every object.
    Aggregate {
        /// Whose heap.
        process: ProcessKey,
        /// When the counts were read; each supersedes the one before.
        time: TimeNs,
        /// Of which class.
        class: ClassKey,
        /// Allocated where.
        site: AllocationSite,
        /// Objects allocated.
        objects: u64,
        /// Their bytes.
        bytes: u64,
        /// What became of them.
        buckets: Vec<SurvivalBucket>,
    },
}
