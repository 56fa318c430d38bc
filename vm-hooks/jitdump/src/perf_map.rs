//! Perf maps (`/tmp/perf-PID.map`): a line of text for each piece of code.

use vmscope_records::Avma;

/// A line of a perf map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First address.
    pub start: Avma,
    /// Size in bytes; not 0.
    pub size: u64,
    /// The name, made valid UTF-8.
    pub name: String,
}
