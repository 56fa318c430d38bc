//! The callbacks that a VM implements. All calls come from
//! [`Publisher::poll`](crate::Publisher::poll), on the polling thread, and never overlap.

use crate::event::wire::wire_enum;
use crate::publisher::Describer;
use std::fmt;

/// A VM's answers to profilers' requests.
pub trait Callbacks {
    /// Describes everything that exists: threads, classes and sites of living objects, methods,
    /// constituents, facts, counters, rules.
    ///
    /// Other threads may publish during the description. A removal during the description counts,
    /// even if `describe` publishes the removed thing afterwards. The snapshot is exact if the VM
    /// makes each change in its own tables first, and publishes the change afterwards.
    fn describe(&mut self, describer: &Describer<'_>);

    /// Whether the VM implements [`describe`](Self::describe). Without descriptions, a profiler
    /// knows only things published while it listens. An empty description would claim that nothing
    /// exists.
    fn can_describe(&self) -> bool {
        true
    }

    /// Collects garbage now, in full. The default does nothing.
    fn collect(&mut self) {}

    /// Sets which objects' lifetimes are published. The default does nothing.
    fn lifetime_rate(&mut self, rate: LifetimeRate) {
        let _ = rate;
    }
}

wire_enum! {
    /// What a [`LifetimeRate`] counts, and how objects are chosen. A VM without one of the ways
    /// samples `Objects`: the weights say what a sample stands for.
    pub enum LifetimeUnit {
        /// Objects, at random distances.
        Objects = 0,
        /// Bytes, at random distances.
        Bytes = 1,
        /// Objects, every n-th: to compare with older profilers. It locks on to periodic programs.
        EveryNth = 2,
        /// All objects of short windows, one window of every n, at random. Objects that are born
        /// together are sampled together, so errors are larger than for as many single objects.
        Windows = 3,
        /// Objects, at random distances that each thread has for itself.
        Threads = 4,
        /// Bytes: the size of allocation buffers, as in HotSpot. The object that needs a new buffer is
        /// sampled; its weight is the buffer's size ÷ its own, at least 1. Not quite unbiased.
        Buffers = 5,
    }
}

/// Which objects' lifetimes are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LifetimeRate {
    /// What the distance counts.
    pub unit: LifetimeUnit,
    /// Mean distance between two sampled objects: 1 is every object, 0 is none.
    pub distance: u64,
    /// Number of callers in an allocation site, 0 to [`MOST_CALLERS`](Self::MOST_CALLERS). 0: the
    /// allocating method alone.
    pub callers: u32,
}

impl LifetimeRate {
    /// Most callers in an allocation site.
    pub const MOST_CALLERS: u32 = 31;
}

/// As in `1/100 (windows)`; by bytes `1 per 4800 bytes (random)`.
impl fmt::Display for LifetimeRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distance = self.distance;
        let (is_by_bytes, way) = match self.unit {
            LifetimeUnit::Objects => (false, "random"),
            LifetimeUnit::Bytes => (true, "random"),
            LifetimeUnit::EveryNth => (false, "every-nth"),
            LifetimeUnit::Windows => (false, "windows"),
            LifetimeUnit::Threads => (false, "threads"),
            LifetimeUnit::Buffers => (true, "buffers"),
        };
        match (is_by_bytes, distance) {
            (_, 1) => write!(f, "every object"),
            (true, _) => write!(f, "1 per {distance} bytes ({way})"),
            (false, _) => write!(f, "1/{distance} ({way})"),
        }
    }
}
