//! Why a profiler cannot attach.

use std::fmt;
use std::io;

use crate::layout;

/// Why a profiler cannot attach.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachError {
    /// The memory cannot be mapped, or its size is not sealed.
    Memory(io::Error),
    /// The memory begins with a different magic number. Memory under construction has no magic
    /// number yet.
    /// header.
    Magic(u64),
    /// The memory has another major version.
    Version {
        /// The memory's major version.
        major: u32,
        /// The memory's minor version.
        minor: u32,
    },
    /// The header gives an impossible offset or size for a ring.
    Part {
        /// Index of the header word with the ring's offset.
        word: usize,
        /// Offset in bytes.
        offset: u64,
        /// Size in words.
        words: u64,
    },
    /// The VM inherited the memory from another process.
    Inherited {
        /// Process id of the owner.
        owner: u64,
    },
    /// The maximum number of profilers already listens.
    Full {
        /// Process ids of the profilers, as given by the profilers.
        pids: Vec<u64>,
    },
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => write!(f, "cannot map the VM's shared memory: {error}"),
            Self::Magic(magic) => write!(
                f,
                "the VM's shared memory begins with {magic:#x}, not as vmscope's does"
            ),
            Self::Version { major, minor } => write!(
                f,
                "the VM's shared memory has version {major}.{minor}, and only {}.x can be read",
                layout::MAJOR
            ),
            Self::Part {
                word,
                offset,
                words,
            } => write!(
                f,
                "the VM's shared memory is damaged: no {words} words can be at {offset} (word {word})"
            ),
            Self::Inherited { owner } => {
                write!(f, "the shared memory was inherited from process {owner}")
            }
            Self::Full { pids } => write!(
                f,
                "{} profilers listen to this VM already (processes {pids:?}), which is the most",
                layout::LEASES
            ),
        }
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Memory(error) => Some(error),
            _ => None,
        }
    }
}
