//! Merging time buckets whose single samples were forgotten, where there are too many.

use super::build::sum;
use super::sums::Sums;
use super::{TimeBucket, TimeBuckets};

impl TimeBuckets {
    /// Merges neighbours among the time buckets whose samples were forgotten, in rounds: each goes
    /// once over them, the oldest first, and merges those two that have few samples
    /// together, compared with the fewest that two have. So it costs what there is, not what
    /// there is for each that is merged. Ends when `is_enough` says so of what
    /// [`Self::size`] is then, or none can be merged; returns how often two were.
    pub fn merge_oldest(&mut self, mut is_enough: impl FnMut((usize, usize)) -> bool) -> u64 {
        let mut merged = 0;
        if is_enough(self.size()) {
            return merged;
        }
        loop {
            let (more, is_done) = self.merge_round(&mut is_enough);
            merged += more;
            if more == 0 || is_done {
                return merged;
            }
        }
    }

    /// A round: how often two were merged, and whether that is enough.
    fn merge_round(&mut self, is_enough: &mut impl FnMut((usize, usize)) -> bool) -> (u64, bool) {
        let Some(time_buckets) = self.levels.first_mut().map(std::mem::take) else {
            return (0, true);
        };
        let old = time_buckets.partition_point(|slice| slice.end <= self.forgotten);
        let few = self.few_samples(time_buckets.get(..old).unwrap_or_default());
        let (mut count, mut cells) = size(&time_buckets);
        // The first level is taken out.
        let mut above = self.size();
        let spots = self.spots.len();
        let mut sums = Sums::default();
        let (mut merged, mut is_done) = (0, false);
        let mut kept: Vec<TimeBucket> = Vec::with_capacity(time_buckets.len());
        // Whether the last one kept was merged in this round already.
        let mut is_fresh = false;
        for (index, slice) in time_buckets.into_iter().enumerate() {
            let is_pair = |last: &TimeBucket| last.samples() + slice.samples() <= few;
            let last = kept.last();
            let may = !is_done && index < old && !is_fresh && last.is_some_and(is_pair);
            let boundary = last.map_or(0, |last| last.end);
            // What ends between the two on the levels above goes first.
            let is_free = may && {
                let parent = self.parent_of(1, boundary);
                parent.is_none_or(|parent| {
                    let could = self.merge_at(1, parent, &mut sums);
                    above = self.size();
                    could
                })
            };
            let pair = kept.pop();
            let both = match (pair, is_free) {
                (Some(last), true) => [last, slice],
                (last, _) => {
                    kept.extend(last);
                    kept.push(slice);
                    is_fresh = false;
                    continue;
                }
            };
            match sum(&both, &mut sums, spots) {
                Some(one) => {
                    merged += 1;
                    count -= 1;
                    cells = cells + one.cells.len() - both[0].cells.len() - both[1].cells.len();
                    kept.push(one);
                    is_fresh = true;
                    is_done = is_enough((count + above.0, cells + above.1));
                }
                None => {
                    kept.extend(both);
                    is_fresh = false;
                }
            }
        }
        if let Some(level) = self.levels.first_mut() {
            *level = kept;
        }
        (merged, is_done)
    }

    /// Two neighbours with no more samples than this are merged in a round: twice the fewest
    /// that two have which can be merged.
    fn few_samples(&self, old: &[TimeBucket]) -> u64 {
        let pairs = old.windows(2).filter_map(|pair| {
            let [first, second] = pair else {
                return None;
            };
            let samples = first.samples() + second.samples();
            let is_free = u32::try_from(samples).is_ok() && self.can_merge(1, first.end);
            is_free.then_some(samples)
        });
        pairs.min().map_or(0, |fewest| fewest.saturating_mul(2))
    }

    /// Whether no time bucket of that level or above keeps two apart that meet at `boundary`.
    fn can_merge(&self, level: usize, boundary: u64) -> bool {
        self.parent_of(level, boundary).is_none_or(|parent| {
            let time_buckets = self.levels.get(level);
            let is_pair = time_buckets.is_some_and(|time_buckets| parent + 1 < time_buckets.len());
            is_pair && self.can_merge(level + 1, boundary)
        })
    }

    /// The time bucket of a level that ends there.
    fn parent_of(&self, level: usize, boundary: u64) -> Option<usize> {
        let time_buckets = self.levels.get(level)?;
        time_buckets
            .binary_search_by_key(&boundary, |slice| slice.end)
            .ok()
    }

    /// Merges the time bucket of that index with the next, after those above that end between
    /// the two.
    fn merge_at(&mut self, level: usize, index: usize, sums: &mut Sums) -> bool {
        let pair = self.levels.get(level).and_then(|s| s.get(index..index + 2));
        let Some(boundary) = pair.and_then(|pair| pair.first()).map(|slice| slice.end) else {
            return false;
        };
        let Some(merged) = pair.and_then(|pair| sum(pair, sums, self.spots.len())) else {
            return false;
        };
        // The two can't be merged before there is a next one above.
        if let Some(parent) = self.parent_of(level + 1, boundary)
            && !self.merge_at(level + 1, parent, sums)
        {
            return false;
        }
        if let Some(time_buckets) = self.levels.get_mut(level) {
            time_buckets.splice(index..index + 2, [merged]);
        }
        true
    }
}

/// How many time buckets there are, and cells in them.
fn size(time_buckets: &[TimeBucket]) -> (usize, usize) {
    let cells = time_buckets.iter().map(|slice| slice.cells.len()).sum();
    (time_buckets.len(), cells)
}
