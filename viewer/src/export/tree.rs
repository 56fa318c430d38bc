//! Tree of stacks for collapsed stacks and flame graphs. Frames with equal labels are one node;
//! children are sorted by name, so that equal recordings yield equal files.

use super::frames::{Frame, FrameText, field, frames_of, mark};
use super::{Export, who};
use rustc_hash::FxHashMap;
use vmscope_symbolizer::stacks::{StackCount, StackTree, count_stacks};
use vmscope_symbolizer::{IndexVec, Region, SiteId, StackId, Stop};

/// Maximum length of a name; longer names are shortened.
pub(crate) const LONGEST_NAME: usize = 1000;

const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(super) struct Label {
    /// Name, valid as a field of a line.
    pub name: String,
    /// `None` for processes and threads.
    pub region: Option<Region>,
    pub inlined: bool,
}

impl Label {
    /// Mark of collapsed stacks.
    fn mark(&self) -> &'static str {
        self.region.map_or("", |region| mark(region, self.inlined))
    }
}

/// A frame of a view. Views list frames depth first: callers before their callees, or the reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// Number of frames below.
    pub depth: usize,
    /// Index in [`LabelTree::labels`].
    pub label: u32,
    /// Samples of the frame and of all frames above it.
    pub total: u64,
    /// Samples with this innermost frame.
    pub own: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    label: u32,
    /// Samples with this innermost frame.
    own: u64,
    /// The same with callees.
    total: u64,
}

#[derive(Debug, Default)]
pub(super) struct LabelTree {
    nodes: Vec<Node>,
    /// Distinct labels.
    pub labels: Vec<Label>,
    /// Places of the labels in their order by name.
    ranks: Vec<usize>,
    order: Order,
    /// Whether a thread stands between process and first function.
    by_thread: bool,
}

impl LabelTree {
    /// Tree of all exported samples.
    pub(super) fn of(export: &Export<'_>) -> Self {
        let (stacks, counts) =
            count_stacks(export.profile, export.filter, &Stop::new()).unwrap_or_default();
        let mut builder = Builder {
            export,
            stacks: &stacks,
            tree: LabelTree {
                by_thread: export.by_thread,
                ..LabelTree::default()
            },
            label_index: FxHashMap::default(),
            node_index: FxHashMap::default(),
            site_labels: export.profile.sites.with_each(None),
            known: FxHashMap::default(),
            path: Vec::new(),
        };
        builder.build(&counts);
        let mut tree = builder.tree;
        tree.sum();
        tree.sort();
        tree
    }

    fn sum(&mut self) {
        // Children have higher indices than their parents.
        for index in (0..self.nodes.len()).rev() {
            let Node { parent, own, .. } = self.nodes[index];
            self.nodes[index].total += own;
            let total = self.nodes[index].total;
            if let Some(parent) = self.nodes.get_mut(parent as usize) {
                parent.total += total;
            }
        }
    }

