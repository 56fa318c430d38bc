//! Summaries by time: what makes any window of a long recording cheap to count.
//!
//! The samples, in time order, are cut into *time buckets* of [`BUCKET`]. A time bucket has its span of
//! time and its samples summed up: cells (spot, count), ordered by thread, and by thread and
//! region, which is what charts show. So many time buckets as [`FAN_OUT`] are summed up again in
//! one of the next level, and so on. A window is the sum of few time buckets and of the single
//! samples at its two edges: its count is exact, and costs what is different in it, not how
//! long it is.
//!
//! A *spot* is a site, and whether an interpreter showed its method there: what a summary
//! counts by. What happened inside a time bucket whose single samples were forgotten
//! ([`TimeBuckets::forget_samples_before`]) is not known any more: at the edge of a window it
//! counts whole when its middle lies in the window, and how many samples were decided
//! like that is told.

mod build;
mod columns;
mod count;
mod cross;
mod fold;
mod merge;
mod rename;
mod selection;
mod single;
mod spans;
mod stop;
mod sums;
mod walk;

pub use columns::{By, Columns, ColumnsOf};
pub use count::Counts;
pub use cross::{ThreadEntry, by_thread};
pub use spans::{InSpan, Span};
pub use stop::Stop;

pub(crate) use cross::by_kind_of_thread;
pub(crate) use selection::{Few, Selection};
pub(crate) use single::{by_place, each_place};
pub(crate) use walk::Piece;

use crate::profile::{Entry, EntryId, Region, Site, SiteId};
use crate::trace::{Place, Samples, Trace};
use std::ops::Range;
use vmscope_records::{Exactness, TimeNs};

/// Samples of a time bucket of the first level.
pub const BUCKET: usize = 4096;

/// TimeBuckets that are summed up in one of the next level.
pub const FAN_OUT: usize = 16;

/// Whether an interpreter showed what it executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Not an interpreter that can.
    Elsewhere,
    /// It did.
    Method,
    /// It did not.
    Nothing,
}

/// What is counted apart from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub site: SiteId,
    /// The site's; here because there are many sites, and each is large.
    pub entry: EntryId,
    pub region: Region,
    pub exactness: Exactness,
    pub shown: Shown,
}

/// Samples of one thread at one spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub spot: u32,
    pub count: u32,
}

/// Samples of one thread in one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InRegion {
    pub region: Region,
    pub count: u32,
}

/// The cells of one thread in a time bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub thread: u32,
    /// The index behind its last cell; its first is the one before's.
    pub end: u32,
    /// The index behind its last region; its first is the one before's.
    pub regions_end: u32,
    pub samples: u32,
}

/// What a time bucket has of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfThread<'a> {
    pub thread: u32,
    pub samples: u32,
    /// By spot, ascending.
    pub cells: &'a [Cell],
    /// Those that it has samples in, in the order of [`Region::ALL`].
    pub regions: &'a [InRegion],
}

/// Where the samples' places are: what they are counted by.
#[derive(Clone, Copy, Debug)]
pub struct Sites<'a> {
    /// [`Profile::entries`](crate::Profile::entries).
    pub entries: &'a [Entry],
    /// [`Profile::sites`](crate::Profile::sites).
    pub sites: &'a [Site],
    /// [`Profile::site_of_place`](crate::Profile::site_of_place).
    pub of_place: &'a [SiteId],
}

/// Samples summed up. They are counted from the first that was ever appended, also after
/// older ones were forgotten.
#[derive(Clone, Debug)]
pub(crate) struct TimeBucket {
    /// The first sample.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// The first sample's time.
    pub from: TimeNs,
    /// The last one's.
    pub to: TimeNs,
    /// By thread, ascending.
    runs: Box<[Run]>,
    /// By thread and spot, ascending.
    cells: Box<[Cell]>,
    /// By thread and region, ascending.
    regions: Box<[InRegion]>,
}

impl TimeBucket {
    pub fn samples(&self) -> u64 {
        self.end - self.first
    }

    /// What there is of each thread, ascending.
    pub fn runs(&self) -> impl Iterator<Item = OfThread<'_>> + Clone {
        let (mut cell, mut region) = (0, 0);
        self.runs.iter().map(move |run| {
            let (cells, regions) = (cell..run.end as usize, region..run.regions_end as usize);
            (cell, region) = (cells.end, regions.end);
            OfThread {
                thread: run.thread,
                samples: run.samples,
                cells: self.cells.get(cells).unwrap_or_default(),
                regions: self.regions.get(regions).unwrap_or_default(),
            }
        })
    }

    /// A thread's cells.
    pub fn of_thread(&self, thread: u32) -> &[Cell] {
        let found = self.runs.binary_search_by_key(&thread, |run| run.thread);
        let cells = found.ok().and_then(|at| {
            let before = at.checked_sub(1).and_then(|before| self.runs.get(before));
            let from = before.map_or(0, |run| run.end as usize);
            self.cells.get(from..self.runs.get(at)?.end as usize)
        });
        cells.unwrap_or_default()
    }

    fn middle(&self) -> TimeNs {
        TimeNs(self.from.0 + self.to.since(self.from).0 / 2)
    }
}

