//! Collections of a garbage collector.

use crate::{CollectionKey, ProcessKey, ThreadKey, TimeNs};

/// One observed collection, concurrent cycle, or pause of a cycle. Written again with the same key
/// after later observations. Polls miss many: times without an observation are `None`, never a guess
/// (DESIGN.md §4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collection {
    /// Key.
    pub key: CollectionKey,
    /// The process of the heap.
    pub process: ProcessKey,
    /// Time of writing.
    pub time: TimeNs,
    /// Collector in the VM's words (`G1 Young Generation`, `scavenger`).
    pub collector: String,
    /// Kind of collection (`scavenge`, `full`, `mixed`).
    pub kind: String,
    /// Cause (`Allocation Failure`, `System.gc()`).
    pub cause: String,
    /// The VM's collection number; 0 if none.
    pub number: u64,
    /// Observed start.
    pub begin: Option<TimeNs>,
    /// Observed end.
    pub end: Option<TimeNs>,
    /// Extent of the record.
    pub scope: CollectionScope,
    /// Number of events of this collector and kind since the previous record whose single durations
    /// are unknown: polls missed them.
    pub missed: u64,
    /// Sum of their durations in nanoseconds, by the VM's own clock: the duration of a single missed
    /// event, or an upper bound for each of several.
    pub missed_ns: Option<u64>,
    /// Phases, in order.
    pub phases: Vec<Phase>,
    /// Heap spaces before and after.
    pub spaces: Vec<SpaceUse>,
    /// Surviving bytes, if reported.
    pub survived_bytes: Option<u64>,
    /// Tenured bytes, if reported.
    pub tenured_bytes: Option<u64>,
    /// Number of surviving objects, if reported.
    pub survived_objects: Option<u64>,
    /// CPU time of the collector's threads in nanoseconds, if reported.
    pub cpu_ns: Option<u64>,
}

/// Extent of a [`Collection`]. The three are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CollectionScope {
    /// A concurrent cycle. Mutators run during the cycle, but not in its pauses. Pauses are phases of
    /// this record, or have separate records.
    #[default]
    Cycle,
    /// A whole collection; it stops all mutators from begin to end.
    Whole,
    /// A pause of a concurrent cycle.
    CyclePause,
}

impl CollectionScope {
    /// All scopes, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Cycle, Self::CyclePause];

    /// Unit of the counters of [`COLLECTIONS_SECTION`].
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Cycle => "cycles",
            Self::CyclePause => "pauses",
        }
    }

    /// Whether it stops all mutators from begin to end.
    #[must_use]
    pub const fn is_pause(self) -> bool {
        !matches!(self, Self::Cycle)
    }
}

/// Section of counters with exact totals of collections: their number, named by
/// [`Collection::label`], and their duration in nanoseconds, named with [`COLLECTION_TIME_SUFFIX`]
/// appended. The number's unit is [`CollectionScope::unit`].
pub const COLLECTIONS_SECTION: &str = "Collections";

/// Name suffix of counters with durations of collections.
pub const COLLECTION_TIME_SUFFIX: &str = " time";

impl Collection {
    /// Name of a kind of collection: the collector, with the kind if distinguished.
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
    /// Name in the VM's words.
    pub name: String,
    /// Enclosing phase: an index in `phases`.
    pub within: Option<u32>,
    /// Observed start.
    pub begin: Option<TimeNs>,
    /// Observed end.
    pub end: Option<TimeNs>,
    /// Whether it stops all mutators.
    pub stop_the_world: bool,
    /// Its thread, if a single one.
    pub thread: Option<ThreadKey>,
}

/// Use of a heap space, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// Name of the space (`eden`, `old`).
    pub name: String,
    /// Used before the collection.
    pub before: Option<u64>,
    /// Used after it.
    pub after: Option<u64>,
    /// Capacity after it.
    pub capacity: Option<u64>,
}
