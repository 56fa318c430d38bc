//! Progress of a recording, shared between its threads and the viewer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use vmscope_records::EndReason;

use crate::engine::{EngineEvent, RawSample};

/// Counters of a running recording, readable from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    pub(super) samples: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) done: AtomicBool,
    pub(super) knows_code: AtomicBool,
    stop: OnceLock<EndReason>,
    /// Time in nanoseconds until which the adapters ask for the next samples; 0: any time.
    samples_within: AtomicU64,
    /// Bytes of stack on their way to the writer.
    stacks: AtomicU64,
}

/// Maximum bytes of stack on their way to the writer: a second of deep stacks on some processors.
const MAX_STACKS: u64 = 64 << 20;

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

    /// Whether the adapters have read all VMs' code once. True without adapters.
    #[must_use]
    pub fn knows_code(&self) -> bool {
        self.knows_code.load(Ordering::Acquire)
    }

    /// Counts the stacks of samples on their way to the writer.
    pub(super) fn put_stacks(&self, events: &mut [EngineEvent]) {
        for event in events {
            if let EngineEvent::Sample(sample) = event {
                self.put_stack(sample);
            }
        }
    }

    /// Counts a sample's stack on its way to the writer. If the writer is behind, drops the stack: the
    /// sample then has no callers, and its chain says so.
    fn put_stack(&self, sample: &mut RawSample) {
        let bytes = stack_bytes(sample);
        if bytes == 0 {
            return;
        }
        if self.stacks.load(Ordering::Relaxed).saturating_add(bytes) > MAX_STACKS {
            if let Some(detail) = &mut sample.detail {
                detail.stack = None;
            }
        } else {
            self.stacks.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The writer has a sample's stack.
    pub(super) fn take_stack(&self, sample: &RawSample) {
        let bytes = stack_bytes(sample);
        if bytes > 0 {
            self.stacks.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Asks for the next samples within `time`.
    pub(super) fn ask_for_samples(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(0);
        self.samples_within.store(ns, Ordering::Relaxed);
    }

    /// Time until which the adapters ask for the next samples.
    pub(super) fn samples_within(&self) -> Duration {
        match self.samples_within.load(Ordering::Relaxed) {
            0 => Duration::MAX,
            ns => Duration::from_nanos(ns),
        }
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

/// Bytes of a sample's copied stack.
fn stack_bytes(sample: &RawSample) -> u64 {
    let stack = (sample.detail.as_ref()).and_then(|detail| detail.stack.as_ref());
    stack.map_or(0, |stack| stack.bytes.len() as u64)
}
