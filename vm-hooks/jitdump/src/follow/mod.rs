//! Following the files of VMs as they grow: reading what is new, in pieces.
//!
//! Files are read by descriptor, so they may lose their names, and their folders may
//! disappear, while they are followed.

mod dump_file;
mod error;
mod perf_map_file;
#[cfg(test)]
mod tests;
mod window;

pub use dump_file::DumpFile;
pub use error::FileError;
pub use perf_map_file::PerfMapFile;

/// What came of reading on in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that is there was read.
    CaughtUp,
    /// As much as was asked for was read, and there may be more.
    More,
    /// The file was begun anew (some VMs write a perf map anew whenever they are asked
    /// to): what was read before is of the old one, and the next reading begins at the
    /// beginning. Nothing was read this time.
    Rewritten,
}
