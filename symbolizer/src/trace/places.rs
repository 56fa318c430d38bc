//! Interned places.

use super::Place;
use crate::ids::{CodeId, IndexVec, PlaceId};
use rustc_hash::FxHashMap;

/// Places of a constituent found without hashing: 64 bytes of them.
const FEW: usize = 8;

/// All places, with their indices.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub all: IndexVec<PlaceId, Place>,
    /// The first places in each piece of code: offset and place. Most constituents have few.
    in_code: IndexVec<CodeId, First>,
    /// All other places.
    index: FxHashMap<Place, PlaceId>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct First([(u32, Option<PlaceId>); FEW]);

impl Places {
    pub fn new(all: IndexVec<PlaceId, Place>) -> Self {
        let mut places = Places::default();
        for place in all {
            places.intern(place);
        }
        places
    }

    /// The id of a place, found or made.
    pub fn intern(&mut self, place: Place) -> PlaceId {
        if let Place::Code(code, offset) = place {
            for (at, known) in &mut self.in_code.slot(code, First([(0, None); FEW])).0 {
                match known {
                    Some(known) if *at == offset => return *known,
                    Some(_) => {}
                    None => {
                        *at = offset;
                        return *known.insert(self.all.push(place));
                    }
                }
            }
        }
        *self
            .index
            .entry(place)
            .or_insert_with(|| self.all.push(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    #[test]
    fn each_place_is_there_once() {
        let all = (0..1000).map(|n| match n % 3 {
            0 => Place::Code(CodeId::of(n as usize % 7), n / 21 * 4),
            1 => Place::Code(CodeId::of(n as usize), 0),
            _ => Place::Kernel(vmscope_records::Avma(u64::from(n))),
        });
        let all: Vec<Place> = all.collect();
        let mut places = Places::default();
        let first: Vec<PlaceId> = all.iter().map(|place| places.intern(*place)).collect();
        let again: Vec<PlaceId> = all.iter().map(|place| places.intern(*place)).collect();
        assert_eq!(first, again);
        for (place, id) in all.iter().zip(&first) {
            assert_eq!(places.all[*id], *place);
        }
        let distinct: rustc_hash::FxHashSet<Place> = all.iter().copied().collect();
        assert_eq!(places.all.len(), distinct.len());
        assert_eq!(Places::new(places.all.clone()).all, places.all);
    }
}
