//! Moving the samples of ended threads to the sums of their roles.

use super::sums::Sums;
use super::{OfThread, TimeBuckets};
use crate::ids::ThreadId;
use crate::trace::Samples;
use rustc_hash::FxHashMap;
use vmscope_records::TimeNs;

impl TimeBuckets {
    /// Moves the samples of each thread in `into` to another thread. Rebuilds only time buckets
    /// with such samples.
    pub(crate) fn fold_threads(
        &mut self,
        samples: &mut Samples,
        into: &FxHashMap<ThreadId, ThreadId>,
    ) {
        let other = |thread: ThreadId| into.get(&thread).copied().unwrap_or(thread);
        for thread in &mut samples.threads {
            *thread = other(*thread);
        }
        for (&thread, &into) in into {
            let last = std::mem::take(self.last_of_thread.slot(thread, TimeNs(0)));
            let slot = self.last_of_thread.slot(into, TimeNs(0));
            *slot = (*slot).max(last);
        }
        let (spots, mut sums) = (self.spots.len(), Sums::default());
        let all = self.levels.iter_mut().flatten().chain(&mut self.totals);
        for bucket in all {
            if !bucket.runs.iter().any(|run| into.contains_key(&run.thread)) {
                continue;
            }
            let folded = bucket.runs().map(|run| OfThread {
                thread: other(run.thread),
                ..run
            });
            let summed = sums.of_runs(folded.collect(), spots);
            bucket.become_summed(summed);
        }
    }
}
