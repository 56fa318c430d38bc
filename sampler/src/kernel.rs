//! The kernel engine: `perf_event_open` with the software cpu-clock.
//!
//! Each thread is sampled on its own CPU time: the clock runs only while the thread
//! does. What the kernel does not do, and what follows from it:
//!
//! - A tick that comes late (interrupts off, a virtual CPU that its host stopped) is
//!   not made up for: the next one comes a period later (`hrtimer_forward_now`).
//!   Delivery is therefore checked against the threads' CPU time (TRUTH.md §2).
//! - The first tick comes a whole period after a thread's start *on each CPU*, and
//!   what has gone by of a period is lost when it ends: half a period for each CPU
//!   that it ran on, on average. A thread shorter than a period has no samples.
//! - `PERF_EVENT_IOC_PERIOD` reaches the events that were opened, not those inherited
//!   from them: a thread that started later keeps the period it was born with. So
//!   that such threads have the requested one, the period of a thread that has
//!   started others is set back to it and not re-drawn any more.
//! - An exec of a set-uid program ends the events (`setup_new_exec`): it is not followed.

mod attr;
mod decode;
mod follow;
mod open;
mod order;
mod probe;
mod proc;
mod ring;
mod sources;
mod threads;

pub use probe::{Probe, probe};

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{DurationNs, Limit, LimitKind, LossReason, Pid, Tid, TimeNs};

use self::decode::{Body, Decoded};
use self::order::Sorter;
use self::sources::Sources;
use self::threads::{Process, Thread};
use crate::engine::{Engine, EngineDescription, EngineError, EngineEvent, EngineState};
use crate::launch::HeldCommand;
use crate::rate::SamplingRate;
use crate::sys;

/// What the kernel engine is asked for.
#[derive(Clone, Debug, Default)]
pub struct KernelOptions {
    /// How often to sample.
    pub rate: SamplingRate,
    /// Caller chains by frame pointer, of at most so many frames (kernel and user
    /// together); `perf_event_max_stack` (127 by default) bounds it too.
    pub call_graph_depth: Option<u16>,
    /// User registers to take, by the kernel's numbers (`perf_regs.h`); 0 for none.
    pub registers: u64,
    /// Bytes of user stack to take, rounded down to a multiple of 8; 0 for none. The
    /// stack pointer is then taken too.
    pub stack_bytes: u16,
    /// Open no more descriptors than this; the limit of the system (RLIMIT_NOFILE,
    /// raised to its hard limit) holds too.
    pub max_descriptors: Option<u64>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct KernelEngine {
    description: EngineDescription,
    /// What was attached to or launched.
    target: u32,
    /// Follow the processes that the target starts.
    children: bool,
    pidfd: OwnedFd,
    sources: Sources,
    sorter: Sorter,
    threads: FxHashMap<u32, Thread>,
    processes: FxHashMap<u32, Process>,
    /// Events that were throttled, and since when.
    throttled: FxHashMap<u64, u64>,
    /// When the threads were last looked for in /proc.
    last_poll: u64,
    /// When they were last asked for their CPU time.
    last_ask: u64,
    /// Threads that were in /proc and not in the table at the last poll: their start
    /// may only not have come out of the sorter yet.
    unknown: FxHashSet<u32>,
    /// Poll again soon: something was lost.
    poll_now: bool,
    /// Samples of a thread that was sampled twice, dropped.
    duplicates: u64,
    /// Threads that could not be opened, said so already.
    unsampled_said: bool,
    rng: fastrand::Rng,
    poll_set: sys::PollSet,
    finished: bool,
    /// Events of the opening, to go out first.
    first: Vec<EngineEvent>,
}

impl KernelEngine {
    /// Attaches to a running process: its threads, and those that they start, are
    /// sampled from here on; processes that it starts are not.
    ///
    /// # Errors
    /// [`EngineError`], for each reason of its own why this process cannot be sampled.
    pub fn attach(pid: Pid, options: &KernelOptions) -> Result<Self, EngineError> {
        Self::open(pid.0, options, false)
    }

    /// Opens the events on a command that is held before its exec, so that they begin
    /// with it; children are followed. Let the command go afterwards, and do not wait
    /// for its end before [`Engine::finish`]: its CPU time is read from the zombie.
    ///
    /// # Errors
    /// [`EngineError`]; drop the held command then.
    pub fn follow(command: &HeldCommand, options: &KernelOptions) -> Result<Self, EngineError> {
        Self::open(command.pid().0, options, true)
    }

