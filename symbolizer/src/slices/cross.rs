//! Counting by thread and site at once.

use super::{Piece, Selection, Stop};
use crate::profile::{Profile, SiteId};
use crate::summary::Filter;
use rustc_hash::FxHashMap;

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
    let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut add = |thread: u32, spot: u32, count: u64| {
        if selection.takes_thread(thread) && selection.takes_spot(spot) {
            let site = slices.spots.get(spot as usize).map(|spot| spot.site);
            *counts
                .entry((thread, site.unwrap_or(SiteId::MAX)))
                .or_default() += count;
        }
    };
    slices.pieces(selection.range.clone(), &mut |piece| {
        match piece {
            Piece::Slice(slice, _) => {
                for (run, cells) in slice.runs() {
                    for cell in cells {
                        add(run.thread, cell.spot, u64::from(cell.count));
                    }
                }
            }
            Piece::Samples(range) => {
                profile.each_spot(range, |thread, spot| add(thread, spot, 1));
            }
        }
        (!stop.is_stopped()).then_some(())
    })?;
    let mut counts: Vec<ThreadSite> = (counts.into_iter())
        .map(|((thread, site), samples)| ThreadSite {
            thread,
            site,
            samples,
        })
        .collect();
    counts.sort_unstable();
    Some(counts)
}
