//! Marks that a user sets while recording.

use crate::TimeNs;

/// A moment that the user wants to find again: a request was sent, a level was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it was set.
    pub time: TimeNs,
    /// The user's words; may be empty. They come from a person, and may hold anything
    /// that a terminal would take for its own.
    pub text: String,
}

impl Mark {
    /// The most bytes of a text that a session records: a line for people.
    pub const MAX_TEXT: usize = 1024;
}
