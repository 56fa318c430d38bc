//! Summing samples up into cells, and cells into those of the next level.

use super::{BUCKET, Cell, InRegion, OfThread, Run, TimeBucket};
use crate::ids::{Id, IndexVec, SpotId, ThreadId};
use crate::profile::Region;
use std::ops::Range;
use vmscope_records::TimeNs;

/// Bits of one sorting pass.
const DIGIT: u32 = 11;

/// The sums of a time bucket.
pub(super) struct Summed {
    runs: Box<[Run]>,
    cells: Box<[Cell]>,
    regions: Box<[InRegion]>,
}

impl Summed {
    /// The time bucket of these samples; `to` is the last sample's time.
    pub fn bucket(self, samples: Range<u64>, to: TimeNs) -> TimeBucket {
        TimeBucket {
            first: samples.start,
            end: samples.end,
            to,
            runs: self.runs,
            cells: self.cells,
            regions: self.regions,
        }
    }
}

impl TimeBucket {
    /// Replaces its sums.
    pub(super) fn become_summed(&mut self, summed: Summed) {
        (self.runs, self.cells, self.regions) = (summed.runs, summed.cells, summed.regions);
    }
}

/// Reusable memory for summing up.
#[derive(Default)]
pub(super) struct Sums {
    /// Thread and spot of samples.
    keys: Vec<u64>,
    other_keys: Vec<u64>,
    /// Counts by spot, all 0 between two uses.
    counts: Vec<u32>,
    /// A bit for each counted spot.
    counted: Vec<u64>,
    /// Counts by region, all 0 between two threads.
    in_regions: [u32; Region::ALL.len()],
    runs: Vec<Run>,
    cells: Vec<Cell>,
    regions: Vec<InRegion>,
}

impl Sums {
    /// Sums samples (thread, spot) up; `regions` has the region of each spot.
    pub fn of_samples(
        &mut self,
        samples: impl Iterator<Item = (ThreadId, SpotId)>,
        regions: &IndexVec<SpotId, Region>,
    ) -> Summed {
        let bits = usize::BITS - regions.len().leading_zeros();
        let mut keys = std::mem::take(&mut self.keys);
        keys.clear();
        keys.reserve(BUCKET);
        keys.extend(
            samples.map(|(thread, spot)| {
                u64::from(thread.number()) << bits | u64::from(spot.number())
            }),
        );
        sort(&mut keys, &mut self.other_keys);
        for of_thread in keys.chunk_by(|a, b| a >> bits == b >> bits) {
            let mut last = None;
            for &key in of_thread {
                let spot = SpotId::of(low(key & ((1 << bits) - 1)) as usize);
                match self.cells.last_mut() {
                    Some(cell) if last == Some(spot) => cell.count += 1,
                    _ => self.cells.push(Cell { spot, count: 1 }),
                }
                last = Some(spot);
                self.in_regions[regions[spot] as usize] += 1;
            }
            let thread = ThreadId::of(low(of_thread[0] >> bits) as usize);
            // A time bucket has fewer than 2^32 samples.
            let samples = u32::try_from(of_thread.len()).unwrap_or(u32::MAX);
            self.end_run(thread, samples);
        }
        self.keys = keys;
        self.take()
    }

    /// Sums consecutive time buckets up.
    pub fn of_buckets(&mut self, time_buckets: &[TimeBucket], spots: usize) -> Summed {
        self.of_runs(
            time_buckets.iter().flat_map(TimeBucket::runs).collect(),
            spots,
        )
    }

    /// Sums runs of threads up, in any order, several for a thread.
    pub fn of_runs(&mut self, mut runs: Vec<OfThread>, spots: usize) -> Summed {
        self.counts.resize(spots, 0);
        self.counted.resize(spots.div_ceil(64), 0);
        // Stable, and quick for partly sorted runs.
        runs.sort_by_key(|run| run.thread);
        for of_thread in runs.chunk_by(|a, b| a.thread == b.thread) {
            for cell in of_thread.iter().flat_map(|run| run.cells) {
                let spot = cell.spot.index();
                self.counts[spot] += cell.count;
                self.counted[spot / 64] |= 1 << (spot % 64);
            }
            self.take_counts();
            for one in of_thread.iter().flat_map(|run| run.regions) {
                self.in_regions[one.region as usize] += one.count;
            }
            self.end_run(
                of_thread[0].thread,
                of_thread.iter().map(|run| run.samples).sum(),
            );
        }
        self.take()
    }

    /// Makes cells of the counts.
    fn take_counts(&mut self) {
        for (bits, first) in self.counted.iter_mut().zip((0..).step_by(64)) {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let spot = first + left.trailing_zeros() as usize;
                left &= left - 1;
                let count = std::mem::take(&mut self.counts[spot]);
                let spot = SpotId::of(spot);
                self.cells.push(Cell { spot, count });
            }
        }
    }

    /// Ends the cells of a thread with `samples` samples.
    fn end_run(&mut self, thread: ThreadId, samples: u32) {
        for (region, count) in Region::ALL.into_iter().zip(&mut self.in_regions) {
            let count = std::mem::take(count);
            if count > 0 {
                self.regions.push(InRegion { region, count });
            }
        }
        // A time bucket has fewer than 2^32 samples, no more cells than samples, and no more
        // regions than cells.
        let end = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
        self.runs.push(Run {
            thread,
            end: end(self.cells.len()),
            regions_end: end(self.regions.len()),
            samples,
        });
    }

    fn take(&mut self) -> Summed {
        let all = Summed {
            runs: self.runs.as_slice().into(),
            cells: self.cells.as_slice().into(),
            regions: self.regions.as_slice().into(),
        };
        self.runs.clear();
        self.cells.clear();
        self.regions.clear();
        all
    }
}

/// Radix sort from the lowest digit up, alternating between the two lists.
fn sort(keys: &mut Vec<u64>, other: &mut Vec<u64>) {
    let all = keys.iter().fold(0, |all, key| all | key);
    other.clear();
    other.resize(keys.len(), 0);
    let mut shift = 0;
    while shift < u64::BITS && all >> shift != 0 {
        let digit = |key: u64| low(key >> shift & ((1 << DIGIT) - 1)) as usize;
        let mut ends = [0; 1 << DIGIT];
        for &key in keys.iter() {
            ends[digit(key)] += 1;
        }
        let mut end = 0;
        for slot in &mut ends {
            let count = *slot;
            *slot = end;
            end += count;
        }
        for &key in keys.iter() {
            let at = &mut ends[digit(key)];
            // In bounds: all keys of this digit were counted.
            other[*at] = key;
            *at += 1;
        }
        std::mem::swap(keys, other);
        shift += DIGIT;
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part of 64 bits")]
fn low(key: u64) -> u32 {
    key as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted() {
        let mut key = 1u64;
        for bits in [0, 5, 11, 12, 40, 64] {
            let mut keys = Vec::new();
            for _ in 0..1000 {
                key = key.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                keys.push(key.checked_shr(64 - bits).unwrap_or(0));
            }
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort(&mut keys, &mut Vec::new());
            assert_eq!(keys, expected, "{bits}");
        }
    }
}
