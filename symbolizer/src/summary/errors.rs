//! How sure a share is: batch means (TRUTH.md §4).

use crate::profile::Profile;
use crate::slices::{Cell, Few, Piece, Selection, Slice, Spot, Stop};

/// Batches for the error of a share (TRUTH.md §4 wants at least 30).
const BATCHES: u64 = 32;

/// With fewer samples a batch than this, no error is given.
const MIN_SAMPLES_A_BATCH: u64 = 10;

/// Two-sided 95 % quantile of Student's t with 31 degrees of freedom.
const T_95: f64 = 2.04;

/// So many cells are looked at before it is checked whether that is enough.
const CHECKED: usize = 4096;

/// Of no group.
const NONE: u32 = u32::MAX;

/// The 95 % half-width of the share of each of `count` groups in the `total` samples of a
/// selection, by batches of samples that follow one another. `group_of` gives the
/// group, or `None` for those of no group. Empty where there are too few samples to say;
/// `None` when `stop` was wished before it was done.
///
/// A slice without single samples is not divided: its batch is larger then.
pub(crate) fn batch_errors(
    profile: &Profile,
    selection: &Selection,
    group_of: impl Fn(&Spot) -> Option<u32>,
    (total, count): (u64, usize),
    stop: &Stop,
) -> Option<Vec<f64>> {
    let Some(means) = Means::new(total, count) else {
        return Some(Vec::new());
    };
    let groups = profile.slices.by_spot(|id, spot| {
        let group = group_of(spot).filter(|_| selection.takes_spot(id));
        group.unwrap_or(NONE)
    });
    let mut batches = Batches {
        profile,
        selection,
        few: Few::of(groups.iter().map(|group| *group != NONE)),
        groups,
        means,
    };
    let levels = profile.slices.levels();
    let range = selection.range.clone();
    let done = batches.take(levels, range, stop);
    // It ends early when all batches are full: what remains behind is left out.
    (done.is_some() || batches.means.is_full()).then(|| batches.means.errors())
}

struct Batches<'a> {
    profile: &'a Profile,
    selection: &'a Selection,
    /// The group of each spot.
    groups: Vec<u32>,
    /// The spots that have one, where they are few.
    few: Option<Few>,
    means: Means,
}

/// Batch means of samples that come one after another.
pub(crate) struct Means {
    /// Samples of a batch.
    size: u64,
    /// Those of the present one.
    filled: u64,
    /// Batches that are not full.
    left: u64,
    /// The present batch, by group.
    batch: Vec<u32>,
    /// Of the full ones, the sum and the sum of squares.
    sums: Vec<(u64, u64)>,
}

impl Means {
    /// For the shares of `count` groups in `total` samples; `None` where these are too few to
    /// say.
    pub fn new(total: u64, count: usize) -> Option<Self> {
        let size = total / BATCHES;
        (size >= MIN_SAMPLES_A_BATCH).then(|| Means {
            size,
            filled: 0,
            left: BATCHES,
            batch: vec![0; count],
            sums: vec![(0, 0); count],
        })
    }

    /// Whether all batches are full: what comes behind is left out.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Puts samples into the batch as those of a group; one sample may be of several.
    pub fn put(&mut self, group: u32, samples: u32) {
        if let Some(slot) = self.batch.get_mut(group as usize) {
            *slot = slot.saturating_add(samples);
        }
    }

    /// Notes that so many samples were put; closes a batch that is full.
    pub fn fill(&mut self, samples: u64) {
        self.filled += samples;
        if samples == 0 || self.filled < self.size || self.left == 0 {
            return;
        }
        for ((sum, squares), count) in self.sums.iter_mut().zip(&mut self.batch) {
            let one = u64::from(std::mem::take(count));
            *sum += one;
            *squares = squares.saturating_add(one.saturating_mul(one));
        }
        self.filled = 0;
        self.left -= 1;
    }

    /// The 95 % half-width of each group's share.
    #[expect(clippy::cast_precision_loss, reason = "a ratio, rounded in the end")]
    pub fn errors(&self) -> Vec<f64> {
        let batches = BATCHES as f64;
        let scale = batches * (batches - 1.0) * (self.size as f64).powi(2);
        let errors = self.sums.iter().map(|&(sum, squares)| {
            // Whole numbers, so that what is constant has no variance at all.
            let spread = u128::from(squares) * u128::from(BATCHES);
            let spread = spread.saturating_sub(u128::from(sum).pow(2));
            T_95 * (spread as f64 / scale / batches).sqrt()
        });
        errors.collect()
    }
}

impl Batches<'_> {
    /// Takes a range, in slices of less than `level`.
    fn take(&mut self, level: usize, range: std::ops::Range<u64>, stop: &Stop) -> Option<()> {
        let slices = &self.profile.slices;
        slices.pieces_below(level, range, &mut |piece| {
            match piece {
                Piece::Slice(slice, level) => {
                    let whole = slice.end <= slices.forgotten();
                    if whole || self.has_room_for(slice) {
                        self.add(slice);
                    } else {
                        self.take(level, slice.first..slice.end, stop)?;
                    }
                }
                Piece::Samples(range) => self.add_samples(range)?,
            }
            (!stop.is_stopped() && !self.means.is_full()).then_some(())
        })
    }

    /// Whether what is selected of a slice fits into the present batch.
    fn has_room_for(&self, slice: &Slice) -> bool {
        let room = self.means.size - self.means.filled;
        let runs = slice.runs();
        let runs = runs.filter(|(run, _)| self.selection.takes_thread(run.thread));
        let most: u64 = runs.clone().map(|(run, _)| u64::from(run.samples)).sum();
        if most <= room || self.selection.spots.is_none() {
            return most <= room;
        }
        let mut selected = 0;
        for (_, cells) in runs {
            // Some at a time: it is seldom long before there are too many.
            let some = if self.selection.is_few() {
                cells.len().max(1)
            } else {
                CHECKED
            };
            for cells in cells.chunks(some) {
                let add = |cell: &Cell| selected += u64::from(cell.count);
                self.selection.each_cell(cells, add);
                if selected > room {
                    return false;
                }
            }
        }
        true
    }

    fn add(&mut self, slice: &Slice) {
        let selection = self.selection;
        let mut samples = 0;
        for (run, cells) in slice.runs() {
            if !selection.takes_thread(run.thread) {
                continue;
            }
            let mut put = |cell: &Cell| {
                let group = self.groups.get(cell.spot as usize).copied();
                self.means.put(group.unwrap_or(NONE), cell.count);
            };
            if selection.spots.is_none() {
                samples += u64::from(run.samples);
                match &self.few {
                    Some(few) => few.each(cells, put),
                    None => cells.iter().for_each(put),
                }
            } else {
                selection.each_cell(cells, |cell| {
                    samples += u64::from(cell.count);
                    put(cell);
                });
            }
        }
        self.means.fill(samples);
    }

    fn add_samples(&mut self, range: std::ops::Range<usize>) -> Option<()> {
        let samples = &self.profile.trace.samples;
        let threads = samples.threads.get(range.clone()).unwrap_or_default();
        let places = samples.places.get(range).unwrap_or_default();
        for (&thread, &place) in threads.iter().zip(places) {
            let Some(spot) = self.profile.slices.spot_of_place(place) else {
                continue;
            };
            if self.selection.takes_thread(thread) && self.selection.takes_spot(spot) {
                let group = self.groups.get(spot as usize).copied();
                self.means.put(group.unwrap_or(NONE), 1);
                self.means.fill(1);
                if self.means.is_full() {
                    return None;
                }
            }
        }
        Some(())
    }
}
