//! The kernel engine: `perf_event_open` with the software cpu-clock.
//!
//! Each thread is sampled on its own CPU time. Properties of the kernel's clock:
//!
//! - A late tick (interrupts off, a stopped virtual CPU) is lost: the next tick follows a period
//!   later (`hrtimer_forward_now`). Delivery is therefore checked against CPU time (docs/truth.md §2).
//! - The first tick follows a whole period after a thread's start *on each CPU*, and a partial
//!   period is lost at its end: on average half a period per CPU. A thread shorter than a period has
//!   no samples.
//! - `PERF_EVENT_IOC_PERIOD` changes opened events, not inherited ones: a started thread keeps its
//!   initial period. A thread with children therefore returns to the requested period, without
//!   further re-draws.
//! - An exec of a set-uid program ends the events (`setup_new_exec`).

mod attr;
mod decode;
mod follow;
mod open;
mod order;
mod probe;
mod ring;
mod sources;
mod switches;
mod threads;

pub(crate) use open::{check_target, stopped};
pub use probe::{FirstEvent, Probe, probe};

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{DurationNs, Limit, LimitKind, LossReason, Pid, Tid, TimeNs};

use self::decode::{Body, Decoded};
use self::order::Sorter;
use self::sources::Sources;
use self::switches::Switches;
use self::threads::{Process, Thread};
use crate::engine::{Engine, EngineDescription, EngineError, EngineEvent, EngineState};
use crate::launch::HeldCommand;
use crate::rate::SamplingRate;
use crate::sys;

/// Options of the kernel engine.
#[derive(Clone, Debug, Default)]
pub struct KernelOptions {
    /// Sampling rate.
    pub rate: SamplingRate,
    /// Callers of each sample.
    pub call_graph: Option<CallGraph>,
    /// User registers by kernel number (`perf_regs.h`); 0 for none.
    pub registers: u64,
    /// Bytes of user stack, rounded down to a multiple of 8; 0 for none. Includes the stack pointer
    /// register.
    pub stack_bytes: u16,
    /// Maximum open descriptors, besides RLIMIT_NOFILE (raised to its hard limit).
    pub max_descriptors: Option<u64>,
    /// Progress of the opening, for whoever waits.
    pub opening: Arc<Opening>,
}

/// Callers of each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallGraph {
    /// Maximum number of callers. `perf_event_max_stack` (127 by default) bounds what the kernel
    /// follows itself.
    pub depth: u16,
    /// Where user callers come from.
    pub from: UserCallers,
}

/// Source of user callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCallers {
    /// The kernel follows frame pointers.
    FramePointers,
    /// Each sample gets registers and this many bytes of user stack, for
    /// [`SessionOptions::unwind_depth`](crate::session::SessionOptions::unwind_depth).
    Stack(u16),
}

/// Progress of opening the targets' threads, readable from any thread.
#[derive(Debug, Default)]
pub struct Opening {
    opened: AtomicUsize,
    threads: AtomicUsize,
}

impl Opening {
    /// Threads with events, and all threads of the targets; zeros before the first.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        let read = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        (read(&self.opened), read(&self.threads))
    }

    fn expect(&self, threads: usize) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    fn opened(&self, threads: usize) {
        self.opened.store(threads, Ordering::Relaxed);
    }
}

/// See the [module](self).
#[derive(Debug)]
pub struct KernelEngine {
    description: EngineDescription,
    /// The attached processes, or the launched one.
    targets: Vec<Target>,
    /// Sample the targets' children too.
    children: bool,
    sources: Sources,
    sorter: Sorter,
    threads: FxHashMap<u32, Thread>,
    processes: FxHashMap<u32, Process>,
    /// Throttled events: id to start time.
    throttled: FxHashMap<u64, u64>,
    /// Last comparison with /proc.
    last_poll: u64,
    /// Last reading of CPU times.
    last_ask: u64,
    /// Threads in /proc without a record at the last comparison; the sorter may still hold their start
    /// records.
    unknown: FxHashSet<u32>,
    /// Compare with /proc soon: records were lost.
    poll_now: bool,
    /// Dropped samples of threads sampled twice.
    duplicates: u64,
    /// The limit for unsampled threads was emitted.
    unsampled_said: bool,
    rng: fastrand::Rng,
    poll_set: sys::PollSet,
    /// CPU time and switches of ended threads.
    switches: Switches,
    finished: bool,
    /// Events from opening, for the first drain.
    first: Vec<EngineEvent>,
}

