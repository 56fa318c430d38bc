//! Reading lifetimes from a recording.

use super::collections::{CollectionKind, ObservedCollection};
use super::{Counts, Lifetimes, Object, UNKNOWN};
use crate::ids::{AllocationSiteId, ClassId, CollectionId, Id};
use crate::trace::Trace;
use rustc_hash::FxHashMap;
use std::io::{Read, Seek};
use std::ops::ControlFlow;
use vmscope_records::recording::{Item, ReadError, Reader};
use vmscope_records::{
    Birth, ClassKey, CollectionKey, Content, Fate, Fates, LifetimeCounts, ProcessKey, Record,
    SiteKey, Stream, TimeNs,
};

/// Most pairs of class and site with exact counts.
const MAX_COUNTS: usize = 1 << 20;
/// Largest weight in a recording. Thinning multiplies it by 2^64 at most.
const MAX_WEIGHT: f64 = 1e18;

/// Bounds of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The process; `None` for the process of the first lifetime record.
    pub process: Option<ProcessKey>,
    /// Most objects with single records, at least 2. An object takes about 160 bytes during the
    /// reading. A larger recording is thinned: random halves of the objects are left out, and the
    /// weights of the others double.
    pub max_objects: usize,
}

impl Default for Limits {
    /// 8 million objects of the first process.
    fn default() -> Self {
        Limits {
            process: None,
            max_objects: 8_000_000,
        }
    }
}

/// Numbers of records that were ignored, or that lack a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Records of other processes.
    pub other_processes: u64,
    /// Births left out for [`Limits::max_objects`]. The weights of other objects make up for them.
    pub births_left_out: u64,
    /// Births of an unknown class.
    pub births_without_class: u64,
    /// Births with an unknown site. The objects are kept.
    pub births_without_site: u64,
    /// Second births of an object.
    pub duplicate_births: u64,
    /// Births whose weight is not a number from 1 to 10^18.
    pub bad_weights: u64,
    /// Fates of unknown objects.
    pub fates_without_birth: u64,
    /// Fates before the object's birth.
    pub fates_before_birth: u64,
    /// Fates after the object's death.
    pub fates_after_death: u64,
    /// Second survivals in the same collection.
    pub duplicate_fates: u64,
    /// Fates with an unknown collection. Their time decides.
    pub fates_without_collection: u64,
    /// Fates with a holder of an unknown class. They count, without a holder.
    pub fates_without_holder: u64,
    /// Counts of an unknown class or site, beyond the limit, or with more survivals than objects.
    pub bad_counts: u64,
}

impl Lifetimes {
    /// Reads the lifetimes of a process; without any, its collections. `trace` is of the same
    /// recording. Memory is bounded by `limits`; ignored records are counted in [`Lifetimes::skipped`].
    ///
    /// # Errors
    /// [`ReadError`] if the file is unreadable.
    pub fn read<R: Read + Seek>(
        reader: &mut Reader<R>,
        trace: &Trace,
        limits: Limits,
    ) -> Result<Self, ReadError> {
        let all = Self::read_with(reader, trace, limits, |_, _| ControlFlow::Continue(()));
        all.map(Option::unwrap_or_default)
    }

