//! Indexes the stacks of samples.
//!
//! Samples are grouped by callers, then by thread, so each step needs a small table instead of a
//! hash lookup per sample.

use super::functions::Met;
use super::index::{Context, Kind, LOOK_EVERY, OfThread, StackIndex, range};
use super::{CallTree, FunctionId, NodeId, id_of};
use crate::ids::PlaceId;
use crate::profile::{EntryId, Profile, SiteId};
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;
use vmscope_records::TimeNs;

/// Not numbered yet.
const NONE: u32 = u32::MAX;

/// Parts of the work for progress; each has one step per sample.
const PARTS: usize = 4;

impl StackIndex {
    /// Indexes the stacks of the samples in `from..to`; without a bound, from the recording's start
    /// or to its end. The index serves filters within that window. `None` if `stop` was requested
    /// first.
    #[must_use]
    pub fn of(
        profile: &Profile,
        from: Option<TimeNs>,
        to: Option<TimeNs>,
        stop: &Stop,
    ) -> Option<Self> {
        let mut index = index(profile, range(profile, from, to), stop)?;
        index.window = (from, to);
        Some(index)
    }
}

fn index(profile: &Profile, samples: Range<usize>, stop: &Stop) -> Option<StackIndex> {
    let all = samples.len();
    let tell = |part: usize, done: usize| stop.look(part * all + done, PARTS * all);
    let mut paths = Paths::new(profile);
    let mut kind_of = Vec::new();
    let stacks = stacks(profile, &samples, &mut paths, &mut kind_of, &tell)?;
    let Paths {
        mut met, mut raw, ..
    } = paths;
    for stack in &stacks {
        let function = raw.get(stack.node as usize).map(|node| node.function);
        if let Some(function) = function {
            met.note_entry(function, stack.entry);
        }
    }
    let threads = profile.trace.samples.threads.get(samples.clone());
    let threads = threads.unwrap_or_default();
    let (mut kinds, mut samples_of, mut threads) = kinds(threads, &stacks, &mut kind_of, &tell)?;
    drop(stacks);
    for one in &mut threads {
        one.function = met.thread(one.thread);
    }
    for (kind, &samples) in kinds.iter().zip(&samples_of) {
        if let Some(node) = raw.get_mut(kind.node as usize) {
            node.total += u64::from(samples);
        }
    }
    let (functions, numbers) = met.sorted();
    let number = |function: FunctionId| numbers.get(function as usize).copied().unwrap_or(NONE);
    for node in &mut raw {
        node.function = number(node.function);
    }
    for one in &mut threads {
        one.function = number(one.function);
    }
    let (nodes, numbers) = in_order(raw, functions.all.len(), stop)?;
    for kind in &mut kinds {
        kind.node = numbers.get(kind.node as usize).copied().unwrap_or(NONE);
    }
    // Sorts by node within each thread.
    let mut order: Vec<u32> = (0..id_of(kinds.len())).collect();
    let node = |kind: u32| kinds.get(kind as usize).map(|kind| kind.node);
    for one in &threads {
        let kinds = order.get_mut(one.kinds.clone()).unwrap_or_default();
        kinds.sort_unstable_by_key(|&kind| (node(kind), kind));
    }
    let mut numbers = vec![NONE; kinds.len()];
    for (&old, new) in order.iter().zip(0..) {
        if let Some(slot) = numbers.get_mut(old as usize) {
            *slot = new;
        }
    }
    let kinds_by_node = order
        .iter()
        .filter_map(|&old| kinds.get(old as usize).copied());
    kinds = kinds_by_node.collect();
    let by_node = order
        .iter()
        .filter_map(|&old| samples_of.get(old as usize).copied());
    samples_of = by_node.collect();
    for kind in &mut kind_of {
        *kind = numbers.get(*kind as usize).copied().unwrap_or(NONE);
    }
    let below_root = nodes.get(1..).unwrap_or_default();
    let function = |at: usize| below_root.get(at).map_or(0, |node| node.function);
    let (mut by_function, ends) = grouped(below_root.len(), functions.all.len(), function);
    by_function.iter_mut().for_each(|node| *node += 1);
    Some(StackIndex {
        functions,
        nodes,
        by_function,
        ends,
        kinds,
        samples: samples_of,
        threads,
        kind_of,
        first: samples.start,
        window: (None, None),
    })
}

/// A node under construction.
#[derive(Clone, Copy)]
struct Raw {
    parent: NodeId,
    function: FunctionId,
    total: u64,
}

/// The tree under construction; parents precede children.
struct Paths<'a> {
    profile: &'a Profile,
    met: Met<'a>,
    raw: Vec<Raw>,
    index: FxHashMap<(NodeId, FunctionId), NodeId>,
    /// Per chain node of the trace: its tree node, or `NONE`.
    of_chain: Vec<NodeId>,
    /// Reused buffer: chain nodes still to add, and their places.
    path: Vec<(u32, PlaceId)>,
}

