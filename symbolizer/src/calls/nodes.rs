//! Nodes of a call tree, made on demand.

use super::index::StackIndex;
use super::sums::Sums;
use super::{CallNode, CallTree, Function, FunctionId, NodeId, id_of};
use crate::ids::{ContextId, Id, IndexedThread};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{PoisonError, RwLockReadGuard};

/// Nodes below this fraction of all samples (1/n) are made on demand only.
const SHOWN: u64 = 1024;

/// The nodes made so far.
#[derive(Debug, Default)]
pub(super) struct Nodes(Vec<Node>);

#[derive(Clone, Copy, Debug)]
struct Node {
    shown: CallNode,
    /// `None` for all threads.
    thread: Option<IndexedThread>,
    context: ContextId,
    /// Range of the children; starts at the root's number if not made yet.
    children: (NodeId, NodeId),
}

/// A child to add.
struct Child {
    function: Option<FunctionId>,
    outermost: bool,
    thread: Option<IndexedThread>,
    context: ContextId,
    samples: (u64, u64),
}

impl Nodes {
    /// The root and all nodes large enough for a screen.
    pub fn of(index: &StackIndex, sums: &Sums) -> Self {
        let shown = CallNode {
            parent: CallTree::ROOT,
            function: None,
            total: sums.all(),
            own: sums.of_node(index, None, StackIndex::root()).0,
            depth: 0,
            outermost: true,
        };
        let mut nodes = Nodes(vec![Node {
            shown,
            thread: None,
            context: StackIndex::root(),
            children: (CallTree::ROOT, CallTree::ROOT),
        }]);
        let least = (sums.all() / SHOWN).max(1);
        let mut at = 0;
        while let Some(node) = nodes.0.get(at) {
            if node.shown.total >= least {
                nodes.open(index, sums, id_of(at));
            }
            at += 1;
        }
        nodes
    }

    fn get(&self, node: NodeId) -> Option<&Node> {
        self.0.get(node as usize)
    }

    /// The children of a node; `None` if not made yet.
    fn children(&self, node: NodeId) -> Option<Range<NodeId>> {
        let (from, end) = self.get(node).map_or((1, 1), |node| node.children);
        (from != CallTree::ROOT).then_some(from..end)
    }

    /// Makes the children of a node.
    fn open(&mut self, index: &StackIndex, sums: &Sums, at: NodeId) -> Range<NodeId> {
        if let Some(children) = self.children(at) {
            return children;
        }
        let Some(&node) = self.get(at) else {
            return 0..0;
        };
        let mut children: Vec<Child> = Vec::new();
        if sums.by_thread() && at == CallTree::ROOT {
            for (thread, one) in index.threads.enumerated() {
                let (_, total) = sums.of_node(index, Some(thread), StackIndex::root());
                children.push(Child {
                    function: Some(one.function),
                    outermost: true,
                    thread: Some(thread),
                    context: StackIndex::root(),
                    samples: (0, total),
                });
            }
            children.retain(|child| child.samples.1 > 0);
        } else {
            sums.each_child(index, node.thread, node.context, |context, samples| {
                let found = &index.nodes[context];
                children.push(Child {
                    function: found.function,
                    outermost: found.outermost,
                    thread: node.thread,
                    context,
                    samples,
                });
            });
        }
        children.sort_unstable_by_key(|child| (Reverse(child.samples.1), child.function));
        let first = id_of(self.0.len());
        self.0.extend(children.into_iter().map(|child| Node {
            shown: CallNode {
                parent: at,
                function: child.function,
                total: child.samples.1,
                own: child.samples.0,
                depth: node.shown.depth + 1,
                outermost: child.outermost,
            },
            thread: child.thread,
            context: child.context,
            children: (CallTree::ROOT, CallTree::ROOT),
        }));
        let end = id_of(self.0.len());
        self.0[at as usize].children = (first, end);
        first..end
    }
}

impl CallTree {
    fn made(&self) -> RwLockReadGuard<'_, Nodes> {
        // Nodes stay consistent after a panic of a writer.
        self.nodes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node; `None` if its number is unknown or not made yet.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<CallNode> {
        self.made().get(node).map(|node| node.shown)
    }

