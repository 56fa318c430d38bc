//! Making slices: of samples, and of slices.

use super::{Cell, FAN_OUT, Run, SLICE, Shown, Slice, Slices, Spot, note_last, shown_at};
use crate::profile::{Site, SiteId};
use crate::trace::{Place, Samples, Trace};
use std::ops::Range;
use vmscope_records::Exactness;

/// No spot yet.
const NONE: u32 = u32::MAX;

impl Slices {
    pub(super) fn take_places(&mut self, trace: &Trace, sites: &[Site], site_of_place: &[SiteId]) {
        let new = trace.places.iter().zip(site_of_place);
        for (&place, &site) in new.skip(self.spot_of_place.len()) {
            let spot = self.spot_at(trace, place, sites, site);
            self.spot_of_place.push(spot);
        }
    }

    pub(super) fn spot_at(
        &mut self,
        trace: &Trace,
        place: Place,
        sites: &[Site],
        site: SiteId,
    ) -> u32 {
        let shown = if trace.interpreters.is_empty() {
            Shown::Elsewhere
        } else {
            shown_at(trace, place)
        };
        self.spot(sites, site, shown)
    }

    fn spot(&mut self, sites: &[Site], site: SiteId, shown: Shown) -> u32 {
        let index = site as usize;
        if index >= self.spots_of_site.len() {
            self.spots_of_site.resize(index + 1, [NONE; 3]);
        }
        let known = self.spots_of_site.get_mut(index);
        let Some(known) = known.and_then(|known| known.get_mut(shown as usize)) else {
            return NONE;
        };
        if *known == NONE {
            // There are at most as many as places, which are counted in 32 bits.
            *known = u32::try_from(self.spots.len()).unwrap_or(NONE);
            let known = sites.get(index);
            self.spots.push(Spot {
                site,
                entry: known.map_or(NONE, |site| site.entry),
                exactness: known.map_or(Exactness::MethodOnly, |site| site.exactness),
                shown,
            });
        }
        *known
    }

    pub(super) fn take_samples(&mut self, samples: &Samples) {
        let mut keys = Vec::with_capacity(SLICE);
        let before = self.covered(0);
        while let Some(slice) = self.next_slice(samples, &mut keys) {
            self.push(0, slice);
        }
        let index = |sample: u64| usize::try_from(sample.saturating_sub(self.forgotten));
        if let (Ok(from), Ok(to)) = (index(before), index(self.covered(0))) {
            let times = samples.times.get(from..to).unwrap_or_default();
            let threads = samples.threads.get(from..to).unwrap_or_default();
            note_last(&mut self.last_of_thread, times, threads);
        }
    }

    /// The next slice of the first level, if there are samples enough.
    fn next_slice(&self, samples: &Samples, keys: &mut Vec<u64>) -> Option<Slice> {
        let first = self.covered(0);
        let end = first + SLICE as u64;
        let sums = self.sums_of(samples, first..end, keys)?;
        let times = samples.times.get(self.index(first)?..self.index(end)?)?;
        Some(Slice {
            first,
            end,
            from: *times.first()?,
            to: *times.last()?,
            runs: sums.runs,
            cells: sums.cells,
        })
    }

    /// The sums of samples, counted from the very first; `None` where there are not all.
    pub(super) fn sums_of(
        &self,
        samples: &Samples,
        range: Range<u64>,
        keys: &mut Vec<u64>,
    ) -> Option<Sums> {
        let range = self.index(range.start)?..self.index(range.end)?;
        let threads = samples.threads.get(range.clone())?;
        let places = samples.places.get(range)?;
        keys.clear();
        keys.extend(threads.iter().zip(places).map(|(&thread, &place)| {
            let spot = self.spot_of_place(place).unwrap_or(NONE);
            u64::from(thread) << 32 | u64::from(spot)
        }));
        keys.sort_unstable();
        let mut sums = Sums::default();
        for key in keys {
            sums.add(*key, 1);
        }
        Some(sums)
    }