    /// Calls `line` with every stack and its count, sorted by name.
    pub(super) fn each_line<E>(
        &self,
        mut line: impl FnMut(&str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut path = String::new();
        // Lengths of the path's beginnings, by depth.
        let mut lengths = Vec::new();
        self.each_frame(1, |frame| {
            lengths.truncate(frame.depth);
            path.truncate(lengths.last().copied().unwrap_or(0));
            if frame.depth > 0 {
                path.push(';');
            }
            let label = &self.labels[frame.label as usize];
            path.push_str(&label.name);
            path.push_str(label.mark());
            lengths.push(path.len());
            match frame.own {
                0 => Ok(()),
                own => line(&path, own),
            }
        })
    }

    /// Calls `frame` with every frame of at least `least` samples, siblings sorted by name.
    pub(super) fn each_frame<E>(
        &self,
        least: u64,
        mut frame: impl FnMut(Shown) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open: Vec<(u32, usize)> = Vec::new();
        let push = |open: &mut Vec<(u32, usize)>, parent: u32, depth: usize| {
            // Last pushed, first visited.
            let children = self.order.children(parent).iter().rev();
            let wide = children.filter(|&&child| self.nodes[child as usize].total >= least);
            open.extend(wide.map(|&child| (child, depth)));
        };
        push(&mut open, NONE, 0);
        while let Some((index, depth)) = open.pop() {
            let node = self.nodes[index as usize];
            frame(Shown {
                depth,
                label: node.label,
                total: node.total,
                own: node.own,
            })?;
            push(&mut open, index, depth + 1);
        }
        Ok(())
    }

    /// The same of the reversed stacks, innermost functions first, siblings by samples. Threads that
    /// are roots stay roots.
    pub(super) fn each_frame_inverted<E>(
        &self,
        least: u64,
        mut frame: impl FnMut(Shown) -> Result<(), E>,
    ) -> Result<(), E> {
        let roots = if self.by_thread { 2 } else { 0 };
        let mut stacks = self.reversed_stacks();
        // Ranges of `stacks` with equal labels up to a depth.
        let mut open = vec![(0..stacks.len(), None)];
        while let Some((range, shown)) = open.pop() {
            let depth = match shown {
                Some(shown) => {
                    frame(shown)?;
                    for stack in &mut stacks[range.clone()] {
                        stack.next = self.after(stack, shown.depth);
                    }
                    shown.depth + 1
                }
                None => 0,
            };
            let label = |stack: &Reversed| {
                let node = self.nodes.get(stack.next as usize);
                node.map(|node| node.label)
            };
            let rank = |stack: &Reversed| label(stack).map(|label| self.ranks[label as usize]);
            stacks[range.clone()].sort_unstable_by_key(rank);
            let mut end = range.start;
            let mut on_it = Vec::new();
            for equal in stacks[range].chunk_by(|a, b| label(a) == label(b)) {
                let start = end;
                end += equal.len();
                let total = equal.iter().map(|stack| stack.samples).sum();
                let label = label(&equal[0]).filter(|_| total >= least);
                let own = if depth == roots { total } else { 0 };
                on_it.extend(label.map(|label| {
                    let shown = Shown {
                        depth,
                        label,
                        total,
                        own,
                    };
                    (start..end, Some(shown))
                }));
            }
            // Last pushed, first visited; equal ones by name.
            on_it.reverse();
            on_it.sort_by_key(|(_, shown)| shown.map(|shown| shown.total));
            open.append(&mut on_it);
        }
        Ok(())
    }

    fn reversed_stacks(&self) -> Vec<Reversed> {
        // Children have higher indices than their parents.
        let mut threads = vec![NONE; if self.by_thread { self.nodes.len() } else { 0 }];
        for index in 0..threads.len() {
            let parent = self.nodes[index].parent;
            let is_thread = parent != NONE && self.nodes[parent as usize].parent == NONE;
            threads[index] = match is_thread {
                true => u32::try_from(index).unwrap_or(NONE),
                false => threads.get(parent as usize).copied().unwrap_or(NONE),
            };
        }
        let sampled = (0..).zip(&self.nodes).filter(|(_, node)| node.own > 0);
        let stacks = sampled.map(|(innermost, node)| {
            let thread = threads.get(innermost as usize).copied().unwrap_or(NONE);
            Reversed {
                innermost,
                thread,
                next: match self.nodes.get(thread as usize) {
                    Some(thread) => thread.parent,
                    None => innermost,
                },
                samples: node.own,
            }
        });
        stacks.collect()
    }

    /// Node after the one at `depth` of a reversed stack.
    fn after(&self, stack: &Reversed, depth: usize) -> u32 {
        let next = match depth {
            0 if self.by_thread => return stack.thread,
            1 if self.by_thread => stack.innermost,
            _ => self.nodes[stack.next as usize].parent,
        };
        if next == stack.thread { NONE } else { next }
    }

    fn sort(&mut self) {
        let mut by_name: Vec<usize> = (0..self.labels.len()).collect();
        by_name.sort_unstable_by_key(|&label| {
            let label = &self.labels[label];
            (&label.name, label.mark())
        });
        self.ranks = vec![0; self.labels.len()];
        for (rank, label) in by_name.into_iter().enumerate() {
            self.ranks[label] = rank;
        }
        let count = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let mut nodes: Vec<u32> = (0..count).collect();
        nodes.sort_unstable_by_key(|&index| {
            let node = &self.nodes[index as usize];
            (node.parent, self.ranks[node.label as usize])
        });
        let parents = nodes.iter().map(|&index| self.nodes[index as usize].parent);
        let parents = parents.collect();
        self.order = Order { nodes, parents };
    }
}

/// A stack, read from its innermost frame.
#[derive(Clone, Copy, Debug)]
struct Reversed {
    innermost: u32,
    /// `NONE` unless threads are roots.
    thread: u32,
    /// Node of the next frame; `NONE` after the last.
    next: u32,
    samples: u64,
}

/// Nodes by parent, then name.
#[derive(Debug, Default)]
struct Order {
    nodes: Vec<u32>,
    /// Parent of each node, ascending.
    parents: Vec<u32>,
}

impl Order {
    fn children(&self, parent: u32) -> &[u32] {
        let from = self.parents.partition_point(|&other| other < parent);
        let to = self.parents.partition_point(|&other| other <= parent);
        &self.nodes[from..to]
    }
}

struct Builder<'a, 'e> {
    export: &'a Export<'e>,
    stacks: &'a StackTree,
    tree: LabelTree,
    label_index: FxHashMap<(String, &'static str), u32>,
    node_index: FxHashMap<(u32, u32), u32>,
    /// Labels of each visited site, outermost first.
    site_labels: IndexVec<SiteId, Option<Box<[u32]>>>,
    /// Node of each stack under each root.
    known: FxHashMap<(u32, StackId), u32>,
    path: Vec<StackId>,
}

impl Builder<'_, '_> {
    fn build(&mut self, counts: &[StackCount]) {
        let threads = who::threads(&self.export.profile.trace);
        let mut roots = threads.with_each(None);
        for count in counts {
            let root = &mut roots[count.thread];
            let root = *root.get_or_insert_with(|| self.root(&threads[count.thread]));
            let node = self.node(root, count.node);
            self.tree.nodes[node as usize].own += count.samples;
        }
    }

