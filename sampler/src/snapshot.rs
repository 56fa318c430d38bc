//! All threads of a process once: registers and stacks, with ptrace.
//!
//! The engine stops 16 threads at a time. Each thread goes on after its copy: some tens of
//! microseconds for a usual stack. So the stacks show different moments. If vmscope dies, the kernel
//! lets all threads go on.

mod core;

pub use self::core::CoreEngine;

use crate::engine::{Engine, EngineDescription, EngineError, EngineEvent, EngineState, RawSample};
use crate::proc;
use crate::session::{now, unwind::innermost};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vmscope_process::{LiveMemory, MapEntry, Memory, read_maps};
use vmscope_records::{
    Arch, Avma, CpuMode, DurationNs, Limit, LimitKind, Pid, Registers, SampleClock, SampleDetail,
    StackBytes, Tid,
};

/// Pause between two looks at the shutter.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Pause between two looks for stopped threads.
const WAIT_EVERY: Duration = Duration::from_micros(20);

/// Threads that are asked to stop together, and copied between two deliveries.
const BATCH: usize = 16;

/// Time without a stop after which further threads are asked: the others wait for a CPU.
const QUIET: Duration = Duration::from_millis(1);

/// Pause without a stop that ends the wait for threads that are not runnable. Threads in uninterruptible
/// sleep do not stop.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

/// Longest time of all stops, where a busy machine lets threads wait for a CPU.
const ALL_WITHIN: Duration = Duration::from_secs(30);

/// Longest copied stack of a thread.
const MAX_STACK: u64 = 1 << 20;

/// See the [module](self).
#[derive(Debug)]
pub struct SnapshotEngine {
    description: EngineDescription,
    pid: Pid,
    shutter: Arc<AtomicBool>,
    taking: Option<Taking>,
}

/// A snapshot under way.
#[derive(Debug)]
struct Taking {
    /// Threads still to be asked, the next last.
    left: Vec<u32>,
    /// Threads that were asked to stop.
    asked: FxHashSet<u32>,
    mappings: Vec<MapEntry>,
    began: Instant,
    last_stop: Instant,
}

/// Releases the snapshot.
#[derive(Debug)]
pub struct Shutter(Arc<AtomicBool>);

impl Shutter {
    /// A shutter, and its state: whether it was released.
    fn new() -> (Self, Arc<AtomicBool>) {
        let state = Arc::new(AtomicBool::new(false));
        (Shutter(Arc::clone(&state)), state)
    }

    /// The engine copies the threads from now on, and ends.
    pub fn release(self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// The thread.
    pub tid: Tid,
    /// The kernel's letter: `R` running or ready, `S` sleeping, `D` uninterruptible, `T` stopped …
    /// (`proc_pid_stat(5)`).
    pub letter: char,
}

/// States of all threads of a process; empty if it has ended.
#[must_use]
pub fn thread_states(pid: Pid) -> Vec<ThreadState> {
    let tids = proc::threads(pid.0).unwrap_or_default().into_iter();
    let state = |tid| {
        let stat = proc::thread_stat(pid.0, tid).ok()?;
        let (tid, letter) = (Tid(tid), char::from(stat.state));
        Some(ThreadState { tid, letter })
    };
    tids.filter_map(state).collect()
}

impl SnapshotEngine {
    /// An engine that waits for its shutter.
    #[must_use]
    pub fn new(pid: Pid) -> (Self, Shutter) {
        let (shutter, released) = Shutter::new();
        let engine = SnapshotEngine {
            description: description(),
            pid,
            shutter: released,
            taking: None,
        };
        (engine, shutter)
    }

    fn begin(&self) -> Taking {
        let mut left = proc::threads(self.pid.0).unwrap_or_default();
        left.reverse();
        let maps = read_maps(self.pid).map(|maps| maps.entries);
        Taking {
            left,
            asked: FxHashSet::default(),
            mappings: maps.unwrap_or_default(),
            began: Instant::now(),
            last_stop: Instant::now(),
        }
    }

