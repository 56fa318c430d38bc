//! Exact counts of all objects by class and allocation site.
//!
//! Eden's objects need only a count number in a table beside eden: dead objects are births minus
//! survivors. Survivors and old objects are lists of addresses and ages.

use rustc_hash::FxHashMap;
use vmscope_publish::event::{Lifetimes as Counts, SurvivalBucket};

use crate::memory::Oop;
use crate::memory::new_space::NewSpace;
use crate::memory::view::Object;

/// Most pairs of class and site with an own count. Further pairs share a count of their class with
/// an unknown site.
const MOST_COUNTS: usize = 1 << 16;
/// Largest age of a survivor; older objects share the last bucket.
const LAST_AGE: u8 = 63;
/// Bytes of eden for each entry of the table beside eden: the smallest object.
const GRAIN: usize = 16;

/// Objects of a class from a site.
#[derive(Debug, Default)]
struct Count {
    class: u32,
    site: u32,
    /// All objects, except those in eden.
    objects: u64,
    bytes: u64,
    buckets: Vec<SurvivalBucket>,
    /// Whether anything changed since the last publication.
    changed: bool,
}

impl Count {
    /// The bucket of an age.
    fn bucket(&mut self, scavenges: u8, fulls: u8) -> &mut SurvivalBucket {
        self.changed = true;
        let age = (u64::from(scavenges), u64::from(fulls));
        let of = |bucket: &SurvivalBucket| (bucket.scavenges, bucket.fulls);
        let place = match self.buckets.binary_search_by_key(&age, of) {
            Ok(place) => place,
            Err(place) => {
                let bucket = SurvivalBucket {
                    scavenges: age.0,
                    fulls: age.1,
                    ..SurvivalBucket::default()
                };
                self.buckets.insert(place, bucket);
                place
            }
        };
        &mut self.buckets[place]
    }
}

/// Eden's objects of a class from a site. They change with each allocation: an own table, without
/// entries across two cache lines, makes that cheaper.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct InEden {
    objects: u64,
    bytes: u64,
}

/// An object outside of eden.
#[derive(Clone, Copy, Debug)]
struct Aged {
    address: usize,
    /// Place of its count.
    count: u32,
    scavenges: u8,
    fulls: u8,
}

/// The counts.
#[derive(Debug)]
pub(in crate::memory) struct Census {
    counts: Vec<Count>,
    /// As many as `counts`.
    in_eden: Vec<InEden>,
    /// Places in `counts` by class and site.
    places: FxHashMap<(u32, u32), u32>,
    /// The newest class of each site, with its place: most sites make objects of a single class.
    newest: Vec<(u32, u32)>,
    /// Places of the counts of eden's objects, by address.
    eden: Vec<u32>,
    eden_start: usize,
    /// Eden's objects before this address were made before the census.
    first: usize,
    young: Vec<Aged>,
    /// Memory for the next list of `young`.
    spare: Vec<Aged>,
    old: Vec<Aged>,
    /// Survivors of a running scavenge that were in eden: old and new addresses.
    pub moved: Vec<(usize, usize)>,
    /// Number of objects that were counted with an unknown site for want of counts.
    shared: u64,
}

impl Census {
    /// A census of eden's objects from the address `first` on, and of all later ones.
    pub fn new(new_space: &NewSpace, first: usize) -> Self {
        Self {
            counts: Vec::new(),
            in_eden: Vec::new(),
            places: FxHashMap::default(),
            newest: Vec::new(),
            eden: vec![0; new_space.eden_bytes().div_ceil(GRAIN)],
            eden_start: new_space.eden_start,
            first,
            young: Vec::new(),
            spare: Vec::new(),
            old: Vec::new(),
            moved: Vec::new(),
            shared: 0,
        }
    }

    /// Counts a new object.
    #[inline]
    pub fn birth(&mut self, oop: Oop, class: u32, bytes: u64, site: u32) {
        let place = match self.newest.get(site as usize) {
            Some((newest, place)) if *newest == class => *place,
            _ => self.place(class, site),
        };
        let address = oop.address();
        let at = address.wrapping_sub(self.eden_start) / GRAIN;
        if let Some(entry) = self.eden.get_mut(at) {
            *entry = place;
            let in_eden = &mut self.in_eden[place as usize];
            in_eden.objects += 1;
            in_eden.bytes += bytes;
        } else {
            let count = &mut self.counts[place as usize];
            count.objects += 1;
            count.bytes += bytes;
            count.changed = true;
            self.old.push(Aged {
                address,
                count: place,
                scavenges: 0,
                fulls: 0,
            });
        }
    }

    /// Place of the count of a class and a site.
    #[cold]
    fn place(&mut self, class: u32, site: u32) -> u32 {
        let is_full = self.counts.len() >= MOST_COUNTS;
        let pair = match self.places.contains_key(&(class, site)) {
            false if is_full => {
                self.shared += 1;
                (class, 0)
            }
            _ => (class, site),
        };
        let (counts, in_eden) = (&mut self.counts, &mut self.in_eden);
        let place = *self.places.entry(pair).or_insert_with(|| {
            counts.push(Count {
                class,
                site: pair.1,
                ..Count::default()
            });
            in_eden.push(InEden::default());
            u32::try_from(counts.len() - 1).unwrap_or(u32::MAX)
        });
        if pair.1 == site {
            let site = site as usize;
            if site >= self.newest.len() {
                self.newest.resize(site + 1, (0, 0));
            }
            self.newest[site] = (class, place);
        }
        place
    }

