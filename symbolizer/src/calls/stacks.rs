//! Indexes the stacks of samples.
//!
//! Samples are grouped by callers, then by thread, so each step needs a small table instead of a
//! hash lookup per sample.

use super::functions::{Functions, Met};
use super::index::{Context, Kind, LOOK_EVERY, OfThread, StackIndex, range};
use super::{FunctionId, id_of};
use crate::ids::{ChainId, ContextId, Id, IndexVec, IndexedThread, ThreadId};
use crate::paths::MadeOfPaths;
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
    /// Indexes the stacks of the samples in `from..to`; a missing bound means the recording's start
    /// or end. The index serves filters within that window. `None` after a
    /// stop.
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
        if let Some(function) = raw[stack.node].function {
            met.note_entry(function, stack.entry);
        }
    }
    let threads = &profile.trace.samples.threads[samples.clone()];
    let (mut kinds, mut samples_of, mut threads) =
        kinds((threads, &mut met), &stacks, &mut kind_of, &tell)?;
    drop(stacks);
    for (kind, &samples) in kinds.iter().zip(&samples_of) {
        raw[kind.node].total += u64::from(samples);
    }
    let (functions, numbers) = met.sorted();
    for node in &mut raw {
        node.function = node.function.map(|function| numbers[function]);
    }
    for one in &mut threads {
        one.function = numbers[one.function];
    }
    let (nodes, numbers) = in_order(raw, &functions, stop)?;
    for kind in &mut kinds {
        kind.node = numbers[kind.node];
    }
    // Sorts by node within each thread.
    let mut order: Vec<u32> = (0..id_of(kinds.len())).collect();
    for one in &threads {
        let kinds_of = &mut order[one.kinds.clone()];
        kinds_of.sort_unstable_by_key(|&kind| (kinds[kind as usize].node, kind));
    }
    let mut numbers = vec![0; kinds.len()];
    for (&old, new) in order.iter().zip(0..) {
        numbers[old as usize] = new;
    }
    kinds = order.iter().map(|&old| kinds[old as usize]).collect();
    samples_of = order.iter().map(|&old| samples_of[old as usize]).collect();
    for kind in &mut kind_of {
        *kind = numbers[*kind as usize];
    }
    let mut functions_of = nodes.iter().map(|node| node.function);
    // Only the root has none.
    functions_of.next();
    let functions_of: Vec<FunctionId> = functions_of.flatten().collect();
    let function = |at: usize| functions_of[at].index();
    let (by_function, ends) = grouped(functions_of.len(), functions.all.len(), function);
    let by_function = by_function.into_iter();
    Some(StackIndex {
        functions,
        nodes,
        by_function: by_function
            .map(|at| ContextId::of(at as usize + 1))
            .collect(),
        ends: ends.into(),
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
    parent: ContextId,
    function: Option<FunctionId>,
    total: u64,
}

/// The tree under construction; parents precede children.
struct Paths<'a> {
    met: Met<'a>,
    raw: IndexVec<ContextId, Raw>,
    index: FxHashMap<(ContextId, FunctionId), ContextId>,
}

impl<'a> Paths<'a> {
    fn new(profile: &'a Profile) -> Self {
        let root = Raw {
            parent: StackIndex::root(),
            function: None,
            total: 0,
        };
        Paths {
            met: Met::new(profile),
            raw: vec![root].into(),
            index: FxHashMap::default(),
        }
    }