    /// The same. `watch` gets the read bytes and the file's size after every chunk, and may stop the
    /// reading: `None`.
    ///
    /// # Errors
    /// The same.
    pub fn read_with<R: Read + Seek>(
        reader: &mut Reader<R>,
        trace: &Trace,
        limits: Limits,
        mut watch: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Option<Self>, ReadError> {
        reader.rewind();
        let mut reading: Option<Reading> = None;
        let mut other_processes = 0;
        while let Some(chunk) = reader.next_chunk(Content::LIFETIMES)? {
            for item in chunk.items() {
                let Item::Record(record) = item else { continue };
                let process = match &record {
                    Record::Births(births) => births.process,
                    Record::Fates(fates) => fates.process,
                    Record::LifetimeCounts(counts) => counts.process,
                    _ => continue,
                };
                if limits.process.is_some_and(|wanted| wanted != process) {
                    other_processes += 1;
                    continue;
                }
                let reading =
                    reading.get_or_insert_with(|| Reading::new(trace, process, limits.max_objects));
                match record {
                    _ if reading.lifetimes.process != Some(process) => other_processes += 1,
                    Record::Births(births) => births.iter().for_each(|birth| reading.birth(&birth)),
                    Record::Fates(fates) => reading.fates(&fates),
                    Record::LifetimeCounts(counts) => reading.counts(*counts),
                    _ => {}
                }
            }
            let (done, all) = reader.progress();
            if watch(done, all).is_break() {
                return Ok(None);
            }
        }
        if reading.is_none()
            && let Some(collection) = trace.collections.first()
        {
            let process = limits.process.unwrap_or(collection.process);
            reading = Some(Reading::new(trace, process, 0));
        }
        let mut lifetimes = reading.map(Reading::finish).unwrap_or_default();
        lifetimes.skipped.other_processes = other_processes;
        let of_lifetimes = |stream| matches!(stream, Stream::Lifetimes | Stream::Any);
        let lost = trace.lost.iter().filter(|lost| of_lifetimes(lost.stream));
        lifetimes.lost = lost.fold(0, |sum, lost| lost.count.saturating_add(sum));
        Ok(Some(lifetimes))
    }
}

/// A fate of one object.
#[derive(Clone, Copy, Debug)]
struct Observation {
    object: u64,
    time: TimeNs,
    fate: Fate,
    holder: Option<ClassId>,
    collection: Option<CollectionId>,
}

/// A reading under way.
struct Reading {
    lifetimes: Lifetimes,
    max_objects: usize,
    /// How often the objects were halved.
    halvings: u32,
    /// Places in [`Lifetimes::objects`], by key.
    places: FxHashMap<u64, u32>,
    /// Fates that came before the births.
    early: Vec<Observation>,
    classes: FxHashMap<ClassKey, ClassId>,
    sites: FxHashMap<SiteKey, AllocationSiteId>,
    collections: FxHashMap<CollectionKey, CollectionId>,
    counts: FxHashMap<(ClassId, Option<AllocationSiteId>), Counts>,
    /// The first birth.
    first: Option<TimeNs>,
    /// The last known time.
    last: TimeNs,
}

impl Reading {
    fn new(trace: &Trace, process: ProcessKey, max_objects: usize) -> Self {
        let mut lifetimes = Lifetimes {
            process: Some(process),
            tenuring_threshold: tenuring_threshold(trace, process),
            dependent_samples: dependent_samples(trace, process),
            ..Lifetimes::default()
        };
        let mut classes: Vec<_> = trace.classes.values().cloned().collect();
        classes.retain(|class| class.process == process);
        classes.sort_by_key(|class| class.key);
        let classes = classes.into_iter().map(|class| {
            let key = class.key;
            (key, lifetimes.classes.push(class))
        });
        let classes = classes.collect();
        let mut sites: Vec<_> = trace.allocation_sites.values().cloned().collect();
        sites.retain(|site| site.process == process);
        sites.sort_by_key(|site| site.key);
        let sites = sites.into_iter().map(|site| {
            let key = site.key;
            (key, lifetimes.sites.push(site))
        });
        let sites = sites.collect();
        let collections = trace.collections.iter();
        let collections = collections.filter(|one| one.process == process);
        let mut collections: Vec<_> = collections.cloned().map(ObservedCollection::new).collect();
        collections.sort_by_key(|one| (one.begin, one.end));
        let last = collections.last().map(|one| one.end);
        let collections = collections.into_iter().map(|collection| {
            let key = collection.record.key;
            (key, lifetimes.collections.push(collection))
        });
        let collections = collections.collect();
        let session = trace.session.as_ref().map(|session| session.time);
        let end = trace.end.as_ref().map(|end| end.time);
        Reading {
            // Halving leaves one object at least: an object's number may be 0.
            max_objects: max_objects.clamp(2, u32::MAX as usize),
            halvings: 0,
            places: FxHashMap::default(),
            early: Vec::new(),
            classes,
            sites,
            collections,
            counts: FxHashMap::default(),
            first: session,
            last: end.max(last).max(session).unwrap_or_default(),
            lifetimes,
        }
    }

    fn birth(&mut self, birth: &Birth) {
        let skipped = &mut self.lifetimes.skipped;
        if !(1.0..=MAX_WEIGHT).contains(&birth.weight) {
            skipped.bad_weights += 1;
            return;
        }
        let Some(&class) = self.classes.get(&birth.class) else {
            skipped.births_without_class += 1;
            return;
        };
        if self.places.contains_key(&birth.object.0) {
            skipped.duplicate_births += 1;
            return;
        }
        self.first = Some(self.first.map_or(birth.time, |first| first.min(birth.time)));
        self.last = self.last.max(birth.time);
        while self.lifetimes.objects.len() >= self.max_objects {
            self.halve();
        }
        let skipped = &mut self.lifetimes.skipped;
        if !is_kept(birth.object.0, self.halvings) {
            skipped.births_left_out += 1;
            return;
        }
        let place = self.lifetimes.objects.len();
        let site = birth.site.and_then(|key| self.sites.get(&key).copied());
        skipped.births_without_site += u64::from(birth.site.is_some() && site.is_none());
        self.places.insert(birth.object.0, place as u32);
        self.lifetimes.objects.push(Object {
            birth: birth.time,
            bytes: birth.bytes,
            weight: birth.weight * f64::from(self.halvings).exp2(),
            allocated: birth.allocated_bytes.unwrap_or(UNKNOWN),
            death: UNKNOWN,
            class,
            site,
            death_collection: None,
            last_survived: None,
            tenured: None,
            holder: None,
            scavenges: 0,
            fulls: 0,
        });
    }

