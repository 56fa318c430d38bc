//! Building time buckets from samples, and higher levels from lower ones.

use super::sums::{Summed, Sums};
use super::{BUCKET, FAN_OUT, Shown, Sites, Spot, TimeBucket, TimeBuckets, note_last, shown_at};
use crate::ids::{IndexVec, PlaceId, SpotId};
use crate::profile::{EntryKind, Region, SiteId};
use crate::trace::{Place, Samples, Trace};
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;

/// The number of new time buckets from which a second thread helps.
const MANY: usize = 4 * FAN_OUT;

impl TimeBuckets {
    pub(super) fn take_places(&mut self, trace: &Trace, sites: Sites) {
        let new = trace.places.iter().zip(sites.of_place);
        for (&place, &site) in new.skip(self.spot_of_place.len()) {
            let spot = self.spot_at(trace, place, sites, site);
            self.spot_of_place.push(spot);
        }
    }

    pub(super) fn spot_at(
        &mut self,
        trace: &Trace,
        place: Place,
        sites: Sites,
        site: SiteId,
    ) -> SpotId {
        let entry = &sites.entries[sites.sites[site].entry];
        let is_unnamed = entry.kind == EntryKind::Unnamed;
        let shown = if trace.interpreters.is_empty() {
            Shown::Elsewhere
        } else {
            match shown_at(trace, place) {
                Shown::Method if is_unnamed => Shown::Nothing,
                shown => shown,
            }
        };
        self.spot(sites, site, shown)
    }

    fn spot(&mut self, sites: Sites, id: SiteId, shown: Shown) -> SpotId {
        let known = &mut self.spots_of_site.slot(id, [None; 3])[shown as usize];
        *known.get_or_insert_with(|| {
            let site = &sites.sites[id];
            self.spots.push(Spot {
                site: id,
                entry: site.entry,
                region: sites.entries[site.entry].region,
                exactness: site.exactness,
                method_error: site.method_error,
                shown,
            })
        })
    }

    pub(super) fn take_samples(&mut self, samples: &Samples) {
        let spots = self.spots.len();
        let before = covered(&self.levels, 0).max(self.dropped);
        let region_of_spot = self.regions();
        let maker = Maker {
            samples,
            spot_of_place: &self.spot_of_place,
            region_of_spot: &region_of_spot,
            dropped: self.dropped,
        };
        let levels = &mut self.levels;
        let all = self.dropped + samples.times.len() as u64;
        let mut sums = Sums::default();
        let firsts = (before..all).step_by(BUCKET);
        if firsts.clone().count() >= MANY {
            // Another thread builds the first level meanwhile.
            thread::scope(|scope| {
                let (sender, receiver) = sync_channel(MANY);
                let make = move || maker.make(firsts, &mut |bucket| sender.send(bucket).is_ok());
                // Without another thread, this one builds all levels below.
                let _ = thread::Builder::new().spawn_scoped(scope, make);
                for bucket in receiver {
                    push(levels, 0, bucket, &mut sums, spots);
                }
            });
        }
        let rest = (covered(levels, 0).max(before)..all).step_by(BUCKET);
        maker.make(rest, &mut |bucket| {
            push(levels, 0, bucket, &mut sums, spots);
            true
        });
        let summed = self.index(before)..self.index(covered(&self.levels, 0).max(before));
        let times = samples.times.get(summed.clone()).unwrap_or_default();
        let threads = samples.threads.get(summed).unwrap_or_default();
        note_last(&mut self.last_of_thread, times, threads);
    }
}

/// Builds time buckets of the first level.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    pub samples: &'a Samples,
    pub spot_of_place: &'a IndexVec<PlaceId, SpotId>,
    pub region_of_spot: &'a IndexVec<SpotId, Region>,
    pub dropped: u64,
}

impl Maker<'_> {
    /// Hands the time buckets with these first samples to `put`, until `put` returns false or
    /// samples run out.
    fn make(&self, firsts: impl Iterator<Item = u64>, put: &mut dyn FnMut(TimeBucket) -> bool) {
        let mut sums = Sums::default();
        for first in firsts {
            let bucket = self.bucket(first, &mut sums);
            if !bucket.is_some_and(&mut *put) {
                return;
            }
        }
    }

    fn bucket(&self, first: u64, sums: &mut Sums) -> Option<TimeBucket> {
        let end = first.checked_add(BUCKET as u64)?;
        let summed = self.sums(first..end, sums)?;
        let times = self.samples.times.get(self.range(first..end)?)?;
        Some(summed.bucket(first..end, *times.last()?))
    }

    /// The sums of a range of sample numbers; `None` if some are missing.
    pub fn sums(&self, range: Range<u64>, sums: &mut Sums) -> Option<Summed> {
        let range = self.range(range)?;
        let threads = self.samples.threads.get(range.clone())?;
        let places = self.samples.places.get(range)?;
        let all = threads.iter().zip(places);
        let all = all.map(|(&thread, &place)| (thread, self.spot_of_place[place]));
        Some(sums.of_samples(all, self.region_of_spot))
    }

    /// The indices of a range of sample numbers; `None` if some were dropped.
    fn range(&self, range: Range<u64>) -> Option<Range<usize>> {
        let index = |sample: u64| usize::try_from(sample.checked_sub(self.dropped)?).ok();
        Some(index(range.start)?..index(range.end)?)
    }
}

/// The number after the last sample of a level.
pub(super) fn covered(levels: &[Vec<TimeBucket>], level: usize) -> u64 {
    let last = levels
        .get(level)
        .and_then(|time_buckets| time_buckets.last());
    last.map_or(0, |bucket| bucket.end)
}

/// Appends a time bucket to a level, and completed ones to the levels above.
fn push(
    levels: &mut Vec<Vec<TimeBucket>>,
    level: usize,
    bucket: TimeBucket,
    sums: &mut Sums,
    spots: usize,
) {
    if level >= levels.len() {
        levels.push(Vec::new());
    }
    let above = covered(levels, level + 1);
    let Some(time_buckets) = levels.get_mut(level) else {
        return;
    };
    time_buckets.push(bucket);
    let from = time_buckets.partition_point(|bucket| bucket.first < above);
    let children = time_buckets.get(from..).unwrap_or_default();
    if children.len() >= FAN_OUT
        && let Some(parent) = sum(children, sums, spots)
    {
        push(levels, level + 1, parent, sums, spots);
    }
}

/// Sum of consecutive time buckets; `None` without buckets, or beyond 2^32 samples.
pub(super) fn sum(
    time_buckets: &[TimeBucket],
    sums: &mut Sums,
    spots: usize,
) -> Option<TimeBucket> {
    let (first, last) = (time_buckets.first()?, time_buckets.last()?);
    u32::try_from(last.end - first.first).ok()?;
    let summed = sums.of_buckets(time_buckets, spots);
    Some(summed.bucket(first.first..last.end, last.to))
}
