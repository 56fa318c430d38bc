//! Moving the samples of ended threads to the sums of their roles.

use super::sums::Sums;
use super::{OfThread, TimeBuckets};
use crate::trace::Samples;
use rustc_hash::FxHashMap;
use vmscope_records::TimeNs;

impl TimeBuckets {
    /// Moves the samples of each thread in `into` to another thread. Rebuilds only time buckets
    /// with such samples.
    pub(crate) fn fold_threads(&mut self, samples: &mut Samples, into: &FxHashMap<u32, u32>) {
        let other = |thread: u32| into.get(&thread).copied().unwrap_or(thread);
        for thread in &mut samples.threads {
            *thread = other(*thread);
        }
        for (&thread, &into) in into {
            let last = self.last_of_thread.get_mut(thread as usize);
            let last = last.map_or(TimeNs(0), std::mem::take);
            let into = into as usize;
            if into >= self.last_of_thread.len() {
                self.last_of_thread.resize(into + 1, TimeNs(0));
            }
            if let Some(slot) = self.last_of_thread.get_mut(into) {
                *slot = (*slot).max(last);
            }
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