    /// Asks a thread to stop. Leaves out ended threads.
    fn ask(
        &self,
        tid: u32,
        taking: &mut Taking,
        out: &mut Vec<EngineEvent>,
    ) -> Result<(), EngineError> {
        let Ok(stat) = proc::thread_stat(self.pid.0, tid) else {
            return Ok(());
        };
        out.push(EngineEvent::ThreadStarted {
            time: now(),
            pid: self.pid,
            tid: Tid(tid),
            parent_tid: None,
            name: Some(stat.name),
            cpu_before: DurationNs(proc::thread_cpu_ns(self.pid.0, tid).unwrap_or(0)),
        });
        let asked = raw(tid).map_or(Ok(()), |raw| {
            ptrace::seize(raw, ptrace::Options::empty()).and_then(|()| ptrace::interrupt(raw))
        });
        match asked {
            Ok(()) => drop(taking.asked.insert(tid)),
            Err(Errno::ESRCH) => {}
            Err(Errno::EPERM) if self.is_exiting(tid) => {}
            Err(errno) => {
                return Err(EngineError::Syscall {
                    operation: "ptrace",
                    object: format!("thread {tid} of process {}", self.pid),
                    source: errno.into(),
                });
            }
        }
        Ok(())
    }

    /// Whether a thread exits: the kernel refuses it.
    fn is_exiting(&self, tid: u32) -> bool {
        proc::thread_stat(self.pid.0, tid).map_or(true, |stat| stat.is_exiting())
    }

    /// Copies a stopped thread, and lets it go on.
    fn copy(&self, stopped: &Stopped, mappings: &[MapEntry], out: &mut Vec<EngineEvent>) {
        let time = now();
        let registers = ptrace::getregs(stopped.tid).ok();
        let registers = registers.map(|registers| of_ptrace(&registers));
        let frame = registers.as_ref().and_then(innermost);
        let memory = LiveMemory::new(self.pid);
        let stack = frame.map(|frame| stack_from(&memory, Avma(frame.sp), mappings));
        // Fails for a thread that was killed.
        let _ = ptrace::detach(stopped.tid, stopped.signal);
        out.push(EngineEvent::Sample(RawSample {
            time,
            pid: self.pid,
            tid: Tid(stopped.tid.as_raw().unsigned_abs()),
            pc: Avma(frame.map_or(0, |frame| frame.pc)),
            mode: CpuMode::User,
            detail: Some(Box::new(SampleDetail {
                registers,
                stack,
                ..SampleDetail::default()
            })),
        }));
    }

    /// Whether waiting for further stops is useless.
    fn is_in_vain(&self, taking: &Taking) -> bool {
        let is_runnable =
            |tid: &u32| proc::thread_stat(self.pid.0, *tid).is_ok_and(|stat| stat.state == b'R');
        taking.began.elapsed() > ALL_WITHIN
            || (taking.last_stop.elapsed() > STOPS_WITHIN && !taking.asked.iter().any(is_runnable))
    }

    /// Copies threads until a batch is full or `timeout` is over.
    fn take(
        &self,
        taking: &mut Taking,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        let began = Instant::now();
        let mut copied = 0;
        while copied < BATCH && began.elapsed() < timeout {
            if let Some(stopped) = Stopped::next(&mut taking.asked) {
                self.copy(&stopped, &taking.mappings, out);
                taking.last_stop = Instant::now();
                copied += 1;
            } else if !taking.left.is_empty() {
                if taking.asked.is_empty() || taking.last_stop.elapsed() > QUIET {
                    let next = taking.left.len().saturating_sub(BATCH);
                    for tid in taking.left.split_off(next).into_iter().rev() {
                        self.ask(tid, taking, out)?;
                    }
                    taking.last_stop = Instant::now();
                }
            } else if taking.asked.is_empty() {
                return Ok(EngineState::TargetsGone);
            } else if self.is_in_vain(taking) {
                let time = now();
                out.extend(taking.asked.drain().map(|tid| {
                    let text = format!("thread {tid} did not stop: it waits in the kernel");
                    EngineEvent::Limit(Limit {
                        time,
                        kind: LimitKind::NotSampled,
                        text,
                        remedy: String::new(),
                    })
                }));
            } else {
                std::thread::sleep(WAIT_EVERY);
            }
        }
        Ok(EngineState::Running)
    }
}

impl Engine for SnapshotEngine {
    fn description(&self) -> &EngineDescription {
        &self.description
    }

    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        if !is_released(&self.shutter, timeout) {
            return Ok(EngineState::Running);
        }
        let mut taking = self.taking.take().unwrap_or_else(|| self.begin());
        let state = self.take(&mut taking, timeout, out);
        self.taking = Some(taking);
        state
    }

