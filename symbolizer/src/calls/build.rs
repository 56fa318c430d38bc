//! Counts the tree of a filter.

use super::index::LOOK_EVERY;
use super::nodes::Nodes;
use super::sums::{ALL, Sums};
use super::{CallTree, CallsOf, FunctionCounts, StackIndex};
use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::Stop;
use std::sync::{Arc, RwLock};

impl CallTree {
    /// The tree of the filter's samples among those in `index`, which belongs to the same profile.
    /// `None` if `stop` was requested first.
    #[must_use]
    pub fn of(
        profile: &Profile,
        index: &Arc<StackIndex>,
        filter: &Filter,
        of: &CallsOf,
        stop: &Stop,
    ) -> Option<Self> {
        let mut tree = CallTree {
            index: Arc::clone(index),
            ..CallTree::default()
        };
        let mut counts = index.counts(profile, filter, stop)?;
        tree.leave(profile, filter, of, &mut counts, stop)?;
        tree.sums = Sums::of(index, &counts, of.by_thread);
        drop(counts);
        tree.count(stop)?;
        tree.nodes = RwLock::new(Nodes::of(index, &tree.sums));
        Some(tree)
    }

    /// Reduces each kind's count to the samples in the filter and in [`CallsOf`].
    fn leave(
        &mut self,
        profile: &Profile,
        filter: &Filter,
        of: &CallsOf,
        counts: &mut [u32],
        stop: &Stop,
    ) -> Option<()> {
        let index = Arc::clone(&self.index);
        let mask = filter.entry_mask(profile);
        let through = of.through.as_ref();
        let only_thread = through.filter(|_| of.by_thread).and_then(|one| one.thread);
        let through = through.filter(|_| only_thread.is_none());
        // An unknown function is in no stack.
        let has = through.map(|through| index.through(through).unwrap_or_default());
        for one in &index.threads {
            stop.look(one.kinds.start, counts.len())?;
            let counts = counts.get_mut(one.kinds.clone()).unwrap_or_default();
            if !filter.takes_thread(one.thread) {
                counts.fill(0);
                continue;
            }
            let is_wanted = only_thread.is_none_or(|only| only == one.thread);
            let kinds = index.kinds.get(one.kinds.clone()).unwrap_or_default();
            for (count, kind) in counts.iter_mut().zip(kinds) {
                if mask.as_ref().is_some_and(|mask| !mask.takes(kind.entry)) {
                    *count = 0;
                    continue;
                }
                self.taken += u64::from(*count);
                let node = kind.node as usize;
                self.alone += if kind.alone { u64::from(*count) } else { 0 };
                let has = has.as_ref().map(|has| has.get(node) == Some(&true));
                if !is_wanted || has == Some(false) {
                    *count = 0;
                }
            }
        }
        Some(())
    }

    fn count(&mut self, stop: &Stop) -> Option<()> {
        let index = &self.index;
        self.counts = vec![FunctionCounts::default(); index.functions.all.len()];
        let nodes = &index.nodes;
        for (number, (node, at)) in nodes.iter().zip(0..).enumerate().skip(1) {
            if number.is_multiple_of(LOOK_EVERY) {
                stop.look(number, nodes.len())?;
            }
            let (own, total) = self.sums.of_node(index, ALL, at);
            if total == 0 {
                continue;
            }
            if let Some(counts) = self.counts.get_mut(node.function as usize) {
                counts.own += own;
                counts.recursive |= !node.outermost;
                counts.total += if node.outermost { total } else { 0 };
            }
        }
        for thread in self.threads() {
            let (_, total) = self.sums.of_node(&self.index, thread, Self::ROOT);
            let one = self.index.threads.get(thread as usize);
            if let Some(counts) = one.and_then(|one| self.counts.get_mut(one.function as usize)) {
                counts.total = total;
            }
        }
        Some(())
    }
}
