//! Errors of shares by batch means (docs/truth.md §4).

use crate::ids::{SpotId, ThreadId};
use crate::profile::Profile;
use crate::time_buckets::{Cell, Few, Piece, Selection, Spot, Stop, TimeBucket};

/// Batches per estimate (docs/truth.md §4 requires at least 30).
const BATCHES: u64 = 32;

/// Minimum samples per batch for an error estimate.
const MIN_SAMPLES_A_BATCH: u64 = 10;

/// Two-sided 95 % quantile of Student's t with 31 degrees of freedom.
const T_95: f64 = 2.04;

/// Cells between two checks for enough samples.
const CHECKED: usize = 4096;

/// The 95 % half-widths of the shares of `count` groups in a selection's `total` samples, by
/// batches of consecutive samples. `group_of` returns the group or `None`.
///
/// Empty for too few samples, and for a selection with dropped samples, which belong to no batch. `None`
/// if `stop` was requested first.
pub(crate) fn batch_errors(
    profile: &Profile,
    selection: &Selection,
    group_of: impl Fn(&Spot) -> Option<u32>,
    (total, count): (u64, usize),
    stop: &Stop,
) -> Option<Vec<f64>> {
    let has_dropped = selection.range.start < profile.time_buckets.dropped();
    let Some(means) = Means::new(total, count).filter(|_| !has_dropped) else {
        return Some(Vec::new());
    };
    let groups = profile
        .time_buckets
        .by_spot(|id, spot| group_of(spot).filter(|_| selection.takes_spot(id)));
    let batches = Batches {
        profile,
        selection,
        few: Few::of(&groups, Option::is_some),
        counts: |spot: SpotId| groups[spot].is_some(),
        put: |means: &mut Means, _: ThreadId, cell: Cell| {
            if let Some(group) = groups[cell.spot] {
                means.put(group, cell.count);
            }
        },
        selected: Vec::new(),
        means,
    };
    batches.errors(stop)
}

/// Fills batches with samples, by whole time buckets where they fit.
pub(crate) struct Batches<'a, C, P> {
    pub profile: &'a Profile,
    pub selection: &'a Selection,
    /// The counted spots, if few.
    pub few: Option<Few>,
    /// Whether a spot belongs to any group.
    pub counts: C,
    /// Adds a thread's samples at a spot to their groups.
    pub put: P,
    /// Selected cells of a time bucket, by thread.
    pub selected: Vec<(ThreadId, Cell)>,
    pub means: Means,
}

/// Batch means of consecutive samples.
pub(crate) struct Means {
    /// Samples per batch.
    size: u64,
    /// Samples in the current batch.
    filled: u64,
    /// Batches still to fill.
    left: u64,
    /// The current batch, by group.
    batch: Vec<u32>,
    /// Sum and sum of squares over full batches, by group.
    sums: Vec<(u64, u64)>,
}

impl Means {
    /// For `count` groups in `total` samples; `None` if samples are too few.
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

    /// Whether all batches are full; further samples are ignored.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Adds samples to a group in the current batch; a sample may belong to several groups.
    pub fn put(&mut self, group: u32, samples: u32) {
        let slot = &mut self.batch[group as usize];
        *slot = slot.saturating_add(samples);
    }

    /// Counts added samples; closes a full batch.
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

    /// Counts samples without a group, in their order.
    pub fn pass(&mut self, mut samples: u64) {
        while samples > 0 && !self.is_full() {
            let some = samples.min(self.size - self.filled);
            self.fill(some);
            samples -= some;
        }
    }

    /// The 95 % half-width of each group's share.
    #[expect(clippy::cast_precision_loss, reason = "a ratio, rounded in the end")]
    pub fn errors(&self) -> Vec<f64> {
        let batches = BATCHES as f64;
        let scale = batches * (batches - 1.0) * (self.size as f64).powi(2);
        let errors = self.sums.iter().map(|&(sum, squares)| {
            // Integers, so constant batches have exactly zero variance.
            let spread = u128::from(squares) * u128::from(BATCHES);
            let spread = spread.saturating_sub(u128::from(sum).pow(2));
            T_95 * (spread as f64 / scale / batches).sqrt()
        });
        errors.collect()
    }
}

impl<C: Fn(SpotId) -> bool, P: FnMut(&mut Means, ThreadId, Cell)> Batches<'_, C, P> {
    /// The half-width of each group's share; `None` if `stop` was requested first.
    pub fn errors(mut self, stop: &Stop) -> Option<Vec<f64>> {
        let levels = self.profile.time_buckets.levels();
        let range = self.selection.range.clone();
        let done = self.take(levels, range, stop);
        // Full batches stop the traversal; later samples are ignored.
        (done.is_some() || self.means.is_full()).then(|| self.means.errors())
    }

    /// Takes a range, in time buckets below `level`.
    fn take(&mut self, level: usize, range: std::ops::Range<u64>, stop: &Stop) -> Option<()> {
        let time_buckets = &self.profile.time_buckets;
        time_buckets.pieces_below(level, range, &mut |piece| {
            match piece {
                Piece::TimeBucket(slice, level) => {
                    let room = self.means.size - self.means.filled;
                    if !self.add(slice, room) {
                        self.take(level, slice.first..slice.end, stop)?;
                    }
                }
                Piece::Samples(range) => self.add_samples(range)?,
            }
            (!stop.is_stopped() && !self.means.is_full()).then_some(())
        })
    }

    /// Adds the selected part of a time bucket to the current batch, if it fits.
    fn add(&mut self, slice: &TimeBucket, room: u64) -> bool {
        let selection = self.selection;
        let runs = slice.runs();
        let runs = runs.filter(|run| selection.takes_thread(run.thread));
        let known = runs.clone().map(|run| selection.samples_of(&run)).sum();
        if let Some(samples) = known {
            if samples > room {
                return false;
            }
            for run in runs {
                let put = |cell: &Cell| (self.put)(&mut self.means, run.thread, *cell);
                match &self.few {
                    // The counted spots are a subset of the selection.
                    Some(few) if few.is_quicker(run.cells.len()) => few.each(run.cells, put),
                    _ => selection.each_cell(run.cells, put),
                }
            }
            self.means.fill(samples);
            return true;
        }
        let mut samples = 0;
        self.selected.clear();
        for run in runs {
            // In portions: the batch usually overflows early.
            let some = match selection.is_few_among(run.cells.len()) {
                true => run.cells.len().max(1),
                false => CHECKED,
            };
            for cells in run.cells.chunks(some) {
                selection.each_cell(cells, |cell| {
                    samples += u64::from(cell.count);
                    if (self.counts)(cell.spot) {
                        self.selected.push((run.thread, *cell));
                    }
                });
                if samples > room {
                    return false;
                }
            }
        }
        for &(thread, cell) in &self.selected {
            (self.put)(&mut self.means, thread, cell);
        }
        self.means.fill(samples);
        true
    }

    fn add_samples(&mut self, range: std::ops::Range<usize>) -> Option<()> {
        let samples = &self.profile.trace.samples;
        let threads = samples.threads.get(range.clone()).unwrap_or_default();
        let places = samples.places.get(range).unwrap_or_default();
        for (&thread, &place) in threads.iter().zip(places) {
            let spot = self.profile.time_buckets.spot_of_place[place];
            if self.selection.takes_thread(thread) && self.selection.takes_spot(spot) {
                (self.put)(&mut self.means, thread, Cell { spot, count: 1 });
                self.means.fill(1);
                if self.means.is_full() {
                    return None;
                }
            }
        }
        Some(())
    }
}
