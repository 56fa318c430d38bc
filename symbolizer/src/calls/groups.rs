//! Samples of groups of functions.

use super::index::LOOK_EVERY;
use super::{CallTree, NodeId};
use crate::time_buckets::Stop;

impl CallTree {
    /// Samples of stacks that contain a function of a group, by group; each sample counts once in a
    /// group. `group_of` has each function's group, below `groups`; other numbers stand for none.
    /// `None` if `stop` was requested first.
    #[must_use]
    pub fn samples_by_group(
        &self,
        group_of: &[u32],
        groups: usize,
        stop: &Stop,
    ) -> Option<Vec<u64>> {
        let mut samples = vec![0; groups];
        // Groups on the path to the current node: number of their nodes, and the nodes' ends.
        let mut on_path = vec![0u32; groups];
        let mut path: Vec<(NodeId, usize)> = Vec::new();
        let nodes = &self.index.nodes;
        for (number, (node, at)) in nodes.iter().zip(0..).enumerate().skip(1) {
            if number.is_multiple_of(LOOK_EVERY) {
                stop.look(number, nodes.len())?;
            }
            while let Some((_, group)) = path.pop_if(|(end, _)| *end <= at) {
                if let Some(count) = on_path.get_mut(group) {
                    *count -= 1;
                }
            }
            let group = group_of.get(node.function as usize).copied();
            let group = group.unwrap_or(u32::MAX) as usize;
            let (Some(sum), Some(count)) = (samples.get_mut(group), on_path.get_mut(group)) else {
                continue;
            };
            if *count == 0 {
                *sum += self.sums.total(&self.index, at);
            }
            *count += 1;
            path.push((node.end, group));
        }
        Some(samples)
    }
}
