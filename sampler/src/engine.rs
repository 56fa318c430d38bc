//! What every engine is to the session: a source of events in time order.

use std::io;
use std::time::Duration;

use vmscope_records::{
    Avma, CpuMode, DurationNs, FileOffset, Limit, LossReason, Pid, SampleClock, SampleDetail, Tid,
    TimeNs,
};

use crate::rate::RateError;

/// A way of sampling a process.
///
/// What [`Engine::drain`] and [`Engine::finish`] append is in time order over the
/// engine's whole life: an engine holds back what may still be overtaken.
pub trait Engine: Send {
    /// What this engine is, and what it found when it was opened.
    fn description(&self) -> &EngineDescription;

    /// Waits at most `timeout` for something to happen and appends what did to
    /// `out`. Meant to be called in a loop, about ten times a second.
    ///
    /// # Errors
    /// [`EngineError`] when sampling cannot go on. What was appended before stays
    /// valid, and [`Engine::finish`] may still be called.
    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError>;

    /// Stops sampling, appends the rest, and closes every thread that is still
    /// alive with its CPU time.
    ///
    /// # Errors
    /// [`EngineError`]; nothing is left running in either case.
    fn finish(&mut self, out: &mut Vec<EngineEvent>) -> Result<(), EngineError>;
}

/// Whether there is still something to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// The target lives.
    Running,
    /// The process that was attached to or launched has ended. Its children may
    /// live on (a daemon): they are not waited for.
    TargetGone,
}

/// What an engine is and what it can deliver.
#[derive(Clone, Debug)]
pub struct EngineDescription {
    /// `kernel`, `stop` or `in-vm`.
    pub name: &'static str,
    /// Which clock its samples follow.
    pub clock: SampleClock,
    /// The mean distance between two samples of a thread on that clock.
    pub period: DurationNs,
    /// Whether samples in the kernel are delivered.
    pub kernel_included: bool,
    /// What limits it here, found while it was opened.
    pub limits: Vec<Limit>,
}

/// A sample as an engine takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// When.
    pub time: TimeNs,
    /// Which process.
    pub pid: Pid,
    /// Which thread.
    pub tid: Tid,
    /// The address of the next instruction.
    pub pc: Avma,
    /// The mode that `pc` belongs to.
    pub mode: CpuMode,
    /// What was asked for beyond that.
    pub detail: Option<Box<SampleDetail>>,
}

/// A range of a process became a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMapping {
    /// When.
    pub time: TimeNs,
    /// Which process.
    pub pid: Pid,
    /// First address.
    pub start: Avma,
    /// Length in bytes.
    pub len: u64,
    /// Where in the file `start` lies.
    pub offset: FileOffset,
    /// The file's device.
    pub major: u32,
    /// See `major`.
    pub minor: u32,
    /// The file's inode; 0 for anonymous memory and the vdso.
    pub inode: u64,
    /// The path as the target sees it, `//anon`, `[vdso]`, …: bytes, not text.
    pub path: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// A thread's account, when it ends or the recording does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawThreadEnd {
    /// When.
    pub time: TimeNs,
    /// Which process.
    pub pid: Pid,
    /// Which thread.
    pub tid: Tid,
    /// CPU time while it was sampled, user and kernel.
    pub cpu: DurationNs,
    /// Whether `cpu` was measured (at least up to a second before the end). Else the
    /// thread was over before it could be asked, and `cpu` is reckoned from its
    /// samples, good to about one period per CPU it ran on: take the promised samples
    /// of short threads from [`EngineEvent::ProcessEnded`].
    pub cpu_measured: bool,
    /// The user part of `cpu`, where it is known.
    pub cpu_user: Option<DurationNs>,
    /// How many samples of it were delivered.
    pub samples: u64,
    /// The mean of the periods at which those samples were taken: a little more or
    /// less than the requested one, as it is re-drawn (the requested one where
    /// there were no samples). Promised samples are `cpu / mean_period`.
    pub mean_period: DurationNs,
    /// Whether the thread was still alive (the recording ended first).
    pub alive: bool,
}

