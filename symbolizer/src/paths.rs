//! Paths that share their beginnings: chains of callers, and stacks.

use crate::ids::{Id, IndexVec};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A path: a label after the path of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNode<I, L> {
    /// `None` for a path of one label.
    pub parent: Option<I>,
    /// The last label.
    pub label: L,
}

/// Distinct paths with all of their beginnings. Parents precede children.
#[derive(Clone, Debug)]
pub struct PathTree<I, L> {
    nodes: IndexVec<I, PathNode<I, L>>,
    /// By parent's number and label.
    index: FxHashMap<(u32, L), I>,
}

impl<I, L> Default for PathTree<I, L> {
    fn default() -> Self {
        PathTree {
            nodes: IndexVec::default(),
            index: FxHashMap::default(),
        }
    }
}

impl<I: Id, L: Copy + Eq + Hash> PathTree<I, L> {
    /// The path of a label after a parent, found or made.
    pub(crate) fn put(&mut self, parent: Option<I>, label: L) -> I {
        let key = (parent.map_or(u32::MAX, Id::number), label);
        let nodes = &mut self.nodes;
        *(self.index.entry(key)).or_insert_with(|| nodes.push(PathNode { parent, label }))
    }

    /// Keeps some paths, and all of their beginnings, with other labels. Returns their new ids.
    pub(crate) fn retain(
        &mut self,
        keep: &IndexVec<I, bool>,
        label: impl Fn(L) -> L,
    ) -> IndexVec<I, Option<I>> {
        let old = std::mem::take(self).nodes;
        let mut ids = old.with_each(None);
        for (id, node) in old.enumerated().filter(|(id, _)| keep[*id]) {
            let parent = node.parent.and_then(|parent| ids[parent]);
            ids[id] = Some(self.put(parent, label(node.label)));
        }
        ids
    }

    /// All paths.
    #[must_use]
    pub fn nodes(&self) -> &IndexVec<I, PathNode<I, L>> {
        &self.nodes
    }

    /// The number of paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The labels of a path, from the last to the first.
    pub fn path(&self, path: impl Into<Option<I>>) -> impl Iterator<Item = L> + '_ {
        let node = |id: &I| Some(self.nodes[*id]);
        let node_of = move |id: Option<I>| id.as_ref().and_then(node);
        let nodes = std::iter::successors(node_of(path.into()), move |node| node_of(node.parent));
        nodes.map(|node| node.label)
    }
}

/// What is made of paths: of each one once, on demand, from what was made of its parent.
#[derive(Debug)]
pub(crate) struct MadeOfPaths<I, T> {
    known: IndexVec<I, Option<T>>,
    /// Reused memory.
    waiting: Vec<I>,
}

impl<I: Id, T: Copy> MadeOfPaths<I, T> {
    pub fn new<L: Copy + Eq + Hash>(tree: &PathTree<I, L>) -> Self {
        MadeOfPaths {
            known: tree.nodes().with_each(None),
            waiting: Vec::new(),
        }
    }

    /// What `make` makes of a path; `first` stands for no path.
    pub fn get<L: Copy>(
        &mut self,
        tree: &PathTree<I, L>,
        path: Option<I>,
        first: T,
        mut make: impl FnMut(T, L) -> T,
    ) -> T {
        let (mut made, mut next) = (first, path);
        while let Some(id) = next {
            if let Some(known) = self.known[id] {
                made = known;
                break;
            }
            self.waiting.push(id);
            next = tree.nodes[id].parent;
        }
        while let Some(id) = self.waiting.pop() {
            made = make(made, tree.nodes[id].label);
            self.known[id] = Some(made);
        }
        made
    }
}
