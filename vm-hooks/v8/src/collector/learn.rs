//! Place of a heap's counters in a V8 of an unknown version, by how they change.

use std::ops::Range;

use vmscope_records::TimeNs;

use super::{Event, Kind};

/// Bytes of a heap that contain its counters. Known versions have them from 0x1b0 to 0x268.
pub(crate) const PLACES: Range<u64> = 0x100..0x400;

/// Number of single collections that must change a place as counters change.
const STEPS: u32 = 3;

/// Counters at two times.
type Counts = [u32; 2];

/// Search for the counters: two numbers of 32 bits, of mark-compacts and of all collections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learner {
    /// Bytes of the heap, and begin of the newest collection.
    last: Option<(Vec<u8>, TimeNs)>,
    /// Places in these bytes that changed as counters change; `None` before the first comparison.
    places: Option<Vec<usize>>,
    /// Number of single collections since the search began.
    steps: u32,
}

impl Learner {
    /// Takes the bytes at [`PLACES`] with V8's newest collections, oldest first. Returns the offset of the
    /// counters in a heap, as soon as a single place is left.
    pub fn take(&mut self, bytes: Vec<u8>, events: &[Event]) -> Option<u64> {
        let newest = events.last()?;
        let (before, time) = self.last.replace((bytes.clone(), newest.begin))?;
        let is_single = events.iter().any(|event| event.begin == time);
        let expected = |[before, now]: [Counts; 2]| {
            let [mark_compacts, all] = [0, 1].map(|at| now[at].wrapping_sub(before[at]));
            let is_moving = u32::from(newest.kind == Kind::MarkCompact);
            match is_single {
                _ if newest.begin == time => mark_compacts == 0 && all == 0,
                true => mark_compacts == is_moving && all == 1,
                // V8 has forgotten some collections.
                false => all >= 2 && (is_moving..=all).contains(&mark_compacts),
            }
        };
        let counts = |bytes: &[u8], at: usize| -> Option<Counts> {
            let words = bytes.get(at..)?.first_chunk::<8>()?.as_chunks::<4>().0;
            Some([0, 1].map(|at| u32::from_le_bytes(words[at])))
        };
        let fits = |at: &usize| {
            let pair = counts(&before, *at).zip(counts(&bytes, *at));
            pair.is_some_and(|(before, now)| now[0] <= now[1] && expected([before, now]))
        };
        let all = (0..bytes.len()).step_by(4);
        let places = self.places.take().unwrap_or_else(|| all.collect());
        let places: Vec<usize> = places.into_iter().filter(fits).collect();
        self.steps += u32::from(is_single && newest.begin != time);
        match *places {
            [] => *self = Learner::default(),
            [place] if self.steps >= STEPS => return Some(PLACES.start + place as u64),
            _ => self.places = Some(places),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, begin: u64) -> Event {
        Event {
            kind,
            reason: 0,
            begin: TimeNs(begin),
            end: TimeNs(begin + 1),
            objects: (0, 0),
            memory: 0,
            survived: None,
            is_incremental: false,
            marking: None,
        }
    }

    /// A heap with counters at 0x240, beside numbers that change in other ways.
    fn heap([mark_compacts, all]: Counts, other: u32) -> Vec<u8> {
        let mut bytes = vec![0; 0x300];
        for (at, number) in [
            (0x140, mark_compacts),
            (0x144, all),
            (0x148, other),
            (0x40, 7),
            (0x44, other),
        ] {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn counters_are_found_by_single_collections() {
        use Kind::{MarkCompact, Scavenge};
        let mut learner = Learner::default();
        let mut take = |counts, other, events: &[(Kind, u64)]| {
            let events: Vec<Event> = events.iter().map(|(kind, at)| event(*kind, *at)).collect();
            learner.take(heap(counts, other), &events)
        };
        assert_eq!(take([2, 9], 9, &[(Scavenge, 10), (Scavenge, 20)]), None);
        assert_eq!(take([2, 10], 10, &[(Scavenge, 20), (Scavenge, 30)]), None);
        // No collection: the other number changes.
        assert_eq!(take([2, 10], 11, &[(Scavenge, 20), (Scavenge, 30)]), None);
        // Three collections, of which V8 knows two.
        assert_eq!(take([3, 13], 14, &[(Scavenge, 50), (Scavenge, 60)]), None);
        assert_eq!(
            take([4, 14], 15, &[(Scavenge, 60), (MarkCompact, 70)]),
            None
        );
        let found = take([4, 15], 16, &[(MarkCompact, 70), (Scavenge, 80)]);
        assert_eq!(found, Some(0x240));
    }

    #[test]
    fn a_search_without_places_begins_again() {
        let mut learner = Learner::default();
        for (at, all) in [(10, 5), (20, 7), (30, 6)] {
            let events = [event(Kind::Scavenge, at - 10), event(Kind::Scavenge, at)];
            assert_eq!(learner.take(heap([0, all], 1), &events), None);
        }
        assert_eq!(learner.steps, 0);
    }
}
