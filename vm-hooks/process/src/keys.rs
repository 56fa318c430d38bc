//! Unique keys of a recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vmscope_records::{ClassKey, CollectionKey, ConstituentKey, MethodKey, SiteKey};

/// The source of a recording's keys, unique across adapters and processes. Clones share one source.
#[derive(Clone, Debug, Default)]
pub struct KeySource(Arc<Keys>);

#[derive(Debug, Default)]
struct Keys {
    constituents: AtomicU64,
    methods: AtomicU64,
    classes: AtomicU64,
    collections: AtomicU64,
    sites: AtomicU64,
}

/// Keys start at 1: 0 would mean a forgotten key.
fn next(counter: &AtomicU64) -> u64 {
    // Relaxed: uniqueness needs no ordering with other memory.
    counter.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

impl KeySource {
    /// A source for a new recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A key for one lifetime of a constituent.
    #[must_use]
    pub fn constituent(&self) -> ConstituentKey {
        ConstituentKey(next(&self.0.constituents))
    }

    /// A key for a method.
    #[must_use]
    pub fn method(&self) -> MethodKey {
        MethodKey(next(&self.0.methods))
    }

    /// A key for a class.
    #[must_use]
    pub fn class(&self) -> ClassKey {
        ClassKey(next(&self.0.classes))
    }

    /// A key for a collection.
    #[must_use]
    pub fn collection(&self) -> CollectionKey {
        CollectionKey(next(&self.0.collections))
    }

    /// A key for an allocation site.
    #[must_use]
    pub fn site(&self) -> SiteKey {
        SiteKey(next(&self.0.sites))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_over_clones() {
        let keys = KeySource::new();
        let other = keys.clone();
        assert_eq!(keys.method(), MethodKey(1));
        assert_eq!(other.method(), MethodKey(2));
        assert_eq!(other.constituent(), ConstituentKey(1));
    }
}