    /// After a scavenge: who survived, who died. Eden and the past survivor space still have their
    /// objects or forwarders.
    pub fn after_scavenge(&mut self, new_space: &NewSpace) {
        for (count, in_eden) in self.counts.iter_mut().zip(&self.in_eden) {
            count.objects += in_eden.objects;
            count.bytes += in_eden.bytes;
        }
        let mut past = std::mem::replace(&mut self.young, std::mem::take(&mut self.spare));
        let mut moved = std::mem::take(&mut self.moved);
        for (from, address) in moved.drain(..) {
            if from < self.first {
                continue;
            }
            let place = self.eden[(from - self.eden_start) / GRAIN];
            self.counts[place as usize].changed = true;
            let in_eden = &mut self.in_eden[place as usize];
            in_eden.objects -= 1;
            in_eden.bytes -= size_at(address);
            let aged = Aged {
                address,
                count: place,
                scavenges: 1,
                fulls: 0,
            };
            self.keep(aged, new_space);
        }
        self.moved = moved;
        self.first = self.eden_start;
        for (count, in_eden) in self.counts.iter_mut().zip(&mut self.in_eden) {
            let dead = std::mem::take(in_eden);
            if dead.objects > 0 {
                let bucket = count.bucket(0, 0);
                bucket.objects += dead.objects;
                bucket.bytes += dead.bytes;
            }
        }
        for aged in past.drain(..) {
            match super::fates::forwarded(aged.address).map(|(place, _)| place) {
                Some(address) => {
                    let aged = Aged {
                        address,
                        scavenges: LAST_AGE.min(aged.scavenges + 1),
                        ..aged
                    };
                    self.keep(aged, new_space);
                }
                None => self.death(aged),
            }
        }
        self.spare = past;
    }

    fn keep(&mut self, aged: Aged, new_space: &NewSpace) {
        self.counts[aged.count as usize].changed = true;
        if new_space.contains(Oop::from_address(aged.address)) {
            self.young.push(aged);
        } else {
            self.old.push(aged);
        }
    }

    fn death(&mut self, aged: Aged) {
        let bytes = size_at(aged.address);
        let bucket = self.counts[aged.count as usize].bucket(aged.scavenges, aged.fulls);
        bucket.objects += 1;
        bucket.bytes += bytes;
    }

    /// In a full collection, after marking. `planned` has the new address of a live object, and
    /// nothing for a dead one.
    pub fn in_full_collection(&mut self, planned: impl Fn(usize) -> Option<usize>) {
        for old in [false, true] {
            let list = if old { &mut self.old } else { &mut self.young };
            let mut list = std::mem::take(list);
            list.retain_mut(|aged| {
                if let Some(address) = planned(aged.address) {
                    aged.address = address;
                    aged.fulls = LAST_AGE.min(aged.fulls + 1);
                    self.counts[aged.count as usize].changed = true;
                    true
                } else {
                    self.death(*aged);
                    false
                }
            });
            *(if old { &mut self.old } else { &mut self.young }) = list;
        }
    }

    /// Number of counted objects whose site was replaced by an unknown site for want of counts.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// All counts that changed since the last call; or simply `all`.
    pub fn changes(&mut self, all: bool) -> Vec<Counts<'static>> {
        for (count, in_eden) in self.counts.iter_mut().zip(&self.in_eden) {
            for bucket in &mut count.buckets {
                (bucket.alive_objects, bucket.alive_bytes) = (0, 0);
            }
            if in_eden.objects > 0 {
                let bucket = count.bucket(0, 0);
                (bucket.alive_objects, bucket.alive_bytes) = (in_eden.objects, in_eden.bytes);
            }
        }
        for aged in self.young.iter().chain(&self.old) {
            let count = &mut self.counts[aged.count as usize];
            let changed = count.changed;
            let bucket = count.bucket(aged.scavenges, aged.fulls);
            bucket.alive_objects += 1;
            bucket.alive_bytes += size_at(aged.address);
            count.changed = changed;
        }
        let of_use = |bucket: &&SurvivalBucket| bucket.objects + bucket.alive_objects > 0;
        let counts = self.counts.iter_mut().zip(&self.in_eden);
        let changed = counts.filter(|(count, _)| all || count.changed);
        let counts = changed.map(|(count, in_eden)| {
            count.changed = false;
            let buckets: Vec<_> = count.buckets.iter().filter(of_use).copied().collect();
            Counts {
                class: count.class.into(),
                site: count.site.into(),
                objects: count.objects + in_eden.objects,
                bytes: count.bytes + in_eden.bytes,
                buckets: buckets.into(),
            }
        });
        counts.collect()
    }
}

/// Size of the object at an address, in bytes.
fn size_at(address: usize) -> u64 {
    // SAFETY: the census has only objects' addresses, dead ones only until their memory is reused.
    unsafe { Object::new(Oop::from_address(address)) }.size() as u64
}
