//! Caller chains, shared.

use crate::ids::PlaceId;
use rustc_hash::FxHashMap;

/// A caller chain as a path in a tree that all chains share.
#[derive(Clone, Copy, Debug)]
pub struct ChainNode {
    /// The caller's caller; [`ChainTree::NONE`] at the outermost.
    pub parent: u32,
    /// The call's place, not the return address.
    pub place: PlaceId,
}

/// The tree of all caller chains.
#[derive(Clone, Debug, Default)]
pub struct ChainTree {
    nodes: Vec<ChainNode>,
    index: FxHashMap<(u32, PlaceId), u32>,
}

impl ChainTree {
    /// No caller.
    pub const NONE: u32 = u32::MAX;

    pub(crate) fn child(&mut self, parent: u32, place: PlaceId) -> u32 {
        if let Some(&node) = self.index.get(&(parent, place)) {
            return node;
        }
        let Ok(node) = u32::try_from(self.nodes.len()) else {
            return parent;
        };
        self.nodes.push(ChainNode { parent, place });
        self.index.insert((parent, place), node);
        node
    }

    /// Keeps the nodes of `keep`, which includes their parents, and renumbers their places.
    /// Returns the nodes' new indices.
    pub(crate) fn retain(&mut self, keep: &[bool], place: impl Fn(PlaceId) -> PlaceId) -> Vec<u32> {
        let mut numbers = vec![Self::NONE; self.nodes.len()];
        let old = std::mem::take(self);
        for (at, node) in old.nodes.into_iter().enumerate() {
            if keep.get(at) == Some(&true) {
                let parent = numbers.get(node.parent as usize).copied();
                let number = self.child(parent.unwrap_or(Self::NONE), place(node.place));
                if let Some(slot) = numbers.get_mut(at) {
                    *slot = number;
                }
            }
        }
        numbers
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node; `None` for [`ChainTree::NONE`] and unknown indices.
    #[must_use]
    pub fn node(&self, node: u32) -> Option<ChainNode> {
        self.nodes.get(node as usize).copied()
    }

    /// The places from the direct caller outwards.
    pub fn callers(&self, node: u32) -> impl Iterator<Item = PlaceId> + '_ {
        let mut next = node;
        std::iter::from_fn(move || {
            let node = self.nodes.get(next as usize)?;
            // A parent is older than its child, so the walk ends.
            next = node.parent;
            Some(node.place)
        })
    }
}
