//! Objects in one form, whether recorded singly or counted: the input of all tables.

use super::estimate::Sums;
use super::groups::{GroupKey, Grouping};
use super::life_table::Spell;
use super::{Counts, Lifetimes, Measure, Object};
use crate::ids::{AllocationSiteId, ClassId};
use rustc_hash::FxHashMap;
use vmscope_records::SurvivalBucket;

/// Objects of one class, site, size and lifetime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub class: ClassId,
    pub site: Option<AllocationSiteId>,
    /// Until the observed death, or until the end.
    pub lifetime: f64,
    /// Until the last collection that saw the objects alive.
    pub least: f64,
    pub is_dead: bool,
    /// Number of objects: the weight of a sampled object.
    pub objects: f64,
    /// Sum of the squared weights.
    pub squares: f64,
    /// Variance of `objects`.
    pub variance: f64,
    /// Mean size in bytes.
    pub bytes: f64,
}

impl Event {
    pub fn spell(&self, group: u32) -> Spell {
        Spell {
            group,
            is_dead: self.is_dead,
            lifetime: self.lifetime,
            objects: self.objects,
            squares: self.squares,
        }
    }

    /// Adds the number of objects and their bytes.
    pub fn add_to(&self, sums: &mut Sums) {
        sums.add(self.objects, self.variance, (1.0, self.bytes));
    }
}

impl Lifetimes {
    /// Whether lifetimes in a unit are exact counts of all objects.
    #[must_use]
    pub fn is_exact(&self, measure: Measure) -> bool {
        measure.is_count() && !self.counts.is_empty()
    }

    /// All objects, by exact counts where they exist. Objects without a known lifetime are left out.
    pub(super) fn events(&self, measure: Measure) -> impl Iterator<Item = Event> + '_ {
        let (counts, objects) = match self.is_exact(measure) {
            true => (self.counts.as_slice(), [].as_slice()),
            false => ([].as_slice(), self.objects.as_slice()),
        };
        let counted = counts
            .iter()
            .flat_map(move |counts| counted(counts, measure));
        let single = objects
            .iter()
            .filter_map(move |one| self.event(one, measure));
        counted.chain(single)
    }

    /// A single object.
    pub(super) fn event(&self, object: &Object, measure: Measure) -> Option<Event> {
        let weight = object.weight;
        Some(Event {
            class: object.class,
            site: object.site,
            lifetime: self.lifetime(object, measure)?,
            least: self.least_lifetime(object, measure)?,
            is_dead: object.death().is_some(),
            objects: weight,
            squares: weight * weight,
            variance: weight * (weight - 1.0),
            bytes: object.bytes as f64,
        })
    }
}

/// The objects of exact counts. Objects without a bucket are alive with unknown survival.
fn counted(counts: &Counts, measure: Measure) -> impl Iterator<Item = Event> {
    let bucketed = |of: fn(&SurvivalBucket) -> u64| counts.buckets.iter().map(of).sum::<u64>();
    let rest = SurvivalBucket {
        alive_objects: counts.objects - bucketed(|one| one.objects + one.alive_objects),
        alive_bytes: counts.bytes - bucketed(|one| one.bytes + one.alive_bytes),
        ..SurvivalBucket::default()
    };
    let of = move |bucket: &SurvivalBucket| {
        let survived = match measure {
            Measure::FullCollections => bucket.fulls,
            _ => bucket.scavenges,
        };
        let event = |is_dead: bool, objects: u64, bytes: u64| Event {
            class: counts.class,
            site: counts.site,
            lifetime: survived.into(),
            least: survived.into(),
            is_dead,
            objects: objects as f64,
            squares: objects as f64,
            variance: 0.0,
            bytes: bytes as f64 / objects.max(1) as f64,
        };
        [
            event(true, bucket.objects, bucket.bytes),
            event(false, bucket.alive_objects, bucket.alive_bytes),
        ]
    };
    let buckets = counts.buckets.iter().copied().chain([rest]);
    let events = buckets.flat_map(move |bucket| of(&bucket));
    events.filter(|event| event.objects > 0.0)
}

/// Numbers the groups of events.
#[derive(Debug)]
pub(super) struct Groups<'a> {
    pub lifetimes: &'a Lifetimes,
    grouping: Grouping,
    index: FxHashMap<GroupKey, u32>,
    pub keys: Vec<GroupKey>,
}

impl<'a> Groups<'a> {
    pub fn new(lifetimes: &'a Lifetimes, grouping: Grouping) -> Self {
        Groups {
            lifetimes,
            grouping,
            index: FxHashMap::default(),
            keys: Vec::new(),
        }
    }

    /// The group of a class and site; new groups get the next number.
    pub fn number(&mut self, class: ClassId, site: Option<AllocationSiteId>) -> u32 {
        let key = self.grouping.key(self.lifetimes, class, site);
        *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            (self.keys.len() - 1) as u32
        })
    }

    /// Number of the group; `None` for groups without events.
    pub fn known(&self, class: ClassId, site: Option<AllocationSiteId>) -> Option<u32> {
        self.index(self.grouping.key(self.lifetimes, class, site))
    }

    /// The number of a group.
    pub fn index(&self, key: GroupKey) -> Option<u32> {
        self.index.get(&key).copied()
    }

    /// Sums of objects and bytes of all groups.
    pub fn totals(&mut self) -> Vec<Sums> {
        let mut totals = Vec::new();
        for event in self.lifetimes.events(Measure::Scavenges) {
            let group = self.number(event.class, event.site) as usize;
            if group >= totals.len() {
                totals.resize(group + 1, Sums::default());
            }
            event.add_to(&mut totals[group]);
        }
        totals
    }
}