    /// Callees of a node, most samples first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Range<NodeId> {
        let made = self.made().children(node);
        made.unwrap_or_else(|| {
            let nodes = self.nodes.write();
            let mut nodes = nodes.unwrap_or_else(PoisonError::into_inner);
            nodes.open(&self.index, &self.sums, node)
        })
    }

    /// The nodes from the root's child down to `node`; empty for the root.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = node;
        while let Some(one) = self.node(next).filter(|_| next != Self::ROOT) {
            path.push(next);
            // Parents are older, so this ends.
            next = one.parent;
        }
        path.reverse();
        path
    }

    /// The function of a node; `None` for the root.
    #[must_use]
    pub fn function_of(&self, node: NodeId) -> Option<&Function> {
        self.function(self.node(node)?.function?)
    }

    /// Child of `node` for this function.
    #[must_use]
    pub fn child(&self, node: NodeId, function: FunctionId) -> Option<NodeId> {
        let mut children = self.children(node);
        let nodes = self.made();
        let is_it = |node: &Node| node.shown.function == Some(function);
        children.find(|&child| nodes.get(child).is_some_and(is_it))
    }

    /// The next node in flame-graph order: the first child, else the next sibling, else an
    /// ancestor's next sibling. `None` after the last.
    #[must_use]
    pub fn after(&self, node: NodeId) -> Option<NodeId> {
        let first = self.children(node).next();
        first.or_else(|| self.after_all(node, Self::ROOT))
    }

    /// The next node after `node` and its descendants; `None` if that is outside `top`.
    #[must_use]
    pub fn after_all(&self, node: NodeId, top: NodeId) -> Option<NodeId> {
        let mut node = node;
        while node != top {
            let parent = self.node(node)?.parent;
            if node + 1 < self.children(parent).end {
                return Some(node + 1);
            }
            node = parent;
        }
        None
    }

    /// The right or left neighbour at the same depth below `top`.
    #[must_use]
    pub fn beside(&self, top: NodeId, node: NodeId, right: bool) -> Option<NodeId> {
        let depth = self.node(node)?.depth;
        let mut at = node;
        loop {
            let now = self.node(at)?;
            let is_above = depth > now.depth && self.may_reach(at, depth);
            let below = is_above
                .then(|| self.children(at))
                .and_then(|mut children| {
                    if right {
                        children.next()
                    } else {
                        children.next_back()
                    }
                });
            at = match below {
                Some(below) => below,
                None => {
                    let mut up = at;
                    loop {
                        if up == top {
                            return None;
                        }
                        let parent = self.node(up)?.parent;
                        let among = self.children(parent);
                        if right && up + 1 < among.end {
                            break up + 1;
                        }
                        if !right && up > among.start {
                            break up - 1;
                        }
                        up = parent;
                    }
                }
            };
            if self.node(at)?.depth == depth {
                return Some(at);
            }
        }
    }

    /// Whether any indexed stack through the node reaches this depth.
    fn may_reach(&self, node: NodeId, depth: u32) -> bool {
        let node = self.made().get(node).copied();
        node.is_some_and(|node| {
            let height = self.index.nodes[node.context].height;
            // With threads, the root is one level above the index root.
            let height = u32::from(height) + u32::from(self.sums.by_thread());
            height >= u32::from(u16::MAX) || node.shown.depth + height >= depth
        })
    }

    /// The function's node with most samples; outermost nodes win.
    #[must_use]
    pub fn hottest_of(&self, function: FunctionId) -> Option<NodeId> {
        let of_thread = || {
            self.threads()
                .find(|&thread| self.thread_is(thread, function))
        };
        let all = self.index.nodes_of(function).iter().copied();
        let total = |context: ContextId| self.sums.total(&self.index, context);
        let hottest = all
            .filter(|&context| total(context) > 0)
            .max_by_key(|&context| (self.index.nodes[context].outermost, total(context)));
        match hottest {
            Some(context) => {
                let thread = self.sums.hottest_thread(&self.index, context);
                self.node_at(thread, context)
            }
            None => self.node_at(Some(of_thread()?), StackIndex::root()),
        }
    }

    /// The node of a thread and an index node.
    fn node_at(&self, thread: Option<IndexedThread>, context: ContextId) -> Option<NodeId> {
        let mut path = Vec::new();
        let mut next = context;
        while next != StackIndex::root() {
            path.push(next);
            next = self.index.nodes[next].parent;
        }
        if thread.is_some() {
            path.push(StackIndex::root());
        }
        let mut at = Self::ROOT;
        while let Some(context) = path.pop() {
            let mut children = self.children(at);
            let nodes = self.made();
            let is_it = |node: &Node| (node.thread, node.context) == (thread, context);
            at = children.find(|&child| nodes.get(child).is_some_and(is_it))?;
        }
        Some(at)
    }

    /// The node's descendants in the index: possible callees.
    pub(super) fn below(&self, node: NodeId) -> Range<ContextId> {
        let made = self.made().get(node).map(|node| node.context);
        let context = made.unwrap_or(StackIndex::root());
        context.next()..self.index.nodes[context].end
    }
}
