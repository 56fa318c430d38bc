//! Objects, bytes and mean lifetimes by class, site or method.

use super::estimate::{Estimate, Sums};
use super::event::Groups;
use super::life_table::tables;
use super::{Lifetimes, Measure};
use crate::ids::{AllocationSiteId, ClassId};
use std::cmp::Reverse;
use vmscope_records::{BytecodePc, MethodKey};

/// An allocating bytecode: its method and its position.
pub type Allocator = (MethodKey, BytecodePc);

/// What objects are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// All objects are one group.
    All,
    /// By class.
    Class,
    /// By allocating bytecode, whatever its callers.
    Site,
    /// By allocating method.
    Method,
    /// By class and allocating bytecode.
    ClassAndSite,
}

/// A group of objects. An unknown site or method is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKey {
    /// All objects.
    All,
    /// Objects of a class.
    Class(ClassId),
    /// Objects of a bytecode.
    Site(Option<Allocator>),
    /// Objects of a method.
    Method(Option<MethodKey>),
    /// Objects of a class and a bytecode.
    ClassAndSite(ClassId, Option<Allocator>),
}

impl Grouping {
    /// The group of a class and site of `lifetimes`.
    #[must_use]
    pub fn key(
        self,
        lifetimes: &Lifetimes,
        class: ClassId,
        site: Option<AllocationSiteId>,
    ) -> GroupKey {
        let allocator = || site.and_then(|id| lifetimes.sites[id].frames.first().copied());
        match self {
            Grouping::All => GroupKey::All,
            Grouping::Class => GroupKey::Class(class),
            Grouping::Site => GroupKey::Site(allocator()),
            Grouping::Method => GroupKey::Method(allocator().map(|(method, _)| method)),
            Grouping::ClassAndSite => GroupKey::ClassAndSite(class, allocator()),
        }
    }
}

/// Totals and mean lifetimes of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The group.
    pub key: GroupKey,
    /// Objects with single records. Lifetimes in time and bytes rest on these.
    pub recorded: u64,
    /// Allocated objects; exact if the VM counts.
    pub objects: Estimate,
    /// Allocated bytes; exact if the VM counts.
    pub bytes: Estimate,
    /// Share in all objects, 0 to 1.
    pub share_of_objects: Estimate,
    /// Share in all bytes, 0 to 1.
    pub share_of_bytes: Estimate,
    /// Mean size in bytes.
    pub mean_bytes: Estimate,
    /// Objects without an observed death.
    pub alive: Estimate,
    /// Bytes of `alive`.
    pub alive_bytes: Estimate,
    /// Mean lifetimes, in the order of [`Measure::ALL`]; `None` without data.
    pub mean_lifetimes: [Option<MeanLifetime>; 5],
}

/// A mean lifetime, in three ways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanLifetime {
    /// Restricted mean of the life table: survivors are censored.
    pub restricted: Estimate,
    /// The restriction: the longest lifetime in the group.
    pub horizon: f64,
    /// Share of objects that live longer than the horizon, by the life table.
    pub surviving: Estimate,
    /// Mean of FiLiP (ISMM 2024): the end of the run is the death of survivors.
    pub to_end: Estimate,
    /// The same mean for the shortest possible lifetimes: objects die right after the last collection
    /// that saw them alive.
    pub least: Estimate,
}

impl MeanLifetime {
    fn times(self, factor: f64) -> Self {
        let times = |one: Estimate| Estimate {
            value: one.value * factor,
            error: one.error * factor,
        };
        MeanLifetime {
            restricted: times(self.restricted),
            horizon: self.horizon * factor,
            surviving: self.surviving,
            to_end: times(self.to_end),
            least: times(self.least),
        }
    }
}

/// Limits of groups worth a look. Defaults: those of FiLiP (ISMM 2024).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Least share of the most allocated groups in all objects, 0 to 1.
    pub most_allocated: f64,
    /// Greatest mean lifetime of short-lived groups, as a share of the run, 0 to 1.
    pub short_lived: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            most_allocated: 0.01,
            short_lived: 0.05,
        }
    }
}