    fn finish(&mut self, _: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
        Ok(())
    }
}

fn description() -> EngineDescription {
    EngineDescription {
        name: "snapshot",
        clock: SampleClock::Wall,
        // A recording has a period; nothing counts these samples.
        period: DurationNs(1),
        kernel_included: false,
        began: now(),
        limits: Vec::new(),
    }
}

/// Whether a shutter was released; otherwise after a pause.
fn is_released(shutter: &AtomicBool, timeout: Duration) -> bool {
    let is_released = shutter.load(Ordering::Acquire);
    if !is_released {
        std::thread::sleep(timeout.min(LOOK_EVERY));
    }
    is_released
}

/// The stack from `sp` to the end of its mapping.
fn stack_from(memory: &dyn Memory, sp: Avma, mappings: &[MapEntry]) -> StackBytes {
    let entry = mappings.iter().find(|entry| entry.contains(sp));
    let length = entry.map_or(0, |entry| (entry.end.0 - sp.0).min(MAX_STACK));
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let read = memory.read_partial(sp, &mut bytes);
    bytes.truncate(read.unwrap_or(0));
    StackBytes { sp, bytes }
}

/// A thread stopped by ptrace.
struct Stopped {
    tid: nix::unistd::Pid,
    /// Signal that the stop has held back.
    signal: Option<Signal>,
}

impl Stopped {
    /// The next of the `asked` threads that has stopped, no longer among them.
    fn next(asked: &mut FxHashSet<u32>) -> Option<Self> {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD | WaitPidFlag::WNOHANG;
        let status = waitpid(None, Some(flags)).ok()?;
        let tid = status.pid()?;
        asked.remove(&tid.as_raw().unsigned_abs());
        match status {
            WaitStatus::PtraceEvent(tid, ..) => Some(Stopped { tid, signal: None }),
            WaitStatus::Stopped(tid, signal) => {
                let signal = Some(signal);
                Some(Stopped { tid, signal })
            }
            // It has ended.
            _ => None,
        }
    }
}

fn raw(tid: u32) -> Option<nix::unistd::Pid> {
    i32::try_from(tid).ok().map(nix::unistd::Pid::from_raw)
}

/// In the kernel's order of `perf_regs.h`.
#[cfg(target_arch = "x86_64")]
fn of_ptrace(r: &nix::libc::user_regs_struct) -> Registers {
    // The segment registers lie between the flags and r8.
    let low = [
        r.rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp, r.rsp, r.rip, r.eflags,
    ];
    let high = [r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    Registers {
        arch: Arch::X86_64,
        mask: 0x00ff_03ff,
        values: low.into_iter().chain(high).collect(),
    }
}

/// In the kernel's order of `perf_regs.h`: x0 to x30, sp, pc.
#[cfg(target_arch = "aarch64")]
fn of_ptrace(r: &nix::libc::user_regs_struct) -> Registers {
    Registers {
        arch: Arch::Aarch64,
        mask: 0x1_ffff_ffff,
        values: r.regs.into_iter().chain([r.sp, r.pc]).collect(),
    }
}