    fn root(&mut self, who: &who::Who) -> u32 {
        let process = self.label(&who.process_name, None, false);
        let root = self.child(NONE, process);
        if !self.export.by_thread {
            return root;
        }
        // As async-profiler writes threads.
        let thread = format!("[{} tid={}]", who.name, who.tid);
        let thread = self.label(&thread, None, false);
        self.child(root, thread)
    }

    fn label(&mut self, name: &str, region: Option<Region>, inlined: bool) -> u32 {
        let label = Label {
            name: field(name, LONGEST_NAME).into_owned(),
            region,
            inlined,
        };
        let labels = &mut self.tree.labels;
        let key = (label.name.clone(), label.mark());
        *self.label_index.entry(key).or_insert_with(|| {
            labels.push(label);
            // Bounded by memory: each has its own text.
            u32::try_from(labels.len() - 1).unwrap_or(NONE)
        })
    }

    fn child(&mut self, parent: u32, label: u32) -> u32 {
        let nodes = &mut self.tree.nodes;
        *self.node_index.entry((parent, label)).or_insert_with(|| {
            nodes.push(Node {
                parent,
                label,
                own: 0,
                total: 0,
            });
            u32::try_from(nodes.len() - 1).unwrap_or(NONE)
        })
    }

    fn node(&mut self, root: u32, stack: StackId) -> u32 {
        let mut node = root;
        let mut next = Some(stack);
        while let Some(id) = next {
            if let Some(&known) = self.known.get(&(root, id)) {
                node = known;
                break;
            }
            self.path.push(id);
            next = self.stacks.nodes()[id].parent;
        }
        while let Some(id) = self.path.pop() {
            node = self.under(node, self.stacks.nodes()[id].label);
            self.known.insert((root, id), node);
        }
        node
    }

    /// Node of a site's innermost frame under `parent`.
    fn under(&mut self, parent: u32, site: SiteId) -> u32 {
        let labels = self.site_labels[site].take().unwrap_or_else(|| {
            let export = self.export;
            let frames = frames_of(export.profile, site, export.inlined);
            frames.map(|frame| self.frame_label(&frame)).collect()
        });
        let mut node = parent;
        for &label in &labels {
            node = self.child(node, label);
        }
        self.site_labels[site] = Some(labels);
        node
    }

    fn frame_label(&mut self, frame: &Frame<'_>) -> u32 {
        let region = Some(frame.entry.region);
        self.label(&frame.name(self.export.profile), region, frame.is_inlined())
    }
}
