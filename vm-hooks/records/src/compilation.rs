//! Observed work of a VM's compilers.

use crate::{ProcessKey, ThreadKey, TimeNs};

/// An observed compilation of a method.
///
/// Adapters poll: short compilations stay unobserved, and exact start and end times are unknown.
/// From `first_seen` to `last_seen` the thread was compiling.
///
/// Emitted again after later observations: a record with equal thread, number and `first_seen`
/// replaces earlier ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// The compiler's process.
    pub process: ProcessKey,
    /// The compiler's thread.
    pub thread: ThreadKey,
    /// The VM's compilation number; 0 if none.
    pub id: u64,
    /// Method, named like constituents.
    pub name: String,
    /// Target tier, named like constituents (`C2`).
    pub tier: String,
    /// Entry bytecode of on-stack replacement, if any.
    pub osr_bci: Option<u32>,
    /// The last poll before it.
    pub absent_at: Option<TimeNs>,
    /// The first poll with it.
    pub first_seen: TimeNs,
    /// The last poll with it; not before `first_seen`.
    pub last_seen: TimeNs,
    /// The first poll after it; not before `last_seen`.
    pub gone_at: Option<TimeNs>,
}

impl Compilation {
    /// Identity among compilations of the recording.
    #[must_use]
    pub fn identity(&self) -> (ThreadKey, u64, TimeNs) {
        (self.thread, self.id, self.first_seen)
    }

    /// Time of emission: the last poll in the record.
    #[must_use]
    pub fn emitted_at(&self) -> TimeNs {
        self.gone_at.unwrap_or(self.last_seen)
    }
}