impl Group {
    /// The mean lifetime in a unit; `None` without data.
    #[must_use]
    pub fn mean_lifetime(&self, measure: Measure) -> Option<&MeanLifetime> {
        let index = Measure::ALL.iter().position(|one| *one == measure)?;
        self.mean_lifetimes[index].as_ref()
    }

    /// Whether the group is among the most allocated.
    #[must_use]
    pub fn is_most_allocated(&self, thresholds: &Thresholds) -> bool {
        self.share_of_objects.value >= thresholds.most_allocated
    }

    /// Whether its objects live shortly; `None` if the group was observed for too short a time.
    #[must_use]
    pub fn is_short_lived(&self, thresholds: &Thresholds) -> Option<bool> {
        let mean = self.mean_lifetime(Measure::Relative)?;
        let is_short = mean.restricted.value <= thresholds.short_lived;
        let is_known = mean.surviving.value == 0.0 || mean.horizon > thresholds.short_lived;
        (is_known || !is_short).then_some(is_short)
    }
}

/// All groups, most objects first.
#[must_use]
pub fn groups(lifetimes: &Lifetimes, grouping: Grouping) -> Vec<Group> {
    let mut groups = Groups::new(lifetimes, grouping);
    let totals = groups.totals();
    let mut whole = Sums::default();
    totals.iter().for_each(|total| whole.add_all(total));
    let mut alive = vec![Sums::default(); totals.len()];
    for event in lifetimes.events(Measure::Scavenges) {
        if !event.is_dead {
            let group = groups.number(event.class, event.site);
            event.add_to(&mut alive[group as usize]);
        }
    }
    let mut recorded = vec![0; totals.len()];
    for object in &lifetimes.objects {
        // A sampled object without an exact count is of a lost count.
        if let Some(group) = groups.known(object.class, object.site) {
            recorded[group as usize] += 1;
        }
    }
    let means = Measure::ALL.map(|measure| match measure {
        Measure::Relative => Vec::new(),
        _ => mean_lifetimes(&groups, measure),
    });
    let a_run = 1.0 / lifetimes.run_ns().max(1) as f64;
    let rows = groups.keys.iter().enumerate().map(|(group, &key)| {
        let total = &totals[group];
        let (share_of_objects, share_of_bytes) = total.shares(&whole);
        let mut mean_lifetimes = [0, 1, 2, 3, 4].map(|index: usize| {
            let mean: Option<&Option<MeanLifetime>> = means[index].get(group);
            mean.copied().flatten()
        });
        let [time, relative, ..] = &mut mean_lifetimes;
        *relative = time.map(|time| time.times(a_run));
        Group {
            key,
            recorded: recorded[group],
            objects: total.x(),
            bytes: total.y(),
            share_of_objects,
            share_of_bytes,
            mean_bytes: total.ratio(),
            alive: alive[group].x(),
            alive_bytes: alive[group].y(),
            mean_lifetimes,
        }
    });
    let mut rows: Vec<Group> = rows.collect();
    rows.sort_by(|a, b| {
        let objects = b.objects.value.total_cmp(&a.objects.value);
        objects.then_with(|| Reverse(b.key).cmp(&Reverse(a.key)))
    });
    rows
}

/// The mean lifetimes of all groups with data.
fn mean_lifetimes(groups: &Groups, measure: Measure) -> Vec<Option<MeanLifetime>> {
    let count = groups.keys.len();
    let mut to_end = vec![Sums::default(); count];
    let mut least = vec![Sums::default(); count];
    let mut spells = Vec::new();
    for event in groups.lifetimes.events(measure) {
        if let Some(group) = groups.known(event.class, event.site) {
            let index = group as usize;
            to_end[index].add(event.objects, event.variance, (1.0, event.lifetime));
            least[index].add(event.objects, event.variance, (1.0, event.least));
            spells.push(event.spell(group));
        }
    }
    let mut means = vec![None; count];
    for (group, table) in tables(measure, spells) {
        let index = group as usize;
        means[index] = Some(MeanLifetime {
            restricted: table.restricted_mean,
            horizon: table.horizon,
            surviving: table.survival_at(table.horizon),
            to_end: to_end[index].ratio(),
            least: least[index].ratio(),
        });
    }
    means
}
