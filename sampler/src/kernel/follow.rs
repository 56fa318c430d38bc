//! Applies records to the threads' state, and finds changes without records.

use std::os::fd::AsFd as _;

use rustc_hash::FxHashSet;
use vmscope_records::{Avma, DurationNs, LimitKind, LossReason, Pid, Tid, TimeNs};

use super::decode::{Body, Decoded};
use super::sources::FamilyIndex;
use super::threads::{Process, Thread};
use super::{KernelEngine, limit, lost};
use crate::engine::{EngineEvent, RawSample};
use crate::proc;
use crate::sys;

/// CPU time in periods from which a thread without samples counts as unopened.
const UNSAMPLED_PERIODS: u64 = 20;

/// Interval between readings of a thread's CPU time. Growth between readings counts as even, so
/// this is the precision of time windows (`--keep-last`, reports). A reading takes some 5 µs.
const ASK_EVERY_NS: u64 = 250_000_000;

/// Shortest interval between comparisons with /proc: two rounds of the sorter.
const SOON_NS: u64 = 90_000_000;

/// Threads read in /proc at a time.
const LOOKS: usize = 256;

impl KernelEngine {
    pub(super) fn process(&mut self, record: Decoded, out: &mut Vec<EngineEvent>) {
        let Decoded {
            time,
            event,
            pid,
            tid,
            body,
        } = record;
        // Records without a running thread.
        match body {
            Body::Nothing => return,
            Body::Lost {
                reason,
                count,
                from,
            } => return out.push(lost(reason, count, from, time)),
            Body::Throttled => {
                self.throttled.entry(event).or_insert(time);
                return;
            }
            Body::Unthrottled => return self.unthrottled(event, time, out),
            _ => {}
        }
        // Before Linux 5.13, child processes inherit events.
        if !self.children && !self.is_target(pid) {
            return;
        }
        let Some(family) = self.sources.family_of(event) else {
            return;
        };
        if let Body::Exited { tid: exited } = body {
            // Written by the exiting thread, or by its reaper.
            return self.exited(exited, time, out);
        }
        if !self.accept(pid, tid, family, time, out) {
            self.duplicates += u64::from(matches!(body, Body::Sample { .. }));
            return;
        }
        match body {
            Body::Sample { pc, mode, detail } => {
                self.count_sample(tid, time);
                out.push(EngineEvent::Sample(RawSample {
                    time: TimeNs(time),
                    pid: Pid(pid),
                    tid: Tid(tid),
                    pc: Avma(pc),
                    mode,
                    detail,
                }));
            }
            Body::Forked {
                pid: new_pid,
                tid: new_tid,
                parent_tid,
                ..
            } => {
                self.forked((pid, parent_tid), (new_pid, new_tid), family, time, out);
            }
            Body::Named {
                pid,
                tid,
                name,
                exec,
            } => {
                let (time, pid, tid) = (TimeNs(time), Pid(pid), Tid(tid));
                out.push(if exec {
                    EngineEvent::Exec {
                        time,
                        pid,
                        tid,
                        name,
                    }
                } else {
                    EngineEvent::Renamed {
                        time,
                        pid,
                        tid,
                        name,
                    }
                });
            }
            Body::Mapped(mut mapping) => {
                mapping.time = TimeNs(time);
                out.push(EngineEvent::Mapped(mapping));
            }
            _ => {}
        }
    }

