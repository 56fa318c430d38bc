//! Parameters of a heap.

/// Sizes and thresholds of a heap.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Eden size in bytes. Each survivor space has a fifth of this size.
    pub eden_bytes: usize,
    /// Use of the survivor space, in percent, beyond which the next scavenge tenures the objects that
    /// have survived before. 0: each scavenge tenures all survivors. 100: only survivors that do not
    /// fit are tenured.
    pub tenuring_threshold: usize,
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
    /// Stress mode: number of allocations between collections; 0: collect only when eden is full.
    pub collect_every: u64,
    /// Stress mode: number of collections between full collections; 0: full only after old-space
    /// growth.
    pub full_every: u64,
    /// Verify the heap after each collection.
    pub verify: bool,
}

const MB: usize = 1 << 20;

impl Default for Parameters {
    fn default() -> Self {
        Self {
            eden_bytes: 15 * MB,
            tenuring_threshold: 90,
            growth_headroom: 16 * MB,
            shrink_threshold: 32 * MB,
            full_gc_ratio: 0.33,
            max_old_bytes: 4096 * MB,
            stress: Stress::default(),
        }
    }
}
