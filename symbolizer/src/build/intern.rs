//! Interned values and texts.

use crate::ids::{Id, IndexVec};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// An index by hash of distinct values.
#[derive(Debug)]
pub(super) struct Interner<I> {
    /// The newest value of each hash.
    newest: FxHashMap<u64, I>,
    /// Of each value, the previous value with its hash.
    before: FxHashMap<I, I>,
}

impl<I> Default for Interner<I> {
    fn default() -> Self {
        Interner {
            newest: FxHashMap::default(),
            before: FxHashMap::default(),
        }
    }
}

impl<I: Id> Interner<I> {
    /// Id of an equal value; or of the new value, while the interner has room.
    pub fn put<T: Eq + Hash>(
        &mut self,
        values: &mut IndexVec<I, T>,
        value: T,
        is_room: bool,
    ) -> Option<I> {
        let hash = FxBuildHasher.hash_one(&value);
        let mut next = self.newest.get(&hash).copied();
        while let Some(id) = next {
            if values[id] == value {
                return Some(id);
            }
            next = self.before.get(&id).copied();
        }
        if !is_room {
            return None;
        }
        let id = values.push(value);
        if let Some(before) = self.newest.insert(hash, id) {
            self.before.insert(id, before);
        }
        Some(id)
    }
}

/// Interned texts.
#[derive(Debug, Default)]
pub(super) struct Texts {
    known: FxHashSet<Arc<str>>,
}

impl Texts {
    pub fn put(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(text);
        self.known.insert(Arc::clone(&text));
        text
    }

    /// Drops unused texts.
    pub fn forget_unused(&mut self) {
        self.known.retain(|text| Arc::strong_count(text) > 1);
    }
}
