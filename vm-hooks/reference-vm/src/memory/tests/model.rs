//! Model of an object graph, including each object's expected lifetime.

use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Slots: number of the node, then references.
    Plain,
    /// Slots: number, a strong reference, weak references.
    Weak,
    /// Slots: key, value, number.
    Ephemeron,
    /// An ephemeron whose key died: all is strong.
    Mourned,
    /// Bytes that begin with the number.
    Bytes,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: Kind,
    pub refs: Vec<Option<usize>>,
    pub hash: Option<u32>,
}

/// Nodes stay forever, so the model also knows dead nodes.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub nodes: Vec<Node>,
    pub roots: Vec<usize>,
    pub permanent: Vec<usize>,
    pub queue: Vec<usize>,
}

/// Expected result of a precise collection.
#[derive(Debug)]
pub struct Verdict {
    /// What lives before any ephemeron mourns.
    pub living: BTreeSet<usize>,
    /// The ephemerons that mourn.
    pub mourners: BTreeSet<usize>,
    /// What lives at the end.
    pub kept: BTreeSet<usize>,
}

impl Model {
    /// Indices of references that keep nothing alive.
    pub fn weak_refs(&self, node: usize) -> std::ops::Range<usize> {
        match self.nodes[node].kind {
            Kind::Weak => 1..self.nodes[node].refs.len(),
            _ => 0..0,
        }
    }

    /// All reachable nodes, treating only the ephemerons in `strong` as strong.
    pub fn reach(&self, strong: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut living = BTreeSet::new();
        let starts = [&self.roots, &self.permanent, &self.queue];
        living.extend(starts.into_iter().flatten().copied());
        loop {
            let mut next = living.clone();
            for &node in &living {
                let Node { kind, refs, .. } = &self.nodes[node];
                let count = match kind {
                    Kind::Weak => 1,
                    Kind::Ephemeron if !strong.contains(&node) => {
                        if refs[0].is_none_or(|key| living.contains(&key)) {
                            2
                        } else {
                            0
                        }
                    }
                    _ => refs.len(),
                };
                next.extend(refs[..count].iter().flatten());
            }
            if next.len() == living.len() {
                return living;
            }
            living = next;
        }
    }

    pub fn judge(&self) -> Verdict {
        let mut mourners = BTreeSet::new();
        let living = self.reach(&mourners);
        let mut kept = living.clone();
        loop {
            let before = mourners.len();
            mourners.extend(kept.iter().copied().filter(|&node| {
                let Node { kind, refs, .. } = &self.nodes[node];
                *kind == Kind::Ephemeron && refs[0].is_some_and(|key| !kept.contains(&key))
            }));
            if mourners.len() == before {
                return Verdict {
                    living,
                    mourners,
                    kept,
                };
            }
            kept = self.reach(&mourners);
        }
    }
}
