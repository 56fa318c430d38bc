//! Ways through the tree of calls that keys take.

use vmscope_symbolizer::calls::{CallTree, NodeId};

/// What called a frame.
pub fn parent_of(tree: &CallTree, node: NodeId) -> NodeId {
    tree.node(node).map_or(CallTree::ROOT, |node| node.parent)
}

/// The neighbour of a frame in its row, where what is between them is under `zoom`: of the
/// same caller, else of the next that called anything at that depth.
pub fn beside(tree: &CallTree, zoom: NodeId, node: NodeId, right: bool) -> Option<NodeId> {
    // Nodes are numbered row by row, from left to right.
    let next = if right {
        node.checked_add(1)?
    } else {
        node.checked_sub(1)?
    };
    let depth = |node| tree.node(node).map(|node| node.depth);
    if depth(next)? != depth(node)? {
        return None;
    }
    let levels = depth(next)?.saturating_sub(depth(zoom)?);
    let above = (0..levels).fold(next, |node, _| parent_of(tree, node));
    (above == zoom).then_some(next)
}

/// The end of the hottest path from a frame.
pub fn hottest_path(tree: &CallTree, from: NodeId) -> NodeId {
    let mut at = from;
    while let (Some(node), Some(child)) = (tree.node(at), tree.children(at).next()) {
        let below = tree.node(child).map_or(0, |child| child.total);
        // The first step is always taken: one asked for it.
        if at != from && node.own >= below {
            break;
        }
        at = child;
    }
    at
}

/// Where the hottest path to a frame begins.
pub fn begin_of_path(tree: &CallTree, zoom: NodeId, from: NodeId) -> NodeId {
    let mut at = from;
    while at != zoom {
        let parent = parent_of(tree, at);
        let is_first = tree.children(parent).start == at;
        if !is_first && at != from {
            break;
        }
        at = parent;
        if !is_first {
            break;
        }
    }
    at
}

/// The deepest frame on the hottest way down.
pub fn deepest(tree: &CallTree, from: NodeId) -> NodeId {
    let down = |&node: &NodeId| tree.children(node).next();
    std::iter::successors(Some(from), down)
        .last()
        .unwrap_or(from)
}