    /// Leaves out half of the objects, at random, and doubles the weights of the others.
    fn halve(&mut self) {
        self.halvings += 1;
        let halvings = self.halvings;
        let mut keys = vec![0; self.lifetimes.objects.len()];
        for (key, place) in &self.places {
            keys[*place as usize] = *key;
        }
        self.places.clear();
        let (mut keys, places) = (keys.into_iter(), &mut self.places);
        let before = self.lifetimes.objects.len();
        self.lifetimes.objects.retain_mut(|object| {
            object.weight *= 2.0;
            let key = keys.next().filter(|key| is_kept(*key, halvings));
            key.is_some_and(|key| places.insert(key, places.len() as u32).is_none())
        });
        let left_out = before - self.lifetimes.objects.len();
        self.lifetimes.skipped.births_left_out += left_out as u64;
        self.early.retain(|one| is_kept(one.object, halvings));
    }

    fn fates(&mut self, fates: &Fates) {
        let known = fates
            .collection
            .and_then(|key| self.collections.get(&key).copied());
        for one in fates.iter() {
            if !is_kept(one.object.0, self.halvings) {
                continue;
            }
            let unknown = fates.collection.is_some() && known.is_none();
            self.lifetimes.skipped.fates_without_collection += u64::from(unknown);
            let holder = one.holder.map(|key| self.classes.get(&key).copied());
            let skipped = &mut self.lifetimes.skipped.fates_without_holder;
            *skipped += u64::from(holder == Some(None));
            let observation = Observation {
                object: one.object.0,
                time: one.time,
                fate: one.fate,
                holder: holder.flatten(),
                collection: known.or_else(|| self.collection_at(one.time)),
            };
            if !self.observe(observation) {
                if self.early.len() < self.max_objects {
                    self.early.push(observation);
                } else {
                    self.lifetimes.skipped.fates_without_birth += 1;
                }
            }
        }
    }

    /// The last collection that began before a time.
    fn collection_at(&self, time: TimeNs) -> Option<CollectionId> {
        let collections = &self.lifetimes.collections;
        let begun = collections.partition_point(|one| one.begin <= time);
        begun.checked_sub(1).map(CollectionId::of)
    }

    /// Applies a fate; false if the birth is unknown so far.
    fn observe(&mut self, observation: Observation) -> bool {
        let Some(&place) = self.places.get(&observation.object) else {
            return false;
        };
        let Observation {
            time,
            holder,
            collection,
            ..
        } = observation;
        let lifetimes = &mut self.lifetimes;
        let object = &mut lifetimes.objects[place as usize];
        if time < object.birth {
            lifetimes.skipped.fates_before_birth += 1;
            return true;
        }
        let is_second_death = observation.fate == Fate::Died && object.death != UNKNOWN;
        if time.0 > object.death || is_second_death {
            lifetimes.skipped.fates_after_death += 1;
            return true;
        }
        self.last = self.last.max(time);
        if observation.fate == Fate::Died {
            // `UNKNOWN` is not a time.
            object.death = time.0.min(UNKNOWN - 1);
            object.death_collection = collection;
            return true;
        }
        lifetimes.has_survivals = true;
        let Some(id) = collection else { return true };
        if object.last_survived == Some(id) {
            lifetimes.skipped.duplicate_fates += 1;
            return true;
        }
        let survived = match lifetimes.collections[id].kind {
            CollectionKind::Scavenge => &mut object.scavenges,
            CollectionKind::Full => &mut object.fulls,
        };
        *survived = survived.saturating_add(1);
        if object.last_survived < collection {
            object.last_survived = collection;
            object.holder = holder;
        }
        if observation.fate == Fate::Tenured {
            object.tenured = object.tenured.or(collection);
        }
        true
    }

