//! Counts of a window by site and thread.

use super::{Piece, Selection, Shown, Stop, TimeBuckets};
use crate::ids::{Id, IndexVec, SpotId, ThreadId};
use crate::profile::{EntryId, Profile, SiteId};
use crate::summary::{Filter, Inferred};
use rustc_hash::FxHashMap;

/// Index of samples without a known method in [`Counts::entries`].
const WITHOUT_METHOD: usize = 3;

/// Samples of a filter, by site and by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All samples.
    pub total: u64,
    /// By [`Profile::sites`].
    pub sites: IndexVec<SiteId, u64>,
    /// By [`crate::Trace::threads`].
    pub threads: IndexVec<ThreadId, u64>,
    /// Samples in interpreters with a shown method.
    pub interpreted: u64,
    /// Samples in interpreters with rules, but without a known method, by [`Profile::sites`]. They
    /// are part of `sites`.
    pub without_method: FxHashMap<SiteId, u64>,
    /// Counts by [`Profile::entries`] and [`vmscope_records::Exactness`]; last, `without_method`.
    pub(crate) entries: IndexVec<EntryId, [u64; 4]>,
    /// By [`Profile::entries`].
    pub(crate) inferred: IndexVec<EntryId, Inferred>,
}

impl Counts {
    /// Counts the samples of a filter; `None` if `stop` came first.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        Self::of_selection(profile, &Selection::new(profile, filter), stop)
    }

    pub(crate) fn of_selection(
        profile: &Profile,
        selection: &Selection,
        stop: &Stop,
    ) -> Option<Self> {
        let time_buckets = &profile.time_buckets;
        let mut sums = Sums {
            by_spot: time_buckets.spots.with_each(0),
            by_thread: profile.trace.threads.with_each(0),
        };
        time_buckets.pieces(selection.range.clone(), &mut |piece| {
            sums.take(profile, selection, piece);
            (!stop.is_stopped()).then_some(())
        })?;
        Some(sums.into_counts(profile, time_buckets, selection))
    }
}

struct Sums {
    by_spot: IndexVec<SpotId, u64>,
    by_thread: IndexVec<ThreadId, u64>,
}

impl Sums {
    fn take(&mut self, profile: &Profile, selection: &Selection, piece: Piece) {
        match piece {
            Piece::TimeBucket(bucket, _) => {
                for run in bucket.runs() {
                    if !selection.takes_thread(run.thread) {
                        continue;
                    }
                    let mut samples = 0;
                    selection.each_cell(run.cells, |cell| {
                        samples += u64::from(cell.count);
                        self.by_spot[cell.spot] += u64::from(cell.count);
                    });
                    self.by_thread[run.thread] += samples;
                }
            }
            Piece::Samples(range) => {
                profile.each_spot(range, |thread, spot| {
                    if selection.takes_thread(thread) && selection.takes_spot(spot) {
                        self.by_thread[thread] += 1;
                        self.by_spot[spot] += 1;
                    }
                });
            }
        }
    }

    fn into_counts(
        self,
        profile: &Profile,
        time_buckets: &TimeBuckets,
        selection: &Selection,
    ) -> Counts {
        let mut counts = Counts {
            total: self.by_thread.iter().sum(),
            sites: profile.sites.with_each(0),
            entries: profile.entries.with_each([0; 4]),
            inferred: profile.entries.with_each(Inferred::default()),
            threads: self.by_thread,
            ..Counts::default()
        };
        for (at, &count) in self.by_spot.iter().enumerate() {
            // First, because most spots of a large profile have none.
            if count == 0 {
                continue;
            }
            let id = SpotId::of(at);
            if !selection.takes_spot(id) {
                continue;
            }
            let spot = &time_buckets.spots[id];
            counts.sites[spot.site] += count;
            let worth = match spot.shown {
                Shown::Nothing => WITHOUT_METHOD,
                Shown::Method | Shown::Elsewhere => spot.exactness as usize,
            };
            counts.entries[spot.entry][worth] += count;
            counts.inferred[spot.entry].take(count, spot.method_error);
            match spot.shown {
                Shown::Elsewhere => {}
                Shown::Method => counts.interpreted += count,
                Shown::Nothing => *counts.without_method.entry(spot.site).or_default() += count,
            }
        }
        counts
    }
}
