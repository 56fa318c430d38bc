//! Who keeps objects alive: the classes of their holders.
//!
//! A holder is the object that led the collector to a survivor. The last observation counts for all of an
//! object's survived collections. Other objects may refer to the survivor, too.

use super::Lifetimes;
use super::estimate::{Estimate, Sums};
use super::event::Groups;
use super::groups::{GroupKey, Grouping};
use crate::ids::ClassId;
use rustc_hash::FxHashMap;

/// What objects of a class hold of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Holding {
    /// The holders' class; `None`: roots, and unknown holders.
    pub holder: Option<ClassId>,
    /// Bytes times survived collections of the held objects.
    pub survived: Estimate,
    /// Share of `survived` in the whole group's, 0 to 1.
    pub share: Estimate,
}

/// The holders of a group's objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The group.
    pub key: GroupKey,
    /// Bytes times survived collections of its objects.
    pub survived: Estimate,
    /// By the holders' class, most first.
    pub holdings: Vec<Holding>,
}

impl Held {
    /// The class that holds most of the group, if more than half is surely of that class.
    #[must_use]
    pub fn main_holder(&self) -> Option<ClassId> {
        let first = self.holdings.first()?;
        let is_main = first.share.value - first.share.error > 0.5;
        first.holder.filter(|_| is_main)
    }
}

/// The holders of all groups with survivors, most bytes times survived collections first; empty if the
/// VM reported no holders.
#[must_use]
pub fn holders(lifetimes: &Lifetimes, grouping: Grouping) -> Vec<Held> {
    if lifetimes.objects.iter().all(|one| one.holder.is_none()) {
        return Vec::new();
    }
    let mut groups = Groups::new(lifetimes, grouping);
    let mut by_holder: Vec<FxHashMap<Option<ClassId>, Sums>> = Vec::new();
    for object in &lifetimes.objects {
        let survived = f64::from(object.scavenges) + f64::from(object.fulls);
        if survived == 0.0 {
            continue;
        }
        let group = groups.number(object.class, object.site) as usize;
        by_holder.resize_with(groups.keys.len(), FxHashMap::default);
        let sums = by_holder[group].entry(object.holder).or_default();
        let (weight, bytes) = (object.weight, object.bytes as f64);
        sums.add(weight, weight * (weight - 1.0), (1.0, bytes * survived));
    }
    let rows = groups.keys.iter().zip(by_holder).map(|(key, by_holder)| {
        let mut whole = Sums::default();
        by_holder.values().for_each(|sums| whole.add_all(sums));
        let holding = |(holder, sums): (&Option<ClassId>, &Sums)| Holding {
            holder: *holder,
            survived: sums.y(),
            share: sums.shares(&whole).1,
        };
        let mut holdings: Vec<Holding> = by_holder.iter().map(holding).collect();
        holdings.sort_by(|a, b| {
            let survived = b.survived.value.total_cmp(&a.survived.value);
            survived.then_with(|| a.holder.cmp(&b.holder))
        });
        Held {
            key: *key,
            survived: whole.y(),
            holdings,
        }
    });
    let mut rows: Vec<Held> = rows.collect();
    rows.sort_by(|a, b| {
        let survived = b.survived.value.total_cmp(&a.survived.value);
        survived.then_with(|| a.key.cmp(&b.key))
    });
    rows
}
