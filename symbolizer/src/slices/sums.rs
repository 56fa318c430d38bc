//! Summing up: samples into cells, and cells into those of the next level.

use super::{Cell, Run, SLICE, Slice};

/// Bits that one pass of sorting looks at.
const DIGIT: u32 = 11;

/// The runs and cells of a slice.
pub(super) type Summed = (Box<[Run]>, Box<[Cell]>);

/// What summing up needs, kept from one slice to the next.
#[derive(Default)]
pub(super) struct Sums {
    /// Thread and spot of samples.
    keys: Vec<u64>,
    other_keys: Vec<u64>,
    /// By spot, 0 between two uses.
    counts: Vec<u32>,
    /// Bits of spots that have a count.
    counted: Vec<u64>,
    runs: Vec<Run>,
    cells: Vec<Cell>,
}

impl Sums {
    /// The runs and cells of samples, each with its thread and spot; spots are below
    /// `spots`.
    pub fn of_samples(
        &mut self,
        samples: impl Iterator<Item = (u32, u32)>,
        spots: usize,
    ) -> Summed {
        let bits = usize::BITS - spots.leading_zeros();
        // One that is not known would be taken for another thread's.
        let samples = samples.filter(|(_, spot)| (*spot as usize) < spots);
        self.keys.clear();
        self.keys.reserve(SLICE);
        let keys = samples.map(|(thread, spot)| u64::from(thread) << bits | u64::from(spot));
        self.keys.extend(keys);
        sort(&mut self.keys, &mut self.other_keys);
        let mut last = None;
        for &key in &self.keys {
            let (thread, spot) = (low(key >> bits), low(key & ((1 << bits) - 1)));
            match self.cells.last_mut() {
                Some(cell) if last == Some(key) => cell.count += 1,
                _ => self.cells.push(Cell { spot, count: 1 }),
            }
            last = Some(key);
            note_run(&mut self.runs, thread, self.cells.len(), 1);
        }
        self.take()
    }

    /// Those of slices that follow one another.
    pub fn of_slices(&mut self, slices: &[Slice], spots: usize) -> Summed {
        self.of_runs(slices.iter().flat_map(Slice::runs).collect(), spots)
    }

    /// Those of runs in any order, several of one thread among them.
    pub fn of_runs(&mut self, mut runs: Vec<(Run, &[Cell])>, spots: usize) -> Summed {
        self.counts.resize(spots, 0);
        self.counted.resize(spots.div_ceil(64), 0);
        // Stable, and quick for what is in order in part.
        runs.sort_by_key(|(run, _)| run.thread);
        for of_thread in runs.chunk_by(|(a, _), (b, _)| a.thread == b.thread) {
            for cell in of_thread.iter().flat_map(|(_, cells)| *cells) {
                let spot = cell.spot as usize;
                if let Some(count) = self.counts.get_mut(spot)
                    && let Some(bits) = self.counted.get_mut(spot / 64)
                {
                    *count += cell.count;
                    *bits |= 1 << (spot % 64);
                }
            }
            self.take_counts();
            for (run, _) in of_thread {
                note_run(&mut self.runs, run.thread, self.cells.len(), run.samples);
            }
        }
        self.take()
    }

    /// Makes cells of what was counted.
    fn take_counts(&mut self) {
        for (bits, first) in self.counted.iter_mut().zip((0u32..).step_by(64)) {
            let mut left = std::mem::take(bits);
            while left != 0 {
                let spot = first + left.trailing_zeros();
                left &= left - 1;
                if let Some(count) = self.counts.get_mut(spot as usize) {
                    let count = std::mem::take(count);
                    self.cells.push(Cell { spot, count });
                }
            }
        }
    }

    fn take(&mut self) -> Summed {
        let all = (self.runs.as_slice().into(), self.cells.as_slice().into());
        self.runs.clear();
        self.cells.clear();
        all
    }
}

/// Notes that cells up to `cells` are of `thread`, for so many samples more.
fn note_run(runs: &mut Vec<Run>, thread: u32, cells: usize, samples: u32) {
    // A slice has fewer cells than samples, of which it has less than 2^32.
    let end = u32::try_from(cells).unwrap_or(u32::MAX);
    match runs.last_mut() {
        Some(run) if run.thread == thread => {
            run.end = end;
            run.samples += samples;
        }
        _ => runs.push(Run {
            thread,
            end,
            samples,
        }),
    }
}

/// Sorts digit by digit from the lowest one, each time into the other list.
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
            // Each key has its place: they were just counted.
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
