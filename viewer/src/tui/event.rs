//! Input and output of the terminal UI: an [`Event`] comes in, an [`Effect`] goes out.

use super::jobs::{Done, Job};
use super::live::{LiveOrder, LiveState};
use crate::annotate::source::Source;
use crate::report::Loading;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use std::path::PathBuf;

/// Input.
#[derive(Debug)]
pub enum Event {
    /// Key press.
    Key(KeyEvent),
    /// Mouse event, with milliseconds since the start.
    Mouse(MouseEvent, u64),
    /// New terminal size: columns, rows.
    Resize(u16, u16),
    /// Pasted text.
    Paste(String),
    /// Finished job.
    Done(Done),
    /// Progress of opening.
    Opening(Loading),
    /// The recording is open.
    Opened,
    /// Opening failed, with the reason.
    Failed(String),
    /// A running process: the profile grew, or sampling ended.
    Live(LiveState),
    /// Result of an effect, as a sentence.
    Said(String),
    /// Requested source file, or a sentence about its absence.
    Source(String, Result<Source, String>),
    /// Result of saving, as a sentence.
    Saved(Result<String, String>),
    /// Tick: 0.1 s passed during visible work.
    Tick,
    /// End of the terminal's input.
    TerminalGone,
}

/// Output.
#[derive(Debug)]
pub enum Effect {
    /// Run a job off the drawing thread.
    Work(Job),
    /// Put a text into the terminal's clipboard.
    Copy(String),
    /// Write a new file with mode 0600; existing files stay.
    Write(PathBuf, Vec<u8>),
    /// Read a source file, by its recorded name.
    ReadSource {
        /// Recorded name.
        name: String,
        /// Start of the recording in nanoseconds since 1970, to detect later changes.
        recorded_ns: u64,
    },
    /// Order for the session of a running process.
    Live(LiveOrder),
    /// Suspend: give the terminal back and stop.
    Suspend,
    /// Draw the whole screen anew.
    Redraw,
    /// Quit.
    Quit,
}
