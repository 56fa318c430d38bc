//! Values and texts, each kept once.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// Finds values of a list, in which each is once, by their hash, so that none is kept twice.
#[derive(Debug, Default)]
pub(super) struct Interner {
    /// The newest value of each hash.
    newest: FxHashMap<u64, u32>,
    /// Of each value, the one before of the same hash.
    before: Vec<Option<u32>>,
}

impl Interner {
    /// What [`Interner::find`] and [`Interner::add`] want to know of a value.
    pub fn hash<T: Hash>(value: &T) -> u64 {
        FxBuildHasher.hash_one(value)
    }

    /// Where in `values` one like `value`, of that hash, is.
    pub fn find<T: Eq>(&self, values: &[T], value: &T, hash: u64) -> Option<u32> {
        let mut next = self.newest.get(&hash).copied();
        while let Some(index) = next {
            if values.get(index as usize) == Some(value) {
                return Some(index);
            }
            next = self.before.get(index as usize).copied().flatten();
        }
        None
    }

    /// Adds a value, of that hash, that is not there.
    pub fn add<T>(&mut self, values: &mut Vec<T>, value: T, hash: u64) -> u32 {
        // There are at most as many as places, which are counted in 32 bits.
        let index = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let before = self.newest.insert(hash, index);
        values.push(value);
        self.before.push(before);
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

    /// Forgets texts that nobody has.
    pub fn forget_unused(&mut self) {
        self.known.retain(|text| Arc::strong_count(text) > 1);
    }
}
