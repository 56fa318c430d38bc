//! Counting by thread and entry at once.

use super::{Piece, Selection, Stop};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;

/// The samples that a thread has in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadEntry {
    /// Index in [`crate::Trace::threads`].
    pub thread: u32,
    /// Where.
    pub entry: EntryId,
    /// More than none.
    pub samples: u64,
}

/// Counts what a filter takes by thread and entry, in that order; `None` when `stop` was
/// wished before it was done.
#[must_use]
pub fn by_thread(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<ThreadEntry>> {
    let slices = &profile.slices;
    let selection = Selection::new(profile, filter);
    let entry_of_spot: Vec<EntryId> = slices.by_spot(|_, spot| spot.entry);
    // What is counted one by one is put in the order of threads once.
    let (mut whole, mut single) = (Vec::new(), Vec::new());
    slices.pieces(selection.range.clone(), &mut |piece| {
        match piece {
            Piece::Slice(slice, _) => whole.push(slice),
            Piece::Samples(range) => profile.each_spot(range, |thread, spot| {
                if selection.takes_thread(thread) && selection.takes_spot(spot) {
                    single.push((thread, spot));
                }
            }),
        }
        (!stop.is_stopped()).then_some(())
    })?;
    single.sort_unstable();
    let mut single = single.into_iter().peekable();
    let threads = 0..u32::try_from(profile.trace.threads.len()).unwrap_or(u32::MAX);
    // Thread by thread, so that memory goes by entries alone.
    let mut all = Vec::new();
    let mut counts = vec![0u64; profile.entries.len()];
    let mut counted: Vec<EntryId> = Vec::new();
    for thread in threads.filter(|thread| selection.takes_thread(*thread)) {
        if stop.is_stopped() {
            return None;
        }
        let mut add = |spot: u32, count: u32| {
            if let Some(&entry) = entry_of_spot.get(spot as usize)
                && let Some(sum) = counts.get_mut(entry as usize)
            {
                if *sum == 0 {
                    counted.push(entry);
                }
                *sum += u64::from(count);
            }
        };
        for slice in &whole {
            selection.each_cell(slice.of_thread(thread), |cell| add(cell.spot, cell.count));
        }
        while let Some((_, spot)) = single.next_if(|(of, _)| *of <= thread) {
            add(spot, 1);
        }
        counted.sort_unstable();
        for entry in counted.drain(..) {
            let samples = counts.get_mut(entry as usize).map(std::mem::take);
            let samples = samples.unwrap_or_default();
            all.push(ThreadEntry {
                thread,
                entry,
                samples,
            });
        }
    }
    Some(all)
}
