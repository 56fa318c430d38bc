//! The collector's time by class, site or method: collections joined with lifetimes (DESIGN.md §6).
//!
//! For each kind of collection, non-negative least squares fit the collector's time by a fixed part
//! and by the survivors that the VM counted:
//!
//! `time = fixed + per byte · surviving bytes + per object · surviving objects + per fresh byte · fresh
//! bytes`
//!
//! Fresh bytes are of memory that the collector uses for the first time.
//!
//! The time is the collector's CPU time where the VM reports it, else the duration, which includes
//! waiting for a processor.
//!
//! A group pays for *surviving*: for its objects and their bytes in each collection that they survived;
//! for fresh survivor spaces by its copied bytes, for fresh old space by its tenured bytes.
//! It pays for *allocating*, too: its share of the allocated bytes is its share of the scavenges'
//! fixed part, since allocation brings the next scavenge nearer; likewise its share of the bytes that
//! were moved to old space or allocated there, and the fixed part of full collections.

use super::collections::CollectionKind;
use super::estimate::Estimate;
use super::event::Groups;
use super::fresh::{Fresh, fresh_bytes};
use super::groups::{GroupKey, Grouping};
use super::least_squares::{Fit, REFITS};
use super::{Lifetimes, Object};
use crate::ids::{AllocationSiteId, ClassId, CollectionId, IndexVec};
use vmscope_records::Collection;

/// Number of the model's terms.
pub const TERMS: usize = 4;

/// The collections of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Number of fully observed collections.
    pub collections: u64,
    /// Sum of their times, in nanoseconds.
    pub ns: f64,
    /// Whether the times are CPU times. Otherwise they are durations.
    pub is_cpu: bool,
    /// Sum of the surviving bytes that the VM counted.
    pub survived_bytes: f64,
    /// Sum of the bytes moved to old space.
    pub tenured_bytes: f64,
    /// Sums of the fresh bytes, of survivor spaces and of old space.
    fresh: Fresh,
    /// The model: nanoseconds for a collection, a surviving byte, a surviving object and a fresh byte.
    /// `None` with too few collections, or without counts of surviving bytes.
    pub fit: Option<Fit>,
}

impl Work {
    fn of(
        lifetimes: &Lifetimes,
        kind: CollectionKind,
        fresh: &IndexVec<CollectionId, Fresh>,
    ) -> Self {
        let mut work = Work {
            collections: 0,
            ns: 0.0,
            is_cpu: false,
            survived_bytes: 0.0,
            tenured_bytes: 0.0,
            fresh: Fresh::default(),
            fit: None,
        };
        let collections = lifetimes.collections.enumerated();
        let observed: Vec<(&Collection, u64, Fresh)> = collections
            .filter(|(_, one)| one.kind == kind)
            .filter_map(|(id, one)| {
                let duration = one.record.end?.since(one.record.begin?);
                Some((&one.record, duration.0, fresh[id]))
            })
            .collect();
        work.is_cpu = observed.iter().all(|one| one.0.cpu_ns.is_some());
        let (mut rows, mut durations) = (Vec::new(), Vec::new());
        for (record, duration, fresh) in observed {
            let cpu = record.cpu_ns.filter(|_| work.is_cpu);
            let ns = cpu.unwrap_or(duration) as f64;
            work.collections += 1;
            work.ns += ns;
            work.tenured_bytes += record.tenured_bytes.unwrap_or(0) as f64;
            if let Some(survived) = record.survived_bytes {
                work.survived_bytes += survived as f64;
                let objects = record.survived_objects.unwrap_or(0);
                work.fresh.survivors += fresh.survivors;
                work.fresh.old += fresh.old;
                rows.push(vec![1.0, survived as f64, objects as f64, fresh.sum()]);
                durations.push(ns);
            }
        }
        work.fit = Fit::of(&rows, &durations);
        work
    }

    /// Coefficients of a refit of the model: 0 to [`REFITS`] − 1. Zeros without a model.
    #[must_use]
    pub fn refit(&self, number: usize) -> [f64; TERMS] {
        let refit = self.fit.as_ref().and_then(|fit| fit.refits.get(number));
        let term = |at: usize| refit.and_then(|one| one.get(at)).copied();
        std::array::from_fn(|at| term(at).unwrap_or(0.0))
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

    /// Nanoseconds for a surviving object.
    #[must_use]
    pub fn per_object(&self) -> Estimate {
        self.coefficient(2)
    }

    /// Nanoseconds for a fresh byte.
    #[must_use]
    pub fn per_fresh_byte(&self) -> Estimate {
        self.coefficient(3)
    }

    fn coefficient(&self, term: usize) -> Estimate {
        let fit = self.fit.as_ref();
        fit.and_then(|fit| fit.coefficients.get(term).copied())
            .unwrap_or_default()
    }
}

/// A weighted sum of bytes or objects.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    sum: f64,
    variance: f64,
}

impl Sum {
    fn add(&mut self, (weight, variance): (f64, f64), amount: f64) {
        self.sum += weight * amount;
        self.variance += variance * amount * amount;
    }

    fn estimate(self) -> Estimate {
        Estimate::new(self.sum, self.variance)
    }
}

/// Bytes and numbers of a group's objects, by event.
#[derive(Clone, Copy, Debug, Default)]
struct Deeds {
    allocated: Sum,
    tenured: Sum,
    /// Moved to old space, or allocated there.
    aged: Sum,
    /// Scavenges.
    copied: Survived,
    /// Full collections.
    marked: Survived,
}

/// Survivors, once for each survived collection.
#[derive(Clone, Copy, Debug, Default)]
struct Survived {
    bytes: Sum,
    objects: Sum,
}

