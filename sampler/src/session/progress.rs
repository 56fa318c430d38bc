//! Progress of a recording, shared between its threads and the viewer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use vmscope_records::EndReason;

/// Counters of a running recording, readable from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    pub(super) samples: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) done: AtomicBool,
    stop: OnceLock<EndReason>,
}

impl Progress {
    /// Samples recorded so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Samples lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Bytes written, or kept in memory, so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the recording has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Requests the session's end; the first reason counts.
    pub(super) fn ask_to_stop(&self, reason: EndReason) {
        let _ = self.stop.set(reason);
    }

    pub(super) fn stop_reason(&self) -> Option<EndReason> {
        self.stop.get().copied()
    }
}
