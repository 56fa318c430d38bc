//! Survivals and deaths of tracked objects, observed in the collections where they happen.

use vmscope_publish::event::{Death, Survival};

use super::{Fates, Lifetimes};
use crate::memory::compactor::Plan;
use crate::memory::view::Object;
use crate::memory::{Heap, Oop};

/// The copy of an object that a scavenge has just moved; `None` for a dead object.
pub(super) fn forwarded(address: usize) -> Option<usize> {
    // SAFETY: tracked addresses are objects, or forwarders until the space is used again.
    let object = unsafe { Object::new(Oop::from_address(address)) };
    object.is_forwarded().then(|| object.first_slot().address())
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
            let Some(address) = forwarded(tracked.address) else {
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
            });
            stays
        });
        lifetimes.fates.push(fates);
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
            for list in [&mut lifetimes.young, &mut lifetimes.old] {
                list.retain_mut(|tracked| {
                    let object = tracked.object;
                    let Some(address) = planned(tracked.address) else {
                        fates.deaths.push(Death { time: 0, object });
                        return false;
                    };
                    tracked.address = address;
                    fates.survivals.push(Survival {
                        time: 0,
                        object,
                        tenured: 0,
                    });
                    true
                });
            }
            lifetimes.fates.push(fates);
        }
        self.lifetimes = lifetimes;
    }

    /// New address of an object after compaction; `None` for an unmarked object.
    fn planned_if_marked(&self, plan: Plan, address: usize) -> Option<usize> {
        let oop = Oop::from_address(address);
        // SAFETY: tracked addresses are objects, dead or alive, that have not moved yet.
        let is_marked = unsafe { Object::new(oop) }.header().is_marked();
        is_marked.then(|| self.planned(plan, oop).address())
    }
}
