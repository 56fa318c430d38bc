//! Counting by thread and site at once.

use super::{Piece, Selection, Stop};
use crate::profile::{Profile, SiteId};
use crate::summary::Filter;

/// The samples that a thread has at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadSite {
    /// Index in [`crate::Trace::threads`].
    pub thread: u32,
    /// Where.
    pub site: SiteId,
    /// More than none.
    pub samples: u64,
}

/// Counts what a filter takes by thread and site, in that order; `None` when `stop` was
/// wished before it was done.
#[must_use]
pub fn by_thread(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<ThreadSite>> {
    let slices = &profile.slices;
    let selection = Selection::new(profile, filter);
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
    // Thread by thread, so that memory goes by sites alone.
    let mut all = Vec::new();
    let mut counts = vec![0; profile.sites.len()];
    let mut counted: Vec<SiteId> = Vec::new();
    for thread in threads.filter(|thread| selection.takes_thread(*thread)) {
        if stop.is_stopped() {
            return None;
        }
        let mut add = |spot: u32, count: u32| {
            if let Some(site) = slices.spots.get(spot as usize).map(|spot| spot.site)
                && let Some(sum) = counts.get_mut(site as usize)
            {
                if *sum == 0 {
                    counted.push(site);
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
        for site in counted.drain(..) {
            let samples = counts.get_mut(site as usize).map(std::mem::take);
            let samples = samples.unwrap_or_default();
            all.push(ThreadSite {
                thread,
                site,
                samples,
            });
        }
    }
    Some(all)
}
