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
    /// Text, valid as a field of a line.
    pub text: String,
    /// `None` for processes and threads.
    pub region: Option<Region>,
    pub inlined: bool,
}

/// Style of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// With marks alone.
    Marks,
    /// With marks, and words for marks that a picture does not show.
    Words,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    label: u32,
    /// Samples with this innermost frame.
    own: u64,
}

#[derive(Debug, Default)]
pub(super) struct LabelTree {
    nodes: Vec<Node>,
    /// Distinct labels.
    pub labels: Vec<Label>,
}

impl LabelTree {
    /// Tree of all exported samples.
    pub(super) fn of(export: &Export<'_>, style: Style) -> Self {
        let (stacks, counts) =
            count_stacks(export.profile, export.filter, &Stop::new()).unwrap_or_default();
        let mut builder = Builder {
            export,
            style,
            stacks: &stacks,
            tree: LabelTree::default(),
            label_index: FxHashMap::default(),
            node_index: FxHashMap::default(),
            site_labels: export.profile.sites.with_each(None),
            known: FxHashMap::default(),
            path: Vec::new(),
        };
        builder.build(&counts);
        builder.tree
    }

    /// Samples of each node with its callees.
    fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        // Children have higher indices than their parents.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.parent != NONE {
                totals[node.parent as usize] += totals[index];
            }
        }
        totals
    }

    /// Calls `line` with every stack and its count, sorted by name. Nodes with fewer than `least`
    /// samples, callees included, get no frame: their samples stay with the caller.
    pub(super) fn each_line<E>(
        &self,
        least: u64,
        mut line: impl FnMut(&str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let totals = self.totals();
        let total_of = |node: u32| totals[node as usize];
        let order = self.order();
        let mut path = String::new();
        // Open nodes with the length of their parents' paths.
        let mut open: Vec<(u32, usize)> = Vec::new();
        let push = |open: &mut Vec<(u32, usize)>, parent: u32, length: usize| -> u64 {
            let mut kept = 0;
            let children = order.children(parent);
            // Last pushed, first visited.
            for &child in children.iter().rev() {
                if total_of(child) >= least {
                    open.push((child, length));
                    kept += total_of(child);
                }
            }
            kept
        };
        push(&mut open, NONE, 0);
        while let Some((index, length)) = open.pop() {
            let label = self.nodes[index as usize].label;
            path.truncate(length);
            if length > 0 {
                path.push(';');
            }
            path.push_str(&self.labels[label as usize].text);
            let kept = push(&mut open, index, path.len());
            let own = total_of(index).saturating_sub(kept);
            if own > 0 {
                line(&path, own)?;
            }
        }
        Ok(())
    }

    fn order(&self) -> Order {
        let mut by_text: Vec<usize> = (0..self.labels.len()).collect();
        by_text.sort_unstable_by_key(|&label| &self.labels[label].text);
        let mut rank = vec![0usize; self.labels.len()];
        for (place, label) in by_text.into_iter().enumerate() {
            rank[label] = place;
        }
        let key = |&index: &u32| {
            let node = &self.nodes[index as usize];
            (node.parent, rank[node.label as usize])
        };
        let count = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let mut nodes: Vec<u32> = (0..count).collect();
        nodes.sort_unstable_by_key(key);
        let parents = nodes.iter().map(|&index| self.nodes[index as usize].parent);
        let parents = parents.collect();
        Order { nodes, parents }
    }
}

/// Nodes by parent, then name.
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
    style: Style,
    stacks: &'a StackTree,
    tree: LabelTree,
    label_index: FxHashMap<String, u32>,
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
        let process = self.label(&who.process_name, "", None, false);
        let root = self.child(NONE, process);
        if !self.export.by_thread {
            return root;
        }
        // As async-profiler writes threads.
        let thread = format!("[{} tid={}]", who.name, who.tid);
        let thread = self.label(&thread, "", None, false);
        self.child(root, thread)
    }

    fn label(&mut self, name: &str, mark: &str, region: Option<Region>, inlined: bool) -> u32 {
        let text = format!("{}{mark}", field(name, LONGEST_NAME));
        let labels = &mut self.tree.labels;
        *self.label_index.entry(text).or_insert_with_key(|text| {
            labels.push(Label {
                text: text.clone(),
                region,
                inlined,
            });
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
        let mut name = frame.name();
        if self.style == Style::Words && frame.is_inlined() {
            name.push_str(" (inlined)");
        }
        let region = Some(frame.entry.region);
        self.label(
            &name,
            mark(frame.entry.region, frame.is_inlined()),
            region,
            frame.is_inlined(),
        )
    }
}
