//! What was wrong in a file: counted by kind, with the place where it was first seen.

use std::collections::BTreeMap;

/// Flaws of a file, by kind. The kinds are an enum, so hostile files can't enlarge the
/// map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaws<K>(BTreeMap<K, FlawCount>);

/// How often, and where first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlawCount {
    /// How often.
    pub count: u64,
    /// The byte offset in the file where it was first seen.
    pub first_at: u64,
}

impl<K> Default for Flaws<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy> Flaws<K> {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of flaws of a kind.
    #[must_use]
    pub fn count(&self, kind: K) -> u64 {
        self.0.get(&kind).map_or(0, |seen| seen.count)
    }

    /// All that there are, by kind.
    pub fn iter(&self) -> impl Iterator<Item = (K, FlawCount)> + '_ {
        self.0.iter().map(|(kind, seen)| (*kind, *seen))
    }

    pub(crate) fn add(&mut self, kind: K, at: u64, count: u64) {
        if count == 0 {
            return;
        }
        let seen = self.0.entry(kind).or_insert(FlawCount {
            count: 0,
            first_at: at,
        });
        seen.count = seen.count.saturating_add(count);
    }
}