/// An attached or launched process.
#[derive(Debug)]
struct Target {
    pid: u32,
    pidfd: OwnedFd,
    has_exited: bool,
    /// Limit of a stopped process.
    stopped: Option<Limit>,
}

impl KernelEngine {
    /// Attaches to running processes: their threads, present and future, are sampled; their
    /// children are not.
    ///
    /// # Errors
    /// [`EngineError`], of the first process that cannot be sampled.
    pub fn attach(pids: &[Pid], options: &KernelOptions) -> Result<Self, EngineError> {
        let pids: Vec<u32> = pids.iter().map(|pid| pid.0).collect();
        Self::open(&pids, options, false)
    }

    /// Opens events on a held command and its future children; sampling begins with the exec.
    /// Release the command afterwards, and reap it after [`Engine::finish`] only: its CPU time is
    /// read from the zombie.
    ///
    /// # Errors
    /// [`EngineError`]; drop the held command.
    pub fn follow(command: &HeldCommand, options: &KernelOptions) -> Result<Self, EngineError> {
        Self::open(&[command.pid().0], options, true)
    }

    /// Dropped duplicate samples; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Records moved because of late arrival; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn late(&self) -> u64 {
        self.sorter.late()
    }

    /// Waits for samples; whether all targets have exited.
    fn wait(&mut self, timeout: Duration) -> Result<bool, EngineError> {
        self.poll_set.clear();
        let alive = self.targets.iter().filter(|target| !target.has_exited);
        self.poll_set
            .extend(alive.map(|target| sys::poll_entry(target.pidfd.as_fd())));
        let slots = self.sources.slots.iter().filter(|slot| !slot.hung_up);
        self.poll_set
            .extend(slots.map(|slot| sys::poll_entry(slot.owner.as_fd())));
        sys::poll(&mut self.poll_set, timeout).map_err(|source| EngineError::Syscall {
            operation: "poll",
            object: "the rings".to_owned(),
            source,
        })?;
        let mut seen = self.poll_set.iter().map(sys::polled);
        let alive = self.targets.iter_mut().filter(|target| !target.has_exited);
        for (target, polled) in alive.zip(&mut seen) {
            target.has_exited = polled.readable || polled.hung_up;
        }
        let slots = self.sources.slots.iter_mut().filter(|slot| !slot.hung_up);
        // Polling a hung-up ring never waits; its records are still read.
        for (slot, polled) in slots.zip(seen) {
            slot.hung_up = polled.hung_up;
        }
        Ok(self.targets.iter().all(|target| target.has_exited))
    }

    fn is_target(&self, pid: u32) -> bool {
        self.targets.iter().any(|target| target.pid == pid)
    }

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
                // Timed after the readable records.
                let reason = LossReason::Undecodable;
                sorter.push(Decoded::lost(reason, undecodable, before, now), released);
            }
            // The lost records may include starts and ends.
            self.poll_now |= lost || undecodable > 0;
        }
        self.sources.drop_retired();
        out.append(&mut self.first);
    }

    /// Processes complete records in time order.
    fn release(&mut self, out: &mut Vec<EngineEvent>) {
        let mut sorter = std::mem::take(&mut self.sorter);
        for record in sorter.ready() {
            self.process(record, out);
        }
        self.sorter = sorter;
    }
}

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
            EngineState::TargetsGone
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

fn period_of(options: &KernelOptions) -> DurationNs {
    options.rate.period()
}
