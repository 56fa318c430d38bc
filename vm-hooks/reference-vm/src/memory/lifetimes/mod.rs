//! Lifetimes of objects, observed by the collectors.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | tracked objects and their births |
//! | `fates` | survivals and deaths |
//! | `sampler` | the choice of the tracked objects |
//! | `census` | exact counts, if every object is wanted |

mod census;
mod fates;
mod sampler;

use vmscope_publish::LifetimeRate;
use vmscope_publish::event::{Birth, Death, Lifetimes as Counts, Survival};

use super::object::{self, WORD};
use super::view::Object;
use super::{Format, Heap, Oop};
use census::Census;
use sampler::{Candidate, Sampler};

/// Births with a single record before the mean distance of single records doubles first. Single
/// records are most of the cost at distance 1; the counts are exact without them.
const FIRST_BUDGET: u64 = 250_000;
/// Further births with a single record before the distance doubles again.
const NEXT_BUDGET: u64 = 125_000;

/// Most observations whose memory is kept for the next ones: a full collection makes two.
const SPARES: usize = 2;

/// A new object, before its birth is noted.
#[derive(Clone, Copy, Debug)]
pub struct Newborn {
    /// The object.
    pub oop: Oop,
    /// Its class index.
    pub class: u32,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes allocated before it.
    pub allocated_bytes: u64,
    /// Its weight, if the object gets a single record.
    pub weight: Option<f64>,
}

/// Observations of a collection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fates {
    /// Number of the collection: [`Begin::number`](super::Begin::number).
    pub collection: u64,
    /// Tracked objects that survived. The holder's class is that of the object which led the collector
    /// to them; an Array with a known holder stands for that holder.
    pub survivals: Vec<Survival>,
    /// Tracked objects that died.
    pub deaths: Vec<Death>,
}

/// A living object with a single record.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    address: usize,
    /// Its id.
    object: u64,
}

/// Tracked objects.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    rate: LifetimeRate,
    sampler: Option<Sampler>,
    /// Counts of all objects, if the rate samples every object.
    pub census: Option<Census>,
    /// [`Heap::allocate_quickly`]'s limit without tracking.
    pub plain_limit: usize,
    /// The newest object, if it is to be tracked.
    pub newborn: Option<Newborn>,
    /// Objects in new space, in order of allocation.
    young: Vec<Tracked>,
    /// Objects in old space.
    old: Vec<Tracked>,
    newest_object: u64,
    /// Births until the distance of single records doubles.
    budget: u64,
    births: Vec<Birth>,
    fates: Vec<Fates>,
    /// Memory for the next observations.
    spare: Vec<Fates>,
    /// Hashes of the tracked objects, young ones first, in a full collection: the headers have the
    /// holders' class indices instead.
    hashes: Vec<u32>,
}

impl Lifetimes {
    /// Whether objects are tracked.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.sampler.is_some()
    }

    /// Whether every allocation is to be seen.
    #[inline]
    pub fn sees_every_object(&self) -> bool {
        self.census.is_some()
            || self
                .sampler
                .as_ref()
                .is_some_and(Sampler::sees_every_object)
    }

    /// Address of eden's next sample point.
    pub fn point(&self) -> usize {
        self.sampler
            .as_ref()
            .map_or(usize::MAX, |sampler| sampler.point)
    }

    /// Draws eden's next sample point, from `start` on. `allocated`: bytes allocated so far.
    pub fn draw_point(&mut self, start: usize, allocated: u64) {
        if let Some(sampler) = &mut self.sampler {
            sampler.draw_point(start, allocated);
        }
    }
}

impl Heap {
    /// Tracks objects from now on. `seed` decides all random choices. Objects tracked before stay
    /// tracked, and counts once begun go on at any rate: a count of a part of the time would be wrong.
    /// The distance 0 ends the tracking and the counts.
    pub fn track_lifetimes(&mut self, rate: LifetimeRate, seed: u64) {
        let before = std::mem::take(&mut self.lifetimes);
        // Ids are never reused.
        self.lifetimes.newest_object = before.newest_object;
        let (first, allocated) = (self.eden.free, self.allocated_bytes());
        if rate.distance > 0 {
            let begun = || Census::new(&self.new_space, first);
            let census = before
                .census
                .or_else(|| sampler::is_every_object(rate).then(begun));
            self.lifetimes = Lifetimes {
                rate,
                sampler: Some(Sampler::new(rate, census.is_some(), seed, allocated)),
                census,
                budget: FIRST_BUDGET,
                newborn: None,
                ..before
            };
        }
        self.lifetimes.draw_point(first, allocated);
        self.set_eden_limit();
    }

