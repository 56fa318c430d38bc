//! Changes that would save the collector time, with predicted savings.
//!
//! A prediction keeps the program's allocations and changes the numbers of collections:
//!
//! - *Pretenuring* objects leaves eden to the others: there are fewer scavenges by the share of the
//!   objects' bytes, and nobody copies the objects. Old space grows by all their bytes instead of
//!   the tenured ones, and full collections follow its growth.
//! - *A larger eden* has fewer scavenges. Whether each copies more is unknown: between as many bytes
//!   as before (objects that stay) and as many more as eden is larger (objects that die slowly).
//! - *More growth* of old space between full collections makes these fewer.
//! - *Not allocating* objects saves all that they cost.

use super::Lifetimes;
use super::collections::CollectionKind;
use super::cost::{CollectorCost, GroupCost};
use super::estimate::Estimate;
use super::groups::{GroupKey, Grouping};
use crate::ids::CollectionId;
use rustc_hash::FxHashMap;

/// Savings below this share of the collector's time are no advice.
const LEAST_SHARE: f64 = 0.01;

/// Most advised groups of a kind.
const MOST_GROUPS: usize = 3;

/// Least share of tenured bytes in the bytes of pretenured objects. Old space would fill with the
/// others, and the full collections to come are a guess where the recording has none.
const LEAST_TENURED: f64 = 0.5;

/// Groups whose deaths are so alike (cosine of the deaths by collection) die together.
const ALIKE: f64 = 0.95;

/// A change of the program or of the VM's parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Allocate these objects in old space. Several groups die together: they are kept alive by the
    /// same objects, and pretenuring one alone saves less.
    Pretenure(Vec<GroupKey>),
    /// Enlarge eden from a number of bytes to another.
    Eden(u64, u64),
    /// Let old space grow twice as much between full collections.
    OldGrowth,
    /// Allocate none of these objects.
    Avoid(GroupKey),
}

/// A change with its predicted saving.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The change.
    pub change: Change,
    /// Saved nanoseconds of the collector, with the 95 % half-width.
    pub saving: Estimate,
}

/// The advice that the data support: savings that are certainly positive, and at least a per cent
/// of the collector's time. Most first. `cost` is of the same lifetimes and grouping.
#[must_use]
pub fn advice(lifetimes: &Lifetimes, grouping: Grouping, cost: &CollectorCost) -> Vec<Advice> {
    let all = cost.scavenges.ns + cost.fulls.ns;
    let is_sound = |advice: &Advice| {
        let Estimate { value, error } = advice.saving;
        value > error && value > LEAST_SHARE * all
    };
    let mut sound: Vec<Advice> = pretenuring(lifetimes, grouping, cost);
    sound.retain(is_sound);
    sound.sort_by(by_saving);
    sound.truncate(MOST_GROUPS);
    let mut avoided: Vec<Advice> = cost.groups.iter().map(avoiding).collect();
    avoided.retain(is_sound);
    avoided.truncate(MOST_GROUPS);
    sound.extend(avoided);
    sound.extend(eden(lifetimes, cost).into_iter().filter(is_sound));
    sound.extend(old_growth(cost).into_iter().filter(is_sound));
    sound.sort_by(by_saving);
    sound
}

fn by_saving(a: &Advice, b: &Advice) -> std::cmp::Ordering {
    b.saving.value.total_cmp(&a.saving.value)
}

fn avoiding(group: &GroupCost) -> Advice {
    Advice {
        change: Change::Avoid(group.key),
        saving: group.both(),
    }
}

/// Groups that are mostly tenured, alone or with those that die with them.
fn pretenuring(lifetimes: &Lifetimes, grouping: Grouping, cost: &CollectorCost) -> Vec<Advice> {
    let is_tenured = |one: &&GroupCost| {
        let Estimate { value, error } = one.tenured_bytes;
        value - error > LEAST_TENURED * one.allocated_bytes.value
    };
    let tenured = cost.groups.iter().filter(is_tenured);
    let tenured: Vec<&GroupCost> = tenured.take(100).collect();
    let mut sets: Vec<Vec<&GroupCost>> = tenured.iter().map(|one| vec![*one]).collect();
    for together in dying_together(lifetimes, grouping, &tenured) {
        sets.push(together.iter().map(|at| tenured[*at]).collect());
    }
    let of_set = |set: Vec<&GroupCost>| Advice {
        saving: pretenured(cost, &set),
        change: Change::Pretenure(set.iter().map(|one| one.key).collect()),
    };
    sets.into_iter().map(of_set).collect()
}

