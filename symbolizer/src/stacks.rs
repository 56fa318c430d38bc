//! Samples with their callers: the stacks for exports.
//!
//! A trace keeps callers as addresses. This module turns them into [`Site`](crate::Site)s, merging
//! addresses with the same name, so the tree grows with the program, not with the samples.

mod frames;

pub use frames::{StackFrame, frames_of};

use crate::ids::{PlaceId, ThreadId};
use crate::profile::{Profile, SiteId};
use crate::summary::Filter;
use crate::time_buckets::Stop;
use crate::trace::ChainTree;
use rustc_hash::FxHashMap;
use vmscope_records::TimeNs;

/// Samples between two checks of [`Stop`].
const LOOK_EVERY: usize = 1 << 16;

/// A node in the tree of stacks: the path to the root is a stack, innermost site first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The caller; [`StackTree::NONE`] for the outermost.
    pub parent: u32,
    /// Site of the call or, in the innermost node, of the sample.
    pub site: SiteId,
}

/// The tree of all stacks. Parents precede children.
#[derive(Clone, Debug, Default)]
pub struct StackTree {
    nodes: Vec<StackNode>,
    index: FxHashMap<StackNode, u32>,
}

/// A sample with its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// Time of the sample.
    pub time: TimeNs,
    /// The thread.
    pub thread: ThreadId,
    /// Node in the tree.
    pub node: u32,
}

/// Samples of a thread with the same stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackCount {
    /// The thread.
    pub thread: ThreadId,
    /// Node in the tree.
    pub node: u32,
    /// At least 1.
    pub samples: u64,
}

impl StackTree {
    /// No caller.
    pub const NONE: u32 = u32::MAX;

    /// All nodes, parents before their children.
    #[must_use]
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// The nodes of a stack, innermost first.
    pub fn path(&self, node: u32) -> impl Iterator<Item = StackNode> + '_ {
        let mut next = node;
        std::iter::from_fn(move || {
            let node = *self.nodes.get(next as usize)?;
            // Parents are older, so this ends.
            next = node.parent;
            Some(node)
        })
    }

    fn child(&mut self, parent: u32, site: SiteId) -> u32 {
        let node = StackNode { parent, site };
        *self.index.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            // At most one per sample and chain node: more would not fit into memory.
            u32::try_from(self.nodes.len() - 1).unwrap_or(Self::NONE)
        })
    }
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
    let mut index: FxHashMap<(ThreadId, u32, PlaceId), u32> = FxHashMap::default();
    each_taken(profile, filter, stop, |taken| {
        let key = (taken.thread, taken.chain, taken.place);
        let slot = *index.entry(key).or_insert_with(|| {
            raw.push((taken, 0));
            u32::try_from(raw.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some((_, count)) = raw.get_mut(slot as usize) {
            *count += 1;
        }
    })?;
    drop(index);
    let mut counts: Vec<StackCount> = Vec::new();
    let mut walker = Walker::new(profile);
    let mut index: FxHashMap<(ThreadId, u32), usize> = FxHashMap::default();
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
        if let Some(count) = counts.get_mut(slot) {
            count.samples += samples;
        }
    }
    Some((walker.tree, counts))
}

/// A sample in the filter.
#[derive(Clone, Copy)]
struct Taken {
    time: TimeNs,
    thread: ThreadId,
    place: PlaceId,
    chain: u32,
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
        let chain = samples.chains.get(index).copied();
        let chain = chain.unwrap_or(ChainTree::NONE);
        visit(Taken {
            time,
            thread,
            place,
            chain,
        });
    }
    Some(())
}

/// Turns chains of places into stacks of sites, each chain node once.
struct Walker<'a> {
    profile: &'a Profile,
    /// Per chain node of the trace: its tree node, or `NONE`.
    known: Vec<u32>,
    tree: StackTree,
    /// Reused buffer for unknown chain nodes.
    path: Vec<u32>,
}

impl<'a> Walker<'a> {
    fn new(profile: &'a Profile) -> Self {
        Walker {
            profile,
            known: vec![StackTree::NONE; profile.trace.chains.len()],
            tree: StackTree::default(),
            path: Vec::new(),
        }
    }

    fn node(&mut self, chain: u32, place: PlaceId) -> u32 {
        let parent = self.callers(chain);
        self.tree.child(parent, self.profile.site_of_place[place])
    }

    /// The tree node of a chain's innermost caller.
    fn callers(&mut self, chain: u32) -> u32 {
        self.path.clear();
        let mut next = chain;
        let mut node = StackTree::NONE;
        while let Some(one) = self.profile.trace.chains.node(next) {
            match self.known.get(next as usize) {
                Some(&known) if known != StackTree::NONE => {
                    node = known;
                    break;
                }
                _ => self.path.push(next),
            }
            next = one.parent;
        }
        while let Some(chain) = self.path.pop() {
            let Some(one) = self.profile.trace.chains.node(chain) else {
                continue;
            };
            node = self.tree.child(node, self.profile.site_of_place[one.place]);
            if let Some(known) = self.known.get_mut(chain as usize) {
                *known = node;
            }
        }
        node
    }
}