/// The samples of a profile, summed up by time.
#[derive(Clone, Debug, Default)]
pub struct TimeBuckets {
    /// Each in time order without gaps. What is a boundary between two time buckets is one
    /// between two of the level below, too.
    levels: Vec<Vec<TimeBucket>>,
    spots: Vec<Spot>,
    /// Of each site its spots, by [`Shown`].
    spots_of_site: Vec<[u32; 3]>,
    spot_of_place: Vec<u32>,
    /// So many samples there are no single ones of.
    forgotten: u64,
    /// The time of each thread's last sample in a time bucket.
    last_of_thread: Vec<TimeNs>,
}

impl TimeBuckets {
    /// Takes the samples, places and sites that came since it was last called. Samples are
    /// in time order; they make a time bucket as soon as there are enough of them, and are counted
    /// one by one till then. Where the site of a place that was taken before is another now,
    /// the live profile says so; the entry and the worth of a site never change, nor does
    /// the region of an entry.
    pub fn append(&mut self, trace: &Trace, sites: Sites) {
        self.take_places(trace, sites);
        self.take_samples(&trace.samples);
    }

    /// Removes samples before `time` from `samples`, which are those that were appended,
    /// and returns how many. Only whole time buckets' samples are removed; what they sum up
    /// remains.
    pub fn forget_samples_before(&mut self, samples: &mut Samples, time: TimeNs) -> u64 {
        let more = self.droppable(time);
        samples.forget(more);
        self.forgotten += more as u64;
        more as u64
    }

    /// How many samples [`Self::forget_samples_before`] would remove.
    pub(crate) fn droppable(&self, time: TimeNs) -> usize {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let old = time_buckets.partition_point(|slice| slice.to < time);
        let end = old.checked_sub(1).and_then(|last| time_buckets.get(last));
        let more = end.map_or(0, |slice| slice.end.saturating_sub(self.forgotten));
        usize::try_from(more).unwrap_or(usize::MAX)
    }

    /// How many time buckets there are, on all levels, and cells in them.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let all = || self.levels.iter().flatten();
        (all().count(), all().map(|slice| slice.cells.len()).sum())
    }

    /// How many samples are known by their time buckets only.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The time of each thread's last sample; threads without any may be missing.
    pub(crate) fn last_samples(&self, samples: &Samples) -> Vec<TimeNs> {
        let mut last = self.last_of_thread.clone();
        let covered = self
            .levels
            .first()
            .and_then(|time_buckets| time_buckets.last());
        let covered = covered.map_or(0, |slice| slice.end) - self.forgotten;
        let open = usize::try_from(covered).unwrap_or(usize::MAX)..;
        let times = samples.times.get(open.clone()).unwrap_or_default();
        let threads = samples.threads.get(open).unwrap_or_default();
        note_last(&mut last, times, threads);
        last
    }

    /// Where among the single samples those of threads are that `is_wanted` says: ranges
    /// that hold all of them, ascending. `count`: how many single samples there are.
    pub(crate) fn ranges_of(
        &self,
        count: usize,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Vec<Range<usize>> {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let from = time_buckets.partition_point(|slice| slice.end <= self.forgotten);
        let time_buckets = time_buckets.get(from..).unwrap_or_default();
        let index = |sample: u64| {
            let index = usize::try_from(sample.saturating_sub(self.forgotten));
            index.unwrap_or(usize::MAX).min(count)
        };
        let wanted = time_buckets.iter().filter(|slice| {
            let mut threads = slice.runs.iter().map(|run| run.thread);
            threads.any(&is_wanted)
        });
        let mut ranges: Vec<_> = wanted.map(|one| index(one.first)..index(one.end)).collect();
        // What is in no time bucket yet.
        ranges.push(time_buckets.last().map_or(0, |slice| index(slice.end))..count);
        ranges
    }

    /// Whether each thread has any samples; threads without any may be missing.
    #[must_use]
    pub fn have_samples(&self, samples: &Samples) -> Vec<bool> {
        let last = self.last_samples(samples).into_iter();
        last.map(|last| last > TimeNs(0)).collect()
    }

    /// How many levels there are.
    pub(crate) fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The region of each spot.
    fn regions(&self) -> Vec<Region> {
        self.by_spot(|_, spot| spot.region)
    }

    /// What `of` says of each spot.
    pub(crate) fn by_spot<T>(&self, of: impl Fn(u32, &Spot) -> T) -> Vec<T> {
        let spots = self.spots.iter().zip(0..);
        spots.map(|(spot, id)| of(id, spot)).collect()
    }

    pub(crate) fn spot_of_place(&self, place: u32) -> Option<u32> {
        self.spot_of_place.get(place as usize).copied()
    }

    /// The entry that samples of a place count for.
    pub(crate) fn entry_of_place(&self, place: u32) -> Option<EntryId> {
        let spot = self.spots.get(self.spot_of_place(place)? as usize)?;
        Some(spot.entry)
    }
}

/// Notes the time of each thread's last sample; the samples are in order.
fn note_last(last: &mut Vec<TimeNs>, times: &[TimeNs], threads: &[u32]) {
    for (&time, &thread) in times.iter().zip(threads) {
        let thread = thread as usize;
        if thread >= last.len() {
            last.resize(thread + 1, TimeNs(0));
        }
        if let Some(slot) = last.get_mut(thread) {
            *slot = time;
        }
    }
}

/// What an interpreter showed at a place.
fn shown_at(trace: &Trace, place: Place) -> Shown {
    if Trace::shows_method(place) {
        Shown::Method
    } else if trace.shows_no_method(place) {
        Shown::Nothing
    } else {
        Shown::Elsewhere
    }
}
