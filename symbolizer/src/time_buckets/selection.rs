//! A filter applied to a profile: its samples, threads and spots.

use super::{Cell, OfThread, Piece, Spot, Stop, TimeBuckets};
use crate::ids::{IndexVec, PlaceId, SpotId, ThreadId};
use crate::profile::{Profile, Region};
use crate::summary::{Filter, Only};
use std::ops::Range;

/// A filter applied to one profile.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The sample numbers of its window.
    pub range: Range<u64>,
    /// By thread; `None` for all.
    pub threads: Option<IndexVec<ThreadId, bool>>,
    /// By spot; `None` for all.
    pub spots: Option<IndexVec<SpotId, bool>>,
    /// By region, if it selects whole regions.
    regions: Option<[bool; Region::ALL.len()]>,
    /// The selected spots, ascending, if few.
    few: Option<Few>,
}

/// Few spots: searching cells for them beats a scan.
#[derive(Clone, Debug)]
pub(crate) struct Few(Vec<SpotId>);

impl Few {
    /// Maximum number of few spots.
    const MOST: usize = 128;
    /// Maximum number of cells for which scanning is always quicker.
    const SHORT: usize = 512;

    /// The selected spots, if few.
    pub fn of<T>(spots: &IndexVec<SpotId, T>, is_taken: impl Fn(&T) -> bool) -> Option<Self> {
        let spots = spots.enumerated().filter(|(_, spot)| is_taken(spot));
        let few: Vec<SpotId> = spots.map(|(id, _)| id).take(Self::MOST + 1).collect();
        (few.len() <= Self::MOST).then_some(Few(few))
    }

    /// Whether a search among so many cells is quicker than a scan.
    pub fn is_quicker(&self, cells: usize) -> bool {
        // Each step of a binary search waits for memory; a scan does not.
        cells > Self::SHORT && cells / 16 > self.0.len()
    }

    /// Hands the cells with these spots to `visit`.
    pub fn each(&self, mut cells: &[Cell], mut visit: impl FnMut(&Cell)) {
        // The distance of a near spot: spots of a method are mostly neighbours.
        let mut near = usize::MAX;
        for spot in &self.0 {
            let is_before = |cell: &Cell| cell.spot < *spot;
            while near < cells.len() && cells.get(near).is_some_and(is_before) {
                cells = cells.get(near..).unwrap_or_default();
                near *= 2;
            }
            let some = cells.get(..near.saturating_add(1)).unwrap_or(cells);
            let at = some.partition_point(is_before);
            cells = cells.get(at..).unwrap_or_default();
            near = 1;
            match cells.first() {
                Some(cell) if cell.spot == *spot => visit(cell),
                Some(_) => {}
                None => return,
            }
        }
    }
}

impl Selection {
    pub fn new(profile: &Profile, filter: &Filter) -> Self {
        let time_buckets = &profile.time_buckets;
        let range = time_buckets.range_of(&profile.trace.samples, filter.from, filter.to);
        let takes = |thread: ThreadId| filter.takes_thread(thread);
        let threads = (!filter.takes_all_threads())
            .then(|| profile.trace.threads.map(|thread, _| takes(thread)));
        let mask = filter.entry_mask(profile);
        let spots = mask.map(|mask| time_buckets.by_spot(|_, spot| mask.takes(spot.entry)));
        Selection {
            range,
            threads,
            few: spots.as_ref().and_then(few),
            spots,
            regions: filter.only.of_regions(),
        }
    }

    /// Restricts the selection to some spots.
    pub fn only(&self, time_buckets: &TimeBuckets, is_taken: impl Fn(&Spot) -> bool) -> Self {
        let spots = time_buckets.by_spot(|id, spot| self.takes_spot(id) && is_taken(spot));
        Selection {
            few: few(&spots),
            spots: Some(spots),
            regions: None,
            threads: self.threads.clone(),
            range: self.range.clone(),
        }
    }

    /// Extends the selection to all spots.
    pub fn everywhere(&self) -> Self {
        Selection {
            spots: None,
            regions: Only::default().of_regions(),
            few: None,
            range: self.range.clone(),
            threads: self.threads.clone(),
        }
    }