    /// The tree node of a site's innermost function, called from `above`.
    fn below(&mut self, above: ContextId, site: SiteId) -> ContextId {
        let raw = &mut self.raw;
        let mut node = above;
        for &function in self.met.of_site(site) {
            let parent = node;
            node = *self.index.entry((parent, function)).or_insert_with(|| {
                raw.push(Raw {
                    parent,
                    function: Some(function),
                    total: 0,
                })
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
    let places = &all.places[samples.clone()];
    // Without chains, no sample has callers.
    let chains = all.chains.get(samples.clone()).unwrap_or_default();
    let alone = profile.trace.chains.len();
    let chain = |at: usize| chains.get(at).copied().flatten().map_or(alone, Id::index);
    let mut of_chains = MadeOfPaths::new(&profile.trace.chains);
    tell(0, 0)?;
    let (order, ends) = grouped(places.len(), alone + 1, chain);
    *stack_of = vec![NONE; places.len()];
    let mut stacks = Vec::new();
    let mut index: FxHashMap<(ContextId, EntryId, bool), u32> = FxHashMap::default();
    // Per site: its stack below the most recent callers.
    let mut known = profile.sites.with_each((usize::MAX, NONE));
    let mut from = 0;
    let mut looked = 0;
    for (chain, &end) in ends.iter().enumerate() {
        let end = end as usize;
        let samples = &order[from..end];
        from = end;
        if samples.is_empty() {
            continue;
        }
        let id = (chain != alone).then(|| ChainId::of(chain));
        let above = of_chains.get(
            &profile.trace.chains,
            id,
            StackIndex::root(),
            |above, place| paths.below(above, profile.site_of_place[place]),
        );
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
            stack_of[sample as usize] = stack;
        }
    }
    Some(stacks)
}

/// Kinds, their samples, and the threads.
type Kinds = (Vec<Kind>, Vec<u32>, IndexVec<IndexedThread, OfThread>);

/// Divides each thread's samples by stack. Replaces the stacks in `kind_of` by kinds.
fn kinds(
    (thread_of, met): (&[ThreadId], &mut Met<'_>),
    stacks: &[Kind],
    kind_of: &mut [u32],
    tell: &dyn Fn(usize, usize) -> Option<()>,
) -> Option<Kinds> {
    let most = thread_of.iter().max().map_or(0, |most| most.index() + 1);
    let thread = |at: usize| thread_of[at].index();
    tell(2, 0)?;
    let (order, ends) = grouped(thread_of.len(), most, thread);
    let mut kinds: Vec<Kind> = Vec::new();
    let mut samples: Vec<u32> = Vec::new();
    let mut threads = IndexVec::default();
    // Per stack: its kind in the most recent thread.
    let mut known = vec![NONE; stacks.len()];
    let mut from = 0;
    for (thread, &end) in (0..).map(ThreadId::of).zip(&ends) {
        let first = kinds.len();
        let end = end as usize;
        for (at, &sample) in (from..).zip(&order[from..end]) {
            if at % LOOK_EVERY == 0 {
                tell(3, at)?;
            }
            let slot = &mut kind_of[sample as usize];
            let stack = *slot as usize;
            let kind = &mut known[stack];
            // Smaller numbers belong to earlier threads.
            if *kind == NONE || (*kind as usize) < first {
                *kind = id_of(kinds.len());
                kinds.push(stacks[stack]);
                samples.push(0);
            }
            *slot = *kind;
            samples[*kind as usize] += 1;
        }
        from = end;
        if kinds.len() > first {
            threads.push(OfThread {
                thread,
                function: met.thread(thread),
                kinds: first..kinds.len(),
            });
        }
    }
    Some((kinds, samples, threads))
}

/// Counting sort: the numbers below `count` by group, ascending within each, and the end of each
/// group.
fn grouped(count: usize, groups: usize, group_of: impl Fn(usize) -> usize) -> (Vec<u32>, Vec<u32>) {
    let mut ends = vec![0u32; groups];
    for at in 0..count {
        ends[group_of(at)] += 1;
    }
    let mut begin = 0;
    for slot in &mut ends {
        begin += std::mem::replace(slot, begin);
    }
    let mut order = vec![0u32; count];
    for at in 0..count {
        let next = &mut ends[group_of(at)];
        order[*next as usize] = id_of(at);
        *next += 1;
    }
    (order, ends)
}

/// Preorder of the nodes, siblings by descending samples, and the new number of each node.
fn in_order(
    mut raw: IndexVec<ContextId, Raw>,
    functions: &Functions,
    stop: &Stop,
) -> Option<(IndexVec<ContextId, Context>, IndexVec<ContextId, ContextId>)> {
    for id in raw.ids().skip(1).rev() {
        let Raw { parent, total, .. } = raw[id];
        raw[parent].total += total;
    }
    // Excludes the root from its own children.
    let below_root = |at: usize| ContextId::of(at + 1);
    let parent = |at: usize| raw[below_root(at)].parent.index();
    let (mut children, ends) = grouped(raw.len() - 1, raw.len(), parent);
    let mut numbers = raw.map(|id, _| id);
    let mut nodes: IndexVec<ContextId, Context> = Vec::with_capacity(raw.len()).into();
    // Occurrences of each function among the ancestors.
    let mut above = functions.all.with_each(0u32);
    // Nodes to begin and, by new number, nodes to end.
    let mut next = vec![Next::Begin(StackIndex::root())];
    let mut steps = 0usize;
    while let Some(one) = next.pop() {
        steps += 1;
        if steps.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
            return None;
        }
        let id = match one {
            Next::Begin(id) => id,
            Next::End(at) => {
                nodes[at].end = ContextId::of(nodes.len());
                let node = nodes[at];
                if let Some(function) = node.function {
                    above[function] -= 1;
                    let parent = &mut nodes[node.parent];
                    parent.height = parent.height.max(node.height.saturating_add(1));
                }
                continue;
            }
        };
        let Raw {
            parent, function, ..
        } = raw[id];
        let times = function.map(|function| &mut above[function]);
        numbers[id] = nodes.push(Context {
            parent: numbers[parent],
            function,
            end: numbers[parent],
            height: 0,
            outermost: times.as_ref().is_none_or(|times| **times == 0),
        });
        if let Some(times) = times {
            *times += 1;
        }
        next.push(Next::End(numbers[id]));
        let begin = id.index().checked_sub(1).map_or(0, |before| ends[before]);
        let group = &mut children[begin as usize..ends[id.index()] as usize];
        // Popped from the back, so the last comes first.
        group.sort_unstable_by_key(|&child| {
            let node = &raw[below_root(child as usize)];
            (node.total, Reverse(node.function))
        });
        let group = group.iter().map(|&child| below_root(child as usize));
        next.extend(group.map(Next::Begin));
    }
    Some((nodes, numbers))
}

/// A step of the preorder traversal.
enum Next {
    Begin(ContextId),
    End(ContextId),
}
