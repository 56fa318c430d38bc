//! Time buckets: sums of samples that make any window of a long recording cheap to count.
//!
//! A *time bucket* sums up [`BUCKET`] consecutive samples: cells (spot, count) by thread, and
//! counts by thread and region for charts. [`FAN_OUT`] time buckets make one of the next level,
//! and so on. A window consists of few time buckets and the single samples at its two edges.
//! Its count is exact; its cost depends on the number of different spots, not on its length.
//!
//! A *spot* is a site, together with an interpreter's success in showing a method. Summaries
//! count by spot.
//!
//! A growing profile keeps the samples of a rolling window. It drops older time buckets
//! ([`TimeBuckets::drop_before`]) and keeps their total. Filters without a beginning include
//! the total. Windows begin and end within the kept samples.

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

use crate::ids::{IndexVec, PlaceId, SpotId, ThreadId};
use crate::profile::{Entry, EntryId, Region, Site, SiteId};
use crate::trace::{Place, Samples, Trace};
use std::ops::Range;
use sums::Sums;
use vmscope_records::{Exactness, TimeNs};

/// The number of samples in a time bucket of the first level.
pub const BUCKET: usize = 4096;

/// The number of time buckets in one of the next level.
pub const FAN_OUT: usize = 16;

/// Whether an interpreter showed its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Not in an interpreter with rules.
    Elsewhere,
    /// The interpreter showed a method with a name.
    Method,
    /// The interpreter showed no method, or one without a name.
    Nothing,
}

/// A class of samples: the finest that summaries count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub site: SiteId,
    /// The site's entry. A copy: sites are many and large.
    pub entry: EntryId,
    pub region: Region,
    pub exactness: Exactness,
    pub method_error: u8,
    pub shown: Shown,
}

/// Samples of one thread at one spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub spot: SpotId,
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
    pub thread: ThreadId,
    /// The end of its cells; they begin at the end of the previous run.
    pub end: u32,
    /// The end of its regions, likewise.
    pub regions_end: u32,
    pub samples: u32,
}

/// A thread's samples in a time bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfThread<'a> {
    pub thread: ThreadId,
    pub samples: u32,
    /// By spot, ascending.
    pub cells: &'a [Cell],
    /// Regions with samples, in the order of [`Region::ALL`].
    pub regions: &'a [InRegion],
}

/// The sites of places.
#[derive(Clone, Copy, Debug)]
pub struct Sites<'a> {
    /// [`Profile::entries`](crate::Profile::entries).
    pub entries: &'a IndexVec<EntryId, Entry>,
    /// [`Profile::sites`](crate::Profile::sites).
    pub sites: &'a IndexVec<SiteId, Site>,
    /// [`Profile::site_of_place`](crate::Profile::site_of_place).
    pub of_place: &'a IndexVec<PlaceId, SiteId>,
}

/// A sum of consecutive samples. Sample numbers start at the first sample ever appended, also
/// after drops.
#[derive(Clone, Debug)]
pub(crate) struct TimeBucket {
    /// The number of the first sample.
    pub first: u64,
    /// The number after the last sample.
    pub end: u64,
    /// The time of the last sample.
    pub to: TimeNs,
    /// By thread, ascending.
    runs: Box<[Run]>,
    /// By thread and spot, ascending.
    cells: Box<[Cell]>,
    /// By thread and region, ascending.
    regions: Box<[InRegion]>,
}

impl TimeBucket {
    /// The samples of each thread, ascending.
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
    pub fn of_thread(&self, thread: ThreadId) -> &[Cell] {
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
    /// The total of dropped samples, in sums below 2^32 samples.
    totals: Vec<TimeBucket>,
    /// Each level in time order without gaps. Boundaries of a level are boundaries of lower
    /// levels, too.
    levels: Vec<Vec<TimeBucket>>,
    spots: IndexVec<SpotId, Spot>,
    /// The spots of each site, by [`Shown`].
    spots_of_site: IndexVec<SiteId, [Option<SpotId>; 3]>,
    pub(crate) spot_of_place: IndexVec<PlaceId, SpotId>,
    /// The number of dropped samples.
    dropped: u64,
    /// The time of each thread's last sample within time buckets.
    last_of_thread: IndexVec<ThreadId, TimeNs>,
}

impl TimeBuckets {
    /// Takes new samples, places and sites. Samples are in time order; [`BUCKET`] of them make
    /// a time bucket, and the rest count one by one. A place may get another site later
    /// (`rename`).Entries and exactness of sites and regions of entries never change.
    pub fn append(&mut self, trace: &Trace, sites: Sites) {
        self.take_places(trace, sites);
        self.take_samples(&trace.samples);
    }

