//! What the screen and a running process's session tell each other.

use vmscope_records::TimeNs;

/// What is known of a running process beside its profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveState {
    /// Samples known to be lost.
    pub lost: u64,
    /// Bytes written, or kept in memory.
    pub bytes: u64,
    /// Until when everything is shown.
    pub until: TimeNs,
    /// The file that is written; empty where there is none.
    pub output: String,
    /// Why sampling ended, in a sentence; empty while it goes on.
    pub ended: String,
}

/// The profile has grown, or sampling has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveNews {
    /// So far.
    Grown(LiveState),
}

/// What the session is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOrder {
    /// A mark with that text, now.
    Mark(String),
    /// Save what was recorded to that file.
    Save(std::path::PathBuf),
}
