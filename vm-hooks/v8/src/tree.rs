//! Maps of libstdc++ (`std::map`) in V8's memory. A map's header is behind its comparison, the root in the
//! header.

use vmscope_process::{AdapterError, Memory, read_words};
use vmscope_records::Avma;

/// Maximum depth of a tree with 2^32 nodes. A deeper tree changes while vmscope reads it.
const MAX_DEPTH: usize = 64;

/// More entries than a caller allows.
pub(crate) const TOO_MUCH: &str = "there is more code than vmscope lists";

/// A `std::map` of libstdc++: the root's address, in the header node behind the comparison.
pub(crate) const ROOT: u64 = 16;

/// A node of a `std::map`: colour, parent, left, right, key, value.
const NODE: usize = 56;
const LEFT: usize = 2;
const RIGHT: usize = 3;
pub(crate) const KEY: usize = 4;
pub(crate) const VALUE: usize = 5;

/// The words of a node.
pub(crate) type Node = [u64; NODE / 8];

/// Reads nodes; `None` for unreadable ones.
fn read_nodes(memory: &dyn Memory, at: &[Avma]) -> Result<Vec<Option<Node>>, AdapterError> {
    read_words(memory, at).map_err(AdapterError::reading("list of code"))
}

/// Reads nodes of a tree level by level.
pub(crate) fn nodes(
    memory: &dyn Memory,
    roots: Vec<Avma>,
    (cap, damage): (usize, &mut Option<&'static str>),
) -> Result<Vec<Node>, AdapterError> {
    let (mut all, mut level) = (Vec::new(), roots);
    for _ in 0..MAX_DEPTH {
        level.retain(|at| at.0 != 0);
        if level.is_empty() {
            return Ok(all);
        }
        if all.len() + level.len() > cap {
            *damage = Some(TOO_MUCH);
            return Ok(all);
        }
        let mut next = Vec::new();
        for node in read_nodes(memory, &level)? {
            let Some(node) = node else {
                *damage = Some("parts of V8's list of code are unreadable");
                continue;
            };
            next.extend([Avma(node[LEFT]), Avma(node[RIGHT])]);
            all.push(node);
        }
        level = next;
    }
    *damage = Some("V8's list of code changed while vmscope read it");
    Ok(all)
}

/// Nodes for pairs of a root and an address: the tree's last node with a key up to the address.
pub(crate) fn last_before(
    memory: &dyn Memory,
    places: &[(Avma, Avma)],
) -> Result<Vec<Option<Node>>, AdapterError> {
    let mut last = vec![None; places.len()];
    let mut left: Vec<(usize, Avma)> = places.iter().map(|(root, _)| *root).enumerate().collect();
    for _ in 0..MAX_DEPTH {
        left.retain(|(_, at)| at.0 != 0);
        if left.is_empty() {
            break;
        }
        let level: Vec<Avma> = left.iter().map(|(_, at)| *at).collect();
        for ((index, at), node) in left.iter_mut().zip(read_nodes(memory, &level)?) {
            let (place, last) = (places.get(*index), last.get_mut(*index));
            *at = match (node, place, last) {
                (Some(node), Some((_, address)), Some(last)) if node[KEY] <= address.0 => {
                    *last = Some(node);
                    Avma(node[RIGHT])
                }
                (Some(node), ..) => Avma(node[LEFT]),
                (None, ..) => Avma(0),
            };
        }
    }
    Ok(last)
}
