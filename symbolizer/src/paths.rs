//! Paths that share their beginnings: chains of callers, and stacks.

use crate::ids::{Id, IndexVec};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A path: its parent's path plus one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNode<I, L> {
    /// `None` for paths with a single label.
    pub parent: Option<I>,
    /// The last label.
    pub label: L,
}

/// Distinct paths, including every prefix. Parents precede children.
#[derive(Clone, Debug)]
pub struct PathTree<I, L> {
    nodes: IndexVec<I, PathNode<I, L>>,
    /// By number of the parent and label.
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
    /// Finds or adds the path that continues `parent` with `label`.
    pub(crate) fn put(&mut self, parent: Option<I>, label: L) -> I {
        let key = (parent.map_or(u32::MAX, Id::number), label);
        let nodes = &mut self.nodes;
        *(self.index.entry(key)).or_insert_with(|| nodes.push(PathNode { parent, label }))
    }

    /// Keeps some paths with new labels; `keep` includes every prefix. Returns the new ids.
    pub(crate) fn retain(
        &mut self,
        keep: &IndexVec<I, bool>,
        label: impl Fn(L) -> L,
    ) -> IndexVec<I, Option<I>> {
        let old = std::mem::take(self).nodes;
        let mut ids = old.with_each(None);
        for (id, node) in old.enumerated().filter(|(id, _)| keep[*id]) {
            let parent = node
                .parent
                .map(|parent| ids[parent].expect("prefixes are kept"));
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

    /// The labels of a path, last label first.
    pub fn path(&self, path: impl Into<Option<I>>) -> impl Iterator<Item = L> + '_ {
        let node = |id: &I| Some(self.nodes[*id]);
        let node_of = move |id: Option<I>| id.as_ref().and_then(node);
        let nodes = std::iter::successors(node_of(path.into()), move |node| node_of(node.parent));
        nodes.map(|node| node.label)
    }
}

/// Values computed from paths: each value once, on demand, from the parent's value.
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

    /// The value of a path. `make` computes it from the parent's value; `first` is the value before
    /// the first label.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ChainId, PlaceId};

    #[test]
    fn prefixes_are_shared_and_computed_once() {
        let place = PlaceId::of;
        let mut tree: PathTree<ChainId, PlaceId> = PathTree::default();
        let mut put = |labels: &[usize]| {
            let labels = labels.iter().map(|&label| place(label));
            labels.fold(None, |parent, label| Some(tree.put(parent, label)))
        };
        let (long, other) = (put(&[1, 2, 3]), put(&[1, 2, 4]));
        assert_eq!(put(&[1, 2, 3]), long);
        assert_eq!(tree.len(), 4);
        let labels: Vec<PlaceId> = tree.path(other).collect();
        assert_eq!(labels, [4, 2, 1].map(place));

        let (mut made, mut sums) = (0, MadeOfPaths::new(&tree));
        for (path, wanted) in [(long, 6), (other, 7), (long, 6), (None, 0)] {
            let sum = sums.get(&tree, path, 0, |sum, label| {
                made += 1;
                sum + label.index()
            });
            assert_eq!(sum, wanted);
        }
        assert_eq!(made, 4);

        let keep = tree.nodes().map(|id, _| Some(id) != other);
        let ids = tree.retain(&keep, |label| place(label.index() * 10));
        assert_eq!(ids[other.unwrap()], None);
        let labels: Vec<PlaceId> = tree.path(ids[long.unwrap()]).collect();
        assert_eq!(labels, [30, 20, 10].map(place));
    }
}
