//! Survivals and deaths of tracked objects, observed in the collections where they happen.

use vmscope_publish::event::{Death, Survival};

use super::{Fates, Lifetimes};
use crate::memory::compactor::Plan;
use crate::memory::view::Object;
use crate::memory::{Heap, Oop};

/// The copy of an object that a scavenge has just moved, and the class index of its holder; `None` for
/// a dead object.
pub(super) fn forwarded(address: usize) -> Option<(usize, u32)> {
    // SAFETY: tracked addresses are objects, or forwarders until the space is used again.
    let object = unsafe { Object::new(Oop::from_address(address)) };
    let place = || (object.first_slot().address(), object.header().hash());
    object.is_forwarded().then(place)
}

/// Replaces the hash of an object that has not moved yet. Returns the value before.
fn exchange_hash(address: usize, hash: u32) -> u32 {
    // SAFETY: tracked addresses are objects.
    let object = unsafe { Object::new(Oop::from_address(address)) };
    let header = object.header();
    object.set_header(header.with_hash(hash));
    header.hash()
}

impl Lifetimes {
    fn new_fates(&mut self, collection: u64) -> Fates {
        let mut fates = self.spare.pop().unwrap_or_default();
        fates.collection = collection;
        fates.survivals.clear();
        fates.deaths.clear();
        fates
    }
}

impl Heap {
    /// After a scavenge, before new space is used again.
    pub(in crate::memory) fn observe_scavenge(&mut self, collection: u64) {
        let lifetimes = &mut self.lifetimes;
        if lifetimes.sampler.is_none() {
            return;
        }
        if let Some(census) = &mut lifetimes.census {
            census.after_scavenge(&self.new_space);
        }
        let mut fates = lifetimes.new_fates(collection);
        let Lifetimes { young, old, .. } = lifetimes;
        young.retain_mut(|tracked| {
            let object = tracked.object;
            let Some((address, holder)) = forwarded(tracked.address) else {
                fates.deaths.push(Death { time: 0, object });
                return false;
            };
            tracked.address = address;
            let stays = self.new_space.contains(Oop::from_address(address));
            if !stays {
                old.push(*tracked);
            }
            fates.survivals.push(Survival {
                time: 0,
                object,
                tenured: (!stays).into(),
                holder: holder.into(),
            });
            stays
        });
        lifetimes.fates.push(fates);
    }

    /// Flags the tracked objects for a full collection, which puts the holders' classes into their
    /// headers, where the hashes are.
    pub(in crate::memory) fn flag_tracked_objects(&mut self) {
        let Lifetimes {
            young, old, hashes, ..
        } = &mut self.lifetimes;
        hashes.clear();
        for tracked in young.iter().chain(&*old) {
            // SAFETY: after a scavenge, tracked addresses are objects.
            let object = unsafe { Object::new(Oop::from_address(tracked.address)) };
            let header = object.header();
            hashes.push(header.hash());
            object.set_header(header.with_tracked(true));
        }
    }

    /// In a full collection, while all live objects are marked and still at their old addresses.
    pub(in crate::memory) fn observe_full_collection(&mut self, plan: Plan, collection: u64) {
        let mut lifetimes = std::mem::take(&mut self.lifetimes);
        if lifetimes.sampler.is_some() {
            let planned = |address| self.planned_if_marked(plan, address);
            if let Some(census) = &mut lifetimes.census {
                census.in_full_collection(planned);
            }
            let mut fates = lifetimes.new_fates(collection);
            let mut hashes = lifetimes.hashes.iter();
            for list in [&mut lifetimes.young, &mut lifetimes.old] {
                list.retain_mut(|tracked| {
                    let object = tracked.object;
                    let hash = hashes.next().copied().unwrap_or_default();
                    let Some(address) = planned(tracked.address) else {
                        fates.deaths.push(Death { time: 0, object });
                        return false;
                    };
                    let holder = exchange_hash(tracked.address, hash);
                    tracked.address = address;
                    fates.survivals.push(Survival {
                        time: 0,
                        object,
                        tenured: 0,
                        holder: holder.into(),
                    });
                    true
                });
            }
            lifetimes.fates.push(fates);
        }
        self.lifetimes = lifetimes;
    }

    /// The collection is over: its observations have this time.
    pub(in crate::memory) fn note_end_of_collection(&mut self, time: u64) {
        if self.lifetimes.is_on()
            && let Some(fates) = self.lifetimes.fates.last_mut()
        {
            let Fates {
                survivals, deaths, ..
            } = fates;
            survivals.iter_mut().for_each(|one| one.time = time);
            deaths.iter_mut().for_each(|one| one.time = time);
        }
    }

    /// New address of an object after compaction; `None` for an unmarked object.
    fn planned_if_marked(&self, plan: Plan, address: usize) -> Option<usize> {
        let oop = Oop::from_address(address);
        // SAFETY: tracked addresses are objects, dead or alive, that have not moved yet.
        let is_marked = unsafe { Object::new(oop) }.header().is_marked();
        is_marked.then(|| self.planned(plan, oop).address())
    }
}
