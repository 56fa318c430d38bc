//! Sampled threads, each through exactly one family, and their CPU time.
//!
//! # One family per thread
//!
//! A thread T started during attaching may inherit its parent's events *and* be opened itself, when
//! found in /proc; all its children then have both. Inherited events carry the id of the opened
//! event (`PERF_SAMPLE_ID` is `primary_event_id`). The first family in T's records counts; records
//! through other families are duplicates, and dropped. Records of T through a foreign family prove
//! inheritance at birth, also for T's children: the family opened on T then holds duplicates only,
//! and is closed.
//!
//! # CPU time
//!
//! `PERF_RECORD_READ` (attr.inherit_stat) is unusable, as seen on Linux 6.18. An exiting thread
//! writes it into the ring of *every* CPU from its own CPU, although only the ring's CPU may write
//! without a lock (`perf_output_get_handle`): two exits at once can corrupt or freeze a ring. And
//! where the kernel swaps the contexts of clones instead of switching them, records are missing or
//! name the wrong thread.
//!
//! Instead, each found thread gets a counter without inheritance, readable after its exit. Threads
//! with inherited events get none: it would make contexts unequal and prevent swapping, at a cost
//! of some 0.3 % of the ticks on shared CPUs (measured: two spinning threads on a loaded machine of
//! two CPUs, 99.6 % delivered with counters, 99.9 % without). Their CPU time is read from /proc
//! four times a second, and estimated from samples afterwards.

use std::os::fd::{AsFd as _, OwnedFd};

use vmscope_records::{DurationNs, Pid, Tid, TimeNs};

use super::sources::FamilyIndex;
use super::switches::Switches;
use crate::engine::{EngineEvent, RawThreadEnd};
use crate::proc::{self, Scheduled};
use crate::sys;

/// Ticks (of 10 ms) required for a split into user and kernel.
const ENOUGH_TICKS: u64 = 10;

/// A counter of a thread's CPU time, corrected by the kernel's accounting in /proc.
///
/// While the thread runs, /proc lags by up to a scheduler tick (4 or 10 ms) and never leads. The
/// counter also counts interrupts and time stolen by the host, which accounting may not. The
/// largest of the last differences is the best correction.
#[derive(Debug)]
struct Counter {
    event: Option<OwnedFd>,
    /// /proc minus counter, in ns, of the last comparisons.
    last: [Option<i64>; 4],
    next: usize,
    /// Largest difference of the first comparisons.
    first: Option<i64>,
    compared: u32,
}

impl Counter {
    fn new(event: Option<OwnedFd>) -> Self {
        Self {
            event,
            last: [None; 4],
            next: 0,
            first: None,
            compared: 0,
        }
    }

    fn count(&self) -> Option<u64> {
        sys::perf_count(self.event.as_ref()?.as_fd()).ok()
    }

    fn compare(&mut self, pid: u32, tid: u32) -> Option<Scheduled> {
        let counted = self.count()?;
        let scheduled = proc::thread_scheduled(pid, tid).ok()?;
        let ahead = i64::try_from(scheduled.cpu_ns).ok()? - i64::try_from(counted).ok()?;
        *self.last.get_mut(self.next)? = Some(ahead);
        self.next = (self.next + 1) % self.last.len();
        if self.compared < 4 {
            self.first = self.first.max(Some(ahead));
            self.compared += 1;
        }
        Some(scheduled)
    }

    fn now(&self) -> Option<i64> {
        self.last.iter().copied().flatten().max()
    }
}

/// A sampled thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// Start, or time of the find.
    pub started: u64,
    /// Family of the counted records.
    pub family: Option<FamilyIndex>,
    /// Family opened on this thread.
    pub own: Option<FamilyIndex>,
    /// Current period.
    pub period_ns: u64,
    /// Delivered samples.
    pub samples: u64,
    /// Sum of their periods.
    sampled_ns: u64,
    /// Sample count of the next re-draw.
    pub redraw_at: u64,
    counter: Counter,
    /// Without a counter: time and result of the last reading of /proc.
    account: Option<(u64, u64)>,
    /// Sum of sample periods since then.
    since_ns: u64,
    /// The counter covers all sampled time.
    counted_from_start: bool,
    /// CPU time before sampling.
    pub cpu_before: u64,
    user_before: Option<u64>,
    /// CPU time and its user part at the last reading.
    last_user: Option<(u64, u64)>,
    /// Times that a CPU began to run the thread: before sampling, and at the last reading.
    slices_before: u64,
    slices: u64,
    /// Samples came since the last reading.
    pub ran: bool,
    /// Absent from /proc at the last comparison.
    pub missing: bool,
}

