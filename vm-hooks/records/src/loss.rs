//! What was lost, and how a recording ended.

use crate::{ThreadKey, TimeNs};

/// Which stream of records lost something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stream {
    /// Samples.
    Samples,
    /// Threads, processes and mappings (what the kernel tells beside samples).
    Process,
    /// The code zone and what else an adapter reads.
    Adapter,
    /// Lifetime events.
    Lifetimes,
    /// Records that may have been of any kind.
    Any,
}

/// Why something was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// The kernel's (or the VM's) ring was full.
    RingOverrun,
    /// The kernel throttled the event: `count` is what the period promised for the
    /// time it was throttled.
    Throttled,
    /// The channel between the draining thread and the writer was full.
    ChannelOverrun,
    /// A record was larger than a chunk may be.
    TooLarge,
    /// `--keep-last`: the newest did not fit in the memory set aside for it.
    KeepLastFull,
    /// A ring held something that could not be decoded.
    Undecodable,
    /// Any other.
    Other,
}

/// So many records were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Of which stream.
    pub stream: Stream,
    /// Why.
    pub reason: LossReason,
    /// How many.
    pub count: u64,
    /// After this time …
    pub from: TimeNs,
    /// … and before this.
    pub to: TimeNs,
    /// Whose, where that is known.
    pub thread: Option<ThreadKey>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The target ended.
    TargetExited,
    /// The user asked for it (Ctrl-C, a signal, a key).
    Interrupted,
    /// `--duration` was over.
    DurationOver,
    /// Writing failed (no space left, for instance).
    WriteFailed,
    /// A copy was saved in mid-recording (`--keep-last` and SIGUSR1).
    Saved,
    /// The engine failed.
    EngineFailed,
    /// Any other.
    Other,
}

/// The last record of a recording that was ended properly. Without it, the
/// recorder was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingEnd {
    /// When.
    pub time: TimeNs,
    /// Why.
    pub reason: EndReason,
    /// In words; may be empty.
    pub detail: String,
    /// How many samples the recorder wrote.
    pub samples: u64,
    /// CPU time that the recorder itself used, in nanoseconds.
    pub recorder_cpu_ns: u64,
}
