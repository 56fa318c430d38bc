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
    /// It does not begin as the memory of a publisher. It may be under construction.
    Magic(u64),
    /// Another major version.
    Version {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// A part of the memory is not where it can be.
    Part {
        /// Index of the header's word with its offset.
        word: usize,
        /// Offset in bytes.
        offset: u64,
        /// Size in words.
        words: u64,
    },
    /// The memory belongs to another process, from which this one inherited it.
    Inherited {
        /// Process id of the owner.
        owner: u64,
    },
    /// As many profilers listen as can.
    Full {
        /// Process ids of the profilers, as they gave them.
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
