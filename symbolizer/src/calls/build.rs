//! Making the tree.

use super::{CallNode, CallTree, CallsOf, Function, FunctionCounts, FunctionId, NodeId};
use crate::profile::{EntryId, Profile, SiteId};
use crate::slices::Stop;
use crate::stacks::{StackTree, Stacks, frames_of};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// Steps between two looks at whether to go on.
const LOOK_EVERY: usize = 1 << 14;

impl CallTree {
    /// The tree of counted stacks; `None` when `stop` was wished before it was done.
    #[must_use]
    pub fn of(profile: &Profile, stacks: &Stacks, of: &CallsOf, stop: &Stop) -> Option<Self> {
        let mut builder = Builder::new(profile, stacks, of);
        builder.put(stop)?;
        let raw = builder.raw;
        let functions = builder.functions;
        let mut tree = CallTree {
            functions: functions.all,
            entries: functions.entries,
            ..CallTree::default()
        };
        let mut sorted: Vec<FunctionId> = (0..).take(tree.functions.len()).collect();
        sorted.sort_unstable_by_key(|&id| tree.functions.get(id as usize));
        tree.sorted = sorted;
        tree.place(raw, stop)?;
        tree.count(stop)?;
        Some(tree)
    }

    /// Takes the nodes, which are older than what was called from them.
    fn place(&mut self, mut raw: Vec<Raw>, stop: &Stop) -> Option<()> {
        for at in (1..raw.len()).rev() {
            let node = raw.get(at).copied()?;
            if let Some(parent) = raw.get_mut(node.parent as usize) {
                parent.total += node.total;
            }
        }
        let mut rank = vec![0u32; self.functions.len()];
        for (&id, place) in self.sorted.iter().zip(0..) {
            if let Some(slot) = rank.get_mut(id as usize) {
                *slot = place;
            }
        }
        // Nodes on the way to stacks that were left out have no samples.
        let with_samples = raw.iter().zip(0u32..).skip(1);
        let mut order: Vec<(u32, Reverse<u64>, u32, u32)> = with_samples
            .filter(|(node, _)| node.total > 0)
            .map(|(node, id)| {
                let rank = rank.get(node.function as usize).copied();
                (node.parent, Reverse(node.total), rank.unwrap_or(0), id)
            })
            .collect();
        if stop.is_stopped() {
            return None;
        }
        order.sort_unstable();
        // Level by level, so that children follow each other.
        let root = raw.first()?;
        self.nodes.push(CallNode {
            parent: Self::ROOT,
            function: FunctionId::MAX,
            total: root.total,
            own: root.own,
            depth: 0,
            outermost: true,
            children: (0, 0),
        });
        let mut old = vec![0u32];
        let mut at = 0;
        while let Some(&of) = old.get(at) {
            if at.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
                return None;
            }
            let first = order.partition_point(|&(parent, ..)| parent < of);
            let depth = self.nodes.get(at).map_or(0, |node| node.depth);
            let begin = id_of(self.nodes.len());
            let children = order.get(first..).unwrap_or_default();
            for &(.., child) in children.iter().take_while(|&&(parent, ..)| parent == of) {
                let node = raw.get(child as usize)?;
                self.nodes.push(CallNode {
                    parent: id_of(at),
                    function: node.function,
                    total: node.total,
                    own: node.own,
                    depth: depth + 1,
                    outermost: true,
                    children: (0, 0),
                });
                old.push(child);
            }
            let end = id_of(self.nodes.len());
            if let Some(node) = self.nodes.get_mut(at) {
                node.children = (begin, end);
            }
            at += 1;
        }
        Some(())
    }

    /// Sums over functions.
    fn count(&mut self, stop: &Stop) -> Option<()> {
        self.mark_outermost(stop)?;
        self.counts = vec![FunctionCounts::default(); self.functions.len()];
        let mut how_many = vec![0usize; self.functions.len()];
        for node in self.nodes.iter().skip(1) {
            let function = node.function as usize;
            if let (Some(counts), Some(many)) =
                (self.counts.get_mut(function), how_many.get_mut(function))
            {
                counts.own += node.own;
                counts.recursive |= !node.outermost;
                counts.total += if node.outermost { node.total } else { 0 };
                *many += 1;
            }
        }
        let mut end = 0;
        for many in &how_many {
            self.ranges.push((end, end));
            end += many;
        }
        self.by_function = vec![0; end];
        for (node, id) in self.nodes.iter().zip(0u32..).skip(1) {
            if let Some((_, next)) = self.ranges.get_mut(node.function as usize) {
                if let Some(slot) = self.by_function.get_mut(*next) {
                    *slot = id;
                }
                *next += 1;
            }
        }
        Some(())
    }

    /// Goes down and up again, counting how often each function is above.
    fn mark_outermost(&mut self, stop: &Stop) -> Option<()> {
        let mut above = vec![0u32; self.functions.len()];
        let mut path: Vec<NodeId> = Vec::new();
        let mut next = self.after(Self::ROOT);
        let mut steps = 0usize;
        while let Some(id) = next {
            steps += 1;
            if steps.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
                return None;
            }
            let node = self.node(id).copied()?;
            while path.len() >= node.depth as usize {
                let left = path.pop().and_then(|left| self.node(left)).copied();
                if let Some(slot) = left.and_then(|left| above.get_mut(left.function as usize)) {
                    *slot -= 1;
                }
            }
            if let Some(slot) = above.get_mut(node.function as usize) {
                if let Some(node) = self.nodes.get_mut(id as usize) {
                    node.outermost = *slot == 0;
                }
                *slot += 1;
            }
            path.push(id);
            next = self.after(id);
        }
        Some(())
    }
}

