//! Publication of lifetimes.

use rustc_hash::FxHashSet;
use vmscope_publish::event::{Class, Death, Site};
use vmscope_publish::{LifetimeRate, LifetimeUnit};

use super::To;
use crate::image::LoadError;
use crate::interpreter::{Vm, now_ns};
use crate::syntax::parse_expression;

/// Interval between publications of the exact counts, in nanoseconds.
const COUNTS_NS: u64 = 500_000_000;

/// Source file of the profiler by finalization.
pub(crate) const FINALIZATION_PROFILER: &str = "kernel/12-lifetimes.st";
/// Its text.
const FINALIZATION_TEXT: &str = include_str!("../../smalltalk/kernel/12-lifetimes.st");

/// Who observes lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifetimeObserver {
    /// The collectors.
    #[default]
    Vm,
    /// A profiler in Smalltalk: an ephemeron for each sampled object.
    Finalization {
        /// Whether the ephemerons are allocated in old space.
        pretenured: bool,
    },
}

/// Objects that the VM tracks from its start, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifetimeOptions {
    /// Which objects. Finalization counts objects, not bytes.
    pub rate: LifetimeRate,
    /// Decides all random choices.
    pub seed: u64,
    /// Who observes.
    pub observer: LifetimeObserver,
}

impl Default for LifetimeOptions {
    /// No lifetimes until a profiler asks.
    fn default() -> Self {
        Self {
            rate: LifetimeRate::default(),
            seed: 0x5EED,
            observer: LifetimeObserver::Vm,
        }
    }
}

/// What profilers know about lifetimes.
#[derive(Debug, Default)]
pub(crate) struct LifetimesPublished {
    pub options: LifetimeOptions,
    /// Published classes.
    classes: FxHashSet<u64>,
    /// Number of published sites.
    sites: usize,
    /// When the counts are due, in nanoseconds of `CLOCK_MONOTONIC`.
    next_counts: u64,
    /// Whether a new profiler needs also the counts that have not changed.
    wants_all_counts: bool,
}

impl Vm {
    /// Tracks objects at the profiler's requested rate; without a request, at the rate of the VM's
    /// options.
    pub(super) fn set_lifetime_rate(&mut self, wanted: LifetimeRate) {
        let LifetimeOptions {
            rate,
            seed,
            observer,
        } = self.publication.lifetimes.options;
        if observer != LifetimeObserver::Vm {
            return;
        }
        let rate = if wanted.distance == 0 { rate } else { wanted };
        if rate == self.heap.lifetime_rate() {
            return;
        }
        self.publish_lifetimes();
        self.allocation_sites.set_callers(rate.callers);
        self.heap.track_lifetimes(rate, seed);
    }

    /// Starts the tracking that the options ask for.
    pub(crate) fn start_lifetimes(&mut self) {
        self.set_lifetime_rate(LifetimeRate::default());
    }

    /// Loads and starts the profiler by finalization, if the options ask for it.
    pub(crate) fn start_finalization_profiler(&mut self) -> Result<(), LoadError> {
        let LifetimeOptions {
            rate,
            observer: LifetimeObserver::Finalization { pretenured },
            ..
        } = self.publication.lifetimes.options
        else {
            return Ok(());
        };
        if rate.distance == 0 {
            return Ok(());
        }
        self.allocation_sites.set_callers(rate.callers);
        self.load(FINALIZATION_PROFILER, FINALIZATION_TEXT)?;
        let random = rate.unit == LifetimeUnit::Objects && rate.distance > 1;
        let distance = rate.distance;
        let start = format!(
            "LifetimeProfiler startEvery: {distance} random: {random} pretenured: {pretenured}"
        );
        self.evaluate(&parse_expression(FINALIZATION_PROFILER, &start)?)?;
        Ok(())
    }

    /// Publishes a death that the program observed.
    pub(crate) fn publish_observed_death(&mut self, object: u64) {
        self.publish_births();
        if let Some(publisher) = self.publication.listener() {
            let time = now_ns();
            publisher.deaths(0, &[Death { time, object }]);
        }
    }

    /// Publishes waiting births, with their classes and sites.
    #[cold]
    pub(crate) fn publish_births(&mut self) {
        let births = self.heap.take_births();
        self.publish_newest_sites();
        self.publish_newest_classes(births.iter().map(|birth| birth.class));
        if let Some(publisher) = self.publication.listener() {
            publisher.births(self.publication.thread(), &births);
        }
        self.heap.recycle(births, Vec::new());
    }

    /// Publishes classes not yet published.
    fn publish_newest_classes(&mut self, classes: impl Iterator<Item = u64>) {
        let mut newest = 0;
        for class in classes {
            if class == newest {
                continue;
            }
            newest = class;
            if self.publication.lifetimes.classes.insert(class)
                && let Some(publisher) = self.publication.listener()
            {
                self.publish_class(class, &To::News(publisher));
            }
        }
    }

    /// Publishes sites not yet published.
    fn publish_newest_sites(&mut self) {
        if let Some(publisher) = self.publication.listener() {
            let to = To::News(publisher);
            self.publish_sites(self.publication.lifetimes.sites, &to);
            self.publication.lifetimes.sites = self.allocation_sites.len();
        }
    }

    /// Publishes what the last collections observed.
    pub(crate) fn publish_fates(&mut self) {
        self.publish_births();
        let fates = self.heap.take_fates();
        let survivals = fates.iter().flat_map(|fates| &fates.survivals);
        let holders = survivals.map(|one| one.holder);
        self.publish_newest_classes(holders.filter(|holder| *holder != 0));
        if let Some(publisher) = self.publication.listener() {
            for fates in &fates {
                publisher.survivals(fates.collection, &fates.survivals);
                publisher.deaths(fates.collection, &fates.deaths);
            }
        }
        self.heap.recycle(Vec::new(), fates);
    }

    /// Publishes the exact counts twice a second.
    pub(crate) fn publish_due_counts(&mut self, now: u64) {
        let published = &mut self.publication.lifetimes;
        if now >= published.next_counts && self.heap.lifetime_rate().distance > 0 {
            published.next_counts = now + COUNTS_NS;
            self.publish_lifetimes();
        }
    }

    /// Publishes all that waits: births, and changed counts.
    pub(crate) fn publish_lifetimes(&mut self) {
        self.publish_births();
        if self.publication.listener().is_none() {
            return;
        }
        let all = std::mem::take(&mut self.publication.lifetimes.wants_all_counts);
        let counts = self.heap.changed_counts(all);
        self.publish_newest_classes(counts.iter().map(|counts| counts.class));
        if let Some(publisher) = self.publication.listener() {
            counts.iter().for_each(|counts| publisher.publish(counts));
        }
    }

    /// Publishes all known sites, and the classes of all tracked objects. The counts follow.
    pub(super) fn publish_tracked(&mut self, to: &To<'_>) {
        self.publication.lifetimes.wants_all_counts = true;
        self.publish_sites(0, to);
        for class in &self.publication.lifetimes.classes {
            self.publish_class(*class, to);
        }
    }

    fn publish_sites(&self, first: usize, to: &To<'_>) {
        for (id, frames) in self.allocation_sites.frames(first) {
            to.publish(&Site {
                id,
                frames: frames.into(),
            });
        }
    }

    fn publish_class(&self, id: u64, to: &To<'_>) {
        let index = u32::try_from(id).unwrap_or(0);
        let name = self.image.class(index).map_or("?", |class| &class.name);
        to.publish(&Class {
            id,
            name: name.into(),
        });
    }
}
