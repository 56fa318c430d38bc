//! Errors reading VM files.

use std::io;

use crate::dump::DumpError;

/// Error reading a VM file. Messages suggest remedies.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Open failed.
    #[error("cannot open {path} of the target")]
    Open {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Symbolic link or no regular file.
    #[error(
        "{path} of the target is ignored: not a regular file (a planted link?); remove it and \
         start the VM again"
    )]
    NotAFile {
        /// Path in the target.
        path: String,
    },
    /// Another user owns the file.
    #[error(
        "{path} of the target is ignored: it belongs to user {owner}, but the target runs as user \
         {user}; remove it and start the VM again"
    )]
    NotTheTargets {
        /// Path in the target.
        path: String,
        /// File owner's user id.
        owner: u32,
        /// Target's effective user id.
        user: u32,
    },
    /// Last written before the target's start, by an earlier process with the same pid.
    #[error(
        "{path} of the target is ignored: it was last written {seconds} seconds before the target \
         started, by an earlier process with the same pid; remove it"
    )]
    Stale {
        /// Path in the target.
        path: String,
        /// Seconds between last write and target start.
        seconds: u64,
    },
    /// Created before the target's start; the target's VM appends to existing files.
    #[error(
        "{path} of the target is ignored: it was created {seconds} seconds before the target \
         started, so it begins with code of an earlier process with the same pid; remove it and \
         start the VM again"
    )]
    Older {
        /// Path in the target.
        path: String,
        /// Seconds between file creation and target start.
        seconds: u64,
    },
    /// Read failed.
    #[error("cannot read {path} of the target")]
    Read {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Undecodable dump. Final.
    #[error("cannot read the rest of the target's jitdump {path}")]
    Dump {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: DumpError,
    },
    /// Dump overwritten or truncated. Final.
    #[error(
        "the target's jitdump {path} was overwritten or cut off at {length} bytes, after vmscope \
         had read {offset} bytes; later code has no names"
    )]
    Overwritten {
        /// Path in the target.
        path: String,
        /// Current file length in bytes.
        length: u64,
        /// Bytes read before the error.
        offset: u64,
    },
    /// Perf map longer than any from a VM. Final.
    #[error(
        "the target's perf map {path} is longer than {most} bytes; code in the rest has no names"
    )]
    TooLong {
        /// Path in the target.
        path: String,
        /// Length limit in bytes.
        most: u64,
    },
    /// Target's user unknown, so file ownership can't be checked.
    #[error("{path} of the target is ignored: the target's user is unknown")]
    NoOwner {
        /// Path in the target.
        path: String,
    },
}

impl FileError {
    /// Whether retrying is useless.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            FileError::Dump { .. } | FileError::Overwritten { .. } | FileError::TooLong { .. }
        )
    }
}
