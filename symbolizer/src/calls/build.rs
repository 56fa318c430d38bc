//! Counts the tree of a filter.

use super::index::LOOK_EVERY;
use super::nodes::Nodes;
use super::sums::Sums;
use super::{CallTree, CallsOf, FunctionCounts, StackIndex};
use crate::ids::Id;
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
        let none = || index.nodes.with_each(false);
        let has = through.map(|through| index.through(through).unwrap_or_else(none));
        for one in &index.threads {
            stop.look(one.kinds.start, counts.len())?;
            let counts = &mut counts[one.kinds.clone()];
            if !filter.takes_thread(one.thread) {
                counts.fill(0);
                continue;
            }
            let is_wanted = only_thread.is_none_or(|only| only == one.thread);
            for (count, kind) in counts.iter_mut().zip(&index.kinds[one.kinds.clone()]) {
                if mask.as_ref().is_some_and(|mask| !mask.takes(kind.entry)) {
                    *count = 0;
                    continue;
                }
                self.taken += u64::from(*count);
                self.alone += if kind.alone { u64::from(*count) } else { 0 };
                if !is_wanted || has.as_ref().is_some_and(|has| !has[kind.node]) {
                    *count = 0;
                }
            }
        }
        Some(())
    }

    fn count(&mut self, stop: &Stop) -> Option<()> {
        let index = &self.index;
        self.counts = index.functions.all.with_each(FunctionCounts::default());
        for (at, node) in index.nodes.enumerated() {
            if at.index().is_multiple_of(LOOK_EVERY) {
                stop.look(at.index(), index.nodes.len())?;
            }
            let (own, total) = self.sums.of_node(index, None, at);
            if let Some(function) = node.function.filter(|_| total > 0) {
                let counts = &mut self.counts[function];
                counts.own += own;
                counts.recursive |= !node.outermost;
                counts.total += if node.outermost { total } else { 0 };
            }
        }
        for thread in self.threads() {
            let root = StackIndex::root();
            let (_, total) = self.sums.of_node(&self.index, Some(thread), root);
            self.counts[self.index.threads[thread].function].total = total;
        }
        Some(())
    }
}