    /// The rate of tracking; the distance is 0 if tracking is off.
    #[must_use]
    pub fn lifetime_rate(&self) -> LifetimeRate {
        self.lifetimes.rate
    }

    /// Present mean distance between objects with a single record, in the rate's unit; 0 if tracking
    /// is off.
    #[must_use]
    pub fn lifetime_distance(&self) -> u64 {
        let sampler = self.lifetimes.sampler.as_ref();
        sampler.map_or(0, Sampler::distance)
    }

    /// Whether the newest object is to be tracked: the caller calls
    /// [`note_birth`](Self::note_birth).
    #[must_use]
    #[inline]
    pub fn has_newborn(&self) -> bool {
        self.lifetimes.newborn.is_some()
    }

    /// Makes an object in eden, if every object is to be seen and this one needs no other attention.
    /// The second value is the object's weight, if it gets a single record. The caller calls
    /// [`note_seen`](Self::note_seen) if [`notes_all`](Self::notes_all), or if there is a weight.
    #[must_use]
    #[inline]
    pub fn allocate_seen(
        &mut self,
        class: u32,
        format: Format,
        slots: usize,
    ) -> Option<(Oop, Option<f64>)> {
        if !self.lifetimes.sampler.as_ref()?.sees_every_object() {
            return None;
        }
        let limit = self.lifetimes.plain_limit;
        let oop = self.allocate_below(limit, class, format, slots)?;
        Some((oop, self.lifetimes.sampler.as_mut()?.choose_seen()))
    }

    /// Whether every object is counted.
    #[must_use]
    #[inline]
    pub fn notes_all(&self) -> bool {
        self.lifetimes.census.is_some()
    }

    /// Notes the birth of the newest object at a site, 0 if unknown.
    #[inline]
    pub fn note_seen(
        &mut self,
        (oop, weight): (Oop, Option<f64>),
        class: u32,
        slots: usize,
        site: u32,
        now: impl FnOnce() -> u64,
    ) {
        let bytes = object::size_for(slots) as u64;
        if let Some(census) = &mut self.lifetimes.census {
            census.birth(oop, class, bytes, site);
        }
        if let Some(weight) = weight {
            let newborn = Newborn {
                oop,
                class,
                bytes,
                allocated_bytes: self.allocated_bytes() - bytes,
                weight: None,
            };
            self.add_birth(&newborn, site, weight, now());
        }
    }

    /// Decides on a new object. `allocated_bytes`: bytes allocated before it.
    pub(super) fn choose(&mut self, oop: Oop, class: u32, bytes: usize, allocated_bytes: u64) {
        let Some(sampler) = &mut self.lifetimes.sampler else {
            return;
        };
        let weight = sampler.choose(Candidate {
            words: bytes / WORD,
            is_old: !self.new_space.contains(oop),
            before: allocated_bytes,
            free: self.eden.free,
        });
        if weight.is_some() || self.lifetimes.census.is_some() {
            self.lifetimes.newborn = Some(Newborn {
                oop,
                class,
                bytes: bytes as u64,
                allocated_bytes,
                weight,
            });
        }
        if !self.lifetimes.sees_every_object() {
            self.set_eden_limit();
        }
    }

    /// Another process runs, so another one's distance counts. `keep`: whether the old process goes
    /// on later.
    pub fn switch_process(&mut self, from: usize, keep: bool, to: usize) {
        if let Some(sampler) = &mut self.lifetimes.sampler {
            sampler.switch((from, keep), to, self.eden.free);
            self.set_eden_limit();
        }
    }