impl Thread {
    pub fn new(pid: u32, tid: u32, started: u64, period_ns: u64) -> Self {
        Self {
            pid,
            tid,
            started,
            family: None,
            own: None,
            period_ns,
            samples: 0,
            sampled_ns: 0,
            redraw_at: u64::MAX,
            counter: Counter::new(None),
            account: None,
            since_ns: 0,
            counted_from_start: false,
            cpu_before: 0,
            user_before: Some(0),
            last_user: None,
            slices_before: 0,
            slices: 0,
            ran: false,
            missing: false,
        }
    }

    /// Reads the CPU time before sampling.
    pub fn note_before(&mut self) {
        let before = proc::thread_scheduled(self.pid, self.tid).unwrap_or_default();
        self.cpu_before = before.cpu_ns;
        (self.slices_before, self.slices) = (before.slices, before.slices);
        let stat = proc::thread_stat(self.pid, self.tid).ok();
        self.user_before = stat.map(|stat| stat.user_part(self.cpu_before).unwrap_or(0));
    }

    /// The counter covers all sampled time.
    pub fn count_from_start(&mut self, counter: OwnedFd) {
        self.counter = Counter::new(Some(counter));
        self.counted_from_start = true;
    }

    /// CPU time since [`Self::note_before`], in ns.
    pub fn sampled_so_far(&self) -> u64 {
        self.counter.count().unwrap_or_else(|| {
            let now = proc::thread_cpu_ns(self.pid, self.tid).unwrap_or(0);
            now.saturating_sub(self.cpu_before)
        })
    }

    pub fn counter(&self) -> Option<&OwnedFd> {
        self.counter.event.as_ref()
    }

    /// The counter covers sampled time from now on.
    pub fn count_the_rest(&mut self, counter: OwnedFd) {
        if sys::perf_enable(counter.as_fd()).is_err() {
            return;
        }
        let mut counter = Counter::new(Some(counter));
        if counter.compare(self.pid, self.tid).is_some() {
            self.counter = counter;
        }
    }

    pub fn count_sample(&mut self, time: u64) {
        // Samples lag by a round: /proc includes those before the reading.
        if self.account.is_some_and(|(looked, _)| time > looked) {
            self.since_ns = self.since_ns.saturating_add(self.period_ns);
        }
        self.samples += 1;
        self.sampled_ns = self.sampled_ns.saturating_add(self.period_ns);
        self.ran = true;
    }

    /// Current CPU time of a live thread.
    pub fn cpu_now(&self, time: u64) -> Option<EngineEvent> {
        let cpu = self.counted()?;
        let user = self.last_user.zip(self.user_before);
        Some(EngineEvent::ThreadCpu {
            time: TimeNs(time),
            pid: Pid(self.pid),
            tid: Tid(self.tid),
            cpu: DurationNs(cpu),
            cpu_user: user.map(|((_, user), before)| DurationNs(user.saturating_sub(before))),
        })
    }

    fn counted(&self) -> Option<u64> {
        let counter = &self.counter;
        if counter.event.is_none() {
            let (_, account) = self.account?;
            let cpu = account.saturating_sub(self.cpu_before);
            return Some(cpu.saturating_add(self.since_ns));
        }
        let counted = counter.count()?;
        let (first, now) = (counter.first.unwrap_or(0), counter.now().unwrap_or(0));
        let ahead = if self.counted_from_start {
            now - first
        } else {
            now - i64::try_from(self.cpu_before).ok()?
        };
        Some(counted.saturating_add_signed(ahead))
    }

    /// Reads the CPU time, and its user part with `user_too`.
    pub fn poll(&mut self, user_too: bool) {
        self.ran = false;
        // An exited thread keeps its last reading.
        let scheduled = match self.counter.event {
            Some(_) => self.counter.compare(self.pid, self.tid),
            None => proc::thread_scheduled(self.pid, self.tid).ok(),
        };
        if let Some(scheduled) = scheduled {
            self.slices = scheduled.slices;
            if self.counter.event.is_none() {
                self.account = Some((sys::monotonic_ns(), scheduled.cpu_ns));
                self.since_ns = 0;
            }
        }
        if user_too {
            self.poll_user();
        }
    }

