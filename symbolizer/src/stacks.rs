//! Samples with their callers: the stacks for exports.
//!
//! A trace keeps callers as addresses. This module turns them into [`Site`](crate::Site)s, merging
//! addresses with the same name, so the tree grows with the program, not with the samples.

mod frames;

pub use frames::{StackFrame, frames_of};

use crate::ids::{ChainId, PlaceId, StackId, ThreadId};
use crate::paths::{MadeOfPaths, PathTree};
use crate::profile::{Profile, SiteId};
use crate::summary::Filter;
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use vmscope_records::TimeNs;

/// Samples between two checks of [`Stop`].
const LOOK_EVERY: usize = 1 << 16;

/// All stacks: paths of call sites that end with the sample's site.
pub type StackTree = PathTree<StackId, SiteId>;

/// A sample with its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// Time of the sample.
    pub time: TimeNs,
    /// The thread.
    pub thread: ThreadId,
    /// The stack.
    pub node: StackId,
}

/// Samples of a thread with the same stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackCount {
    /// The thread.
    pub thread: ThreadId,
    /// The stack.
    pub node: StackId,
    /// At least 1.
    pub samples: u64,
}

/// Visits the filter's samples in recording order and returns the tree of their nodes.
pub fn each_stack(
    profile: &Profile,
    filter: &Filter,
    mut visit: impl FnMut(StackSample),
) -> StackTree {
    let mut walker = Walker::new(profile);
    let stop = Stop::new();
    let done = each_taken(profile, filter, &stop, |taken| {
        let node = walker.node(taken.chain, taken.place);
        visit(StackSample {
            time: taken.time,
            thread: taken.thread,
            node,
        });
    });
    debug_assert!(done.is_some(), "nobody else holds the stop");
    walker.tree
}

/// Counts the filter's samples by thread and stack, in order of first samples. Memory grows with
/// distinct stacks, not with samples. `None` if `stop` was requested first.
#[must_use]
pub fn count_stacks(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<(StackTree, Vec<StackCount>)> {
    // Group by address first: one hash lookup per sample, further work only per distinct stack.
    let mut raw: Vec<(Taken, u64)> = Vec::new();
    let mut index: FxHashMap<(ThreadId, Option<ChainId>, PlaceId), usize> = FxHashMap::default();
    each_taken(profile, filter, stop, |taken| {
        let key = (taken.thread, taken.chain, taken.place);
        let slot = *index.entry(key).or_insert_with(|| {
            raw.push((taken, 0));
            raw.len() - 1
        });
        raw[slot].1 += 1;
    })?;
    drop(index);
    let mut counts: Vec<StackCount> = Vec::new();
    let mut walker = Walker::new(profile);
    let mut index: FxHashMap<(ThreadId, StackId), usize> = FxHashMap::default();
    for (at, (taken, samples)) in raw.into_iter().enumerate() {
        if at.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
            return None;
        }
        let node = walker.node(taken.chain, taken.place);
        let slot = *index.entry((taken.thread, node)).or_insert_with(|| {
            counts.push(StackCount {
                thread: taken.thread,
                node,
                samples: 0,
            });
            counts.len() - 1
        });
        counts[slot].samples += samples;
    }
    Some((walker.tree, counts))
}

/// A sample in the filter.
#[derive(Clone, Copy)]
struct Taken {
    time: TimeNs,
    thread: ThreadId,
    place: PlaceId,
    chain: Option<ChainId>,
}

/// Visits the samples in order; `None` if stopped.
fn each_taken(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
    mut visit: impl FnMut(Taken),
) -> Option<()> {
    let samples = &profile.trace.samples;
    let rows = samples
        .times
        .iter()
        .zip(&samples.threads)
        .zip(&samples.places);
    let takes_place = filter.takes_places(profile);
    for (index, ((&time, &thread), &place)) in rows.enumerate() {
        if index.is_multiple_of(LOOK_EVERY) {
            stop.look(index, samples.times.len())?;
        }
        // The filter tests the sample's own place, not its callers.
        if !filter.takes(thread, time) || !takes_place(place) {
            continue;
        }
        let chain = samples.chains.get(index).copied().flatten();
        visit(Taken {
            time,
            thread,
            place,
            chain,
        });
    }
    Some(())
}

/// Turns chains of places into stacks of sites.
struct Walker<'a> {
    profile: &'a Profile,
    /// The stacks of callers.
    of_chains: MadeOfPaths<ChainId, Option<StackId>>,
    tree: StackTree,
}

impl<'a> Walker<'a> {
    fn new(profile: &'a Profile) -> Self {
        Walker {
            profile,
            of_chains: MadeOfPaths::new(&profile.trace.chains),
            tree: StackTree::default(),
        }
    }

    fn node(&mut self, chain: Option<ChainId>, place: PlaceId) -> StackId {
        let (tree, site_of_place) = (&mut self.tree, &self.profile.site_of_place);
        let mut put = |above, place| tree.put(above, site_of_place[place]);
        let chains = &self.profile.trace.chains;
        let of_chains = &mut self.of_chains;
        let above = of_chains.get(chains, chain, None, |above, place| Some(put(above, place)));
        put(above, place)
    }
}
