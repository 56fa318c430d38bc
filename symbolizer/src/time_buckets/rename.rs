//! Recounting places that get other sites after their samples were summed up.

use super::build::Maker;
use super::sums::Sums;
use super::{Sites, TimeBucket, TimeBuckets};
use crate::ids::{IndexVec, PlaceId, SpotId};
use crate::trace::{Samples, Trace};

impl TimeBuckets {
    /// Takes new sites of `places`, and new rules of interpreters. Recounts the time buckets
    /// with old spots of these places; dropped samples keep theirs. Returns the places with new
    /// spots.
    pub(crate) fn rename(
        &mut self,
        trace: &Trace,
        sites: Sites,
        places: impl Iterator<Item = PlaceId>,
    ) -> Vec<PlaceId> {
        let mut renamed = Vec::new();
        let mut is_stale = self.spots.with_each(false);
        for place in places {
            // `append` will take new places.
            let Some(&old) = self.spot_of_place.get(place) else {
                continue;
            };
            let spot = self.spot_at(trace, trace.places[place], sites, sites.of_place[place]);
            if spot == old {
                continue;
            }
            self.spot_of_place[place] = spot;
            is_stale[old] = true;
            renamed.push(place);
        }
        if !renamed.is_empty() {
            self.count_again(&trace.samples, &is_stale);
        }
        renamed
    }

    /// Takes new indices of all places; their sites are unchanged.
    pub(crate) fn renumber(&mut self, trace: &Trace, sites: Sites) {
        self.spot_of_place = IndexVec::default();
        self.take_places(trace, sites);
    }

    /// Recounts all time buckets with a stale spot: the first level from samples, others from
    /// the level below.Parents include all spots of children.
    fn count_again(&mut self, samples: &Samples, is_stale: &IndexVec<SpotId, bool>) {
        let has_stale = |bucket: &&mut TimeBucket| {
            let mut spots = bucket.cells.iter().map(|cell| cell.spot);
            spots.any(|spot| is_stale.get(spot) == Some(&true))
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
