//! Memory that collections use for the first time. The kernel gives out cleared pages at the first
//! write, so copies to fresh memory cost more.

use super::Lifetimes;
use super::collections::{CollectionKind, ObservedCollection};
use crate::ids::{CollectionId, IndexVec};

/// Fresh bytes of a scavenge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fresh {
    /// Of survivor spaces.
    pub survivors: f64,
    /// Of old space.
    pub old: f64,
}

impl Fresh {
    /// Of all spaces.
    pub fn sum(self) -> f64 {
        self.survivors + self.old
    }
}

/// How far each space was ever filled, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    /// The survivor space of the last copies, and the other one.
    survivors: [f64; 2],
    old: f64,
}

impl Touched {
    /// The spaces before a collection. Spaces of an older process may have been filled at any time.
    fn before(first: &ObservedCollection) -> Self {
        if first.record.number == 1 {
            return Touched::default();
        }
        let capacity = |name| first.space(name)[2].unwrap_or(f64::INFINITY);
        Touched {
            survivors: [capacity("survivor"); 2],
            old: capacity("old"),
        }
    }

    /// A scavenge fills survivor spaces in turn, and old space from a number of bytes to another.
    pub fn scavenge(&mut self, survivors: f64, old: (f64, f64)) -> Fresh {
        self.survivors.swap(0, 1);
        self.old = self.old.max(old.0);
        let fresh = Fresh {
            survivors: (survivors - self.survivors[0]).max(0.0),
            old: (old.1 - self.old).max(0.0),
        };
        self.survivors[0] += fresh.survivors;
        self.old += fresh.old;
        fresh
    }

    /// Old space gives the memory above this number of bytes back.
    pub fn shrink(&mut self, old: f64) {
        self.old = self.old.min(old);
    }
}

/// Fresh bytes of each collection; 0 without the sizes of the spaces.
pub(super) fn fresh_bytes(lifetimes: &Lifetimes) -> IndexVec<CollectionId, Fresh> {
    let mut fresh = IndexVec::default();
    let mut touched = touched_at_begin(lifetimes);
    for collection in lifetimes.collections.iter() {
        let mut of_collection = Fresh::default();
        if let [Some(before), Some(after), capacity] = collection.space("old") {
            if collection.kind == CollectionKind::Scavenge {
                let survivors = collection.space("survivor")[1].unwrap_or(0.0);
                of_collection = touched.scavenge(survivors, (before, after));
            }
            touched.shrink(capacity.unwrap_or(f64::INFINITY));
        }
        fresh.push(of_collection);
    }
    fresh
}

/// Free bytes that old space keeps when a full collection gives memory back; infinite if none did.
pub(super) fn kept_bytes(lifetimes: &Lifetimes) -> f64 {
    let (mut kept, mut last_capacity) = (f64::INFINITY, 0.0);
    for collection in lifetimes.collections.iter() {
        let [_, after, capacity] = collection.space("old");
        if let (Some(after), Some(capacity)) = (after, capacity) {
            if capacity < last_capacity {
                kept = capacity - after;
            }
            last_capacity = capacity;
        }
    }
    kept
}

/// The spaces before the first collection.
pub(super) fn touched_at_begin(lifetimes: &Lifetimes) -> Touched {
    let first = lifetimes.collections.iter().next();
    first.map_or_else(Touched::default, Touched::before)
}
