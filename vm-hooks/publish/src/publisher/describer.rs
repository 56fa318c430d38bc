//! Snapshots: a VM describes all existing things.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Shared;
use crate::event::Body;
use crate::memory;
use crate::sync::AtomicU64;

/// Sleep of a snapshot that waits for a profiler to read.
const NAP: Duration = Duration::from_micros(200);

/// Describes existing things, inside [`Callbacks::describe`](crate::Callbacks).
#[derive(Debug)]
pub struct Describer<'p> {
    shared: &'p Shared,
    /// Stream position of the next check that profilers keep up.
    next_look: AtomicU64,
    /// Time left for waiting, in nanoseconds.
    patience: AtomicU64,
}

impl<'p> Describer<'p> {
    pub(super) fn new(shared: &'p Shared, patience: Duration) -> Self {
        let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        Self {
            shared,
            next_look: AtomicU64::new(0),
            patience: AtomicU64::new(patience),
        }
    }

    /// Publishes an existing thing. Waits while the slowest profiler has more than half of the ring
    /// unread. All waits of a snapshot together last at most
    /// [`Options::snapshot_patience`](crate::Options).
    pub fn publish<B: Body>(&self, body: &B) {
        let shared = self.shared;
        let (head, capacity) = (shared.stream().head(), shared.stream().capacity());
        if head >= self.next_look.load(Ordering::Relaxed) {
            self.let_profilers_read(capacity);
            let next = head.saturating_add(capacity / 16);
            self.next_look.store(next, Ordering::Relaxed);
        }
        shared.emit(B::KIND_IN_SNAPSHOT, memory::now(), body);
    }

    fn let_profilers_read(&self, capacity: u64) {
        let mut left = self.patience.load(Ordering::Relaxed);
        while left > 0 && self.shared.unread() > capacity / 2 {
            let before = memory::now();
            std::thread::sleep(NAP);
            left = left.saturating_sub(memory::now().saturating_sub(before).max(1));
        }
        self.patience.store(left, Ordering::Relaxed);
    }
}
