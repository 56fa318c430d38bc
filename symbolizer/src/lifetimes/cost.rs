//! The collector's time by class, site or method: collections joined with lifetimes (DESIGN.md §6).
//!
//! For each kind of collection, non-negative least squares fit the durations by a fixed part and by
//! the surviving bytes that the VM counted:
//!
//! - `scavenge = fixed + copying · surviving bytes`
//! - `full = fixed + marking · surviving bytes`
//!
//! A group pays for *surviving*: for the bytes of its objects in each collection that they survived.
//! It pays for *allocating*, too: its share of the allocated bytes is its share of the scavenges'
//! fixed part, since allocation brings the next scavenge nearer; likewise its share of the tenured
//! bytes, and the fixed part of full collections.

use super::collections::CollectionKind;
use super::estimate::Estimate;
use super::event::Groups;
use super::groups::{GroupKey, Grouping};
use super::least_squares::Fit;
use super::{Lifetimes, Object};
use crate::ids::{AllocationSiteId, ClassId};

/// The collections of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Number of fully observed collections.
    pub collections: u64,
    /// Sum of their durations, in nanoseconds.
    pub ns: f64,
    /// Sum of the surviving bytes that the VM counted.
    pub survived_bytes: f64,
    /// Sum of the bytes moved to old space.
    pub tenured_bytes: f64,
    /// The model: nanoseconds for a collection, and for a surviving byte. `None` with too few
    /// collections, or without counts of surviving bytes.
    pub fit: Option<Fit>,
}

impl Work {
    fn of(lifetimes: &Lifetimes, kind: CollectionKind) -> Self {
        let mut work = Work {
            collections: 0,
            ns: 0.0,
            survived_bytes: 0.0,
            tenured_bytes: 0.0,
            fit: None,
        };
        let (mut rows, mut durations) = (Vec::new(), Vec::new());
        for collection in lifetimes.collections.iter().filter(|one| one.kind == kind) {
            let record = &collection.record;
            let (Some(begin), Some(end)) = (record.begin, record.end) else {
                continue;
            };
            let ns = end.since(begin).0 as f64;
            work.collections += 1;
            work.ns += ns;
            work.tenured_bytes += record.tenured_bytes.unwrap_or(0) as f64;
            if let Some(survived) = record.survived_bytes {
                work.survived_bytes += survived as f64;
                rows.push(vec![1.0, survived as f64]);
                durations.push(ns);
            }
        }
        work.fit = Fit::of(&rows, &durations);
        work
    }

    /// Nanoseconds of the fixed part, of one collection.
    #[must_use]
    pub fn fixed(&self) -> Estimate {
        self.coefficient(0)
    }

    /// Nanoseconds for a surviving byte.
    #[must_use]
    pub fn per_byte(&self) -> Estimate {
        self.coefficient(1)
    }

    fn coefficient(&self, term: usize) -> Estimate {
        let fit = self.fit.as_ref();
        fit.and_then(|fit| fit.coefficients.get(term).copied())
            .unwrap_or_default()
    }
}

/// Weighted bytes of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    sum: f64,
    variance: f64,
}

impl Bytes {
    fn add(&mut self, weight: f64, variance: f64, bytes: f64) {
        self.sum += weight * bytes;
        self.variance += variance * bytes * bytes;
    }

    fn estimate(self) -> Estimate {
        Estimate::new(self.sum, self.variance)
    }
}

/// Bytes of a group's objects, by event.
#[derive(Clone, Copy, Debug, Default)]
struct Deeds {
    allocated: Bytes,
    /// Bytes times survived scavenges.
    copied: Bytes,
    tenured: Bytes,
    /// Bytes times survived full collections.
    marked: Bytes,
}

/// The collector's time for one group. All estimates are 95 % intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupCost {
    /// The group.
    pub key: GroupKey,
    /// Allocated bytes.
    pub allocated_bytes: Estimate,
    /// Bytes copied by scavenges: once for each survived scavenge.
    pub copied_bytes: Estimate,
    /// Bytes moved to old space.
    pub tenured_bytes: Estimate,
    /// Nanoseconds for surviving.
    pub surviving: Estimate,
    /// Nanoseconds for allocating.
    pub allocating: Estimate,
}

impl GroupCost {
    /// Nanoseconds for both.
    #[must_use]
    pub fn both(&self) -> Estimate {
        self.surviving.plus(self.allocating)
    }