    /// Drops the time buckets that end before `time`, and their samples from the appended
    /// `samples`. Their total remains. Returns the number of dropped samples.
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

    /// The number of samples that [`Self::drop_before`] would drop.
    pub(crate) fn droppable(&self, time: TimeNs) -> usize {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let old = time_buckets.partition_point(|bucket| bucket.to < time);
        let last = old.checked_sub(1).and_then(|last| time_buckets.get(last));
        last.map_or(0, |bucket| self.index(bucket.end))
    }

    /// The index of a sample number among the kept samples.
    fn index(&self, sample: u64) -> usize {
        // Kept samples fit into memory.
        usize::try_from(sample.saturating_sub(self.dropped)).unwrap_or(usize::MAX)
    }

    /// The indices of the kept samples in a range of sample numbers.
    pub(crate) fn kept(&self, range: &Range<u64>) -> Range<usize> {
        self.index(range.start)..self.index(range.end)
    }

    /// The numbers of time buckets on all levels, and of their cells.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let all = || self.totals.iter().chain(self.levels.iter().flatten());
        (all().count(), all().map(|bucket| bucket.cells.len()).sum())
    }

    /// The number of dropped samples, which count in totals only.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The beginning of the rolling window, right after the last dropped sample: windows reach
    /// back to it. `None` while all samples are kept.
    #[must_use]
    pub fn kept_from(&self) -> Option<TimeNs> {
        let last = self.totals.last()?;
        Some(TimeNs(last.to.0.saturating_add(1)))
    }

    /// The time of each thread's last sample; threads without any may be missing.
    pub(crate) fn last_samples(&self, samples: &Samples) -> IndexVec<ThreadId, TimeNs> {
        let mut last = self.last_of_thread.clone();
        let open = self.index(build::covered(&self.levels, 0))..;
        let times = samples.times.get(open.clone()).unwrap_or_default();
        let threads = samples.threads.get(open).unwrap_or_default();
        note_last(&mut last, times, threads);
        last
    }

    /// Ranges of kept samples that include all samples of the wanted threads, ascending.
    /// `count` is the number of kept samples.
    pub(crate) fn ranges_of(
        &self,
        count: usize,
        is_wanted: impl Fn(ThreadId) -> bool,
    ) -> Vec<Range<usize>> {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let wanted = time_buckets.iter().filter(|bucket| {
            let mut threads = bucket.runs.iter().map(|run| run.thread);
            threads.any(&is_wanted)
        });
        let mut ranges: Vec<_> = wanted
            .map(|bucket| self.index(bucket.first)..self.index(bucket.end))
            .collect();
        // Samples outside of time buckets.
        ranges.push(time_buckets.last().map_or(0, |last| self.index(last.end))..count);
        ranges
    }

    /// Whether each thread has any samples; threads without any may be missing.
    #[must_use]
    pub fn have_samples(&self, samples: &Samples) -> Vec<bool> {
        let last = self.last_samples(samples).into_iter();
        last.map(|last| last > TimeNs(0)).collect()
    }

    /// The number of levels.
    pub(crate) fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The region of each spot.
    fn regions(&self) -> IndexVec<SpotId, Region> {
        self.by_spot(|_, spot| spot.region)
    }

    /// The values of `of` by spot.
    pub(crate) fn by_spot<T>(&self, of: impl Fn(SpotId, &Spot) -> T) -> IndexVec<SpotId, T> {
        self.spots.map(of)
    }

    /// The entry of a place's samples.
    pub(crate) fn entry_of_place(&self, place: PlaceId) -> EntryId {
        self.spots[self.spot_of_place[place]].entry
    }
}

/// Notes the time of each thread's last sample; the samples are in order.
fn note_last(last: &mut IndexVec<ThreadId, TimeNs>, times: &[TimeNs], threads: &[ThreadId]) {
    for (&time, &thread) in times.iter().zip(threads) {
        *last.slot(thread, TimeNs(0)) = time;
    }
}

/// Whether an interpreter showed its method at a place.
fn shown_at(trace: &Trace, place: Place) -> Shown {
    if Trace::shows_method(place) {
        Shown::Method
    } else if trace.shows_no_method(place) {
        Shown::Nothing
    } else {
        Shown::Elsewhere
    }
}
