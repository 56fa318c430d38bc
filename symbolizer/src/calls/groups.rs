//! Samples of groups of functions.

use super::CallTree;
use super::index::LOOK_EVERY;
use crate::ids::{ContextId, FunctionId, Id, IndexVec};
use crate::time_buckets::Stop;

impl CallTree {
    /// Samples of stacks that contain a function of a group, by group; each sample counts once in a
    /// group. `group_of` has each function's group, below `groups`.
    /// `None` if `stop` was requested first.
    #[must_use]
    pub fn samples_by_group(
        &self,
        group_of: &IndexVec<FunctionId, Option<u32>>,
        groups: usize,
        stop: &Stop,
    ) -> Option<Vec<u64>> {
        let mut samples = vec![0; groups];
        // Groups on the path to the current node: number of their nodes, and the nodes' ends.
        let mut on_path = vec![0u32; groups];
        let mut path: Vec<(ContextId, usize)> = Vec::new();
        let nodes = &self.index.nodes;
        for (at, node) in nodes.enumerated() {
            if at.index().is_multiple_of(LOOK_EVERY) {
                stop.look(at.index(), nodes.len())?;
            }
            while let Some((_, group)) = path.pop_if(|(end, _)| *end <= at) {
                on_path[group] -= 1;
            }
            let Some(group) = node.function.and_then(|function| group_of[function]) else {
                continue;
            };
            let group = group as usize;
            if on_path[group] == 0 {
                samples[group] += self.sums.total(&self.index, at);
            }
            on_path[group] += 1;
            path.push((node.end, group));
        }
        Some(samples)
    }
}
