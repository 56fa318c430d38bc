//! Interned values and texts.

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// An index by hash of a list of distinct values.
#[derive(Debug, Default)]
pub(super) struct Interner {
    /// The newest value of each hash.
    newest: FxHashMap<u64, u32>,
    /// For each value, the previous value of equal hash.
    before: Vec<Option<u32>>,
}

impl Interner {
    /// The hash of a value for [`Interner::find`] and [`Interner::add`].
    pub fn hash<T: Hash>(value: &T) -> u64 {
        FxBuildHasher.hash_one(value)
    }

    /// The index of an equal value with that hash.
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

    /// Adds a new value with that hash.
    pub fn add<T>(&mut self, values: &mut Vec<T>, value: T, hash: u64) -> u32 {
        // Values are fewer than places, which have 32-bit indices.
        let index = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let before = self.newest.insert(hash, index);
        values.push(value);
        self.before.push(before);
        index
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