fn id_of(index: usize) -> NodeId {
    // There are at most as many as frames of distinct stacks, which would not fit into
    // memory.
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy)]
struct Raw {
    parent: u32,
    function: FunctionId,
    own: u64,
    total: u64,
}

/// Functions, each once.
#[derive(Default)]
struct Functions {
    all: Vec<Function>,
    entries: Vec<Option<EntryId>>,
    index: FxHashMap<Function, FunctionId>,
    tiers: FxHashMap<String, Arc<str>>,
}

impl Functions {
    fn id(&mut self, function: Function) -> FunctionId {
        let (all, entries) = (&mut self.all, &mut self.entries);
        *self.index.entry(function).or_insert_with_key(|function| {
            all.push(function.clone());
            entries.push(None);
            id_of(all.len() - 1)
        })
    }

    fn tier(&mut self, tier: &str) -> Arc<str> {
        if let Some(tier) = self.tiers.get(tier) {
            return Arc::clone(tier);
        }
        let new: Arc<str> = tier.into();
        self.tiers.insert(tier.to_owned(), Arc::clone(&new));
        new
    }
}

struct Builder<'a> {
    profile: &'a Profile,
    stacks: &'a Stacks,
    of: &'a CallsOf,
    raw: Vec<Raw>,
    index: FxHashMap<(NodeId, FunctionId), NodeId>,
    functions: Functions,
    /// The functions of each site that was met, the outermost first.
    of_site: Vec<Option<Box<[FunctionId]>>>,
    through: Option<FunctionId>,
    /// Of each stack the node under the root of that number, and whether what is asked
    /// for is in it.
    known: Vec<(u32, NodeId, bool)>,
    path: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, stacks: &'a Stacks, of: &'a CallsOf) -> Self {
        let mut functions = Functions::default();
        let through = of.through.clone().map(|through| functions.id(through));
        let root = Raw {
            parent: 0,
            function: FunctionId::MAX,
            own: 0,
            total: 0,
        };
        Builder {
            profile,
            stacks,
            of,
            raw: vec![root],
            index: FxHashMap::default(),
            functions,
            of_site: vec![None; profile.sites.len()],
            through,
            known: vec![(StackTree::NONE, 0, false); stacks.tree.nodes().len()],
            path: Vec::new(),
        }
    }

    fn put(&mut self, stop: &Stop) -> Option<()> {
        let mut counts = self.stacks.counts.clone();
        if self.of.by_thread {
            // What is known of stacks is known under one root.
            counts.sort_by_key(|count| count.thread);
        }
        for (at, count) in counts.iter().enumerate() {
            if at.is_multiple_of(LOOK_EVERY) && stop.is_stopped() {
                return None;
            }
            let (root, has) = if self.of.by_thread {
                self.thread(count.thread)
            } else {
                (CallTree::ROOT, false)
            };
            let (node, has) = self.node(root, has, count.node);
            if (has || self.through.is_none())
                && let Some(node) = self.raw.get_mut(node as usize)
            {
                node.own += count.samples;
                node.total += count.samples;
            }
        }
        Some(())
    }

    fn thread(&mut self, thread: u32) -> (NodeId, bool) {
        let told = self.profile.trace.threads.get(thread as usize);
        let name = told.map_or_else(String::new, |told| {
            format!("{} ({})", told.thread.name, told.thread.tid)
        });
        let function = self.functions.id(Function {
            name: name.into(),
            tier: "".into(),
            region: None,
            inlined: false,
            thread: Some(thread),
        });
        let node = self.child(CallTree::ROOT, function);
        (node, self.through == Some(function))
    }

    fn child(&mut self, parent: NodeId, function: FunctionId) -> NodeId {
        let raw = &mut self.raw;
        *self.index.entry((parent, function)).or_insert_with(|| {
            raw.push(Raw {
                parent,
                function,
                own: 0,
                total: 0,
            });
            id_of(raw.len() - 1)
        })
    }

    /// The node of a stack's innermost function under `root`, and whether what is asked
    /// for is in the stack.
    fn node(&mut self, root: NodeId, has: bool, stack: u32) -> (NodeId, bool) {
        self.path.clear();
        let (mut node, mut has) = (root, has);
        let mut next = stack;
        while let Some(one) = self.stacks.tree.nodes().get(next as usize) {
            if let Some(&(_, known, known_has)) =
                (self.known.get(next as usize)).filter(|(of, ..)| *of == root)
            {
                (node, has) = (known, known_has);
                break;
            }
            self.path.push(next);
            next = one.parent;
        }
        while let Some(stack) = self.path.pop() {
            let Some(&one) = self.stacks.tree.nodes().get(stack as usize) else {
                continue;
            };
            let functions = self.functions_of(one.site);
            for &function in &functions {
                node = self.child(node, function);
                has |= self.through == Some(function);
            }
            if let Some(slot) = self.of_site.get_mut(one.site as usize) {
                *slot = Some(functions);
            }
            if let Some(slot) = self.known.get_mut(stack as usize) {
                *slot = (root, node, has);
            }
        }
        (node, has)
    }

    /// The functions of a site; to be given back to `of_site`.
    fn functions_of(&mut self, site: SiteId) -> Box<[FunctionId]> {
        if let Some(known) = (self.of_site.get_mut(site as usize)).and_then(Option::take) {
            return known;
        }
        let mut ids = Vec::new();
        for frame in frames_of(self.profile, site, true) {
            let tier = self.functions.tier(&frame.entry.tier);
            ids.push(self.functions.id(Function {
                name: Arc::clone(&frame.place.name),
                tier,
                region: Some(frame.entry.region),
                inlined: frame.is_inlined(),
                thread: None,
            }));
        }
        let entry = self.profile.sites.get(site as usize).map(|site| site.entry);
        let innermost = ids
            .last()
            .and_then(|&id| self.functions.entries.get_mut(id as usize));
        if let Some(slot) = innermost {
            *slot = slot.or(entry);
        }
        ids.into_boxed_slice()
    }
}