impl<'a> Paths<'a> {
    fn new(profile: &'a Profile) -> Self {
        let root = Raw {
            parent: CallTree::ROOT,
            function: FunctionId::MAX,
            total: 0,
        };
        Paths {
            profile,
            met: Met::new(profile),
            raw: vec![root],
            index: FxHashMap::default(),
            of_chain: vec![NONE; profile.trace.chains.len()],
            path: Vec::new(),
        }
    }

    /// The tree node of a chain's innermost caller.
    fn of_chain(&mut self, chain: u32) -> NodeId {
        self.path.clear();
        let mut node = CallTree::ROOT;
        let mut next = chain;
        while let Some(one) = self.profile.trace.chains.node(next) {
            match self.of_chain.get(next as usize) {
                Some(&known) if known != NONE => {
                    node = known;
                    break;
                }
                _ => self.path.push((next, one.place)),
            }
            next = one.parent;
        }
        while let Some((chain, place)) = self.path.pop() {
            node = self.below(node, self.profile.site_of_place[place]);
            if let Some(slot) = self.of_chain.get_mut(chain as usize) {
                *slot = node;
            }
        }
        node
    }

    /// The tree node of a site's innermost function, called from `above`.
    fn below(&mut self, above: NodeId, site: SiteId) -> NodeId {
        let raw = &mut self.raw;
        let mut node = above;
        for &function in self.met.of_site(site) {
            let parent = node;
            node = *self.index.entry((parent, function)).or_insert_with(|| {
                raw.push(Raw {
                    parent,
                    function,
                    total: 0,
                });
                id_of(raw.len() - 1)
            });
        }
        node
    }
}

/// The kinds of samples regardless of thread; stores each sample's kind in `stack_of`.
fn stacks(
    profile: &Profile,
    samples: &Range<usize>,
    paths: &mut Paths<'_>,
    stack_of: &mut Vec<u32>,
    tell: &dyn Fn(usize, usize) -> Option<()>,
) -> Option<Vec<Kind>> {
    let all = &profile.trace.samples;
    let places = all.places.get(samples.clone()).unwrap_or_default();
    // Without chains, no sample has callers.
    let chains = all.chains.get(samples.clone()).unwrap_or_default();
    let alone = id_of(paths.of_chain.len());
    let chain = |at: usize| chains.get(at).map_or(alone, |&chain| chain.min(alone));
    tell(0, 0)?;
    let (order, ends) = grouped(places.len(), alone as usize + 1, chain);
    *stack_of = vec![NONE; places.len()];
    let mut stacks = Vec::new();
    let mut index: FxHashMap<(NodeId, EntryId, bool), u32> = FxHashMap::default();
    // Per site: its stack below the most recent callers.
    let mut known = profile.sites.with_each((NONE, NONE));
    let mut from = 0;
    let mut looked = 0;
    for (chain, &end) in (0u32..).zip(&ends) {
        let end = end as usize;
        let samples = order.get(from..end).unwrap_or_default();
        from = end;
        if samples.is_empty() {
            continue;
        }
        let above = paths.of_chain(chain);
        for &sample in samples {
            looked += 1;
            if looked % LOOK_EVERY == 0 {
                tell(1, looked)?;
            }
            let site = profile.site_of_place[places[sample as usize]];
            let stack = match known[site] {
                (of, stack) if of == chain => stack,
                _ => {
                    let node = paths.below(above, site);
                    let is_alone = chain == alone;
                    let entry = profile.sites[site].entry;
                    let stack = *index.entry((node, entry, is_alone)).or_insert_with(|| {
                        stacks.push(Kind {
                            entry,
                            node,
                            alone: is_alone,
                        });
                        id_of(stacks.len() - 1)
                    });
                    known[site] = (chain, stack);
                    stack
                }
            };
            if let Some(slot) = stack_of.get_mut(sample as usize) {
                *slot = stack;
            }
        }
    }
    Some(stacks)
}

