//! Summaries by time: what makes any window of a long recording cheap to count.
//!
//! The samples, in time order, are cut into *time buckets* of [`BUCKET`]. A time bucket sums its
//! samples up: cells (spot, count), ordered by thread, and counts by thread and region, which
//! charts show. [`FAN_OUT`] time buckets are summed up again in one of the next level, and so
//! on. A window is the sum of few time buckets and of the single samples at its two edges: its
//! count is exact, and costs what is different in it, not how long it is.
//!
//! A *spot* is a site, and whether an interpreter showed its method there: what a summary
//! counts by.
//!
//! A growing profile keeps the samples of a rolling window. Older time buckets are dropped
//! ([`TimeBuckets::drop_before`]); only their total stays. A filter counts that total, too,
//! unless it has a beginning: windows begin and end where samples are kept.

mod build;
mod columns;
mod count;
mod cross;
mod fold;
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
use sums::Sums;
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

/// Samples summed up. They are numbered from the first that was ever appended, also after
/// older ones were dropped.
#[derive(Clone, Debug)]
pub(crate) struct TimeBucket {
    /// The first sample.
    pub first: u64,
    /// The one behind the last.
    pub end: u64,
    /// The last one's time.
    pub to: TimeNs,
    /// By thread, ascending.
    runs: Box<[Run]>,
    /// By thread and spot, ascending.
    cells: Box<[Cell]>,
    /// By thread and region, ascending.
    regions: Box<[InRegion]>,
}

impl TimeBucket {
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
}

/// The samples of a profile, summed up by time.
#[derive(Clone, Debug, Default)]
pub struct TimeBuckets {
    /// The samples that were dropped: one sum, and another where its counts would not fit.
    totals: Vec<TimeBucket>,
    /// Each in time order without gaps. What is a boundary between two time buckets is one
    /// between two of the level below, too.
    levels: Vec<Vec<TimeBucket>>,
    spots: Vec<Spot>,
    /// Of each site its spots, by [`Shown`].
    spots_of_site: Vec<[u32; 3]>,
    spot_of_place: Vec<u32>,
    /// How many samples were dropped.
    dropped: u64,
    /// The time of each thread's last sample in a time bucket.
    last_of_thread: Vec<TimeNs>,
}

impl TimeBuckets {
    /// Takes the samples, places and sites that came since the last call. Samples are in time
    /// order; they make a time bucket as soon as there are enough of them, and are counted one
    /// by one till then. A place may get another site later (`rename`); the entry and the
    /// exactness of a site never change, nor does the region of an entry.
    pub fn append(&mut self, trace: &Trace, sites: Sites) {
        self.take_places(trace, sites);
        self.take_samples(&trace.samples);
    }

    /// Drops the time buckets that end before `time`, and their samples from `samples`, which
    /// are those that were appended. Their total stays. Returns how many samples were dropped.
    pub fn drop_before(&mut self, samples: &mut Samples, time: TimeNs) -> u64 {
        let count = self.droppable(time);
        if count == 0 {
            return 0;
        }
        samples.drop_first(count);
        self.dropped += count as u64;
        let dropped = self.dropped;
        let mut old = Vec::from_iter(self.totals.pop());
        for (level, time_buckets) in self.levels.iter_mut().enumerate() {
            let gone = time_buckets.partition_point(|bucket| bucket.first < dropped);
            let gone = time_buckets.drain(..gone);
            old.extend(gone.filter(|_| level == 0));
        }
        let (mut sums, spots) = (Sums::default(), self.spots.len());
        match build::sum(&old, &mut sums, spots) {
            Some(total) => self.totals.push(total),
            None => {
                let recent = old.split_off(1);
                self.totals.extend(old);
                self.totals.extend(build::sum(&recent, &mut sums, spots));
            }
        }
        count as u64
    }

    /// How many samples [`Self::drop_before`] would drop.
    pub(crate) fn droppable(&self, time: TimeNs) -> usize {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let old = time_buckets.partition_point(|bucket| bucket.to < time);
        let last = old.checked_sub(1).and_then(|last| time_buckets.get(last));
        last.map_or(0, |bucket| self.index(bucket.end))
    }

    /// The index of a sample among those that are kept.
    fn index(&self, sample: u64) -> usize {
        // As many samples fit into memory.
        usize::try_from(sample.saturating_sub(self.dropped)).unwrap_or(usize::MAX)
    }

    /// The indices of those samples of a range that are kept.
    pub(crate) fn kept(&self, range: &Range<u64>) -> Range<usize> {
        self.index(range.start)..self.index(range.end)
    }

    /// How many time buckets there are, on all levels, and cells in them.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let all = || self.totals.iter().chain(self.levels.iter().flatten());
        (all().count(), all().map(|bucket| bucket.cells.len()).sum())
    }

    /// How many samples were dropped: only their total is known.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How far back filters by time reach: the instant after the last sample that was dropped.
    /// `None` where all samples are kept.
    #[must_use]
    pub fn kept_from(&self) -> Option<TimeNs> {
        let last = self.totals.last()?;
        Some(TimeNs(last.to.0.saturating_add(1)))
    }

    /// The time of each thread's last sample; threads without any may be missing.
    pub(crate) fn last_samples(&self, samples: &Samples) -> Vec<TimeNs> {
        let mut last = self.last_of_thread.clone();
        let open = self.index(build::covered(&self.levels, 0))..;
        let times = samples.times.get(open.clone()).unwrap_or_default();
        let threads = samples.threads.get(open).unwrap_or_default();
        note_last(&mut last, times, threads);
        last
    }

    /// Where among the samples those of threads are that `is_wanted` says: ranges that hold all
    /// of them, ascending. `count`: how many samples are kept.
    pub(crate) fn ranges_of(
        &self,
        count: usize,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Vec<Range<usize>> {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let wanted = time_buckets.iter().filter(|bucket| {
            let mut threads = bucket.runs.iter().map(|run| run.thread);
            threads.any(&is_wanted)
        });
        let mut ranges: Vec<_> = wanted
            .map(|bucket| self.index(bucket.first)..self.index(bucket.end))
            .collect();
        // What is in no time bucket yet.
        ranges.push(time_buckets.last().map_or(0, |last| self.index(last.end))..count);
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
