//! Counts by arbitrary spans of time: collections and their phases.

use super::{Piece, Selection, Stop};
use crate::ids::ThreadId;
use crate::profile::{Profile, Region};
use crate::summary::Filter;
use vmscope_records::TimeNs;

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub from: TimeNs,
    /// End, exclusive.
    pub to: TimeNs,
    /// `None` for all threads.
    pub thread: Option<ThreadId>,
}

/// The samples of a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InSpan {
    /// By region, in the order of [`Region::ALL`].
    pub regions: [u64; Region::ALL.len()],
}

impl InSpan {
    /// All samples.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.regions.iter().sum()
    }

    /// The samples of a region.
    #[must_use]
    pub fn of(&self, region: Region) -> u64 {
        self.regions[region as usize]
    }

    /// Counts the samples of `filter` in each of `spans`; `None` for spans that begin before the
    /// kept samples. Returns `None` if `stop` came first. Bisection finds a span; the cost grows
    /// with its samples.
    #[must_use]
    pub fn of_spans(
        profile: &Profile,
        filter: &Filter,
        spans: &[Span],
        stop: &Stop,
    ) -> Option<Vec<Option<Self>>> {
        let time_buckets = &profile.time_buckets;
        let selection = Selection::new(profile, filter);
        let region_of_spot =
            time_buckets.by_spot(|id, spot| selection.takes_spot(id).then_some(spot.region));
        let kept_from = time_buckets.kept_from().unwrap_or_default();
        let of_span = |span: &Span| {
            if span.from < kept_from {
                return Some(None);
            }
            let samples = &profile.trace.samples;
            let range =
                time_buckets.range_of(samples, Some(span.from), Some(span.to.max(span.from)));
            let within = &selection.range;
            let range = range.start.clamp(within.start, within.end)
                ..range.end.clamp(within.start, within.end);
            let mut sum = InSpan::default();
            let takes = |thread: ThreadId| {
                selection.takes_thread(thread) && span.thread.is_none_or(|one| one == thread)
            };
            let mut add = |region: Region, count: u32| {
                sum.regions[region as usize] += u64::from(count);
            };
            time_buckets.pieces(range, &mut |piece| {
                match piece {
                    Piece::TimeBucket(bucket, _) => {
                        for run in bucket.runs().filter(|run| takes(run.thread)) {
                            if selection.is_of_regions() {
                                selection.each_region(&run, &mut add);
                                continue;
                            }
                            selection.each_cell(run.cells, |cell| {
                                if let Some(region) = region_of_spot[cell.spot] {
                                    add(region, cell.count);
                                }
                            });
                        }
                    }
                    Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                        if let Some(region) = region_of_spot[spot].filter(|_| takes(thread)) {
                            add(region, 1);
                        }
                    }),
                }
                (!stop.is_stopped()).then_some(())
            })?;
            Some(Some(sum))
        };
        spans.iter().map(of_span).collect()
    }
}
