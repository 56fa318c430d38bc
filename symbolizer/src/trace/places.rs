//! Interned places.

use super::Place;
use rustc_hash::FxHashMap;

/// Places of a constituent found without hashing: 64 bytes of them.
const FEW: usize = 8;

/// No place.
const NONE: u32 = u32::MAX;

/// All places, with their indices.
#[derive(Debug, Default)]
pub(super) struct Places {
    all: Vec<Place>,
    /// The first places of each constituent: offset and index. Most constituents have few.
    in_code: Vec<First>,
    /// All other places.
    index: FxHashMap<Place, u32>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct First([(u32, u32); FEW]);

impl Places {
    pub fn new(all: Vec<Place>) -> Self {
        let mut places = Places::default();
        for place in all {
            places.intern(place);
        }
        places
    }

    pub fn all(&self) -> &[Place] {
        &self.all
    }

    pub fn into_all(self) -> Vec<Place> {
        self.all
    }

    pub fn get(&self, index: u32) -> Option<Place> {
        self.all.get(index as usize).copied()
    }

    /// The index of a place, found or made.
    pub fn intern(&mut self, place: Place) -> u32 {
        // More than 2^32 distinct places would not fit into memory either.
        let next = u32::try_from(self.all.len()).unwrap_or(NONE);
        if let Place::Code(code, offset) = place {
            let code = code as usize;
            if code >= self.in_code.len() {
                self.in_code.resize(code + 1, First([(0, NONE); FEW]));
            }
            let first = self.in_code.get_mut(code);
            let slots = first.into_iter().flat_map(|first| &mut first.0);
            for (at, index) in slots {
                if *index == NONE {
                    (*at, *index) = (offset, next);
                    self.all.push(place);
                    return next;
                }
                if *at == offset {
                    return *index;
                }
            }
        }
        let index = *self.index.entry(place).or_insert(next);
        if index == next {
            self.all.push(place);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_there_once() {
        let all = (0..1000).map(|n| match n % 3 {
            0 => Place::Code(n % 7, n / 21 * 4),
            1 => Place::Code(n, 0),
            _ => Place::Kernel(vmscope_records::Avma(u64::from(n))),
        });
        let all: Vec<Place> = all.collect();
        let mut places = Places::default();
        let first: Vec<u32> = all.iter().map(|place| places.intern(*place)).collect();
        let again: Vec<u32> = all.iter().map(|place| places.intern(*place)).collect();
        assert_eq!(first, again);
        for (place, index) in all.iter().zip(&first) {
            assert_eq!(places.get(*index), Some(*place));
        }
        let distinct: rustc_hash::FxHashSet<Place> = all.iter().copied().collect();
        assert_eq!(places.all().len(), distinct.len());
        assert_eq!(Places::new(places.all().to_vec()).all(), places.all());
    }
}