/// The saving of pretenuring these groups.
fn pretenured(cost: &CollectorCost, set: &[&GroupCost]) -> Estimate {
    let sum = |of: fn(&GroupCost) -> Estimate| {
        let parts = set.iter().map(|one| of(one));
        parts.fold(Estimate::default(), Estimate::plus)
    };
    let allocated = sum(|one| one.allocated_bytes);
    let (copied, tenured) = (sum(|one| one.copied_bytes), sum(|one| one.tenured_bytes));
    let all: f64 = cost
        .groups
        .iter()
        .map(|one| one.allocated_bytes.value)
        .sum();
    let share = allocated.times(1.0 / all.max(1.0));
    let scavenges = &cost.scavenges;
    let per_byte = scavenges.per_byte();
    // The others' copies and the fixed parts fall by the share, the groups' copies wholly.
    let others = (scavenges.survived_bytes - copied.value).max(0.0);
    let fixed = scavenges.fixed().times(scavenges.collections as f64);
    let rest = fixed.plus(per_byte.times(others));
    let saved = per_byte.product(copied).plus(rest.product(share));
    // Old space grows by the allocated bytes in place of the tenured ones.
    let growth = scavenges.tenured_bytes;
    if growth <= 0.0 {
        return saved;
    }
    let more = allocated.plus(tenured.times(-1.0)).times(1.0 / growth);
    saved.plus(more.times(-cost.fulls.ns))
}

/// Sets of groups, as indices, whose objects die in the same full collections.
fn dying_together(
    lifetimes: &Lifetimes,
    grouping: Grouping,
    groups: &[&GroupCost],
) -> Vec<Vec<usize>> {
    let index: FxHashMap<GroupKey, usize> = (groups.iter().enumerate())
        .map(|(at, group)| (group.key, at))
        .collect();
    let mut deaths: Vec<FxHashMap<CollectionId, f64>> = vec![FxHashMap::default(); groups.len()];
    for object in &lifetimes.objects {
        let Some(by) = object.death_collection.filter(|_| object.tenured.is_some()) else {
            continue;
        };
        let key = grouping.key(lifetimes, object.class, object.site);
        if lifetimes.collections[by].kind == CollectionKind::Full
            && let Some(group) = index.get(&key)
        {
            let bytes = object.weight * object.bytes as f64;
            *deaths[*group].entry(by).or_default() += bytes;
        }
    }
    let size =
        |one: &FxHashMap<CollectionId, f64>| one.values().map(|bytes| bytes * bytes).sum::<f64>();
    let cosine = |a: &FxHashMap<CollectionId, f64>, b: &FxHashMap<CollectionId, f64>| {
        let common = a.iter().filter_map(|(at, bytes)| Some(bytes * b.get(at)?));
        common.sum::<f64>() / (size(a) * size(b)).sqrt()
    };
    let mut sets: Vec<Vec<usize>> = Vec::new();
    // One collection alone says nothing: all that dies at a program's end would be one set.
    for group in (0..groups.len()).filter(|group| deaths[*group].len() > 1) {
        let alike = |set: &&mut Vec<usize>| cosine(&deaths[set[0]], &deaths[group]) > ALIKE;
        match sets.iter_mut().find(alike) {
            Some(set) => set.push(group),
            None => sets.push(vec![group]),
        }
    }
    sets.retain(|set| set.len() > 1);
    sets
}

/// Twice and four times the eden of the last scavenge.
fn eden(lifetimes: &Lifetimes, cost: &CollectorCost) -> Vec<Advice> {
    let collections = lifetimes.collections.iter().rev();
    let mut spaces = collections.flat_map(|one| &one.record.spaces);
    let Some(now) = spaces.find_map(|space| (space.name == "eden").then_some(space.capacity?))
    else {
        return Vec::new();
    };
    let scavenges = &cost.scavenges;
    let fixed = scavenges.fixed().times(scavenges.collections as f64);
    let copies = scavenges.per_byte().times(scavenges.survived_bytes);
    let larger = [2_u64, 4].into_iter().map(|factor| {
        let fewer = 1.0 - 1.0 / factor as f64;
        let of_copies = copies.times(fewer / 2.0);
        let doubt = Estimate {
            value: 0.0,
            error: of_copies.value,
        };
        Advice {
            change: Change::Eden(now, now.saturating_mul(factor)),
            saving: fixed.times(fewer).plus(of_copies).plus(doubt),
        }
    });
    larger.collect()
}

fn old_growth(cost: &CollectorCost) -> Option<Advice> {
    let fulls = &cost.fulls;
    // The number of collections is whole: its half may be wrong by one collection.
    (fulls.collections >= 2).then(|| Advice {
        change: Change::OldGrowth,
        saving: Estimate {
            value: fulls.ns / 2.0,
            error: fulls.ns / 2.0 / fulls.collections as f64,
        },
    })
}