    /// Whether searching beats scanning for so many cells.
    pub fn is_few_among(&self, cells: usize) -> bool {
        self.few.as_ref().is_some_and(|few| few.is_quicker(cells))
    }

    /// Hands the selected cells of a run to `visit`.
    pub fn each_cell(&self, cells: &[Cell], mut visit: impl FnMut(&Cell)) {
        match (&self.few, &self.spots) {
            (Some(few), _) if few.is_quicker(cells.len()) => few.each(cells, visit),
            (_, None) => cells.iter().for_each(visit),
            (_, Some(spots)) => {
                for cell in cells {
                    if spots[cell.spot] {
                        visit(cell);
                    }
                }
            }
        }
    }

    /// Whether counts by region suffice.
    pub fn is_of_regions(&self) -> bool {
        self.regions.is_some()
    }

    /// Hands a thread's selected counts by region to `visit`; nothing unless counts by region
    /// suffice.
    pub fn each_region(&self, of: &OfThread, mut visit: impl FnMut(Region, u32)) {
        let Some(taken) = &self.regions else {
            return;
        };
        for one in of.regions {
            if taken[one.region as usize] {
                visit(one.region, one.count);
            }
        }
    }

    /// A thread's selected samples; `None` if only cells tell.
    pub fn samples_of(&self, of: &OfThread) -> Option<u64> {
        self.regions?;
        let mut samples = 0;
        self.each_region(of, |_, count| samples += u64::from(count));
        Some(samples)
    }

    /// The number of selected samples; `None` if `stop` came first.
    pub fn total(&self, profile: &Profile, stop: &Stop) -> Option<u64> {
        let mut total = 0;
        profile
            .time_buckets
            .pieces(self.range.clone(), &mut |piece| {
                match piece {
                    Piece::TimeBucket(bucket, _) => {
                        for run in bucket.runs().filter(|run| self.takes_thread(run.thread)) {
                            total += self.samples_of(&run).unwrap_or_else(|| {
                                let mut samples = 0;
                                self.each_cell(run.cells, |cell| samples += u64::from(cell.count));
                                samples
                            });
                        }
                    }
                    Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                        total += u64::from(self.takes_thread(thread) && self.takes_spot(spot));
                    }),
                }
                (!stop.is_stopped()).then_some(())
            })?;
        Some(total)
    }

    pub fn takes_thread(&self, thread: ThreadId) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads[thread])
    }

    pub fn takes_spot(&self, spot: SpotId) -> bool {
        self.spots.as_ref().is_none_or(|spots| spots[spot])
    }

    /// Whether the selection includes samples at a place.
    pub fn takes_place(&self, time_buckets: &TimeBuckets, place: PlaceId) -> bool {
        self.takes_spot(time_buckets.spot_of_place[place])
    }
}

fn few(spots: &IndexVec<SpotId, bool>) -> Option<Few> {
    Few::of(spots, |taken| *taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;

    /// Ascending numbers below `below`, each with a chance of one in `one_in`.
    fn some(state: &mut u64, below: usize, one_in: u64) -> Vec<SpotId> {
        let mut is_in = |_: &usize| {
            *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (*state >> 33).is_multiple_of(one_in)
        };
        (0..below)
            .filter(|spot| is_in(spot))
            .map(SpotId::of)
            .collect()
    }

    #[test]
    fn what_is_searched_for_is_found_wherever_it_is() {
        let mut state = 7;
        for (below, cells_in, spots_in) in [
            (0, 1, 1),
            (9, 1, 1),
            (40, 3, 2),
            (300, 2, 9),
            (5_000, 1, 400),
            (5_000, 50, 60),
            (5_000, 3, 5_000),
        ] {
            for _ in 0..20 {
                let cells = some(&mut state, below, cells_in);
                let spots = some(&mut state, below, spots_in);
                let cells: Vec<Cell> = (cells.into_iter().zip(1..))
                    .map(|(spot, count)| Cell { spot, count })
                    .collect();
                let is_wanted = |cell: &&Cell| spots.binary_search(&cell.spot).is_ok();
                let expected: Vec<Cell> = cells.iter().filter(is_wanted).copied().collect();
                let mut found = Vec::new();
                Few(spots.clone()).each(&cells, |cell| found.push(*cell));
                assert_eq!(found, expected);
            }
        }
    }
}
