//! Counts by thread and entry.

use super::{Piece, Selection, Stop};
use crate::ids::{SpotId, ThreadId};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;

/// A thread's samples in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadEntry {
    /// The thread.
    pub thread: ThreadId,
    /// The entry.
    pub entry: EntryId,
    /// The number of samples, never 0.
    pub samples: u64,
}

/// Counts the samples of a filter by thread and entry: ordered by thread, but not by entry.
/// `None` if `stop` came first.
#[must_use]
pub fn by_thread(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<ThreadEntry>> {
    let mut all = Vec::new();
    by_kind_of_thread(profile, filter, stop, |thread| thread, |one| all.push(one))?;
    Some(all)
}

/// Hands counts by kind of thread and entry to `visit`: `kind_of` maps a thread to a
/// representative of its kind.
pub(crate) fn by_kind_of_thread(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
    kind_of: impl Fn(ThreadId) -> ThreadId,
    mut visit: impl FnMut(ThreadEntry),
) -> Option<()> {
    let time_buckets = &profile.time_buckets;
    let selection = Selection::new(profile, filter);
    let entry_of_spot = time_buckets.by_spot(|_, spot| spot.entry);
    // Single samples are sorted by thread once.
    let (mut whole, mut single) = (Vec::new(), Vec::new());
    time_buckets.pieces(selection.range.clone(), &mut |piece| {
        match piece {
            Piece::TimeBucket(bucket, _) => whole.push(bucket),
            Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                if selection.takes_thread(thread) && selection.takes_spot(spot) {
                    single.push((kind_of(thread), spot));
                }
            }),
        }
        (!stop.is_stopped()).then_some(())
    })?;
    single.sort_unstable();
    let mut single = single.into_iter().peekable();
    let threads = profile.trace.threads.ids();
    let threads = threads.filter(|thread| selection.takes_thread(*thread));
    let mut threads: Vec<(ThreadId, ThreadId)> =
        threads.map(|thread| (kind_of(thread), thread)).collect();
    threads.sort_unstable();
    // Kind by kind, so that memory grows with entries alone.
    let mut counts = profile.entries.with_each(0u64);
    let mut counted: Vec<EntryId> = Vec::new();
    for of_kind in threads.chunk_by(|(a, _), (b, _)| a == b) {
        let (kind, _) = of_kind[0];
        if stop.is_stopped() {
            return None;
        }
        let mut add = |spot: SpotId, count: u32| {
            let entry = entry_of_spot[spot];
            let sum = &mut counts[entry];
            if *sum == 0 {
                counted.push(entry);
            }
            *sum += u64::from(count);
        };
        for bucket in &whole {
            for &(_, thread) in of_kind {
                selection.each_cell(bucket.of_thread(thread), |cell| add(cell.spot, cell.count));
            }
        }
        while let Some((_, spot)) = single.next_if(|(of, _)| *of <= kind) {
            add(spot, 1);
        }
        for entry in counted.drain(..) {
            visit(ThreadEntry {
                thread: kind,
                entry,
                samples: std::mem::take(&mut counts[entry]),
            });
        }
    }
    Some(())
}
