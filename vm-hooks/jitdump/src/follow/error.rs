//! Why a file of a VM's can't be read.

use std::io;

use crate::dump::DumpError;

/// Why a file that a VM writes can't be read. The messages say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It could not be opened.
    #[error("{path} of the target can't be opened")]
    Open {
        /// Its path, as the target sees it.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not a file that may be read.
    #[error(
        "{path} of the target is not used: it is a symbolic link or no regular file, as somebody \
         else may have planted it there; remove it and start the VM again"
    )]
    NotAFile {
        /// Its path, as the target sees it.
        path: String,
    },
    /// Somebody else's.
    #[error(
        "{path} of the target is not used: it belongs to user {owner}, and the target runs as user \
         {user}; remove it and start the VM again"
    )]
    NotTheTargets {
        /// Its path, as the target sees it.
        path: String,
        /// Whose it is.
        owner: u32,
        /// Whose the target is (effective user id).
        user: u32,
    },
    /// Last written before the target was started: of another process with that number.
    #[error(
        "{path} of the target is not used: it was last written {seconds} seconds before the target \
         was started, so it is of an earlier process with its number; remove it"
    )]
    Stale {
        /// Its path, as the target sees it.
        path: String,
        /// How long before, in seconds.
        seconds: u64,
    },
    /// Made before the target was started, by a VM that adds to what is there.
    #[error(
        "{path} of the target is not used: it was made {seconds} seconds before the target was \
         started, and the target adds to it, so it begins with code of an earlier process with its \
         number; remove it"
    )]
    Older {
        /// Its path, as the target sees it.
        path: String,
        /// How long before, in seconds.
        seconds: u64,
    },
    /// It could not be read.
    #[error("{path} of the target can't be read")]
    Read {
        /// Its path, as the target sees it.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What it holds can't be read further. That is final.
    #[error("the dump {path} of the target can't be read further")]
    Dump {
        /// Its path, as the target sees it.
        path: String,
        /// Why.
        #[source]
        source: DumpError,
    },
    /// A dump was begun anew, or cut off. That is final.
    #[error(
        "the dump {path} of the target was overwritten or cut off at {length} bytes, after \
         {offset} bytes of it were read; what was read before holds, the rest is lost"
    )]
    Overwritten {
        /// Its path, as the target sees it.
        path: String,
        /// How long it is now, in bytes.
        length: u64,
        /// How much of it was read, in bytes.
        offset: u64,
    },
    /// Longer than any that a VM writes. That is final.
    #[error(
        "the perf map {path} of the target is longer than {most} bytes; what it tells after them \
         is not read, and is lost"
    )]
    TooLong {
        /// Its path, as the target sees it.
        path: String,
        /// How much of one is read, in bytes.
        most: u64,
    },
    /// What may be used is not known: the target can't be looked at.
    #[error("{path} of the target is not used: whose the target is can't be told")]
    NoOwner {
        /// Its path, as the target sees it.
        path: String,
    },
}

impl FileError {
    /// Whether a further attempt can't go better.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            FileError::Dump { .. } | FileError::Overwritten { .. } | FileError::TooLong { .. }
        )
    }
}