/// Divides each thread's samples by stack. Replaces the stacks in `kind_of` by kinds.
fn kinds(
    thread_of: &[u32],
    stacks: &[Kind],
    kind_of: &mut [u32],
    tell: &dyn Fn(usize, usize) -> Option<()>,
) -> Option<(Vec<Kind>, Vec<u32>, Vec<OfThread>)> {
    let most = thread_of.iter().max().map_or(0, |&most| most as usize + 1);
    let thread = |at: usize| thread_of.get(at).copied().unwrap_or(0);
    tell(2, 0)?;
    let (order, ends) = grouped(thread_of.len(), most, thread);
    let mut kinds: Vec<Kind> = Vec::new();
    let mut samples: Vec<u32> = Vec::new();
    let mut threads = Vec::new();
    // Per stack: its kind in the most recent thread.
    let mut known = vec![NONE; stacks.len()];
    let mut from = 0;
    for (thread, &end) in (0u32..).zip(&ends) {
        let first = kinds.len();
        let end = end as usize;
        for (at, &sample) in (from..).zip(order.get(from..end).unwrap_or_default()) {
            if at % LOOK_EVERY == 0 {
                tell(3, at)?;
            }
            let Some(slot) = kind_of.get_mut(sample as usize) else {
                continue;
            };
            let stack = *slot as usize;
            let Some(kind) = known.get_mut(stack) else {
                continue;
            };
            // Smaller numbers belong to earlier threads.
            if *kind == NONE || (*kind as usize) < first {
                *kind = id_of(kinds.len());
                kinds.extend(stacks.get(stack).copied());
                samples.push(0);
            }
            *slot = *kind;
            if let Some(samples) = samples.get_mut(*kind as usize) {
                *samples += 1;
            }
        }
        from = end;
        if kinds.len() > first {
            threads.push(OfThread {
                thread,
                function: FunctionId::MAX,
                kinds: first..kinds.len(),
            });
        }
    }
    Some((kinds, samples, threads))
}

/// Counting sort: the numbers below `count` by group, ascending within each, and the end of each
/// group.
fn grouped(count: usize, groups: usize, group_of: impl Fn(usize) -> u32) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; groups];
    for at in 0..count {
        if let Some(slot) = ends.get_mut(group_of(at) as usize) {
            *slot += 1;
        }
    }
    let mut begin = 0;
    for slot in &mut ends {
        begin += std::mem::replace(slot, begin);
    }
    let mut order = vec![0u32; count];
    for at in 0..count {
        let Some(next) = ends.get_mut(group_of(at) as usize) else {
            continue;
        };
        if let Some(slot) = order.get_mut(*next as usize) {
            *slot = id_of(at);
        }
        *next += 1;
    }
    (order, ends)
}

/// Preorder of the nodes, siblings by descending samples, and the new number of each node.
fn in_order(
    mut raw: Vec<Raw>,
    functions: usize,
    stop: &Stop,
) -> Option<(Vec<Context>, Vec<NodeId>)> {
    for at in (1..raw.len()).rev() {
        let node = raw.get(at).copied()?;
        if let Some(parent) = raw.get_mut(node.parent as usize) {
            parent.total += node.total;
        }
    }
    // Excludes the root from its own children.
    let parent = |at: usize| raw.get(at + 1).map_or(0, |node| node.parent);
    let (mut children, ends) = grouped(raw.len().saturating_sub(1), raw.len(), parent);
    let mut numbers = vec![NONE; raw.len()];
    let mut nodes: Vec<Context> = Vec::with_capacity(raw.len());
    // Occurrences of each function among the ancestors.
    let mut above = vec![0u32; functions];
    // Nodes to begin and, by new number, nodes to end.
    let mut next = vec![Next::Begin(CallTree::ROOT)];
    let mut steps = 0usize;
    while let Some(one) = next.pop() {
        steps += 1;
        if steps.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
            return None;
        }
        let id = match one {
            Next::Begin(id) => id,
            Next::End(at) => {
                let end = id_of(nodes.len());
                let node = nodes.get_mut(at as usize)?;
                node.end = end;
                let (parent, function) = (node.parent, node.function);
                let height = node.height.saturating_add(1);
                if let Some(slot) = above.get_mut(function as usize) {
                    *slot -= 1;
                }
                if let Some(parent) = nodes.get_mut(parent as usize).filter(|_| at > 0) {
                    parent.height = parent.height.max(height);
                }
                continue;
            }
        };
        let number = id_of(nodes.len());
        let Raw {
            parent, function, ..
        } = *raw.get(id as usize)?;
        if let Some(slot) = numbers.get_mut(id as usize) {
            *slot = number;
        }
        let parent = numbers.get(parent as usize).copied()?;
        let times = above.get_mut(function as usize);
        nodes.push(Context {
            parent,
            function,
            end: number,
            height: 0,
            outermost: times.as_ref().is_none_or(|times| **times == 0),
        });
        if let Some(times) = times {
            *times += 1;
        }
        next.push(Next::End(number));
        let begin = (id as usize)
            .checked_sub(1)
            .and_then(|before| ends.get(before));
        let begin = begin.map_or(0, |&begin| begin as usize);
        let end = ends.get(id as usize).map_or(begin, |&end| end as usize);
        let group = children.get_mut(begin..end).unwrap_or_default();
        let node = |child: u32| raw.get(child as usize + 1);
        // Popped from the back, so the last comes first.
        group.sort_unstable_by_key(|&child| {
            node(child).map(|node| (node.total, Reverse(node.function)))
        });
        next.extend(group.iter().map(|child| Next::Begin(child + 1)));
    }
    Some((nodes, numbers))
}

/// A step of the preorder traversal.
enum Next {
    Begin(NodeId),
    End(NodeId),
}