impl Survived {
    /// Adds objects of `bytes` that survived so many `collections`.
    fn add(&mut self, weight: (f64, f64), bytes: f64, collections: f64) {
        self.bytes.add(weight, bytes * collections);
        self.objects.add(weight, collections);
    }

    /// Nanoseconds of a refit of the model, with their sampling error. Bytes and objects share one error: both come from
    /// the same sampled objects.
    fn cost(&self, [_, per_byte, per_object, _]: [f64; TERMS]) -> Estimate {
        let (bytes, objects) = (self.bytes.estimate(), self.objects.estimate());
        Estimate {
            value: per_byte * bytes.value + per_object * objects.value,
            error: per_byte * bytes.error + per_object * objects.error,
        }
    }
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
    /// Nanoseconds for both. Where the model hardly tells them apart, both are better known than each.
    pub both: Estimate,
}

impl GroupCost {
    /// Nanoseconds for both that are certain: the lower end of the interval.
    #[must_use]
    pub fn certain(&self) -> f64 {
        let Estimate { value, error } = self.both;
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
    /// Nanoseconds outside all groups: the model's unexplained rest, and objects without a record, such as objects born
    /// before the recording.
    pub unattributed: f64,
}

impl CollectorCost {
    /// The collector's time by group. Without a fit for a kind of collection, its time is
    /// unattributed.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, grouping: Grouping) -> Self {
        let fresh = fresh_bytes(lifetimes);
        let scavenges = Work::of(lifetimes, CollectionKind::Scavenge, &fresh);
        let fulls = Work::of(lifetimes, CollectionKind::Full, &fresh);
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
        let whole = |of: fn(&Deeds) -> Sum| deeds.iter().map(|one| of(one).sum).sum::<f64>();
        let all_allocated = whole(|one| one.allocated);
        let all_aged = whole(|one| one.aged);
        let all_copied = whole(|one| one.copied.bytes);
        let all_tenured = whole(|one| one.tenured);
        let of_group = |(key, deeds): (&GroupKey, &Deeds)| {
            let allocated = share(deeds.allocated, all_allocated);
            let aged = share(deeds.aged, all_aged);
            let fresh_survivors = share(deeds.copied.bytes, all_copied);
            let fresh_old = share(deeds.tenured, all_tenured);
            let fresh = (fresh_survivors.times(scavenges.fresh.survivors))
                .plus(fresh_old.times(scavenges.fresh.old));
            let refits = (0..REFITS).map(|refit| {
                let (scavenge, full) = (scavenges.refit(refit), fulls.refit(refit));
                let survivors = deeds.copied.cost(scavenge).plus(deeds.marked.cost(full));
                let surviving = survivors.plus(fresh.times(scavenge[3]));
                let fixed = allocated.times(scavenge[0] * scavenges.collections as f64);
                let allocating = fixed.plus(aged.times(full[0] * fulls.collections as f64));
                [surviving, allocating, surviving.plus(allocating)]
            });
            let refits: Vec<[Estimate; 3]> = refits.collect();
            let of = |which: usize| mean(refits.iter().map(|refit| refit[which]));
            GroupCost {
                key: *key,
                allocated_bytes: deeds.allocated.estimate(),
                copied_bytes: deeds.copied.bytes.estimate(),
                tenured_bytes: deeds.tenured.estimate(),
                surviving: of(0),
                allocating: of(1),
                both: of(2),
            }
        };
        let mut costs: Vec<GroupCost> = groups.keys.iter().zip(&deeds).map(of_group).collect();
        costs.sort_by(|a, b| {
            let certain = b.certain().total_cmp(&a.certain());
            certain.then_with(|| b.both.value.total_cmp(&a.both.value))
        });
        let attributed: f64 = costs.iter().map(|cost| cost.both.value).sum();
        CollectorCost {
            unattributed: scavenges.ns + fulls.ns - attributed,
            scavenges,
            fulls,
            groups: costs,
        }
    }
}

/// The mean of equally likely estimates: their spread adds to their mean error.
fn mean(estimates: impl Iterator<Item = Estimate> + Clone) -> Estimate {
    let of_model = Estimate::of_samples(estimates.clone().map(|one| one.value));
    let sampling = Estimate::of_samples(estimates.map(|one| one.error)).value;
    Estimate {
        value: of_model.value,
        error: of_model.error.hypot(sampling),
    }
}

fn share(part: Sum, whole: f64) -> Estimate {
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
        let weighted = (weight, weight * (weight - 1.0));
        let bytes = object.bytes as f64;
        let is_born_old = lifetimes.is_born_old(object);
        add(class, site, &|deeds| {
            if object.tenured.is_some() {
                deeds.tenured.add(weighted, bytes);
            }
            if object.tenured.is_some() || is_born_old {
                deeds.aged.add(weighted, bytes);
            }
            if !is_counted {
                deeds.allocated.add(weighted, bytes);
                (deeds.copied).add(weighted, bytes, object.scavenges.into());
                (deeds.marked).add(weighted, bytes, object.fulls.into());
            }
        });
    }
    for counts in &lifetimes.counts {
        add(counts.class, counts.site, &|deeds| {
            deeds.allocated.add((1.0, 0.0), counts.bytes as f64);
            for bucket in &counts.buckets {
                let objects = ((bucket.objects + bucket.alive_objects) as f64, 0.0);
                let bytes = (bucket.bytes + bucket.alive_bytes) as f64 / objects.0.max(1.0);
                (deeds.copied).add(objects, bytes, bucket.scavenges.into());
                (deeds.marked).add(objects, bytes, bucket.fulls.into());
            }
        });
    }
}
