//! Going through a window: few time buckets, and single samples at its edges.

use super::{TimeBucket, TimeBuckets};
use crate::trace::Samples;
use std::ops::Range;
use vmscope_records::TimeNs;

/// A part of a window.
#[derive(Clone, Debug)]
pub(crate) enum Piece<'a> {
    /// A whole time bucket, and its level.
    TimeBucket(&'a TimeBucket, usize),
    /// Single samples, by their index in the trace's.
    Samples(Range<usize>),
}

/// Where a time lies among the samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The first sample not before it.
    pub index: u64,
    /// The time bucket that was decided as a whole: its first sample, and how many it has.
    pub decided: Option<(u64, u64)>,
}

impl TimeBuckets {
    /// The first sample not before a time.
    pub(super) fn edge(&self, samples: &Samples, time: TimeNs) -> Edge {
        let time_buckets = self.levels.first().map_or(&[][..], Vec::as_slice);
        let slice = time_buckets.get(time_buckets.partition_point(|slice| slice.to < time));
        match slice.filter(|slice| slice.end <= self.forgotten) {
            Some(slice) if slice.from >= time => Edge {
                index: slice.first,
                decided: None,
            },
            Some(slice) => Edge {
                index: if slice.middle() >= time {
                    slice.first
                } else {
                    slice.end
                },
                decided: Some((slice.first, slice.samples())),
            },
            None => Edge {
                index: self.forgotten + samples.times.partition_point(|at| *at < time) as u64,
                decided: None,
            },
        }
    }

    /// The smallest time bucket that begins with a sample.
    pub(super) fn smallest_at(&self, first: u64) -> Option<&TimeBucket> {
        let time_buckets = self.levels.first()?;
        let at = time_buckets.binary_search_by_key(&first, |slice| slice.first);
        time_buckets.get(at.ok()?)
    }

    /// The samples of a window, and how many of them were decided as a whole.
    pub(super) fn range_of(
        &self,
        samples: &Samples,
        from: Option<TimeNs>,
        to: Option<TimeNs>,
    ) -> (Range<u64>, u64) {
        let from = from.map(|time| self.edge(samples, time));
        let to = to.map(|time| self.edge(samples, time));
        let first = from.map_or(0, |edge| edge.index);
        let all = self.forgotten + samples.times.len() as u64;
        let end = to.map_or(all, |edge| edge.index);
        let mut decided: Vec<(u64, u64)> = [from, to]
            .into_iter()
            .filter_map(|edge| edge?.decided)
            .collect();
        decided.dedup();
        let decided = decided.into_iter().map(|(_, samples)| samples).sum();
        (first..end.max(first), decided)
    }

    /// Hands the pieces of `range` to `visit`, in order, the largest there are. Ends early,
    /// with `None`, when `visit` does.
    pub(crate) fn pieces<'a>(
        &'a self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Piece<'a>) -> Option<()>,
    ) -> Option<()> {
        self.pieces_below(self.levels.len(), range, visit)
    }

    /// The same, of time buckets of less than that level.
    pub(crate) fn pieces_below<'a>(
        &'a self,
        level: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Piece<'a>) -> Option<()>,
    ) -> Option<()> {
        if range.is_empty() {
            return Some(());
        }
        let Some(below) = level.checked_sub(1) else {
            let index = |sample: u64| {
                let index = sample.saturating_sub(self.forgotten);
                usize::try_from(index).unwrap_or(usize::MAX)
            };
            return visit(Piece::Samples(index(range.start)..index(range.end)));
        };
        let time_buckets = self.levels.get(below).map_or(&[][..], Vec::as_slice);
        let from = time_buckets.partition_point(|slice| slice.first < range.start);
        let to = time_buckets.partition_point(|slice| slice.end <= range.end);
        let inside = time_buckets.get(from..to).unwrap_or_default();
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
            return self.pieces_below(below, range, visit);
        };
        self.pieces_below(below, range.start..first.first, visit)?;
        for slice in inside {
            visit(Piece::TimeBucket(slice, below))?;
        }
        self.pieces_below(below, last.end..range.end, visit)
    }
}