    /// Samples dropped because their thread was sampled a second time; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Records that came too late for their time and were moved; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn late(&self) -> u64 {
        self.sorter.late()
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, EngineError> {
        self.poll_set.clear();
        self.poll_set.push(sys::poll_entry(self.pidfd.as_fd()));
        let slots = self.sources.slots.iter().filter(|slot| !slot.hung_up);
        self.poll_set
            .extend(slots.map(|slot| sys::poll_entry(slot.owner.as_fd())));
        sys::poll(&mut self.poll_set, timeout).map_err(|source| EngineError::Syscall {
            operation: "poll",
            object: format!("the rings of process {}", self.target),
            source,
        })?;
        let mut seen = self.poll_set.iter().map(sys::polled);
        let gone = seen
            .next()
            .is_some_and(|polled| polled.readable || polled.hung_up);
        let slots = self.sources.slots.iter_mut().filter(|slot| !slot.hung_up);
        // A ring that is hung up would wake us for ever. It is still read.
        for (slot, polled) in slots.zip(seen) {
            slot.hung_up = polled.hung_up;
        }
        Ok(gone)
    }

    /// Reads all rings into the sorter.
    fn read_rings(&mut self, out: &mut Vec<EngineEvent>) {
        let released = self.sorter.horizon();
        let now = sys::monotonic_ns();
        self.sorter.begin_round(now);
        let extras = self.sources.recipe.extras;
        for slot in &mut self.sources.slots {
            let mut undecodable = 0;
            let before = slot.last_time;
            let mut last = before;
            let sorter = &mut self.sorter;
            let mut lost = false;
            let round = slot.ring.read(|record| {
                let Some(mut decoded) = decode::decode(record, &extras) else {
                    undecodable += 1;
                    return;
                };
                if let Body::Lost { from, .. } = &mut decoded.body {
                    *from = last;
                    lost = true;
                }
                last = decoded.time;
                sorter.push(decoded, released);
            });
            slot.last_time = last;
            undecodable += u64::from(round.garbage);
            if undecodable > 0 {
                // In the order of things at the end of what made sense.
                let reason = LossReason::Undecodable;
                sorter.push(Decoded::lost(reason, undecodable, before, now), released);
            }
            // A start or an end may be among what was lost.
            self.poll_now |= lost || undecodable > 0;
        }
        self.sources.drop_retired();
        out.append(&mut self.first);
    }

    /// Passes on what is complete, in order.
    fn release(&mut self, out: &mut Vec<EngineEvent>) {
        let mut sorter = std::mem::take(&mut self.sorter);
        for record in sorter.ready() {
            self.process(record, out);
        }
        self.sorter = sorter;
    }
}

/// A loss whose thread is not known.
fn lost(reason: LossReason, count: u64, from: u64, to: u64) -> EngineEvent {
    EngineEvent::Lost {
        reason,
        count,
        from: TimeNs(from),
        to: TimeNs(to),
        tid: None::<Tid>,
    }
}

fn limit(time: u64, kind: LimitKind, text: impl Into<String>, remedy: &str) -> Limit {
    Limit {
        time: TimeNs(time),
        kind,
        text: text.into(),
        remedy: remedy.into(),
    }
}

impl Engine for KernelEngine {
    fn description(&self) -> &EngineDescription {
        &self.description
    }

    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        let gone = self.wait(timeout)?;
        self.read_rings(out);
        self.release(out);
        self.poll_if_due(out);
        Ok(if gone {
            EngineState::TargetGone
        } else {
            EngineState::Running
        })
    }

    fn finish(&mut self, out: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.sources.disable_all();
        self.read_rings(out);
        let now = sys::monotonic_ns();
        self.sorter.close(now);
        self.release(out);
        let time = self.sorter.horizon();
        self.end_all(time, out);
        Ok(())
    }
}

impl From<SamplingRate> for KernelOptions {
    fn from(rate: SamplingRate) -> Self {
        Self {
            rate,
            ..Self::default()
        }
    }
}

/// The mean period as the description gives it.
fn period_of(options: &KernelOptions) -> DurationNs {
    options.rate.period()
}
