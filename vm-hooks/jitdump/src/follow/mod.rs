//! Follows growing VM files, reading new bytes in pieces.
//!
//! Open descriptors survive deleted names and folders.

mod dump_file;
mod error;
mod perf_map_file;
#[cfg(test)]
mod tests;
mod unwritten;
mod window;

pub use dump_file::DumpFile;
pub use error::FileError;
pub use perf_map_file::PerfMapFile;
pub use unwritten::{Streams, Unwritten};

/// Result of polling a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Read to the current end.
    CaughtUp,
    /// Limit reached; more data may follow.
    More,
    /// The file was rewritten: some VMs rewrite perf maps on request. Earlier entries describe the
    /// old file; this poll read nothing, and the next starts at offset 0.
    Rewritten,
}
