//! Errors reading VM files.

use std::io;

use crate::dump::DumpError;

/// Error reading a VM file. Messages suggest remedies.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Open failed.
    #[error("{path} of the target can't be opened")]
    Open {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Symbolic link or no regular file.
    #[error(
        "{path} of the target is not used: it is a symbolic link or no regular file, as somebody \
         else may have planted it there; remove it and start the VM again"
    )]
    NotAFile {
        /// Path in the target.
        path: String,
    },
    /// Another user owns the file.
    #[error(
        "{path} of the target is not used: it belongs to user {owner}, and the target runs as user \
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
        "{path} of the target is not used: it was last written {seconds} seconds before the target \
         was started, so it is of an earlier process with its number; remove it"
    )]
    Stale {
        /// Path in the target.
        path: String,
        /// Seconds between last write and target start.
        seconds: u64,
    },
    /// Created before the target's start; the target's VM appends to existing files.
    #[error(
        "{path} of the target is not used: it was made {seconds} seconds before the target was \
         started, and the target adds to it, so it begins with code of an earlier process with its \
         number; remove it"
    )]
    Older {
        /// Path in the target.
        path: String,
        /// Seconds between file creation and target start.
        seconds: u64,
    },
    /// Read failed.
    #[error("{path} of the target can't be read")]
    Read {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// Undecodable dump. Final.
    #[error("the dump {path} of the target can't be read further")]
    Dump {
        /// Path in the target.
        path: String,
        /// Cause.
        #[source]
        source: DumpError,
    },
    /// Dump overwritten or truncated. Final.
    #[error(
        "the dump {path} of the target was overwritten or cut off at {length} bytes, after \
         {offset} bytes of it were read; what was read before holds, the rest is lost"
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
        "the perf map {path} of the target is longer than {most} bytes; what it tells after them \
         is not read, and is lost"
    )]
    TooLong {
        /// Path in the target.
        path: String,
        /// Length limit in bytes.
        most: u64,
    },
    /// Target's user unknown, so file ownership can't be checked.
    #[error("{path} of the target is not used: whose the target is can't be told")]
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
