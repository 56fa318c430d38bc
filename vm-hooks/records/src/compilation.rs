//! What a VM's compilers were seen to be compiling.

use crate::{ProcessKey, ThreadKey, TimeNs};

/// A method that a compiler's thread was seen to be compiling.
///
/// Adapters look now and then: what began and ended between two polls is not known,
/// and when exactly one began or ended is not either. From `first_seen` to
/// `last_seen` the thread was compiling it.
///
/// Told again when it was seen longer: with the same thread, number and `first_seen`,
/// it replaces what was told before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilation {
    /// Whose compiler.
    pub process: ProcessKey,
    /// The compiler's thread.
    pub thread: ThreadKey,
    /// The VM's number of it; 0 where it does not count.
    pub id: u64,
    /// The method, as constituents are named.
    pub name: String,
    /// The tier that is being made, as constituents are named (`C2`).
    pub tier: String,
    /// The bytecode at which on-stack replacement is to enter, if it is for that.
    pub osr_bci: Option<u32>,
    /// The last poll at that thread which did not see it yet.
    pub absent_at: Option<TimeNs>,
    /// The first poll that saw it.
    pub first_seen: TimeNs,
    /// The last poll that saw it; not before `first_seen`.
    pub last_seen: TimeNs,
    /// The first poll that did not see it any more; not before `last_seen`.
    pub gone_at: Option<TimeNs>,
}

impl Compilation {
    /// What tells it from others of its recording.
    #[must_use]
    pub fn identity(&self) -> (ThreadKey, u64, TimeNs) {
        (self.thread, self.id, self.first_seen)
    }

    /// When this was told: at the last poll that it knows of.
    #[must_use]
    pub fn told_at(&self) -> TimeNs {
        self.gone_at.unwrap_or(self.last_seen)
    }
}
