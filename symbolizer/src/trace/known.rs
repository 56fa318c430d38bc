//! A cache of addresses and their places.

use crate::ids::PlaceId;
use vmscope_records::{Avma, ProcessKey};

/// The first number of sets: 2^15, of 64 bytes each. A fuzzer makes a cache for each input.
const SET_BITS: u32 = if cfg!(fuzzing) { 6 } else { 15 };

/// The greatest number of sets: 2^20.
const MAX_SET_BITS: u32 = 20;

/// Slots of a set, in one cache line.
const WAYS: usize = 4;

/// The golden ratio's part of 2^64: the upper bits of a product with it depend on all
/// bits of the other factor (Fibonacci hashing).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A cached address.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The address times [`GOLDEN`], which is odd: a bijection. The upper bits select the set;
    /// the lower bits are the tag, together with the process.
    tag: u64,
    /// The number of changes at that time.
    at: u32,
    /// `None` for an empty slot.
    place: Option<PlaceId>,
}

/// The slots of a set.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Known; WAYS]);

/// The slot of an address, until the cache grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    set: usize,
    tag: u64,
}

/// The cache: a program repeats its addresses.
#[derive(Debug)]
pub(super) struct Cache {
    sets: Vec<Set>,
    /// The cache has 2^n sets.
    bits: u32,
}

impl Cache {
    pub fn new() -> Self {
        Cache {
            sets: vec![Set::default(); 1 << SET_BITS],
            bits: SET_BITS,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.sets.fill(Set::default());
    }

    /// `None` for rare process keys from 2^15 on: never cached.
    pub fn key(&self, process: ProcessKey, address: Avma) -> Option<Key> {
        (process.0 >> SET_BITS == 0).then(|| {
            let product = address.0.wrapping_mul(GOLDEN);
            Key {
                set: upper_bits(product, self.bits),
                tag: product << self.bits | u64::from(process.0),
            }
        })
    }

    /// The place of an address, and the number of changes at that time.
    pub fn get(&self, key: Key) -> Option<(PlaceId, u32)> {
        let mut set = self.sets[key.set].0.iter();
        let known = set.find(|known| known.tag == key.tag)?;
        Some((known.place?, known.at))
    }

    /// Replaces the slot of that address, or the oldest slot of its set.
    pub fn put(&mut self, key: Key, at: u32, place: PlaceId) {
        let tag = key.tag;
        let set = &mut self.sets[key.set].0;
        let age = |known: &&mut Known| if known.tag == tag { 0 } else { known.at };
        if let Some(slot) = set.iter_mut().min_by_key(age) {
            let place = Some(place);
            *slot = Known { tag, at, place };
        }
    }

    /// Grows to one set for each place, so that few sets overflow.
    pub fn grow(&mut self, places: usize) {
        while places > self.sets.len() && self.bits < MAX_SET_BITS {
            let mut grown = Cache {
                sets: vec![Set::default(); self.sets.len() * 2],
                bits: self.bits + 1,
            };
            for (set, index) in self.sets.iter().zip(0u64..) {
                for known in &set.0 {
                    let Some(place) = known.place else {
                        continue;
                    };
                    let product = index << (64 - self.bits) | known.tag >> self.bits;
                    let process = known.tag & ((1 << self.bits) - 1);
                    let key = Key {
                        set: upper_bits(product, grown.bits),
                        tag: product << grown.bits | process,
                    };
                    grown.put(key, known.at, place);
                }
            }
            *self = grown;
        }
    }

    /// Prefetches the sets of these addresses: independent loads are much faster than dependent
    /// ones.
    pub fn warm(&self, addresses: impl Iterator<Item = Avma>) {
        let sets = addresses.map(|address| address.0.wrapping_mul(GOLDEN));
        let sets = sets.filter_map(|product| self.sets.get(upper_bits(product, self.bits)));
        std::hint::black_box(sets.fold(0, |sum, set| sum ^ set.0[0].at));
    }
}

/// The upper bits of the product of a key with [`GOLDEN`].
pub(super) fn slot(key: u64, bits: u32) -> usize {
    upper_bits(key.wrapping_mul(GOLDEN), bits)
}

fn upper_bits(product: u64, bits: u32) -> usize {
    usize::try_from(product >> (64 - bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn what_is_known_stays_known_while_it_grows() {
        let mut cache = Cache::new();
        let address = |n: u32| Avma(0x7f00_0000_0000 + u64::from(n) * 24);
        let process = |n: u32| ProcessKey(n % 3);
        for n in 0..100_000 {
            cache.grow(n as usize + 1);
            let key = cache.key(process(n), address(n)).unwrap();
            cache.put(key, n + 1, PlaceId::of(n as usize));
        }
        assert!(cache.bits > SET_BITS);
        let found = (0..100_000).filter(|&n| {
            let other = cache.key(ProcessKey(7), address(n)).unwrap();
            assert!(cache.get(other).is_none());
            let known = cache.get(cache.key(process(n), address(n)).unwrap());
            assert!(known.is_none_or(|known| known == (PlaceId::of(n as usize), n + 1)));
            known.is_some()
        });
        let found = found.count();
        assert!(found > 99_000, "{found}");
        assert!(cache.key(ProcessKey(1 << SET_BITS), Avma(1)).is_none());
    }
}
