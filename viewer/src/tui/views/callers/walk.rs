//! Ways through the tree of calls that keys take.

use vmscope_symbolizer::calls::{CallTree, NodeId};

/// What called a frame.
pub fn parent_of(tree: &CallTree, node: NodeId) -> NodeId {
    tree.node(node).map_or(CallTree::ROOT, |node| node.parent)
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
