//! Collections of a garbage collector.

use crate::{CollectionKey, ProcessKey, ThreadKey, TimeNs};

/// One collection, as far as it was observed. Written again with the same key when
/// more of it is known. Polling falls between many of them: a time that was not
/// observed is `None`, never a guess (DESIGN.md §4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Its key.
    pub key: CollectionKey,
    /// Whose heap.
    pub process: ProcessKey,
    /// When this was written down.
    pub time: TimeNs,
    /// The collector, in the VM's words (`G1 Young Generation`, `scavenger`).
    pub collector: String,
    /// What kind of collection (`scavenge`, `full`, `mixed`).
    pub kind: String,
    /// What caused it (`Allocation Failure`, `System.gc()`).
    pub cause: String,
    /// Its number as the VM counts; 0 where it does not.
    pub number: u64,
    /// When it began, where that was observed.
    pub begin: Option<TimeNs>,
    /// When it ended, where that was observed.
    pub end: Option<TimeNs>,
    /// Whether the world stood still for all of it; `false` for a concurrent one,
    /// whose pauses are phases.
    pub stop_the_world: bool,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
    /// The spaces of the heap before and after.
    pub spaces: Vec<SpaceUse>,
    /// Bytes that survived it, where the VM tells.
    pub survived_bytes: Option<u64>,
    /// Bytes that it tenured, where the VM tells.
    pub tenured_bytes: Option<u64>,
}

/// The section of the counters that tell how many collections there were and how long
/// they took, exactly: totals, one named by its [`Collection::label`], the other the same
/// with [`COLLECTION_TIME_SUFFIX`], in nanoseconds.
pub const COLLECTIONS_SECTION: &str = "Collections";

/// What the name of a counter of collections' time ends with.
pub const COLLECTION_TIME_SUFFIX: &str = " time";

impl Collection {
    /// What collections of one kind are called: by their collector, and their kind where
    /// that is told apart.
    #[must_use]
    pub fn label(collector: &str, kind: &str) -> String {
        match (collector, kind) {
            (_, "") => collector.to_owned(),
            ("", _) => kind.to_owned(),
            _ => format!("{collector}, {kind}"),
        }
    }
}

/// A phase of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phase {
    /// Its name in the VM's words.
    pub name: String,
    /// The phase it is part of: an index in `phases`.
    pub within: Option<u32>,
    /// When it began, where that was observed.
    pub begin: Option<TimeNs>,
    /// When it ended, where that was observed.
    pub end: Option<TimeNs>,
    /// Whether the world stood still in it.
    pub stop_the_world: bool,
    /// The thread it ran on, where it is one.
    pub thread: Option<ThreadKey>,
}

/// How full a space of the heap was, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// The space's name (`eden`, `old`).
    pub name: String,
    /// Used before the collection.
    pub before: Option<u64>,
    /// Used after it.
    pub after: Option<u64>,
    /// Capacity after it.
    pub capacity: Option<u64>,
}
