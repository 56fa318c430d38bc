//! Losses, and the end of a recording.

use crate::{ThreadKey, TimeNs};

/// A stream of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stream {
    /// Samples.
    Samples,
    /// Threads, processes and mappings (kernel data beside samples).
    Process,
    /// The code zone and other adapter data.
    Adapter,
    /// Lifetime events.
    Lifetimes,
    /// Records of any kind.
    Any,
}

/// Reason of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Full ring of the kernel (or VM).
    RingOverrun,
    /// Event throttled by the kernel: `count` is the expected number for that time.
    Throttled,
    /// Full channel between draining thread and writer.
    ChannelOverrun,
    /// A record exceeded the maximum size of a chunk.
    TooLarge,
    /// `--keep-last`: its memory was full.
    KeepLastFull,
    /// Undecodable contents of a ring.
    Undecodable,
    /// Another reason.
    Other,
}

/// A number of lost records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The stream.
    pub stream: Stream,
    /// Reason.
    pub reason: LossReason,
    /// Number of records.
    pub count: u64,
    /// Lost after this time …
    pub from: TimeNs,
    /// … and before this time.
    pub to: TimeNs,
    /// Their thread, if known.
    pub thread: Option<ThreadKey>,
}

/// Reason of a recording's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The target exited.
    TargetExited,
    /// User request (Ctrl-C, a signal, a key).
    Interrupted,
    /// `--duration` elapsed.
    DurationOver,
    /// Writing failed (full disk, for instance).
    WriteFailed,
    /// A copy saved during recording (`--keep-last` and SIGUSR1).
    Saved,
    /// The engine failed.
    EngineFailed,
    /// The recorder used up its memory.
    MemoryFull,
    /// Another reason.
    Other,
}

impl EndReason {
    /// Whether a failure ended the recording; [`RecordingEnd::detail`] tells it.
    #[must_use]
    pub const fn is_early(self) -> bool {
        use EndReason::{EngineFailed, MemoryFull, WriteFailed};
        matches!(self, WriteFailed | EngineFailed | MemoryFull)
    }
}

/// Last record of a complete recording. Its absence means a killed recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingEnd {
    /// Time of the end.
    pub time: TimeNs,
    /// Reason.
    pub reason: EndReason,
    /// Reason in words; may be empty.
    pub detail: String,
    /// Number of samples written by the recorder.
    pub samples: u64,
    /// CPU time of the recorder itself, in nanoseconds.
    pub recorder_cpu_ns: u64,
}