    /// Notes the birth of the newest object at a site, 0 if unknown. `now` is called only for an
    /// object with a single record.
    #[inline]
    pub fn note_birth(&mut self, site: u32, now: impl FnOnce() -> u64) {
        let Some(newborn) = self.lifetimes.newborn.take() else {
            return;
        };
        if let Some(census) = &mut self.lifetimes.census {
            census.birth(newborn.oop, newborn.class, newborn.bytes, site);
        }
        if let Some(weight) = newborn.weight {
            self.add_birth(&newborn, site, weight, now());
        }
    }

    fn add_birth(&mut self, newborn: &Newborn, site: u32, weight: f64, time: u64) {
        let is_new = self.is_new(newborn.oop);
        let lifetimes = &mut self.lifetimes;
        lifetimes.newest_object += 1;
        let object = lifetimes.newest_object;
        let tracked = Tracked {
            address: newborn.oop.address(),
            object,
        };
        let list = if is_new {
            &mut lifetimes.young
        } else {
            &mut lifetimes.old
        };
        list.push(tracked);
        lifetimes.births.push(Birth {
            time,
            object,
            class: newborn.class.into(),
            site: site.into(),
            bytes: newborn.bytes,
            allocated_bytes: newborn.allocated_bytes,
            weight,
        });
        lifetimes.budget -= 1;
        if lifetimes.budget == 0 {
            lifetimes.budget = NEXT_BUDGET;
            let counts = lifetimes.census.is_some();
            let allocated = newborn.allocated_bytes + newborn.bytes;
            if let Some(sampler) = &mut lifetimes.sampler {
                let distance = sampler.distance().saturating_mul(2);
                sampler.set_distance(distance, counts, allocated);
                sampler.draw_point(self.eden.free, allocated);
            }
            self.set_eden_limit();
        }
    }

    /// Notes the birth of the newest object, whose death the program itself observes. Returns the
    /// object's id.
    pub fn note_observed_birth(&mut self, oop: Oop, site: u32, weight: f64, time: u64) -> u64 {
        // SAFETY: the caller's objects are objects; `view` is forgotten at once.
        let view = unsafe { Object::new(oop) };
        let bytes = view.size() as u64;
        let allocated_bytes = self.allocated_bytes().saturating_sub(bytes);
        let lifetimes = &mut self.lifetimes;
        lifetimes.newest_object += 1;
        lifetimes.births.push(Birth {
            time,
            object: lifetimes.newest_object,
            class: view.header().class_index().into(),
            site: site.into(),
            bytes,
            allocated_bytes,
            weight,
        });
        lifetimes.newest_object
    }

    /// Number of births that wait for [`take_births`](Self::take_births).
    #[must_use]
    #[inline]
    pub fn waiting_births(&self) -> usize {
        self.lifetimes.births.len()
    }

    /// Takes the births since the last call, in order of allocation.
    pub fn take_births(&mut self) -> Vec<Birth> {
        std::mem::take(&mut self.lifetimes.births)
    }

    /// Takes the observations of the collections since the last call.
    pub fn take_fates(&mut self) -> Vec<Fates> {
        std::mem::take(&mut self.lifetimes.fates)
    }

    /// Gives back the memory of births and observations, for the next ones: fresh memory costs more
    /// than its use.
    pub fn recycle(&mut self, mut births: Vec<Birth>, mut fates: Vec<Fates>) {
        births.clear();
        if births.capacity() > self.lifetimes.births.capacity() && self.lifetimes.births.is_empty()
        {
            self.lifetimes.births = births;
        }
        self.lifetimes.spare.append(&mut fates);
        self.lifetimes.spare.truncate(SPARES);
    }

    /// Exact counts that changed since the last call; or simply `all`. Counts exist only if the rate
    /// samples every object.
    pub fn changed_counts(&mut self, all: bool) -> Vec<Counts<'static>> {
        let census = self.lifetimes.census.as_mut();
        census.map_or_else(Vec::new, |census| census.changes(all))
    }

    /// Number of counted objects whose site was replaced by an unknown site, because the table of
    /// counts was full.
    #[must_use]
    pub fn shared_counts(&self) -> u64 {
        self.lifetimes.census.as_ref().map_or(0, Census::shared)
    }
}
