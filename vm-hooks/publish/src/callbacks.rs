//! What the library asks of a VM. All calls come from [`Publisher::poll`](crate::Publisher::poll),
//! on the thread that polls, and never two at a time.

use crate::event::wire::wire_enum;
use crate::publisher::Describer;

/// A VM's answers to profilers' requests.
pub trait Callbacks {
    /// Describes everything that exists: threads, classes and sites of living objects, methods,
    /// constituents, facts, counters, rules.
    ///
    /// Other threads may publish meanwhile. What they remove meanwhile stays removed, although it
    /// may be described afterwards. It is exact if each change is made in the VM's own tables
    /// first and published then.
    fn describe(&mut self, describer: &Describer<'_>);

    /// Whether the VM can describe what exists. Without descriptions, a profiler knows only what is
    /// published while it listens: an empty description would say that nothing exists.
    fn can_describe(&self) -> bool {
        true
    }

    /// Collects garbage now, in full. Left out by VMs that cannot.
    fn collect(&mut self) {}

    /// Sets which objects' lifetimes are published. Left out by VMs that publish none.
    fn lifetime_rate(&mut self, rate: LifetimeRate) {
        let _ = rate;
    }
}

wire_enum! {
    /// What a [`LifetimeRate`] counts.
    pub enum LifetimeUnit {
        /// Objects, at random distances.
        Objects = 0,
        /// Bytes, at random distances.
        Bytes = 1,
        /// Objects, every n-th: to compare with older profilers. It locks on to periodic programs.
        EveryNth = 2,
    }
}

/// Which objects' lifetimes are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LifetimeRate {
    /// What the distance counts.
    pub unit: LifetimeUnit,
    /// Mean distance between two sampled objects: 1 is every object, 0 is none.
    pub distance: u64,
}
