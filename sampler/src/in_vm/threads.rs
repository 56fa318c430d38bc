//! The registered threads of a VM, and their CPU time.
//!
//! The VM's table lists registered threads, with the CPU time at the sampler's last tick. The
//! number of expected samples follows the kernel's CPU time of each thread. After a thread's end,
//! the kernel no longer reports its CPU time: vmscope then uses the table's last value, clamped to
//! possible values.

use rustc_hash::FxHashMap;
use vmscope_process::list_threads;
use vmscope_publish::sampler::ThreadTicks;
use vmscope_records::{DurationNs, Pid, Tid, TimeNs};

use crate::engine::{EngineEvent, RawThreadEnd};
use crate::proc;
use crate::sys;

/// Maximum number of threads with samples but without a row in the VM's table.
const MAX_UNSEEN: usize = 4096;

/// Interval between two readings of a thread's CPU time.
const ASK_EVERY_NS: u64 = 250_000_000;

/// Name of the sampler's own thread.
const SAMPLER_NAME: &str = "vmscope-sampler";

#[derive(Debug)]
pub(super) struct Threads {
    pid: u32,
    inner_pid: u32,
    period_ns: u64,
    /// Threads by thread id inside the VM's pid namespace.
    known: FxHashMap<u32, Thread>,
    /// Thread ids outside the VM's pid namespace, by thread id inside.
    outer: FxHashMap<u32, u32>,
    unseen: usize,
    /// Number of samples before the first scan of the table, by thread id inside the namespace.
    early: FxHashMap<u32, u64>,
    last_scan: u64,
    last_ask: u64,
    /// CPU time of threads that ended.
    ended_ns: u64,
}

#[derive(Debug)]
struct Thread {
    tid: u32,
    /// CPU time before sampling.
    before: u64,
    /// CPU time at the last reading.
    cpu: u64,
    /// Time of the last reading.
    read_at: u64,
    /// Number of samples after `seen_at`, times the period.
    since_ns: u64,
    seen_at: u64,
    samples: u64,
    /// The thread had samples since `cpu_times` last read its CPU time.
    ran: bool,
    /// In the VM's table.
    listed: bool,
}

/// A new thread, to be reported to the session.
#[derive(Debug)]
pub(super) struct Started {
    pub tid: u32,
    pub name: Option<String>,
    pub cpu_before: u64,
}

impl Threads {
    pub fn new(pid: u32, inner_pid: u32, period_ns: u64) -> Self {
        Self {
            pid,
            inner_pid,
            period_ns,
            known: FxHashMap::default(),
            outer: FxHashMap::default(),
            unseen: 0,
            early: FxHashMap::default(),
            last_scan: 0,
            last_ask: 0,
            ended_ns: 0,
        }
    }

    /// Counts a sample before the first scan of the table. The thread's first CPU time includes the
    /// sample.
    pub fn had_sample(&mut self, inner: u32) {
        if self.early.len() < MAX_UNSEEN || self.early.contains_key(&inner) {
            *self.early.entry(inner).or_default() += 1;
        }
    }

    /// Takes the VM's table, and returns new threads.
    pub fn scan(&mut self, rows: &[ThreadTicks], now: u64) -> Vec<Started> {
        self.known.values_mut().for_each(|one| one.listed = false);
        let mut started = Vec::new();
        for row in rows {
            if let Some(thread) = self.known.get_mut(&row.tid) {
                thread.listed = true;
                if thread.read_at < now {
                    thread.note_row(row.cpu_ns, now);
                }
                continue;
            }
            let Some(tid) = self.outer(row.tid) else {
                continue;
            };
            // The thread has ended; the VM will remove the row.
            let Ok(cpu) = proc::thread_cpu_ns(self.pid, tid) else {
                continue;
            };
            // The thread ran, and had samples, before vmscope first saw its row.
            let ran = row.ticks.saturating_sub(row.idle);
            let early = self.early.get(&row.tid).copied().unwrap_or(0);
            let (ran, most) = match self.last_scan {
                0 => (early, cpu),
                last => (ran, now.saturating_sub(last).min(cpu)),
            };
            let ran = ran.saturating_mul(self.period_ns).min(most);
            started.push(self.start(row.tid, tid, cpu, ran, now));
        }
        self.last_scan = now;
        started
    }

