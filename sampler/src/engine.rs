//! The engine interface: a source of events in time order.

use std::io;
use std::time::Duration;

use vmscope_records::{
    Avma, CpuMode, DurationNs, FileOffset, Limit, LossReason, Pid, SampleClock, SampleDetail, Tid,
    TimeNs,
};

use crate::rate::RateError;

/// A sampling engine. [`Engine::drain`] and [`Engine::finish`] append events in time order over the
/// engine's whole life.
pub trait Engine: Send {
    /// Properties of the engine, and limits found when opening it.
    fn description(&self) -> &EngineDescription;

    /// Waits at most `timeout`, then appends new events to `out`. Call it about ten times a second.
    ///
    /// # Errors
    /// [`EngineError`] if sampling cannot continue. Appended events stay valid; [`Engine::finish`]
    /// may follow.
    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError>;

    /// Stops sampling and appends the remaining events, with the end and CPU time of each live
    /// thread.
    ///
    /// # Errors
    /// [`EngineError`]; sampling has stopped in any case.
    fn finish(&mut self, out: &mut Vec<EngineEvent>) -> Result<(), EngineError>;
}

/// State of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// A target is alive.
    Running,
    /// All targets have exited. Their children may live on (a daemon).
    TargetsGone,
}

/// Properties of an engine.
#[derive(Clone, Debug)]
pub struct EngineDescription {
    /// `kernel`, `stop` or `in-vm`.
    pub name: &'static str,
    /// Clock of the samples.
    pub clock: SampleClock,
    /// Mean period of a thread's samples on that clock.
    pub period: DurationNs,
    /// Whether kernel samples are included.
    pub kernel_included: bool,
    /// Before the first sample.
    pub began: TimeNs,
    /// Limits found when opening the engine.
    pub limits: Vec<Limit>,
}

/// A sample from an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// Time.
    pub time: TimeNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// The address of the next instruction.
    pub pc: Avma,
    /// CPU mode of `pc`.
    pub mode: CpuMode,
    /// Requested details.
    pub detail: Option<Box<SampleDetail>>,
}

/// A new mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMapping {
    /// Time.
    pub time: TimeNs,
    /// The process.
    pub pid: Pid,
    /// First address.
    pub start: Avma,
    /// Length in bytes.
    pub len: u64,
    /// File offset of `start`.
    pub offset: FileOffset,
    /// The file's device.
    pub major: u32,
    /// See `major`.
    pub minor: u32,
    /// The file's inode; 0 for anonymous memory and the vdso.
    pub inode: u64,
    /// The path as the target sees it, `//anon`, `[vdso]`, …: bytes, not text.
    pub path: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// CPU time of a thread, at its end or the recording's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawThreadEnd {
    /// Time.
    pub time: TimeNs,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// CPU time during sampling, user and kernel.
    pub cpu: DurationNs,
    /// Whether `cpu` was measured, at most a second before the end. Otherwise the thread exited
    /// first, and its samples estimate `cpu`, to about one period per CPU; for promised samples of
    /// short threads, use [`EngineEvent::ProcessEnded`].
    pub cpu_measured: bool,
    /// User part of `cpu`, if known.
    pub cpu_user: Option<DurationNs>,
    /// Delivered samples.
    pub samples: u64,
    /// Mean period of those samples; differs slightly from the requested period, which is re-drawn.
    /// Promised samples are `cpu / mean_period`.
    pub mean_period: DurationNs,
    /// Whether the thread outlived the recording.
    pub alive: bool,
}

/// An event in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineEvent {
    /// A sample of a thread.
    Sample(RawSample),
    /// A thread started, or was found when attaching.
    ThreadStarted {
        /// Start, or time of the find.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// Starting thread, if known.
        parent_tid: Option<Tid>,
        /// Name, if known; otherwise the parent's until a [`EngineEvent::Renamed`].
        name: Option<String>,
        /// CPU time before sampling.
        cpu_before: DurationNs,
    },
    /// A process forked; its first thread (tid = pid) started.
    ProcessForked {
        /// Time.
        time: TimeNs,
        /// The new process.
        pid: Pid,
        /// The parent process.
        parent_pid: Pid,
        /// The thread that forked.
        parent_tid: Tid,
    },
    /// An exec: mappings and other threads are gone.
    Exec {
        /// Time.
        time: TimeNs,
        /// The process.
        pid: Pid,
        /// The remaining thread.
        tid: Tid,
        /// The new program's name (`comm`, at most 15 bytes).
        name: String,
    },
    /// A thread was renamed.
    Renamed {
        /// Time.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// The new name (`comm`, at most 15 bytes).
        name: String,
    },
    /// End of a thread, or of the recording.
    ThreadEnded(Box<RawThreadEnd>),
    /// CPU time of a live thread, reported some times a second while it grows. Its time is the time
    /// of reading, ahead of neighbouring events: the only exception to the time order.
    ThreadCpu {
        /// Time of reading.
        time: TimeNs,
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
        /// CPU time during sampling, user and kernel.
        cpu: DurationNs,
        /// User part, if known; to a clock tick (10 ms).
        cpu_user: Option<DurationNs>,
    },
    /// End of a process, or of the recording, with the CPU time of all threads, unmeasured short
    /// ones included.
    ProcessEnded {
        /// Time of reading.
        time: TimeNs,
        /// The process.
        pid: Pid,
        /// Whether the process outlived the recording.
        alive: bool,
        /// CPU time during sampling, user and kernel, to the nanosecond; `None` if unreadable.
        cpu: Option<DurationNs>,
        /// User part, if known; to a clock tick (10 ms).
        cpu_user: Option<DurationNs>,
    },
    /// Memory was mapped, or became executable.
    Mapped(Box<RawMapping>),
    /// Records were lost.
    Lost {
        /// Reason.
        reason: LossReason,
        /// Number of records.
        count: u64,
        /// Start of the loss.
        from: TimeNs,
        /// End of the loss.
        to: TimeNs,
        /// Thread, if known.
        tid: Option<Tid>,
    },
    /// A limit of the recording.
    Limit(Limit),
}