/// Something that happened in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineEvent {
    /// A thread was somewhere.
    Sample(RawSample),
    /// A thread started, or was found when the engine attached.
    ThreadStarted {
        /// When it started or was found.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Which thread started it, where known.
        parent_tid: Option<Tid>,
        /// Its name, where known. A new thread has its parent's until a
        /// [`EngineEvent::Renamed`].
        name: Option<String>,
        /// CPU time it had used before it was sampled.
        cpu_before: DurationNs,
    },
    /// A process forked; its first thread (tid = pid) has started with it.
    ProcessForked {
        /// When.
        time: TimeNs,
        /// The new process.
        pid: Pid,
        /// The old one.
        parent_pid: Pid,
        /// The thread that forked.
        parent_tid: Tid,
    },
    /// A process replaced its program: its mappings and its other threads are gone.
    Exec {
        /// When.
        time: TimeNs,
        /// Which process.
        pid: Pid,
        /// The thread that goes on.
        tid: Tid,
        /// The new program's name (`comm`, at most 15 bytes).
        name: String,
    },
    /// A thread changed its name.
    Renamed {
        /// When.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// Which thread.
        tid: Tid,
        /// The new name (`comm`, at most 15 bytes).
        name: String,
    },
    /// A thread ended, or the recording did.
    ThreadEnded(Box<RawThreadEnd>),
    /// How much CPU time a living thread has used: told some times a second while it
    /// changes. Its time is that of the reading, which is ahead of what comes out
    /// around it: the one exception to the order of events.
    ThreadCpu {
        /// When it was read.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// Which thread.
        tid: Tid,
        /// CPU time while it was sampled, user and kernel.
        cpu: DurationNs,
        /// The user part, where known; to a clock tick (10 ms).
        cpu_user: Option<DurationNs>,
    },
    /// A process ended, or the recording did; with the account over all its threads,
    /// which includes those too short to be measured one by one.
    ProcessEnded {
        /// When it was read.
        time: TimeNs,
        /// Which process.
        pid: Pid,
        /// Whether it was still alive (the recording ended first).
        alive: bool,
        /// CPU time while it was sampled, user and kernel, exact to the nanosecond;
        /// `None` where it could not be read in time.
        cpu: Option<DurationNs>,
        /// The user part, where known; to a clock tick (10 ms).
        cpu_user: Option<DurationNs>,
    },
    /// Memory was mapped, or became executable.
    Mapped(Box<RawMapping>),
    /// Records were lost.
    Lost {
        /// Why.
        reason: LossReason,
        /// How many.
        count: u64,
        /// After this time …
        from: TimeNs,
        /// … and before this.
        to: TimeNs,
        /// Whose, where known.
        tid: Option<Tid>,
    },
    /// Something that limits the truth of the recording was found.
    Limit(Limit),
}

impl EngineEvent {
    /// When it happened; of a loss, the end of its span.
    #[must_use]
    pub fn time(&self) -> TimeNs {
        match self {
            Self::Sample(sample) => sample.time,
            Self::ThreadStarted { time, .. }
            | Self::ProcessForked { time, .. }
            | Self::Exec { time, .. }
            | Self::Renamed { time, .. }
            | Self::ThreadCpu { time, .. }
            | Self::ProcessEnded { time, .. } => *time,
            Self::ThreadEnded(end) => end.time,
            Self::Mapped(mapping) => mapping.time,
            Self::Lost { to, .. } => *to,
            Self::Limit(limit) => limit.time,
        }
    }
}

/// Why an engine cannot be opened or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// There is no such process (any more).
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The pid that was asked for.
        pid: Pid,
    },
    /// The process ended while it was being attached to.
    #[error("process {pid} ended while it was being attached to")]
    ExitedWhileAttaching {
        /// The pid that was asked for.
        pid: Pid,
    },
    /// The process has ended and waits for its parent.
    #[error("process {pid} has already ended (it is a zombie): there is nothing to sample")]
    Zombie {
        /// The pid that was asked for.
        pid: Pid,
    },
    /// A thread of the kernel.
    #[error("process {pid} is a kernel thread: only user programs can be sampled")]
    KernelThread {
        /// The pid that was asked for.
        pid: Pid,
    },
    /// The id of a thread, not of a process.
    #[error("{tid} is a thread of process {pid}: attach to {pid}")]
    NotAProcess {
        /// What was asked for.
        tid: Tid,
        /// Whose thread it is.
        pid: Pid,
    },
    /// The process is someone else's.
    #[error(
        "process {pid} belongs to user {owner}, and sampling it is not permitted: \
         run as that user, as root, or with CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    SomeoneElses {
        /// The pid that was asked for.
        pid: Pid,
        /// The uid of its owner.
        owner: u32,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
    /// The kernel forbids perf events altogether.
    #[error(
        "the kernel does not permit perf events (kernel.perf_event_paranoid is {paranoid}): \
         `sysctl kernel.perf_event_paranoid=2` permits them on your own processes, \
         unless a container's seccomp filter forbids them; `--engine stop` needs none"
    )]
    Forbidden {
        /// `/proc/sys/kernel/perf_event_paranoid`, or -1 where it cannot be read.
        paranoid: i64,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
    /// The rate cannot be had.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A system call failed.
    #[error("{operation} failed for {object}")]
    Syscall {
        /// Which call, and what for.
        operation: &'static str,
        /// On what.
        object: String,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
}
