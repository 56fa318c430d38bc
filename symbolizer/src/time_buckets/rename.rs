//! Recounting places that get other sites after their samples were summed up.

use super::build::Maker;
use super::sums::Sums;
use super::{Sites, TimeBucket, TimeBuckets};
use crate::trace::{Samples, Trace};

impl TimeBuckets {
    /// Takes new sites of `places`, and new rules of interpreters. Recounts the time buckets
    /// with old spots of these places; dropped samples keep theirs. Returns the places with new
    /// spots.
    pub(crate) fn rename(
        &mut self,
        trace: &Trace,
        sites: Sites,
        places: impl Iterator<Item = u32>,
    ) -> Vec<u32> {
        let mut renamed = Vec::new();
        let mut is_stale = vec![false; self.spots.len()];
        for place in places {
            let index = place as usize;
            let (Some(&old), Some(&what), Some(&site)) = (
                self.spot_of_place.get(index),
                trace.places.get(index),
                sites.of_place.get(index),
            ) else {
                // A new place, which `append` will take.
                continue;
            };
            let spot = self.spot_at(trace, what, sites, site);
            if spot == old {
                continue;
            }
            self.spot_of_place[index] = spot;
            if let Some(slot) = is_stale.get_mut(old as usize) {
                *slot = true;
            }
            renamed.push(place);
        }
        if !renamed.is_empty() {
            self.count_again(&trace.samples, &is_stale);
        }
        renamed
    }

    /// Takes new indices of all places; their sites are unchanged.
    pub(crate) fn renumber(&mut self, trace: &Trace, sites: Sites) {
        self.spot_of_place.clear();
        self.take_places(trace, sites);
    }

    /// Recounts all time buckets with a stale spot: the first level from samples, others from
    /// the level below.Parents include all spots of children.
    fn count_again(&mut self, samples: &Samples, is_stale: &[bool]) {
        let has_stale = |bucket: &&mut TimeBucket| {
            let mut spots = bucket.cells.iter().map(|cell| cell.spot);
            spots.any(|spot| is_stale.get(spot as usize) == Some(&true))
        };
        let (spots, region_of_spot) = (self.spots.len(), self.regions());
        let maker = Maker {
            samples,
            spot_of_place: &self.spot_of_place,
            region_of_spot: &region_of_spot,
            dropped: self.dropped,
        };
        let mut sums = Sums::default();
        for level in 0..self.levels.len() {
            let (below, above) = self.levels.split_at_mut(level);
            let time_buckets = above.iter_mut().take(1).flatten();
            for bucket in time_buckets.filter(has_stale) {
                let summed = match below.last() {
                    None => maker.sums(bucket.first..bucket.end, &mut sums),
                    Some(below) => {
                        let from = below.partition_point(|child| child.first < bucket.first);
                        let to = below.partition_point(|child| child.end <= bucket.end);
                        let children = below.get(from..to);
                        children.map(|children| sums.of_buckets(children, spots))
                    }
                };
                debug_assert!(summed.is_some(), "what is summed up is kept");
                if let Some(summed) = summed {
                    bucket.become_summed(summed);
                }
            }
        }
    }
}
