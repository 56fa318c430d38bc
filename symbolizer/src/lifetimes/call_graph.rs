//! The allocation call graph: which methods called which to allocate objects.

use super::estimate::{Estimate, Sums};
use super::event::Event;
use super::{Lifetimes, Measure};
use crate::ids::{AllocationSiteId, ClassId};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{BytecodePc, MethodKey};

/// Most steps of a search for paths.
const MAX_STEPS: usize = 1_000_000;

/// The part of the allocations that a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only objects of this class.
    pub class: Option<ClassId>,
    /// Only allocations by this method and its callees, from its outermost call on.
    pub from: Option<MethodKey>,
}

/// A method with its allocations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// The method.
    pub method: MethodKey,
    /// Objects that it allocates itself.
    pub own_objects: Estimate,
    /// Bytes of `own_objects`.
    pub own_bytes: Estimate,
    /// Objects that it and its callees allocate.
    pub objects: Estimate,
    /// Bytes of `objects`.
    pub bytes: Estimate,
}

/// A call, with the allocations during it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Calling method: an index in [`CallGraph::nodes`].
    pub caller: usize,
    /// The calling bytecode.
    pub pc: BytecodePc,
    /// Called method: such an index.
    pub callee: usize,
    /// Allocated objects.
    pub objects: Estimate,
    /// Allocated bytes.
    pub bytes: Estimate,
}

/// The allocations of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// The site.
    pub site: AllocationSiteId,
    /// Number of the site's innermost frames that the graph shows; at least 1.
    pub frames: usize,
    /// Allocated objects.
    pub objects: Estimate,
    /// Allocated bytes.
    pub bytes: Estimate,
}

/// Methods and calls. A recursive method counts an object once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallGraph {
    /// Methods, by key.
    pub nodes: Vec<Node>,
    /// Calls, by caller, bytecode and callee.
    pub edges: Vec<Edge>,
    /// Sites with frames, by number.
    pub chains: Vec<Chain>,
    /// All selected objects, also those without a known site.
    pub objects: Estimate,
    /// Bytes of `objects`.
    pub bytes: Estimate,
    /// Selected objects without a known site.
    pub objects_without_site: Estimate,
}

/// Paths between two methods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Paths without a repeated method, each as indices in [`CallGraph::edges`].
    pub paths: Vec<Vec<usize>>,
    /// Whether these are all.
    pub is_complete: bool,
}

impl CallGraph {
    /// The graph of the sites' frames, by exact counts where they exist.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, selection: Selection) -> Self {
        let mut by_site: FxHashMap<Option<AllocationSiteId>, Sums> = FxHashMap::default();
        let is_selected = |event: &Event| selection.class.is_none_or(|only| only == event.class);
        for event in lifetimes.events(Measure::Scavenges).filter(is_selected) {
            event.add_to(by_site.entry(event.site).or_default());
        }
        let mut all = Sums::default();
        let mut without_site = Sums::default();
        // Own and all allocations.
        let mut nodes: FxHashMap<MethodKey, [Sums; 2]> = FxHashMap::default();
        let mut edges: FxHashMap<(MethodKey, BytecodePc, MethodKey), Sums> = FxHashMap::default();
        let mut chains = Vec::new();
        let mut by_site: Vec<_> = by_site.into_iter().collect();
        by_site.sort_by_key(|(site, _)| *site);
        for (site, sums) in by_site {
            let frames = site.map_or([].as_slice(), |id| lifetimes.sites[id].frames.as_slice());
            let frames = match selection.from {
                None => frames,
                Some(from) => match frames.iter().rposition(|(method, _)| *method == from) {
                    Some(outermost) => &frames[..=outermost],
                    None => continue,
                },
            };
            all.add_all(&sums);
            let Some((allocator, _)) = frames.first() else {
                without_site.add_all(&sums);
                continue;
            };
            chains.extend(site.map(|site| Chain {
                site,
                frames: frames.len(),
                objects: sums.x(),
                bytes: sums.y(),
            }));
            nodes.entry(*allocator).or_default()[0].add_all(&sums);
            let methods: FxHashSet<_> = frames.iter().map(|(method, _)| *method).collect();
            for method in methods {
                nodes.entry(method).or_default()[1].add_all(&sums);
            }
            let calls = frames
                .windows(2)
                .map(|pair| (pair[1].0, pair[1].1, pair[0].0));
            for call in calls.collect::<FxHashSet<_>>() {
                edges.entry(call).or_default().add_all(&sums);
            }
        }
        let nodes = nodes.into_iter().map(|(method, [own, all])| Node {
            method,
            own_objects: own.x(),
            own_bytes: own.y(),
            objects: all.x(),
            bytes: all.y(),
        });
        let mut nodes: Vec<Node> = nodes.collect();
        nodes.sort_by_key(|node| node.method);
        let place = |method| nodes.partition_point(|node| node.method < method);
        let edges = edges.into_iter().map(|((caller, pc, callee), sums)| Edge {
            caller: place(caller),
            pc,
            callee: place(callee),
            objects: sums.x(),
            bytes: sums.y(),
        });
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_by_key(|edge| (edge.caller, edge.pc, edge.callee));
        CallGraph {
            nodes,
            edges,
            chains,
            objects: all.x(),
            bytes: all.y(),
            objects_without_site: without_site.x(),
        }
    }

    /// The index of a method in [`CallGraph::nodes`].
    #[must_use]
    pub fn node(&self, method: MethodKey) -> Option<usize> {
        let found = self.nodes.binary_search_by_key(&method, |node| node.method);
        found.ok()
    }

    /// The calls of a method.
    fn calls(&self, caller: usize) -> std::ops::Range<usize> {
        let from = self.edges.partition_point(|edge| edge.caller < caller);
        from..self.edges.partition_point(|edge| edge.caller <= caller)
    }

    /// At most `most` paths between two methods that repeat no method. Each step is a recorded call;
    /// the program may never have executed the whole path.
    #[must_use]
    pub fn paths(&self, from: MethodKey, to: MethodKey, most: usize) -> Paths {
        let mut found = Paths::default();
        let (Some(from), Some(to)) = (self.node(from), self.node(to)) else {
            found.is_complete = true;
            return found;
        };
        let leads_to = self.leads_to(to);
        let mut is_on_path = vec![false; self.nodes.len()];
        is_on_path[from] = true;
        let mut path: Vec<usize> = Vec::new();
        // Calls left to follow, for each method on the path.
        let mut left = vec![self.calls(from)];
        for _ in 0..MAX_STEPS {
            let Some(calls) = left.last_mut() else {
                found.is_complete = true;
                break;
            };
            let Some(index) = calls.next() else {
                left.pop();
                if let Some(edge) = path.pop() {
                    is_on_path[self.edges[edge].callee] = false;
                }
                continue;
            };
            let callee = self.edges[index].callee;
            if is_on_path[callee] || !leads_to[callee] {
                continue;
            }
            if callee == to {
                if found.paths.len() == most {
                    break;
                }
                found.paths.push([path.as_slice(), &[index]].concat());
                continue;
            }
            is_on_path[callee] = true;
            path.push(index);
            left.push(self.calls(callee));
        }
        found
    }

    /// Whether paths lead from each method to a method.
    fn leads_to(&self, to: usize) -> Vec<bool> {
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            callers[edge.callee].push(edge.caller);
        }
        let mut leads = vec![false; self.nodes.len()];
        leads[to] = true;
        let mut new = vec![to];
        while let Some(node) = new.pop() {
            for &caller in &callers[node] {
                if !leads[caller] {
                    leads[caller] = true;
                    new.push(caller);
                }
            }
        }
        leads
    }
}
