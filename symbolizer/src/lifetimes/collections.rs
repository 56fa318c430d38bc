//! Collections that observe lifetimes.

use vmscope_records::{Collection, DurationNs, Phase, TimeNs};

/// Kinds of collections, by the objects that they look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CollectionKind {
    /// Collects new space.
    Scavenge,
    /// Collects the whole heap.
    Full,
}

/// Words of collectors and kinds that collect the whole heap.
const FULL_WORDS: [&str; 7] = [
    "full",
    "old",
    "major",
    "mark",
    "compact",
    "shenandoah",
    "concurrent",
];

impl CollectionKind {
    /// The kind by the VM's words ([`Collection::kind`], else [`Collection::collector`]).
    #[must_use]
    pub fn of(collection: &Collection) -> Self {
        let words = match collection.kind.as_str() {
            "" => &collection.collector,
            kind => kind,
        };
        let words = words.to_lowercase();
        match FULL_WORDS.iter().any(|word| words.contains(word)) {
            true => Self::Full,
            false => Self::Scavenge,
        }
    }
}

/// A collection with known times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCollection {
    /// Its kind.
    pub kind: CollectionKind,
    /// Begin; without an observation, the end or the time of the record.
    pub begin: TimeNs,
    /// End, not before `begin`; without an observation, the begin or the time of the record.
    pub end: TimeNs,
    /// The record, with phases, spaces, and surviving and tenured bytes.
    pub record: Collection,
}

impl ObservedCollection {
    pub(super) fn new(record: Collection) -> Self {
        let begin = record.begin.or(record.end).unwrap_or(record.time);
        ObservedCollection {
            kind: CollectionKind::of(&record),
            begin,
            end: record.end.unwrap_or(begin).max(begin),
            record,
        }
    }

    /// Used bytes before and after the collection, and the capacity, of the first space whose name begins with `name`.
    pub(super) fn space(&self, name: &str) -> [Option<f64>; 3] {
        let mut spaces = self.record.spaces.iter();
        let space = spaces.find(|space| space.name.starts_with(name));
        let number = |of: Option<u64>| of.map(|bytes| bytes as f64);
        space.map_or([None; 3], |one| {
            [one.before, one.after, one.capacity].map(number)
        })
    }

    /// Phases with their durations, where begin and end were observed.
    pub fn phases(&self) -> impl Iterator<Item = (&Phase, Option<DurationNs>)> {
        let duration = |phase: &Phase| Some(phase.end?.since(phase.begin?));
        let phases = self.record.phases.iter();
        phases.map(move |phase| (phase, duration(phase)))
    }
}