    /// CPU time, sampled time and switches up to the last reading.
    pub fn switches(&self) -> Switches {
        Switches {
            cpu_ns: self.counted().unwrap_or(self.sampled_ns),
            sampled_ns: self.sampled_ns,
            slices: self.slices.saturating_sub(self.slices_before),
        }
    }

    fn poll_user(&mut self) {
        let Ok(stat) = proc::thread_stat(self.pid, self.tid) else {
            return;
        };
        let Ok(cpu) = proc::thread_cpu_ns(self.pid, self.tid) else {
            return;
        };
        if stat.user_ticks.saturating_add(stat.system_ticks) < ENOUGH_TICKS {
            return;
        }
        if let Some(user) = stat.user_part(cpu) {
            self.last_user = Some((cpu, user));
        }
    }

    /// User part of `cpu`, extrapolated from the last reading if that covers at least half.
    fn user_of(&self, cpu: u64) -> Option<u64> {
        let (cpu_then, user_then) = self.last_user?;
        let cpu_then = cpu_then.checked_sub(self.cpu_before)?;
        let user_then = user_then.saturating_sub(self.user_before?).min(cpu_then);
        if cpu_then == 0 || cpu_then < cpu / 2 {
            return None;
        }
        let user = u128::from(cpu) * u128::from(user_then) / u128::from(cpu_then);
        u64::try_from(user).ok()
    }

    /// CPU time and samples at `time`.
    pub fn end(&mut self, time: u64, alive: bool) -> RawThreadEnd {
        if alive {
            self.poll(true);
        }
        let measured = self.counted();
        let cpu = measured.unwrap_or_else(|| {
            // On average, half a period is lost per CPU, and most threads run on two; CPU time
            // cannot exceed the lifetime.
            let lived = time.saturating_sub(self.started);
            (self.sampled_ns + self.period_ns).min(lived)
        });
        let mean = self.sampled_ns.checked_div(self.samples);
        RawThreadEnd {
            time: TimeNs(time),
            pid: Pid(self.pid),
            tid: Tid(self.tid),
            cpu: DurationNs(cpu),
            cpu_measured: measured.is_some(),
            cpu_user: self.user_of(cpu).map(DurationNs),
            samples: self.samples,
            mean_period: DurationNs(mean.unwrap_or(self.period_ns)),
            alive,
        }
    }
}

/// A sampled process.
#[derive(Debug)]
pub(super) struct Process {
    cpu_before: u64,
    user_ticks_before: u64,
}

/// Nanoseconds per tick of /proc (`USER_HZ` is 100 on all Linux).
const TICK_NS: u64 = 10_000_000;

impl Process {
    /// A process whose threads' events have started, and have counted `sampled` ns since. Reading
    /// this before the start would count all CPU time of a long opening as sampled.
    pub fn started(pid: u32, sampled: u64) -> Self {
        let all = sys::process_cpu_ns(pid).unwrap_or(0);
        Self {
            cpu_before: all.saturating_sub(sampled),
            user_ticks_before: proc::process_stat(pid).map_or(0, |stat| stat.user_ticks),
        }
    }

    /// A process started during sampling.
    pub fn born() -> Self {
        Self {
            cpu_before: 0,
            user_ticks_before: 0,
        }
    }

    /// CPU time during sampling, and its user part; `None` after reaping.
    pub fn cpu(&self, pid: u32) -> Option<(u64, Option<u64>)> {
        let cpu = sys::process_cpu_ns(pid).ok()?;
        let stat = proc::process_stat(pid).ok();
        let user = stat.map(|stat| {
            let ticks = stat.user_ticks.saturating_sub(self.user_ticks_before);
            ticks.saturating_mul(TICK_NS)
        });
        let cpu = cpu.saturating_sub(self.cpu_before);
        Some((cpu, user.map(|user| user.min(cpu))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_before_the_start_of_the_events_is_not_sampled_time() {
        let me = std::process::id();
        let now = || sys::process_cpu_ns(me).expect("a clock");
        while now() < 20_000_000 {}
        let before = now();
        let process = Process::started(me, 3_000_000);
        let (cpu, _) = process.cpu(me).expect("alive");
        let since = now() - before;
        assert!(cpu >= 3_000_000, "{cpu}");
        assert!(
            cpu <= 3_000_000 + since,
            "{cpu}, {since} ns since the start"
        );
    }
}
