//! Description of a recording, and its limits.

use crate::{Arch, DurationNs, Pid, TimeNs};

/// Clock of the samples, the denominator of all shares (docs/truth.md §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleClock {
    /// CPU time of sampled threads: blocked threads have no samples.
    Cpu,
    /// Wall-clock time: blocked threads have samples too.
    Wall,
}

/// A process's VM, as recognised by its adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmIdentity {
    /// Usual name: `HotSpot`, `Cog`, `V8`; `native` without a VM.
    pub kind: String,
    /// Version in the VM's words; may be empty.
    pub version: String,
}

/// First record of a recording; written again at the end if values changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Start of sampling.
    pub time: TimeNs,
    /// Wall-clock time at `time`, in nanoseconds since the Unix epoch.
    pub wall_clock_unix_ns: u64,
    /// Version of the recorder, for instance `vmscope 0.1.0`.
    pub producer: String,
    /// VM of the target.
    pub vm: VmIdentity,
    /// Command line of the target, by argument.
    pub command: Vec<String>,
    /// Process id of the started or attached process.
    pub pid: Pid,
    /// Whether vmscope started the target (and follows its children).
    pub launched: bool,
    /// Host name.
    pub host: String,
    /// Kernel, as `uname -sr` prints it.
    pub kernel: String,
    /// Architecture of the machine.
    pub arch: Arch,
    /// Number of online CPUs.
    pub cpus: u32,
    /// Sampling engine: `kernel`, `stop`, `in-vm`, or the source of an import.
    pub engine: String,
    /// Reason for the engine; empty if requested by name.
    pub engine_reason: String,
    /// Clock of the samples.
    pub clock: SampleClock,
    /// Requested mean interval between samples of a thread.
    pub period: DurationNs,
    /// Whether samples in the kernel are included.
    pub kernel_included: bool,
    /// Scheduling of the draining (or ticking) thread: `SCHED_FIFO 1`, `nice -20`, `nice 0`.
    pub scheduling: String,
}

/// A limit of a recording's accuracy or completeness. Later limits are further records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Time of discovery.
    pub time: TimeNs,
    /// Kind, for programs.
    pub kind: LimitKind,
    /// Consequence for this recording, one sentence.
    pub text: String,
    /// Remedy; empty if none.
    pub remedy: String,
}

/// Kinds of limits that programs can distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Samples in the kernel are excluded.
    KernelExcluded,
    /// Draining thread without real-time priority.
    NoRealTime,
    /// Fallback to a less capable engine mode.
    EngineFallback,
    /// Threads, CPUs or processes without samples.
    NotSampled,
    /// Unreadable symbols or files.
    NoSymbols,
    /// Unreadable target memory.
    MemoryUnreadable,
    /// A VM that its adapter could not read (completely).
    AdapterIncomplete,
    /// Only the newest part was kept (`--keep-last`).
    OnlyNewestKept,
    /// Missing or wrong callers. The newest one counts, in recordings with callers.
    Callers,
    /// The reason why samples expected by the threads' CPU time are missing.
    Missing,
    /// The reason why a VM's code has no names.
    NoNames,
    /// Another kind.
    Other,
}

/// A moment marked by the user: a request was sent, a level was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Time of the mark.
    pub time: TimeNs,
    /// User text; may be empty. Untrusted: may contain terminal control sequences.
    pub text: String,
}

impl Mark {
    /// Maximum recorded text in bytes: one line.
    pub const MAX_TEXT: usize = 1024;
}
