//! The options of a publisher, and the errors when a VM creates a publisher.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::{fork, layout};

/// The options of a publisher.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The VM's name. Cut after 64 bytes.
    pub name: &'a str,
    /// The VM's version. Cut after 64 bytes.
    pub version: &'a str,
    /// Size of the ring of events in bytes, rounded up to a power of two, from
    /// [`layout::SMALLEST_RING`] to [`layout::LARGEST_RING`]. The longest event fills an eighth of
    /// the ring.
    pub stream_bytes: usize,
    /// Size of the ring of samples in bytes, likewise.
    pub sample_bytes: usize,
    /// Total time that a snapshot may wait for profilers to read the ring. Without waiting, a
    /// snapshot larger than the ring overwrites its own start.
    pub snapshot_patience: Duration,
}

impl Default for Options<'_> {
    /// 8 MiB of events, 1 MiB of samples, and a fifth of a second.
    fn default() -> Self {
        Self {
            name: "",
            version: "",
            stream_bytes: 8 << 20,
            sample_bytes: 1 << 20,
            snapshot_patience: Duration::from_millis(200),
        }
    }
}

/// Why a publisher cannot be created.
#[derive(Debug)]
#[non_exhaustive]
pub enum PublishError {
    /// A ring's size in bytes is out of range.
    RingSize(usize),
    /// The memory cannot be made.
    Memory(io::Error),
    /// The process has the maximum number of publishers, or fork handlers cannot be installed.
    TooMany,
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingSize(bytes) => write!(
                f,
                "a ring of {bytes} bytes is not possible: it has {} to {} bytes",
                layout::SMALLEST_RING,
                layout::LARGEST_RING
            ),
            Self::Memory(error) => write!(f, "cannot make the shared memory: {error}"),
            Self::TooMany => write!(
                f,
                "a process has at most {} publishers, and handlers for forks",
                fork::MOST
            ),
        }
    }
}

impl std::error::Error for PublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}
