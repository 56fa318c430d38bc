//! Walking through a window: few time buckets, and single samples at its edges.

use super::{TimeBucket, TimeBuckets};
use crate::trace::Samples;
use std::ops::Range;
use vmscope_records::TimeNs;

/// A part of a window.
#[derive(Clone, Debug)]
pub(crate) enum Piece<'a> {
    /// A whole time bucket, and its level.
    TimeBucket(&'a TimeBucket, usize),
    /// Single samples, by index in the trace.
    Samples(Range<usize>),
}

impl TimeBuckets {
    /// The number of the first kept sample at or after a time.
    pub(super) fn edge(&self, samples: &Samples, time: TimeNs) -> u64 {
        self.dropped + samples.times.partition_point(|at| *at < time) as u64
    }

    /// The sample numbers of a window. A window without a beginning includes dropped samples.
    pub(super) fn range_of(
        &self,
        samples: &Samples,
        from: Option<TimeNs>,
        to: Option<TimeNs>,
    ) -> Range<u64> {
        let first = from.map_or(0, |time| self.edge(samples, time));
        let all = self.dropped + samples.times.len() as u64;
        let end = to.map_or(all, |time| self.edge(samples, time));
        first..end.max(first)
    }

    /// Hands the largest possible pieces of `range` to `visit`, in order. Ends early with `None`
    /// if `visit` does.
    pub(crate) fn pieces<'a>(
        &'a self,
        range: Range<u64>,
        visit: &mut dyn FnMut(Piece<'a>) -> Option<()>,
    ) -> Option<()> {
        self.pieces_below(self.levels.len(), range, visit)
    }

    /// Hands pieces below a level to `visit`, in order. Dropped samples come as their total,
    /// whatever the level.
    pub(crate) fn pieces_below<'a>(
        &'a self,
        level: usize,
        range: Range<u64>,
        visit: &mut dyn FnMut(Piece<'a>) -> Option<()>,
    ) -> Option<()> {
        if range.start < self.dropped {
            for total in &self.totals {
                visit(Piece::TimeBucket(total, self.levels.len()))?;
            }
        }
        let range = range.start.max(self.dropped)..range.end;
        if range.is_empty() {
            return Some(());
        }
        let Some(below) = level.checked_sub(1) else {
            let samples = self.index(range.start)..self.index(range.end);
            return visit(Piece::Samples(samples));
        };
        let time_buckets = self.levels.get(below).map_or(&[][..], Vec::as_slice);
        let from = time_buckets.partition_point(|bucket| bucket.first < range.start);
        let to = time_buckets.partition_point(|bucket| bucket.end <= range.end);
        let inside = time_buckets.get(from..to).unwrap_or_default();
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else {
            return self.pieces_below(below, range, visit);
        };
        self.pieces_below(below, range.start..first.first, visit)?;
        for bucket in inside {
            visit(Piece::TimeBucket(bucket, below))?;
        }
        self.pieces_below(below, last.end..range.end, visit)
    }
}
