//! Values and texts, each kept once.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Values, each once, by index; found by their hash, so that none is kept twice.
#[derive(Debug)]
pub(super) struct Interner<T> {
    pub values: Vec<T>,
    /// The newest value of each hash.
    newest: FxHashMap<u64, u32>,
    /// Of each value, the one before of the same hash.
    before: Vec<Option<u32>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner {
            values: Vec::new(),
            newest: FxHashMap::default(),
            before: Vec::new(),
        }
    }
}

impl<T: Eq + Hash> Interner<T> {
    pub fn put(&mut self, value: T) -> u32 {
        let hash = FxBuildHasher.hash_one(&value);
        let newest = self.newest.get(&hash).copied();
        let mut next = newest;
        while let Some(index) = next {
            if self.values.get(index as usize) == Some(&value) {
                return index;
            }
            next = self.before.get(index as usize).copied().flatten();
        }
        // There are at most as many as places, which are counted in 32 bits.
        let index = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        self.before.push(newest);
        self.newest.insert(hash, index);
        index
    }
}

/// Texts, each once.
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
}
