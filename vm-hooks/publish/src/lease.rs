//! Leases: how a VM knows that a profiler listens, and that it went away without a word.
//!
//! A lease is one word: the time in nanoseconds of `CLOCK_MONOTONIC` at which it ends, or 0. The
//! profiler renews it; a lease that nobody renews runs out.

use crate::sync::{AtomicU64, Ordering, fence};

/// The leases of a memory, and the word that says whether anybody listens.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'m> {
    listening: &'m AtomicU64,
    ends: &'m [AtomicU64],
    longest: u64,
}

impl<'m> Leases<'m> {
    /// Leases that end at the times in `ends`. One that would last longer than `longest`
    /// nanoseconds does not count.
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

    /// VM: goes quiet if no lease is alive. Returns the number of leases that ran out, and whether
    /// the last one did.
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
        // A profiler writes its lease, fences, and then says that it listens. Either this fence
        // comes first, and the profiler's word is the later one, or its lease shows here.
        fence(Ordering::SeqCst);
        let mut ends = self.ends.iter().map(|lease| lease.load(Ordering::Relaxed));
        let came = ends.any(|end| self.is_alive(end, now));
        if came {
            self.listening.store(1, Ordering::Relaxed);
        }
        (expired, !came)
    }

    /// Profiler: takes the place of a lease that is not alive, until `end`. Returns the place;
    /// `None` if all are taken.
    pub fn take(&self, now: u64, end: u64) -> Option<usize> {
        (0..self.ends.len()).find(|&slot| {
            let lease = self.ends.get(slot);
            let before = lease.map_or(0, |lease| lease.load(Ordering::Relaxed));
            !self.is_alive(before, now) && self.replace(slot, before, end)
        })
    }

    /// Profiler: replaces its lease by another one. `false` if it ran out, and may be another
    /// profiler's by now.
    pub fn replace(&self, slot: usize, before: u64, end: u64) -> bool {
        let Some(lease) = self.ends.get(slot) else {
            return false;
        };
        let order = (Ordering::Relaxed, Ordering::Relaxed);
        if (lease.compare_exchange(before, end, order.0, order.1)).is_err() {
            return false;
        }
        if end != 0 {
            // Pairs with the fence of the VM, which may be about to go quiet.
            fence(Ordering::SeqCst);
            self.listening.store(1, Ordering::Relaxed);
        }
        true
    }

    /// Whether a lease is still this one.
    #[must_use]
    pub fn holds(&self, slot: usize, end: u64) -> bool {
        let lease = self.ends.get(slot);
        lease.is_some_and(|lease| lease.load(Ordering::Relaxed) == end)
    }

    /// Numbers of the leases that are alive.
    pub fn alive(&self, now: u64) -> impl Iterator<Item = usize> {
        let ends = self.ends.iter().map(|lease| lease.load(Ordering::Relaxed));
        let alive = move |(slot, end)| self.is_alive(end, now).then_some(slot);
        ends.enumerate().filter_map(alive)
    }
}
