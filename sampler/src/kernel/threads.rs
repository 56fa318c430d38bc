//! The threads that are sampled, each through exactly one family, and their CPU time.
//!
//! # Sampled once
//!
//! A thread T that was started while its process was being attached to may have
//! inherited the events of the thread that started it *and* have been found in
//! /proc and opened itself; then all that T starts has both, too. The records say
//! which: inherited events carry the id of the event that was opened (`PERF_SAMPLE_ID`
//! is `primary_event_id`). The first family that a thread is seen through is its
//! own from then on; records through another are duplicates and dropped. Seeing T
//! through a foreign family proves that T inherited it at birth, hence also all that
//! T started, so that the family that was opened on T is closed then: nothing but
//! duplicates ends with it.
//!
//! # CPU time
//!
//! `PERF_RECORD_READ` (attr.inherit_stat) is not used, for two reasons that were
//! tried on Linux 6.18: the exiting thread writes one into the ring of *every* CPU
//! from the CPU it is on, although only that CPU may write there without a lock
//! (`perf_output_get_handle`), which can corrupt or freeze a ring that two threads
//! end into at once; and where the kernel swaps the contexts of clones instead of
//! switching them, records are missing or name the wrong thread. Instead a counter
//! that is not inherited is opened on each thread that was found; it can be read after
//! the thread's end. Threads that inherited their events get none: it would make their
//! contexts unlike, and the kernel would no longer swap them; switching them costs some
//! 0.3 % of the ticks where such threads share a CPU (measured: two spinning threads on
//! a loaded machine of two CPUs, 99.6 % delivered with counters, 99.9 % without). Their
//! account in /proc is looked at four times a second, and what came after the last poll is
//! reckoned from their samples; all of it, where they lived shorter.

use std::os::fd::{AsFd as _, OwnedFd};

use vmscope_records::{DurationNs, Pid, Tid, TimeNs};

use super::proc;
use super::sources::FamilyIndex;
use crate::engine::{EngineEvent, RawThreadEnd};
use crate::sys;

/// Ticks (of 10 ms) from which on a split into user and kernel says anything.
const ENOUGH_TICKS: u64 = 10;

/// A counter of a thread's CPU time, and how far the kernel's account is ahead of it.
///
/// /proc is behind by up to a tick of the scheduler (4 or 10 ms) while the thread
/// runs, never before the truth; and the counter runs on while a host has taken the
/// virtual CPU away, or in interrupts, where the account may not. So the two are
/// compared at times: the largest of the last differences is the best.
#[derive(Debug)]
struct Counter {
    event: Option<OwnedFd>,
    /// Account minus counter, in ns, of the last comparisons.
    last: [Option<i64>; 4],
    next: usize,
    /// The largest of the first ones.
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

    fn compare(&mut self, pid: u32, tid: u32) -> Option<()> {
        let counted = self.count()?;
        let all = proc::thread_cpu_ns(pid, tid).ok()?;
        let ahead = i64::try_from(all).ok()? - i64::try_from(counted).ok()?;
        *self.last.get_mut(self.next)? = Some(ahead);
        self.next = (self.next + 1) % self.last.len();
        if self.compared < 4 {
            self.first = self.first.max(Some(ahead));
            self.compared += 1;
        }
        Some(())
    }

    fn now(&self) -> Option<i64> {
        self.last.iter().copied().flatten().max()
    }
}

/// A thread in the table.
#[derive(Debug)]
pub(super) struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// When it started, or was found.
    pub started: u64,
    /// The family that its records are taken from.
    pub family: Option<FamilyIndex>,
    /// The family that was opened on it, if one was.
    pub own: Option<FamilyIndex>,
    /// The period it is sampled at now.
    pub period_ns: u64,
    /// Samples delivered.
    pub samples: u64,
    /// The sum of the periods that they were taken at.
    sampled_ns: u64,
    /// Re-draw the period at so many samples.
    pub redraw_at: u64,
    counter: Counter,
    /// Without a counter: when /proc was last looked at, and its account.
    account: Option<(u64, u64)>,
    /// The periods of the samples since then.
    since_ns: u64,
    /// Whether the counter ran since the thread is sampled, or began later.
    counted_from_start: bool,
    /// CPU time before it was sampled.
    pub cpu_before: u64,
    user_before: Option<u64>,
    /// CPU time (in all) and its user part when it was last asked.
    last_user: Option<(u64, u64)>,
    /// Whether it had samples since then.
    pub ran: bool,
    /// Whether it was not in /proc at the last poll.
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
            ran: false,
            missing: false,
        }
    }

    /// Notes what a thread that was found had done before it was sampled.
    pub fn note_before(&mut self) {
        self.cpu_before = proc::thread_cpu_ns(self.pid, self.tid).unwrap_or(0);
        let stat = proc::thread_stat(self.pid, self.tid).ok();
        self.user_before = stat.map(|stat| stat.user_part(self.cpu_before).unwrap_or(0));
    }

    /// Counts from now on: what is read is all since the thread was sampled.
    pub fn count_from_start(&mut self, counter: OwnedFd) {
        self.counter = Counter::new(Some(counter));
        self.counted_from_start = true;
    }

    pub fn counter(&self) -> Option<&OwnedFd> {
        self.counter.event.as_ref()
    }

    /// Counts the rest of the life of a thread that was sampled from its birth.
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
        // Samples come out a round late: those from before the poll are in its account.
        if self.account.is_some_and(|(looked, _)| time > looked) {
            self.since_ns = self.since_ns.saturating_add(self.period_ns);
        }
        self.samples += 1;
        self.sampled_ns = self.sampled_ns.saturating_add(self.period_ns);
        self.ran = true;
    }

    /// What it has used by now, to be told while it lives.
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

    /// Asks for its CPU time, and the user part of it, to have them when it ends.
    pub fn poll(&mut self, user_too: bool) {
        self.ran = false;
        // One that has just ended keeps what was found before.
        let _ = self.counter.compare(self.pid, self.tid);
        if self.counter.event.is_none()
            && let Ok(account) = proc::thread_cpu_ns(self.pid, self.tid)
        {
            self.account = Some((sys::monotonic_ns(), account));
            self.since_ns = 0;
        }
        if user_too {
            self.poll_user();
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

    /// The user part of `cpu`, from the last time it was asked for, when that covers
    /// at least half: the rest is split in the same proportion.
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

    /// Its account at `time`.
    pub fn end(&mut self, time: u64, alive: bool) -> RawThreadEnd {
        if alive {
            self.poll(true);
        }
        let measured = self.counted();
        let cpu = measured.unwrap_or_else(|| {
            // On average half a period has gone by on each CPU that it ran on, and
            // most run on two; and it cannot have run for longer than it lived.
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

/// A process whose threads are sampled.
#[derive(Debug)]
pub(super) struct Process {
    pub cpu_before: u64,
    user_ticks_before: u64,
}

/// Nanoseconds in a tick of /proc (`USER_HZ` is 100 on all Linux has).
const TICK_NS: u64 = 10_000_000;

impl Process {
    /// A process that was there before.
    pub fn found(pid: u32) -> Self {
        Self {
            cpu_before: sys::process_cpu_ns(pid).unwrap_or(0),
            user_ticks_before: proc::process_stat(pid).map_or(0, |stat| stat.user_ticks),
        }
    }

    /// A process that was started while it was sampled.
    pub fn born() -> Self {
        Self {
            cpu_before: 0,
            user_ticks_before: 0,
        }
    }

    /// Its CPU time since then, and the user part; `None` when it is gone.
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