    /// Counts a sample at `time`. An unknown thread counts as started. `None` if the sample belongs
    /// to no thread, or after `MAX_UNSEEN` threads without a row in the table.
    pub fn sampled(&mut self, inner: u32, time: u64, now: u64) -> Option<(u32, Option<Started>)> {
        let mut started = None;
        if !self.known.contains_key(&inner) {
            if inner == 0 || self.unseen >= MAX_UNSEEN {
                return None;
            }
            self.unseen += 1;
            let tid = self.outer(inner).unwrap_or(inner);
            let cpu = proc::thread_cpu_ns(self.pid, tid).unwrap_or(0);
            started = Some(self.start(inner, tid, cpu, 0, now));
        }
        let thread = self.known.get_mut(&inner)?;
        thread.samples += 1;
        thread.ran = true;
        // The last reading of CPU time already includes earlier samples.
        if time > thread.seen_at {
            thread.since_ns = thread.since_ns.saturating_add(self.period_ns);
        }
        Some((thread.tid, started))
    }

    fn start(&mut self, inner: u32, tid: u32, cpu: u64, ran: u64, now: u64) -> Started {
        let before = cpu.saturating_sub(ran);
        let thread = Thread {
            tid,
            before,
            cpu,
            read_at: now,
            since_ns: 0,
            seen_at: now,
            samples: 0,
            ran: false,
            listed: true,
        };
        self.known.insert(inner, thread);
        let stat = proc::thread_stat(self.pid, tid).ok();
        Started {
            tid,
            name: stat.map(|stat| stat.name),
            cpu_before: before,
        }
    }

    /// Removes threads that left the VM's table (with `all`, every thread), and returns end events.
    pub fn ends(&mut self, all: Option<End>, now: u64) -> Vec<EngineEvent> {
        let gone = self.known.iter();
        let gone = gone.filter(|(_, thread)| all.is_some() || !thread.listed);
        let mut gone: Vec<u32> = gone.map(|(inner, _)| *inner).collect();
        gone.sort_unstable();
        let mut ends = Vec::new();
        for inner in gone {
            let Some(mut thread) = self.known.remove(&inner) else {
                continue;
            };
            self.outer.remove(&inner);
            let measured = thread.last_reading(self.pid, now);
            let cpu = thread.used();
            self.ended_ns = self.ended_ns.saturating_add(cpu);
            ends.push(EngineEvent::ThreadEnded(Box::new(RawThreadEnd {
                time: TimeNs(now),
                pid: Pid(self.pid),
                tid: Tid(thread.tid),
                cpu: DurationNs(cpu),
                cpu_measured: measured,
                cpu_user: None,
                samples: thread.samples,
                mean_period: DurationNs(self.period_ns),
                alive: all == Some(End::OfRecording) && thread.listed,
            })));
        }
        ends
    }

    /// Reads the CPU time of recently sampled threads, if a reading is due.
    pub fn cpu_times(&mut self, now: u64) -> Vec<EngineEvent> {
        if now.saturating_sub(self.last_ask) < ASK_EVERY_NS {
            return Vec::new();
        }
        self.last_ask = now;
        let pid = self.pid;
        let ran = self.known.values_mut().filter(|thread| thread.ran);
        let read = ran.filter_map(|thread| {
            thread.ran = false;
            let cpu = proc::thread_cpu_ns(pid, thread.tid).ok()?;
            let now = sys::monotonic_ns();
            thread.take(cpu, now);
            Some(EngineEvent::ThreadCpu {
                time: TimeNs(now),
                pid: Pid(pid),
                tid: Tid(thread.tid),
                cpu: DurationNs(thread.used()),
                cpu_user: None,
            })
        });
        read.collect()
    }

    /// CPU time of all registered threads during sampling.
    pub fn used_ns(&self) -> u64 {
        let alive = self.known.values().map(Thread::used);
        alive.fold(self.ended_ns, u64::saturating_add)
    }

