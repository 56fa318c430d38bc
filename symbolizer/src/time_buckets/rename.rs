//! Places that get other sites after their samples were summed up.

use super::build::{Maker, sum};
use super::sums::Sums;
use super::{Sites, TimeBucket, TimeBuckets};
use crate::trace::{Samples, Trace};
use rustc_hash::FxHashSet;

impl TimeBuckets {
    /// Takes the sites of `places`, which may be others than before, and what
    /// interpreters show there. Only those time buckets are counted again that hold spots which
    /// a place has left, and of which there are single samples; in others its samples stay
    /// where they were counted. Returns the places that have other spots now.
    pub(crate) fn rename(
        &mut self,
        trace: &Trace,
        sites: Sites,
        places: impl Iterator<Item = u32>,
    ) -> Vec<u32> {
        let mut renamed = Vec::new();
        let mut left = vec![false; self.spots.len()];
        for place in places {
            let index = place as usize;
            let (Some(&old), Some(&what), Some(&site)) = (
                self.spot_of_place.get(index),
                trace.places.get(index),
                sites.of_place.get(index),
            ) else {
                // It was not taken yet.
                continue;
            };
            let spot = self.spot_at(trace, what, sites, site);
            if spot == old {
                continue;
            }
            if let Some(slot) = self.spot_of_place.get_mut(index) {
                *slot = spot;
            }
            if let Some(slot) = left.get_mut(old as usize) {
                *slot = true;
            }
            renamed.push(place);
        }
        if !renamed.is_empty() {
            self.count_again(&trace.samples, &left);
        }
        renamed
    }

    /// The places have other numbers now; their sites are those that they had.
    pub(crate) fn renumber(&mut self, trace: &Trace, sites: Sites) {
        self.spot_of_place.clear();
        self.take_places(trace, sites);
    }

    /// Counts the time buckets again in which a place may have left a spot.
    fn count_again(&mut self, samples: &Samples, left: &[bool]) {
        let forgotten = self.forgotten;
        let has_left = |slice: &TimeBucket| {
            let mut spots = slice.cells.iter().map(|cell| cell.spot);
            spots.any(|spot| left.get(spot as usize) == Some(&true))
        };
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let from = time_buckets.partition_point(|slice| slice.end <= forgotten);
        let stale: Vec<usize> = (time_buckets.iter().enumerate().skip(from))
            .filter_map(|(index, slice)| has_left(slice).then_some(index))
            .collect();
        let region_of_spot = self.regions();
        let mut sums = Sums::default();
        // The first samples of what was counted again.
        let mut firsts: FxHashSet<u64> = FxHashSet::default();
        for index in stale {
            let slice = self
                .levels
                .first()
                .and_then(|time_buckets| time_buckets.get(index));
            let Some((first, end)) = slice.map(|slice| (slice.first, slice.end)) else {
                continue;
            };
            let maker = Maker {
                samples,
                spot_of_place: &self.spot_of_place,
                region_of_spot: &region_of_spot,
                forgotten,
            };
            let Some(summed) = maker.sums(first..end, &mut sums) else {
                continue;
            };
            firsts.insert(first);
            let time_buckets = self.levels.first_mut();
            if let Some(slice) = time_buckets.and_then(|time_buckets| time_buckets.get_mut(index)) {
                slice.become_summed(summed);
            }
        }
        for level in 1..self.levels.len() {
            firsts = self.sum_again(level, &firsts, &mut sums);
        }
    }

    /// Sums those time buckets of a level up again that hold any which begin at `firsts`;
    /// returns where they begin.
    fn sum_again(
        &mut self,
        level: usize,
        firsts: &FxHashSet<u64>,
        sums: &mut Sums,
    ) -> FxHashSet<u64> {
        let spots = self.spots.len();
        let (below, above) = self.levels.split_at_mut(level);
        let (Some(below), Some(time_buckets)) = (below.last(), above.first_mut()) else {
            return FxHashSet::default();
        };
        let mut again = FxHashSet::default();
        for slice in time_buckets {
            let from = below.partition_point(|child| child.first < slice.first);
            let to = below.partition_point(|child| child.end <= slice.end);
            let children = below.get(from..to).unwrap_or_default();
            if children.iter().any(|child| firsts.contains(&child.first))
                && let Some(summed) = sum(children, sums, spots)
            {
                again.insert(slice.first);
                *slice = summed;
            }
        }
        again
    }
}