    /// Whether a thread's record through this family counts (see `threads`).
    fn accept(
        &mut self,
        pid: u32,
        tid: u32,
        family: FamilyIndex,
        time: u64,
        out: &mut Vec<EngineEvent>,
    ) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else {
            // The start record was lost.
            self.born(pid, tid, None, family, time, out);
            return true;
        };
        let Some(current) = thread.family else {
            thread.family = Some(family);
            self.note_inherited(family, tid);
            let Some(thread) = self.threads.get_mut(&tid) else {
                return true;
            };
            if let Some(own) = thread.own
                && own != family
            {
                thread.own = None;
                self.sources.close_family(own);
            }
            return true;
        };
        if current == family {
            return true;
        }
        let closed = |index| self.sources.family(index).is_none_or(|f| f.closed);
        if closed(family) {
            return false;
        }
        if closed(current) {
            thread.family = Some(family);
            return true;
        }
        if thread.own == Some(current) {
            // The inherited family replaces the opened one.
            thread.family = Some(family);
            thread.own = None;
            self.sources.close_family(current);
            self.note_inherited(family, tid);
            return true;
        }
        if thread.own == Some(family) {
            thread.own = None;
            self.sources.close_family(family);
        }
        false
    }

    fn count_sample(&mut self, tid: u32, time: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.count_sample(time);
        if thread.samples < thread.redraw_at {
            return;
        }
        let (samples, own) = (thread.samples, thread.own);
        let next = self.next_redraw(samples);
        let drawn = own.and_then(|own| {
            let family = self.sources.family(own)?;
            // Children inherit the period: keep the requested one.
            if family.forked || family.closed || family.tid != tid {
                return None;
            }
            self.sources.redraw(own, &mut self.rng)
        });
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.redraw_at = if drawn.is_some() { next } else { u64::MAX };
            thread.period_ns = drawn.unwrap_or(thread.period_ns);
        }
    }

    fn forked(
        &mut self,
        (pid, parent_tid): (u32, u32),
        (new_pid, new_tid): (u32, u32),
        family: FamilyIndex,
        time: u64,
        out: &mut Vec<EngineEvent>,
    ) {
        if self.threads.contains_key(&new_tid) || !(new_pid == pid || self.children) {
            return;
        }
        if new_pid != pid {
            out.push(EngineEvent::ProcessForked {
                time: TimeNs(time),
                pid: Pid(new_pid),
                parent_pid: Pid(pid),
                parent_tid: Tid(parent_tid),
            });
            self.processes.insert(new_pid, Process::born());
        }
        self.born(new_pid, new_tid, Some(parent_tid), family, time, out);
        // Inheritance is proved by the thread's own records only.
        if let Some(thread) = self.threads.get_mut(&new_tid) {
            thread.family = None;
        }
        self.note_inherited(family, new_tid);
    }

    /// Marks a family as inherited: it outlives its own thread, with the requested period.
    fn note_inherited(&mut self, family: FamilyIndex, tid: u32) {
        let base = self.sources.recipe.period_ns;
        if let Some(state) = self.sources.family_mut(family)
            && !state.forked
            && state.tid != tid
        {
            state.forked = true;
            let (opened_on, period) = (state.tid, state.period_ns);
            if period != base && self.sources.set_period(family, base).is_some() {
                let thread = self.threads.get_mut(&opened_on);
                if let Some(thread) = thread.filter(|thread| thread.own == Some(family)) {
                    thread.period_ns = base;
                }
            }
        }
    }

    /// Adds a thread that started during sampling.
    fn born(
        &mut self,
        pid: u32,
        tid: u32,
        parent_tid: Option<u32>,
        family: FamilyIndex,
        time: u64,
        out: &mut Vec<EngineEvent>,
    ) {
        let base = self.sources.recipe.period_ns;
        let period = self.sources.family(family).map_or(base, |f| f.period_ns);
        let mut thread = Thread::new(pid, tid, time, period);
        thread.family = Some(family);
        self.threads.insert(tid, thread);
        self.processes.entry(pid).or_insert_with(Process::born);
        out.push(EngineEvent::ThreadStarted {
            time: TimeNs(time),
            pid: Pid(pid),
            tid: Tid(tid),
            parent_tid: parent_tid.map(Tid),
            name: None,
            cpu_before: DurationNs(0),
        });
    }

    fn exited(&mut self, tid: u32, time: u64, out: &mut Vec<EngineEvent>) {
        let Some(mut thread) = self.threads.remove(&tid) else {
            return;
        };
        let own_ring = self.sources.per_thread();
        out.push(EngineEvent::ThreadEnded(Box::new(thread.end(time, false))));
        self.switches.add(thread.switches());
        if thread.counter().is_some() {
            self.sources.counters += 1;
        }
        if let Some(own) = thread.own {
            // An uninherited family is useless now.
            let alone = self.sources.family(own).is_some_and(|f| !f.forked);
            if own_ring || alone {
                self.sources.close_family(own);
            }
        }
        let pid = thread.pid;
        if !self.threads.values().any(|other| other.pid == pid) {
            self.process_ended(pid, time, false, out);
        }
    }

    fn process_ended(&mut self, pid: u32, time: u64, alive: bool, out: &mut Vec<EngineEvent>) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        // An exited process is often reaped; its threads' CPU times remain.
        let (cpu, cpu_user) = process.cpu(pid).unzip();
        out.push(EngineEvent::ProcessEnded {
            time: TimeNs(time),
            pid: Pid(pid),
            alive,
            cpu: cpu.map(DurationNs),
            cpu_user: cpu_user.flatten().map(DurationNs),
        });
    }

    fn unthrottled(&mut self, event: u64, time: u64, out: &mut Vec<EngineEvent>) {
        let since = self.throttled.remove(&event).unwrap_or(time);
        let period = self.sources.recipe.period_ns.max(1);
        // Upper bound: samples of a thread running all the time.
        let count = time.saturating_sub(since) / period;
        if count > 0 {
            out.push(lost(LossReason::Throttled, count, since, time));
        }
    }

    /// Reads CPU times and compares with /proc, as far as due.
    pub(super) fn poll_if_due(&mut self, out: &mut Vec<EngineEvent>) {
        if self.finished {
            return;
        }
        let now = sys::monotonic_ns();
        if now.saturating_sub(self.last_ask) >= ASK_EVERY_NS {
            self.last_ask = now;
            self.ask_threads(self.sorter.horizon(), out);
        }
        self.compare_with_proc(now, out);
    }

    /// Compares the threads with /proc, periodically or after a loss.
    fn compare_with_proc(&mut self, now: u64, out: &mut Vec<EngineEvent>) {
        let every = proc::POLL_EVERY.as_nanos();
        let due = u128::from(now.saturating_sub(self.last_poll)) >= every;
        if !(due || self.poll_now || self.sources.per_thread()) {
            return;
        }
        if !due && now.saturating_sub(self.last_poll) < SOON_NS {
            // The sorter still holds records of the last comparison.
            return;
        }
        self.last_poll = now;
        self.poll_now = false;
        // New events follow all released records and precede all pending ones.
        let time = self.sorter.horizon();
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        let mut unknown = FxHashSet::default();
        for pid in pids {
            let found = proc::threads(pid).unwrap_or_default();
            // The command is still held.
            if found.is_empty() && self.threads.is_empty() && self.is_target(pid) {
                continue;
            }
            for &tid in &found {
                let known = self.threads.get(&tid);
                let has_events = known.is_some_and(|t| t.own.is_some() || t.family.is_some());
                let unopened = match known {
                    // At the second sighting its start has left the sorter.
                    None => !unknown.insert(tid) || self.unknown.contains(&tid),
                    Some(_) => self.sources.per_thread() && !has_events,
                };
                if unopened {
                    self.open_late(pid, tid, time, out);
                }
            }
            self.end_missing(pid, &found, time, out);
        }
        self.unknown = unknown;
    }

    fn open_late(&mut self, pid: u32, tid: u32, time: u64, out: &mut Vec<EngineEvent>) {
        let Err(error) = self.open_found(pid, tid, time, true, out) else {
            return;
        };
        if !std::mem::replace(&mut self.unsampled_said, true) {
            out.push(EngineEvent::Limit(limit(
                time,
                LimitKind::NotSampled,
                format!(
                    "thread {tid} of process {pid}, and perhaps others, cannot be sampled: {error}"
                ),
                "raise the limits on open files (ulimit -n) and locked memory (ulimit -l)",
            )));
        }
    }

    /// Ends threads missing from /proc twice: their exit record was lost.
    fn end_missing(&mut self, pid: u32, found: &[u32], time: u64, out: &mut Vec<EngineEvent>) {
        let mut ended = Vec::new();
        for thread in self.threads.values_mut().filter(|t| t.pid == pid) {
            if found.binary_search(&thread.tid).is_ok() {
                thread.missing = false;
            } else if std::mem::replace(&mut thread.missing, true) && thread.started < time {
                ended.push(thread.tid);
            }
        }
        for tid in ended {
            self.exited(tid, time, out);
        }
    }

    /// Reads the CPU time of threads that ran, and opens threads with CPU time but no samples.
    fn ask_threads(&mut self, time: u64, out: &mut Vec<EngineEvent>) {
        let exclude_kernel = self.sources.recipe.exclude_kernel;
        let ran = self.threads.values_mut().filter(|thread| thread.ran);
        for thread in ran.take(LOOKS) {
            thread.poll(exclude_kernel);
            out.extend(thread.cpu_now(sys::monotonic_ns()));
        }
        let enough = UNSAMPLED_PERIODS * self.sources.recipe.period_ns;
        let silent = self.threads.values().filter(|thread| {
            let without = thread.own.is_none() && thread.family.is_none();
            // With the kernel excluded, a thread may run without samples.
            without && !exclude_kernel && thread.started.saturating_add(1_000_000_000) < time
        });
        let silent: Vec<(u32, u32)> = silent.take(LOOKS).map(|t| (t.pid, t.tid)).collect();
        for (pid, tid) in silent {
            if proc::thread_cpu_ns(pid, tid).is_ok_and(|cpu| cpu > enough) {
                self.open_late(pid, tid, time, out);
            }
        }
    }

    /// Ends all threads and processes.
    pub(super) fn end_all(&mut self, time: u64, out: &mut Vec<EngineEvent>) {
        let throttled: Vec<u64> = self.throttled.keys().copied().collect();
        for event in throttled {
            self.unthrottled(event, time, out);
        }
        let alive: Vec<u32> = proc_threads_of(self.processes.keys().copied());
        let mut threads: Vec<Thread> = self.threads.drain().map(|(_, thread)| thread).collect();
        threads.sort_by_key(|thread| thread.tid);
        let mut alive_processes = FxHashSet::default();
        for mut thread in threads {
            if let Some(counter) = thread.counter() {
                let _ = sys::perf_disable(counter.as_fd());
            }
            let alive = alive.binary_search(&thread.tid).is_ok();
            if alive {
                alive_processes.insert(thread.pid);
            }
            out.push(EngineEvent::ThreadEnded(Box::new(thread.end(time, alive))));
            self.switches.add(thread.switches());
        }
        // Without the kernel's part, more of the CPU time has no samples.
        if !self.sources.recipe.exclude_kernel {
            out.extend(self.switches.limit(time).map(EngineEvent::Limit));
        }
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            let lives = alive_processes.contains(&pid);
            self.process_ended(pid, time, lives, out);
        }
        if self.sorter.late() > 0 {
            out.push(EngineEvent::Limit(limit(
                time,
                LimitKind::Other,
                format!("{} timestamps may be up to 0.1 s off", self.sorter.late()),
                "",
            )));
        }
    }
}

/// Live threads of the processes, ascending.
fn proc_threads_of(pids: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut tids: Vec<u32> = pids
        .flat_map(|pid| proc::threads(pid).unwrap_or_default())
        .collect();
    tids.sort_unstable();
    tids
}
