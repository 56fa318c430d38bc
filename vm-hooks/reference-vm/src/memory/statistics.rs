//! Work counters and sizes of the heap.

/// Counters since the heap was made, and present sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Scavenges, including the first step of full collections.
    pub scavenges: u64,
    /// Nanoseconds in scavenges.
    pub scavenge_ns: u64,
    /// Full collections.
    pub full_gcs: u64,
    /// Nanoseconds in full collections, excluding their initial scavenges.
    pub full_gc_ns: u64,
    /// Nanoseconds of full collections in marking.
    pub mark_ns: u64,
    /// Nanoseconds of full collections in planning.
    pub plan_ns: u64,
    /// Nanoseconds of full collections in updating references and moving objects.
    pub compaction_ns: u64,
    /// Objects that scavenges moved to old space.
    pub tenures: u64,
    /// Their bytes.
    pub tenured_bytes: u64,
    /// Bytes in survivor space after the last scavenge.
    pub survivors_bytes: u64,
    /// Total bytes allocated since the start, excluding permanent objects.
    pub allocated_bytes: u64,
    /// Segments added to old space.
    pub grows: u64,
    /// Segments freed.
    pub shrinks: u64,
    /// Segments of old space now.
    pub segments: u64,
    /// Objects in the remembered set now.
    pub remembered: u64,
    /// How often the remembered set's table grew.
    pub remembered_overflows: u64,
    /// Bytes in eden's objects.
    pub eden_used: u64,
    /// Bytes in old space's objects.
    pub old_used: u64,
    /// Free bytes in old space's segments.
    pub old_free: u64,
    /// Bytes of old space's segments.
    pub old_total: u64,
    /// Bytes in the permanent space's objects.
    pub permanent_used: u64,
    /// Ephemerons in the mourn queue.
    pub mourners: u64,
}