    /// The index of a sample among the single ones; `None` where it was forgotten.
    fn index(&self, sample: u64) -> Option<usize> {
        usize::try_from(sample.checked_sub(self.forgotten)?).ok()
    }

    /// Up to which sample a level's slices reach.
    fn covered(&self, level: usize) -> u64 {
        let last = self.levels.get(level).and_then(|slices| slices.last());
        last.map_or(0, |slice| slice.end)
    }

    /// Appends a slice to a level, and what becomes whole by it to those above.
    fn push(&mut self, level: usize, slice: Slice) {
        if level >= self.levels.len() {
            self.levels.push(Vec::new());
        }
        let above = self.covered(level + 1);
        let Some(slices) = self.levels.get_mut(level) else {
            return;
        };
        slices.push(slice);
        let from = slices.partition_point(|slice| slice.first < above);
        let children = slices.get(from..).unwrap_or_default();
        if children.len() >= FAN_OUT
            && let Some(parent) = sum(children)
        {
            self.push(level + 1, parent);
        }
    }

    /// Merges the slice of that index with the next, after those above that end between
    /// the two.
    pub(super) fn merge_at(&mut self, level: usize, index: usize) -> bool {
        let pair = self.levels.get(level).and_then(|s| s.get(index..index + 2));
        let Some(merged) = pair.and_then(sum) else {
            return false;
        };
        let Some(boundary) = pair.and_then(|pair| pair.first()).map(|slice| slice.end) else {
            return false;
        };
        if let Some(above) = self.levels.get(level + 1)
            && let Ok(parent) = above.binary_search_by_key(&boundary, |slice| slice.end)
        {
            // The two can't be merged before there is a next one above.
            if !self.merge_at(level + 1, parent) {
                return false;
            }
        }
        if let Some(slices) = self.levels.get_mut(level) {
            slices.splice(index..index + 2, [merged]);
        }
        true
    }
}

/// Cells in the making, from keys (thread, spot) in ascending order.
#[derive(Default)]
pub(super) struct Sums {
    pub runs: Vec<Run>,
    pub cells: Vec<Cell>,
    last: Option<u64>,
}

impl Sums {
    fn add(&mut self, key: u64, count: u32) {
        let [thread, spot] = halves(key);
        match self.cells.last_mut() {
            Some(cell) if self.last == Some(key) => cell.count += count,
            _ => self.cells.push(Cell { spot, count }),
        }
        self.last = Some(key);
        // A slice has fewer cells than samples, of which it has less than 2^32.
        let end = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        match self.runs.last_mut() {
            Some(run) if run.thread == thread => {
                run.end = end;
                run.samples += count;
            }
            _ => self.runs.push(Run {
                thread,
                end,
                samples: count,
            }),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
fn halves(key: u64) -> [u32; 2] {
    [(key >> 32) as u32, key as u32]
}

/// The sum of slices that follow one another; `None` for none, or for too many samples.
pub(super) fn sum(slices: &[Slice]) -> Option<Slice> {
    let (first, last) = (slices.first()?, slices.last()?);
    u32::try_from(last.end - first.first).ok()?;
    let mut all: Vec<(u64, u32)> = Vec::with_capacity(slices.iter().map(|s| s.cells.len()).sum());
    for slice in slices {
        for (run, cells) in slice.runs() {
            let thread = u64::from(run.thread) << 32;
            all.extend(cells.iter().map(|c| (thread | u64::from(c.spot), c.count)));
        }
    }
    // A sort that merges what is in order already.
    all.sort_by_key(|(key, _)| *key);
    let mut sums = Sums::default();
    for (key, count) in all {
        sums.add(key, count);
    }
    sums.runs.shrink_to_fit();
    sums.cells.shrink_to_fit();
    Some(Slice {
        first: first.first,
        end: last.end,
        from: first.from,
        to: last.to,
        runs: sums.runs,
        cells: sums.cells,
    })
}
