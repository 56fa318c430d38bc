//! Ended threads: beyond a bound, the oldest are summed up by role.

use super::Live;
use crate::ids::ThreadId;
use crate::profile::Profile;
use crate::trace::{NOBODY, Trace, TraceThread};
use rustc_hash::FxHashMap;
use vmscope_records::{DurationNs, ProcessKey, ThreadCpu, ThreadRole, TimeNs};

/// The sums of ended threads, one for each role.
#[derive(Debug, Default)]
pub(super) struct Folded {
    by_role: FxHashMap<ThreadRole, Sum>,
    /// Free indices of the threads that were summed up last. Views may still refer to them, so
    /// new threads get them only after the next time.
    left: Vec<ThreadId>,
}

/// A sum of ended threads.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// The sum in the trace.
    id: ThreadId,
    threads: u64,
    cpu: u64,
    /// `None` unless it is known of all threads.
    cpu_user: Option<u64>,
}

impl Live {
    /// Beyond the bound, sums the oldest ended threads up, including their samples. Only their
    /// names are lost.
    pub(super) fn fold_threads(&mut self, profile: &mut Profile) {
        let Profile {
            trace,
            time_buckets,
            ..
        } = profile;
        let most = self.bounds.threads;
        if trace.threads.len() <= most + most / 4 {
            return;
        }
        let settled = self.settled;
        let over = trace.threads.enumerated().filter_map(|(id, one)| {
            let end = one.end.as_ref().filter(|end| end.time < settled)?;
            Some((end.time, id))
        });
        let mut over: Vec<(TimeNs, ThreadId)> = over.collect();
        if over.len() <= most + most / 4 {
            return;
        }
        over.sort_unstable();
        over.truncate(over.len() - most);
        trace.free_threads.append(&mut self.folded.left);
        let mut into: FxHashMap<ThreadId, ThreadId> = FxHashMap::default();
        for (time, at) in over {
            if let Some(sum) = self.folded.take(trace, at, time) {
                into.insert(at, sum);
                self.folded.left.push(at);
            }
        }
        self.omitted.threads += into.len() as u64;
        time_buckets.fold_threads(&mut trace.samples, &into);
        self.placing.world.forget_threads(&self.folded.left);
        self.placing.forget_last_thread();
    }
}

impl Folded {
    /// Moves a thread of `trace`, which ended at `time`, into the sum of its role. Returns the
    /// index of the sum.
    fn take(&mut self, trace: &mut Trace, id: ThreadId, time: TimeNs) -> Option<ThreadId> {
        let thread = std::mem::replace(&mut trace.threads[id], TraceThread::unknown(NOBODY));
        trace.thread_index.remove(&thread.thread.key);
        let end = thread.end?;
        let sum = self.by_role.entry(thread.thread.role).or_insert_with(|| {
            let mut all = TraceThread::unknown(NOBODY);
            all.thread.role = thread.thread.role;
            all.thread.time = thread.thread.time;
            all.thread.process = thread.thread.process;
            Sum {
                id: trace.threads.push(all),
                threads: 0,
                cpu: 0,
                cpu_user: Some(0),
            }
        });
        sum.threads += 1;
        sum.cpu = sum.cpu.saturating_add(end.cpu.0);
        sum.cpu_user = sum.cpu_user.zip(end.cpu_user).map(|(all, one)| all + one.0);
        let all = &mut trace.threads[sum.id];
        all.thread.time = all.thread.time.min(thread.thread.time);
        all.thread.name = match sum.threads {
            1 => "(1 ended thread)".to_owned(),
            many => format!("({many} ended threads)"),
        };
        if all.thread.process != thread.thread.process {
            all.thread.process = ProcessKey(u32::MAX);
        }
        // Threads come in the order of their ends: their CPU time counts as of their end.
        let cpu = ThreadCpu {
            key: NOBODY,
            time,
            cpu: DurationNs(sum.cpu),
            cpu_user: sum.cpu_user.map(DurationNs),
        };
        match all.cpu.last_mut() {
            Some(last) if last.time >= time => {
                *last = ThreadCpu {
                    time: last.time,
                    ..cpu
                }
            }
            _ => all.cpu.push(cpu),
        }
        Some(sum.id)
    }
}
