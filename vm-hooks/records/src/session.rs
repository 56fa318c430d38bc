//! What a recording is a recording of, and what limits its truth.

use crate::{Arch, DurationNs, Pid, TimeNs};

/// Which clock the samples follow: what "time" a share is a share of (TRUTH.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleClock {
    /// CPU time of the sampled threads: a waiting thread is not sampled.
    Cpu,
    /// Wall-clock time: waiting threads are sampled too.
    Wall,
}

/// What kind of VM a process runs, as its adapter recognised it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmIdentity {
    /// The VM's usual name: `HotSpot`, `Cog`, `V8`; `native` where there is none.
    pub kind: String,
    /// Its version as it states it itself; empty where it does not.
    pub version: String,
}

/// The head of a recording: its first record, written once more at the end where
/// something in it came out differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// When sampling began.
    pub time: TimeNs,
    /// Wall-clock time at `time`, in nanoseconds since the Unix epoch.
    pub wall_clock_unix_ns: u64,
    /// The vmscope that made the recording, for instance `vmscope 0.1.0`.
    pub producer: String,
    /// What runs in the target.
    pub vm: VmIdentity,
    /// The target's command line, argument by argument.
    pub command: Vec<String>,
    /// The target's process id (of the command that was started, or attached to).
    pub pid: Pid,
    /// Whether vmscope started the target (and follows its children).
    pub launched: bool,
    /// The machine's host name.
    pub host: String,
    /// The kernel, as `uname -sr` prints it.
    pub kernel: String,
    /// The machine's architecture.
    pub arch: Arch,
    /// How many CPUs were online.
    pub cpus: u32,
    /// The engine that sampled: `kernel`, `stop`, `in-vm`, or of an import its source.
    pub engine: String,
    /// Why that engine; empty when it was asked for by name.
    pub engine_reason: String,
    /// The clock that the samples follow.
    pub clock: SampleClock,
    /// The requested mean distance between two samples of a thread.
    pub period: DurationNs,
    /// Whether samples in the kernel are included.
    pub kernel_included: bool,
    /// The draining (or ticking) thread's scheduling, in words:
    /// `SCHED_FIFO 1`, `nice -20`, `nice 0`.
    pub scheduling: String,
}

/// One thing that limits what a recording can truthfully say. More may be found
/// while recording: each is a record of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// When it was found.
    pub time: TimeNs,
    /// Which one it is, for programs.
    pub kind: LimitKind,
    /// What it means in this recording, a sentence for people.
    pub text: String,
    /// The one thing to do about it; empty where nothing helps.
    pub remedy: String,
}

/// The kinds of limitation that programs may want to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Samples in the kernel are excluded.
    KernelExcluded,
    /// The draining thread runs without real-time priority.
    NoRealTime,
    /// The engine fell back to a lesser way of working.
    EngineFallback,
    /// Threads, CPUs or processes that could not be sampled.
    NotSampled,
    /// Symbols or files that could not be read.
    NoSymbols,
    /// The target's memory can't be read.
    MemoryUnreadable,
    /// An adapter could not read (all of) its VM.
    AdapterIncomplete,
    /// Only the newest part of the session was kept (`--keep-last`).
    OnlyNewestKept,
    /// Any other.
    Other,
}