impl EngineEvent {
    /// Time of the event; of a loss, its end.
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

/// Errors of an engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The process does not exist.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The requested pid.
        pid: Pid,
    },
    /// The process exited during attaching.
    #[error("process {pid} ended while vmscope was attaching to it")]
    ExitedWhileAttaching {
        /// The requested pid.
        pid: Pid,
    },
    /// The process is a zombie.
    #[error("process {pid} has already ended (a zombie): nothing to sample")]
    Zombie {
        /// The requested pid.
        pid: Pid,
    },
    /// The process is a kernel thread.
    #[error("process {pid} is a kernel thread: only user programs can be sampled")]
    KernelThread {
        /// The requested pid.
        pid: Pid,
    },
    /// The id belongs to a thread.
    #[error("{tid} is a thread of process {pid}: attach to {pid}")]
    NotAProcess {
        /// The requested id.
        tid: Tid,
        /// The thread's process.
        pid: Pid,
    },
    /// The process belongs to another user.
    #[error(
        "no permission to sample process {pid} of user {owner}: run vmscope as that user, as root, \
         or with CAP_PERFMON and CAP_SYS_PTRACE"
    )]
    SomeoneElses {
        /// The requested pid.
        pid: Pid,
        /// Uid of the owner.
        owner: u32,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// Perf events are forbidden, by the setting, a seccomp filter or a security module.
    #[error("{}", forbidden(*paranoid, *is_root))]
    Forbidden {
        /// `kernel.perf_event_paranoid`; `None` where it cannot be read.
        paranoid: Option<i64>,
        /// Root, whom that setting does not bind.
        is_root: bool,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The descriptors do not suffice for one event per thread.
    #[error(
        "{threads} threads need more than the {allowed} file descriptors that vmscope may open: \
         raise the limit on open files (ulimit -n)"
    )]
    TooFewDescriptors {
        /// Threads of all targets.
        threads: usize,
        /// The limit.
        allowed: u64,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The user may lock no more memory, not even for the smallest rings.
    #[error(
        "no locked memory is left for the rings of perf events: user {uid} may lock {allowed_kb} kB \
         in all profilers together; end other profilers, raise ulimit -l, or run vmscope as root"
    )]
    LockedMemory {
        /// vmscope's user.
        uid: u32,
        /// `kernel.perf_event_mlock_kb` of all CPUs and RLIMIT_MEMLOCK, in kB.
        allowed_kb: u64,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
    /// The process does not link `vmscope-publish`.
    #[error(
        "process {pid} does not link vmscope-publish, so no sampler is in it: use --engine kernel"
    )]
    DoesNotPublish {
        /// The requested pid.
        pid: Pid,
    },
    /// The launched process ended without its own sampler.
    #[error(
        "process {pid} ended without publishing anything: it does not link vmscope-publish (its \
         children are not looked at); use --engine kernel"
    )]
    NeverPublished {
        /// The launched process.
        pid: Pid,
    },
    /// What the process publishes is unreadable.
    #[error("cannot read what process {pid} publishes")]
    Publication {
        /// The process.
        pid: Pid,
        /// The adapter's error.
        source: vmscope_process::AdapterError,
    },
    /// The VM did not start its sampler.
    #[error(
        "process {pid} refuses to start its sampler: another sampler is in it, or its signal \
         (SIGPROF, unless the VM chose another) can't be handled; use --engine kernel"
    )]
    SamplerRefused {
        /// The process.
        pid: Pid,
    },
    /// The sampling rate is unavailable.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A system call failed.
    #[error("{operation} failed for {object}")]
    Syscall {
        /// The system call.
        operation: &'static str,
        /// Object of the call.
        object: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// The largest `kernel.perf_event_paranoid` that allows events on a user's own processes.
const PARANOID_OF_OWN: i64 = 2;

fn forbidden(paranoid: Option<i64>, is_root: bool) -> String {
    match paranoid {
        None => "this kernel has no perf events".to_owned(),
        Some(paranoid) if paranoid > PARANOID_OF_OWN && !is_root => format!(
            "the kernel forbids perf events (kernel.perf_event_paranoid is {paranoid}): `sysctl \
             kernel.perf_event_paranoid={PARANOID_OF_OWN}` allows them on your own processes"
        ),
        Some(paranoid) => format!(
            "a seccomp filter (of a container or service) or a security module forbids perf \
             events, although kernel.perf_event_paranoid is {paranoid}"
        ),
    }
}
