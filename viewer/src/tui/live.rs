//! Messages between the screen and a running process's session.

use vmscope_records::TimeNs;

/// State of a running process beside its profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveState {
    /// Number of lost samples.
    pub lost: u64,
    /// Bytes written or kept in memory.
    pub bytes: u64,
    /// End of the complete part of the profile.
    pub until: TimeNs,
    /// Output file; empty for none.
    pub output: String,
    /// Reason for the end of sampling, as a sentence; empty during sampling.
    pub ended: String,
}

/// Order to the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOrder {
    /// Add a mark with a text at the current time.
    Mark(String),
    /// Save the recording to a file.
    Save(std::path::PathBuf),
}
