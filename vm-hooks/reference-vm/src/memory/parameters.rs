//! What a heap can be told at its start.

/// Sizes and thresholds of a heap.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Bytes of eden. The survivor spaces have a fifth of it each.
    pub eden_bytes: usize,
    /// Least bytes of a new old space segment.
    pub growth_headroom: usize,
    /// Empty segments are freed while old space has more free bytes than this.
    pub shrink_threshold: usize,
    /// A full collection happens when old space has grown by this part since the last.
    pub full_gc_ratio: f64,
    /// Largest number of bytes in old space's objects.
    pub max_old_bytes: usize,
    /// Collections more often than needed, for tests.
    pub stress: Stress,
}

/// Collections more often than needed, for tests.
#[derive(Clone, Debug, Default)]
pub struct Stress {
    /// Every how many allocations a collection is wanted; 0: only when eden is full.
    pub collect_every: u64,
    /// Every how many collections one is full; 0: only when old space has grown.
    pub full_every: u64,
    /// Whether each scavenge moves all survivors to old space.
    pub tenure_all: bool,
    /// Whether the heap is checked after each collection.
    pub verify: bool,
}

const MB: usize = 1 << 20;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            eden_bytes: 15 * MB,
            growth_headroom: 16 * MB,
            shrink_threshold: 32 * MB,
            full_gc_ratio: 0.33,
            max_old_bytes: 4096 * MB,
            stress: Stress::default(),
        }
    }
}
