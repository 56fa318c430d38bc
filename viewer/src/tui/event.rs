//! What comes in, and what goes out: all that happens to the terminal UI is an [`Event`];
//! all that it does beside changing itself is an [`Effect`], carried out outside.

use super::jobs::{Done, Job};
use super::live::{LiveNews, LiveOrder};
use crate::annotate::source::Source;
use crate::report::Loading;
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use std::path::PathBuf;

/// What happens.
#[derive(Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse moved or a button was pressed; when, in milliseconds since the start.
    Mouse(MouseEvent, u64),
    /// The terminal has so many columns and rows now.
    Resize(u16, u16),
    /// Text was pasted.
    Paste(String),
    /// A job is finished.
    Done(Done),
    /// What opening the recording is at.
    Opening(Loading),
    /// The recording is open: what there is to be shown.
    Opened,
    /// It can't be opened.
    Failed(String),
    /// Something of a running process.
    Live(LiveNews),
    /// How an effect went, in a sentence.
    Said(String),
    /// A source file that was asked for, or a sentence why there is none.
    Source(String, Result<Source, String>),
    /// What was recorded is saved, or not: in a sentence.
    Saved(Result<String, String>),
    /// A tenth of a second passed, while something is going on.
    Tick,
    /// Nothing can be read from the terminal any more.
    TerminalGone,
}

/// What is to be done outside.
#[derive(Debug)]
pub enum Effect {
    /// Work it out, off the drawing thread.
    Work(Job),
    /// Put a text into the terminal's clipboard.
    Copy(String),
    /// Write a file, readable by its user alone; what is there already is not replaced.
    Write(PathBuf, Vec<u8>),
    /// Read a source file, by its name in the recording.
    ReadSource {
        /// Its name.
        name: String,
        /// When the recording began, in nanoseconds since 1970: whether it was changed since.
        recorded_ns: u64,
    },
    /// For the session of a running process.
    Live(LiveOrder),
    /// Give the terminal back and stop.
    Suspend,
    /// Draw the whole screen anew.
    Redraw,
    /// The end.
    Quit,
}