    /// Nanoseconds for both that are certain: the lower end of the interval.
    #[must_use]
    pub fn certain(&self) -> f64 {
        let Estimate { value, error } = self.both();
        (value - error).max(0.0)
    }
}

/// The collector's time of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorCost {
    /// The scavenges.
    pub scavenges: Work,
    /// The full collections.
    pub fulls: Work,
    /// The groups, most expensive first, as far as that is certain: a single large object in a sample
    /// may stand for anything.
    pub groups: Vec<GroupCost>,
    /// Nanoseconds of no group: what the model does not explain, and objects without a record, such
    /// as those born before the recording.
    pub unattributed: f64,
}

impl CollectorCost {
    /// The collector's time by group. Without a fit for a kind of collection, its time is
    /// unattributed.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, grouping: Grouping) -> Self {
        let scavenges = Work::of(lifetimes, CollectionKind::Scavenge);
        let fulls = Work::of(lifetimes, CollectionKind::Full);
        let mut groups = Groups::new(lifetimes, grouping);
        let mut deeds: Vec<Deeds> = Vec::new();
        let mut add = |class, site, visit: &dyn Fn(&mut Deeds)| {
            let group = groups.number(class, site) as usize;
            if group >= deeds.len() {
                deeds.resize(group + 1, Deeds::default());
            }
            visit(&mut deeds[group]);
        };
        each_survival(lifetimes, &mut add);
        let whole = deeds.iter().fold((0.0, 0.0), |(allocated, tenured), one| {
            (allocated + one.allocated.sum, tenured + one.tenured.sum)
        });
        let fixed = |work: &Work| work.fixed().times(work.collections as f64);
        let of_group = |(key, deeds): (&GroupKey, &Deeds)| GroupCost {
            key: *key,
            allocated_bytes: deeds.allocated.estimate(),
            copied_bytes: deeds.copied.estimate(),
            tenured_bytes: deeds.tenured.estimate(),
            surviving: (scavenges.per_byte().product(deeds.copied.estimate()))
                .plus(fulls.per_byte().product(deeds.marked.estimate())),
            allocating: (fixed(&scavenges).product(share(deeds.allocated, whole.0)))
                .plus(fixed(&fulls).product(share(deeds.tenured, whole.1))),
        };
        let mut costs: Vec<GroupCost> = groups.keys.iter().zip(&deeds).map(of_group).collect();
        costs.sort_by(|a, b| {
            let certain = b.certain().total_cmp(&a.certain());
            certain.then_with(|| b.both().value.total_cmp(&a.both().value))
        });
        let attributed: f64 = costs.iter().map(|cost| cost.both().value).sum();
        CollectorCost {
            unattributed: scavenges.ns + fulls.ns - attributed,
            scavenges,
            fulls,
            groups: costs,
        }
    }
}

fn share(part: Bytes, whole: f64) -> Estimate {
    if whole > 0.0 {
        part.estimate().times(1.0 / whole)
    } else {
        Estimate::default()
    }
}

/// Visits all objects, by exact counts where they exist. Only single records tell which objects were
/// tenured.
fn each_survival(
    lifetimes: &Lifetimes,
    add: &mut impl FnMut(ClassId, Option<AllocationSiteId>, &dyn Fn(&mut Deeds)),
) {
    let is_counted = !lifetimes.counts.is_empty();
    for object in &lifetimes.objects {
        let Object {
            class,
            site,
            weight,
            ..
        } = *object;
        let (variance, bytes) = (weight * (weight - 1.0), object.bytes as f64);
        add(class, site, &|deeds| {
            if object.tenured.is_some() {
                deeds.tenured.add(weight, variance, bytes);
            }
            if !is_counted {
                deeds.allocated.add(weight, variance, bytes);
                let copies = f64::from(object.scavenges);
                deeds.copied.add(weight, variance, bytes * copies);
                let fulls = f64::from(object.fulls);
                deeds.marked.add(weight, variance, bytes * fulls);
            }
        });
    }
    for counts in &lifetimes.counts {
        add(counts.class, counts.site, &|deeds| {
            deeds.allocated.add(1.0, 0.0, counts.bytes as f64);
            for bucket in &counts.buckets {
                let bytes = (bucket.bytes + bucket.alive_bytes) as f64;
                deeds
                    .copied
                    .add(1.0, 0.0, bytes * f64::from(bucket.scavenges));
                deeds.marked.add(1.0, 0.0, bytes * f64::from(bucket.fulls));
            }
        });
    }
}