    /// Number of unregistered threads, and number of all threads. Neither counts the sampler's
    /// thread.
    pub fn unregistered(&self) -> Option<(usize, usize)> {
        let threads = list_threads(Pid(self.pid), Pid(self.inner_pid)).ok()?;
        let others = threads.iter().filter(|one| one.name != SAMPLER_NAME);
        let (mut all, mut not) = (0, 0);
        for one in others {
            all += 1;
            not += usize::from(!self.known.contains_key(&one.inner_tid.0));
        }
        Some((not, all))
    }

    /// The thread id outside of the VM's pid namespace.
    fn outer(&mut self, inner: u32) -> Option<u32> {
        if self.inner_pid == self.pid {
            return Some(inner);
        }
        if !self.outer.contains_key(&inner) {
            let threads = list_threads(Pid(self.pid), Pid(self.inner_pid)).ok()?;
            let ids = threads.iter().map(|one| (one.inner_tid.0, one.tid.0));
            self.outer = ids.collect();
        }
        self.outer.get(&inner).copied()
    }
}

/// Why all threads end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    OfProcess,
    OfRecording,
}

impl Thread {
    /// Takes the CPU time in the VM's table, clamped to possible values.
    fn note_row(&mut self, cpu: u64, now: u64) {
        let most = self.cpu.saturating_add(now.saturating_sub(self.read_at));
        self.take(cpu.clamp(self.cpu, most), now);
    }

    fn take(&mut self, cpu: u64, now: u64) {
        self.cpu = self.cpu.max(cpu);
        (self.read_at, self.seen_at, self.since_ns) = (now, now, 0);
    }

    /// Determines the final CPU time. If the kernel's value is gone, adds the periods of later
    /// samples to the last reading. Returns `false` if the last reading is a second old or older.
    fn last_reading(&mut self, pid: u32, now: u64) -> bool {
        if let Ok(cpu) = proc::thread_cpu_ns(pid, self.tid) {
            self.take(cpu, now);
            return true;
        }
        let passed = now.saturating_sub(self.seen_at);
        let since = self.since_ns.min(passed);
        self.cpu = self.cpu.saturating_add(since);
        passed < 1_000_000_000
    }

    fn used(&self) -> u64 {
        self.cpu.saturating_sub(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_publish::event::ThreadRole;

    fn row(tid: u32, cpu_ns: u64) -> ThreadTicks {
        ThreadTicks {
            tid,
            role: ThreadRole::Mutator,
            ticks: 10,
            idle: 4,
            signalled: 6,
            samples: 6,
            pending: 0,
            cpu_ns,
        }
    }

    #[test]
    fn a_table_of_nonsense_is_bounded() {
        let me = std::process::id();
        let mut threads = Threads::new(me, me, 1_000_000);
        // Nonexistent threads are not started; impossible CPU times are clamped.
        let started = threads.scan(&[row(me, u64::MAX), row(u32::MAX, 7)], 1000);
        assert_eq!(started.len(), 1);
        assert!(threads.scan(&[row(me, u64::MAX)], 3000).is_empty());
        assert_eq!(threads.used_ns(), 2000);
        assert!(threads.scan(&[row(me, 0)], 4000).is_empty());
        assert_eq!(threads.used_ns(), 2000);
        for tid in 0..10_000 {
            let _ = threads.sampled(u32::MAX - tid, 4000, 4000);
        }
        assert!(threads.known.len() <= 1 + MAX_UNSEEN);
        assert!(threads.sampled(me, 4000, 4000).is_some());
    }

    #[test]
    fn a_thread_ends_when_it_leaves_the_table() {
        let me = std::process::id();
        let mut threads = Threads::new(me, me, 1_000_000);
        threads.scan(&[row(me, 0)], 1000);
        assert!(threads.ends(None, 1000).is_empty());
        threads.scan(&[], 2000);
        let ends = threads.ends(None, 2000);
        let [EngineEvent::ThreadEnded(end)] = &*ends else {
            panic!("{ends:?}");
        };
        assert!(end.cpu_measured && !end.alive);
        assert_eq!(threads.used_ns(), end.cpu.0);
    }
}
