//! The nodes of a tree, made as they are looked at.

use super::index::StackIndex;
use super::sums::{ALL, Sums};
use super::{CallNode, CallTree, Function, FunctionId, NodeId, id_of};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{PoisonError, RwLockReadGuard};

/// Nodes with a smaller part of all samples than one of so many are made when they are looked
/// at.
const SHOWN: u64 = 1024;

/// Those that were made.
#[derive(Debug, Default)]
pub(super) struct Nodes(Vec<Node>);

#[derive(Clone, Copy, Debug)]
struct Node {
    shown: CallNode,
    /// Of which thread it is, and where in the index.
    thread: u32,
    context: NodeId,
    /// None of them is the root: that stands for children that were not made.
    children: (NodeId, NodeId),
}

/// A child that is to be made.
struct Child {
    function: FunctionId,
    outermost: bool,
    thread: u32,
    context: NodeId,
    samples: (u64, u64),
}

impl Nodes {
    /// The root, and what fills some of a screen.
    pub fn of(index: &StackIndex, sums: &Sums) -> Self {
        let shown = CallNode {
            parent: CallTree::ROOT,
            function: FunctionId::MAX,
            total: sums.all(),
            own: sums.of_node(index, ALL, CallTree::ROOT).0,
            depth: 0,
            outermost: true,
        };
        let mut nodes = Nodes(vec![Node {
            shown,
            thread: ALL,
            context: CallTree::ROOT,
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

    /// The children of a node; `None` where they were not made.
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
            for (one, thread) in index.threads.iter().zip(0..) {
                let (_, total) = sums.of_node(index, thread, CallTree::ROOT);
                children.push(Child {
                    function: one.function,
                    outermost: true,
                    thread,
                    context: CallTree::ROOT,
                    samples: (0, total),
                });
            }
            children.retain(|child| child.samples.1 > 0);
        } else {
            sums.each_child(index, node.thread, node.context, |context, samples| {
                if let Some(found) = index.nodes.get(context as usize) {
                    children.push(Child {
                        function: found.function,
                        outermost: found.outermost,
                        thread: node.thread,
                        context,
                        samples,
                    });
                }
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
        if let Some(node) = self.0.get_mut(at as usize) {
            node.children = (first, end);
        }
        first..end
    }
}

impl CallTree {
    fn made(&self) -> RwLockReadGuard<'_, Nodes> {
        // A panic of who makes some leaves them as they were.
        self.nodes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node; `None` where there is none of that number, as far as they were made.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<CallNode> {
        self.made().get(node).map(|node| node.shown)
    }

    /// What was called from a node, most samples first.
    #[must_use]
    pub fn children(&self, node: NodeId) -> Range<NodeId> {
        let made = self.made().children(node);
        made.unwrap_or_else(|| {
            let nodes = self.nodes.write();
            let mut nodes = nodes.unwrap_or_else(PoisonError::into_inner);
            nodes.open(&self.index, &self.sums, node)
        })
    }

    /// The nodes from the root's child down to a node; none for the root.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let mut path = Vec::new();
        let mut next = node;
        while let Some(one) = self.node(next).filter(|_| next != Self::ROOT) {
            path.push(next);
            // A parent is older: this ends.
            next = one.parent;
        }
        path.reverse();
        path
    }

    /// The function of a node; `None` for the root.
    #[must_use]
    pub fn function_of(&self, node: NodeId) -> Option<&Function> {
        self.function(self.node(node)?.function)
    }

    /// The child of a node that is such a function.
    #[must_use]
    pub fn child(&self, node: NodeId, function: FunctionId) -> Option<NodeId> {
        let mut children = self.children(node);
        let nodes = self.made();
        let is_it = |node: &Node| node.shown.function == function;
        children.find(|&child| nodes.get(child).is_some_and(is_it))
    }

    /// The node behind another in the order in which a flame graph is read: the first
    /// child, else the next of those called from the same, else of those above. `None`
    /// after the last.
    #[must_use]
    pub fn after(&self, node: NodeId) -> Option<NodeId> {
        let first = self.children(node).next();
        first.or_else(|| self.after_all(node, Self::ROOT))
    }

    /// The node behind another and all that was called from it; `None` where that is not
    /// under `top`.
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

    /// The neighbour of a node to the right or left, among those of its depth under `top`.
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

    /// Whether any stack of the index that goes through a node is so deep.
    fn may_reach(&self, node: NodeId, depth: u32) -> bool {
        let node = self.made().get(node).copied();
        node.is_some_and(|node| {
            let context = self.index.nodes.get(node.context as usize);
            let height = context.map_or(0, |context| context.height);
            // The root is above the threads as well.
            let height = u32::from(height) + u32::from(self.sums.by_thread());
            height >= u32::from(u16::MAX) || node.shown.depth + height >= depth
        })
    }

    /// The node of a function that has most samples, an outermost one where there is any.
    #[must_use]
    pub fn hottest_of(&self, function: FunctionId) -> Option<NodeId> {
        let of_thread = || {
            self.threads()
                .find(|&thread| self.thread_is(thread, function))
        };
        let all = self.index.nodes_of(function).iter().copied();
        let total = |context: NodeId| self.sums.total(&self.index, context);
        let hottest = all
            .filter(|&context| total(context) > 0)
            .max_by_key(|&context| {
                let found = self.index.nodes.get(context as usize);
                (found.map(|found| found.outermost), total(context))
            });
        match hottest {
            Some(context) => {
                let thread = self.sums.hottest_thread(&self.index, context);
                self.node_at(thread, context)
            }
            None => self.node_at(of_thread()?, Self::ROOT),
        }
    }

    /// The node that is there in the index.
    fn node_at(&self, thread: u32, context: NodeId) -> Option<NodeId> {
        let mut path = Vec::new();
        let mut next = context;
        while next != Self::ROOT {
            path.push(next);
            next = self.index.nodes.get(next as usize)?.parent;
        }
        if thread != ALL {
            path.push(Self::ROOT);
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

    /// The part of the index that is below a node: what may have been called from it.
    pub(super) fn below(&self, node: NodeId) -> Range<NodeId> {
        let context = self.made().get(node).map(|node| node.context);
        context.map_or(0..0, |context| context + 1..self.index.end(context))
    }
}