    fn counts(&mut self, counts: LifetimeCounts) {
        let skipped = &mut self.lifetimes.skipped;
        let class = self.classes.get(&counts.class).copied();
        let site = counts.site.map(|key| self.sites.get(&key).copied());
        let mut sums = (Some(0u64), Some(0u64));
        for one in &counts.buckets {
            let add = |sum: Option<u64>, dead, alive| sum?.checked_add(dead)?.checked_add(alive);
            sums.0 = add(sums.0, one.objects, one.alive_objects);
            sums.1 = add(sums.1, one.bytes, one.alive_bytes);
        }
        let fits = sums.0.is_some_and(|sum| sum <= counts.objects)
            && sums.1.is_some_and(|sum| sum <= counts.bytes);
        let (Some(class), true, false) = (class, fits, site == Some(None)) else {
            skipped.bad_counts += 1;
            return;
        };
        let key = (class, site.flatten());
        let known = self.counts.get(&key);
        if known.is_none() && self.counts.len() >= MAX_COUNTS {
            skipped.bad_counts += 1;
            return;
        }
        self.last = self.last.max(counts.time);
        if known.is_none_or(|known| known.time <= counts.time) {
            let newest = Counts {
                class,
                site: key.1,
                time: counts.time,
                objects: counts.objects,
                bytes: counts.bytes,
                buckets: counts.buckets,
            };
            self.counts.insert(key, newest);
        }
    }

    fn finish(mut self) -> Lifetimes {
        for observation in std::mem::take(&mut self.early) {
            let is_known = self.observe(observation);
            self.lifetimes.skipped.fates_without_birth += u64::from(!is_known);
        }
        drop(self.places);
        let mut lifetimes = self.lifetimes;
        lifetimes.end = self.last;
        lifetimes.begin = self.first.unwrap_or(self.last);
        lifetimes.objects.sort_by_key(|object| object.birth);
        let mut collections = lifetimes.collections.iter();
        let last = collections.rfind(|one| one.kind == CollectionKind::Scavenge);
        lifetimes.last_scavenge = last.map(|one| one.begin);
        lifetimes.counts = self.counts.into_values().collect();
        (lifetimes.counts).sort_by_key(|counts| (counts.class, counts.site));
        if !lifetimes.has_survivals {
            lifetimes.infer_survivals();
        }
        lifetimes
    }
}

/// The newest reported threshold: a percentage.
fn tenuring_threshold(trace: &Trace, process: ProcessKey) -> Option<f64> {
    let value = newest_fact(trace, process, "tenuring threshold")?;
    let percent: f64 = value.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// The way of sampling, where one sampled object says something about the next.
fn dependent_samples(trace: &Trace, process: ProcessKey) -> Option<&'static str> {
    let value = newest_fact(trace, process, "sampling of lifetimes")?;
    let ways = ["every-nth", "windows", "buffers"];
    ways.into_iter().find(|way| value.contains(way))
}

fn newest_fact<'a>(trace: &'a Trace, process: ProcessKey, name: &str) -> Option<&'a str> {
    let mut facts = trace.facts.iter().rev();
    let fact = facts.find(|one| one.process == process && one.name == name)?;
    Some(&fact.value)
}

/// Whether an object is kept after a number of halvings: each keeps half of the objects before. The
/// bits of the mixed key (SplitMix64) decide, so that an object's records have the same fate.
fn is_kept(key: u64, halvings: u32) -> bool {
    let mixed = (key ^ key >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31).trailing_zeros() >= halvings
}

impl Lifetimes {
    /// Counts the collections between birth and death as survived. A death in a full collection may
    /// have happened at any time since the full collection before.
    fn infer_survivals(&mut self) {
        let mut scavenges = vec![0u64];
        let mut last_full = vec![None];
        for (id, collection) in self.collections.enumerated() {
            let is_full = collection.kind == CollectionKind::Full;
            scavenges.push(scavenges[id.index()] + u64::from(!is_full));
            last_full.push(if is_full {
                Some(id)
            } else {
                last_full[id.index()]
            });
        }
        let count = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        for object in &mut self.objects {
            let first = (self.collections).partition_point(|one| one.begin < object.birth);
            let after = self.collections.len();
            let after = object.death_collection.map_or(after, CollectionId::index);
            let Some(last) = after.checked_sub(1).filter(|last| *last >= first) else {
                continue;
            };
            let survived = scavenges[after] - scavenges[first];
            object.scavenges = count(survived);
            object.fulls = count((after - first) as u64 - survived);
            let death = object.death_collection.map(|id| &self.collections[id]);
            object.last_survived = match death {
                Some(death) if death.kind == CollectionKind::Full => {
                    last_full[after].filter(|id| id.index() >= first)
                }
                _ => Some(CollectionId::of(last)),
            };
        }
    }
}
