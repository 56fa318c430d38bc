//! Giving up what nobody waits for any more, and telling how far it is meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A wish to stop, which long work looks at now and then, and where it tells how far it is.
/// Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    done: AtomicU64,
    all: AtomicU64,
}

impl Stop {
    /// One that nobody has wished yet.
    #[must_use]
    pub fn new() -> Self {
        Stop::default()
    }

    /// Wishes it.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was wished.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Tells how far the work is: so many steps, of whatever kind, of so many. Where work has
    /// several parts, each may begin anew.
    pub fn tell(&self, done: u64, all: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.all.store(all, Ordering::Relaxed);
    }

    /// Tells how far the work is, as [`Stop::tell`]; `None` where to stop was wished.
    #[must_use]
    pub fn look(&self, done: usize, all: usize) -> Option<()> {
        self.tell(done as u64, all as u64);
        (!self.is_stopped()).then_some(())
    }

    /// The steps that are done, and all, as they were told last; 0 of 0 before that. The two
    /// are read one after the other: for showing, not for counting.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        (
            self.0.done.load(Ordering::Relaxed),
            self.0.all.load(Ordering::Relaxed),
        )
    }
}
