//! Cancelling long work, and reporting its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A request to stop long work, which checks it now and then and reports its progress. Clones
/// share their state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_stopped: AtomicBool,
    done: AtomicU64,
    all: AtomicU64,
}

impl Stop {
    /// A new request, not stopped.
    #[must_use]
    pub fn new() -> Self {
        Stop::default()
    }

    /// Requests the stop.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Reports progress: finished steps and total steps, of any kind. Each part of the work may
    /// restart at 0.
    pub fn tell(&self, done: u64, all: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.all.store(all, Ordering::Relaxed);
    }

    /// Reports the progress like [`Stop::tell`]; `None` if the stop was requested.
    #[must_use]
    pub fn look(&self, done: usize, all: usize) -> Option<()> {
        self.tell(done as u64, all as u64);
        (!self.is_stopped()).then_some(())
    }

    /// The last reported steps, done and all; 0 of 0 at first. The two are read separately:
    /// good for display only.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        (
            self.0.done.load(Ordering::Relaxed),
            self.0.all.load(Ordering::Relaxed),
        )
    }
}
