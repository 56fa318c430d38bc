//! Leases: how a VM detects listening profilers, and profilers that left without notice.
//!
//! A lease is one word: its end time in nanoseconds of `CLOCK_MONOTONIC`, or 0. The profiler renews
//! its lease; a lease without renewal runs out.

use crate::sync::{AtomicU64, Ordering, fence};

/// The leases of a memory, and the word that makes the VM publish.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'m> {
    listening: &'m AtomicU64,
    ends: &'m [AtomicU64],
    longest: u64,
}

impl<'m> Leases<'m> {
    /// Leases that end at the times in `ends`. A lease with more than `longest` nanoseconds left
    /// does not count.
    #[must_use]
    pub fn new(listening: &'m AtomicU64, ends: &'m [AtomicU64], longest: u64) -> Self {
        Self {
            listening,
            ends,
            longest,
        }
    }

    fn is_alive(&self, end: u64, now: u64) -> bool {
        now < end && end <= now.saturating_add(self.longest)
    }

    /// VM: goes quiet if no lease is alive. Returns the number of expired leases, and whether the
    /// VM went quiet.
    pub fn check(&self, now: u64) -> (u64, bool) {
        if self.listening.load(Ordering::Relaxed) == 0 {
            return (0, false);
        }
        let mut expired = 0;
        let mut alive = false;
        for lease in self.ends {
            let end = lease.load(Ordering::Relaxed);
            if self.is_alive(end, now) {
                alive = true;
            } else if end != 0 {
                let order = Ordering::Relaxed;
                expired += u64::from(lease.compare_exchange(end, 0, order, order).is_ok());
            }
        }
        if alive {
            return (expired, false);
        }
        self.listening.store(0, Ordering::Relaxed);
        // A profiler writes its lease, fences, and then sets `listening`. If the VM's fence comes
        // first, the profiler's store to `listening` comes last. Otherwise the profiler's lease is
        // visible below.
        fence(Ordering::SeqCst);
        let mut ends = self.ends.iter().map(|lease| lease.load(Ordering::Relaxed));
        let came = ends.any(|end| self.is_alive(end, now));
        if came {
            self.listening.store(1, Ordering::Relaxed);
        }
        (expired, !came)
    }

    /// Profiler: takes a slot without a living lease, until `end`. Returns the slot; `None` if
    /// every slot has a living lease.
    pub fn take(&self, now: u64, end: u64) -> Option<usize> {
        (0..self.ends.len()).find(|&slot| {
            let lease = self.ends.get(slot);
            let before = lease.map_or(0, |lease| lease.load(Ordering::Relaxed));
            !self.is_alive(before, now) && self.replace(slot, before, end)
        })
    }

    /// Profiler: replaces its lease `before` by `end`. `false` if the slot no longer holds
    /// `before`: the lease ran out, and another profiler may have taken the slot.
    pub fn replace(&self, slot: usize, before: u64, end: u64) -> bool {
        let Some(lease) = self.ends.get(slot) else {
            return false;
        };
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if (lease.compare_exchange(before, end, order.0, order.1)).is_err() {
            return false;
        }
        if end != 0 {
            // Pairs with the fence in `check`, where the VM may be going quiet.
            fence(Ordering::SeqCst);
            self.listening.store(1, Ordering::Relaxed);
        }
        true
    }

    /// Whether the slot still holds this lease.
    #[must_use]
    pub fn holds(&self, slot: usize, end: u64) -> bool {
        let lease = self.ends.get(slot);
        lease.is_some_and(|lease| lease.load(Ordering::Relaxed) == end)
    }

    /// Slots of the living leases.
    pub fn alive(&self, now: u64) -> impl Iterator<Item = usize> {
        let ends = self.ends.iter().map(|lease| lease.load(Ordering::Relaxed));
        let alive = move |(slot, end)| self.is_alive(end, now).then_some(slot);
        ends.enumerate().filter_map(alive)
    }
}
