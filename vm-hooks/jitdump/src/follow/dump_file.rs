//! Follows a growing dump.

use std::sync::Arc;

use vmscope_process::{ModuleFile, ReadAt as _};

use super::window::{MAX_BYTES_A_READING, Window};
use super::{FileError, Progress, Unwritten};
use crate::Flaws;
use crate::dump::{Decoder, DumpFlaw, Event, Header, Step};

/// Number of first bytes compared to detect a replaced dump.
const HEAD_BYTES: usize = 40;

/// Reader for a growing dump.
#[derive(Debug)]
pub struct DumpFile {
    path: String,
    window: Window,
    decoder: Decoder,
    /// Length with unwritten bytes at the last complete reading.
    length: u64,
    /// Length of the file itself at the last reading.
    written: u64,
    /// First bytes of the file.
    head: Vec<u8>,
    /// File length on detecting truncation or overwriting.
    overwritten: Option<u64>,
}

impl DumpFile {
    /// Follows the dump `file`; messages use `path`.
    #[must_use]
    pub fn new(file: Arc<ModuleFile>, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            window: Window::new(file),
            decoder: Decoder::new(),
            length: 0,
            written: 0,
            head: Vec::new(),
            overwritten: None,
        }
    }

    /// Path for messages.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The dump file.
    #[must_use]
    pub fn file(&self) -> &Arc<ModuleFile> {
        self.window.file()
    }

    /// Header; `None` before reading it.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.decoder.header()
    }

    /// Decoder position in bytes, including skipped code.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Sets the bytes behind the file's end, for the next poll.
    pub fn set_unwritten(&mut self, unwritten: Unwritten) {
        self.window.unwritten = unwritten;
    }

    /// Total bytes read, without skipped code.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.window.bytes_read()
    }

    /// Flaws found so far.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<DumpFlaw> {
        self.decoder.flaws()
    }

    /// Appends at most `at_most` new events to `events`. Reads about 4 MiB per call. Never returns
    /// [`Progress::Rewritten`].
    ///
    /// # Errors
    ///
    /// [`FileError`]; `events` keeps earlier events. Later calls repeat
    /// [final](FileError::is_final) errors.
    pub fn poll(&mut self, at_most: usize, events: &mut Vec<Event>) -> Result<Progress, FileError> {
        let length = self.begin()?;
        let mut left = at_most;
        let until = self.window.bytes_read().saturating_add(MAX_BYTES_A_READING);
        loop {
            if left == 0 {
                return Ok(Progress::More);
            }
            let offset = self.decoder.offset();
            let step = self.decoder.step(self.window.from(offset), length);
            match step.map_err(|source| FileError::Dump {
                path: self.path.clone(),
                source,
            })? {
                Step::Event(event) => {
                    events.push(event);
                    left -= 1;
                }
                Step::NotYet => {
                    self.window.forget();
                    self.length = length;
                    return Ok(Progress::CaughtUp);
                }
                Step::Need(_) if self.window.bytes_read() >= until => return Ok(Progress::More),
                Step::Need(bytes) => {
                    let offset = self.decoder.offset();
                    let read = self.window.read(offset, bytes, length);
                    if read.map_err(|source| self.unreadable(source))? < bytes {
                        // File truncated since the length check; the next poll reports it.
                        self.window.forget();
                        return Ok(Progress::CaughtUp);
                    }
                }
            }
        }
    }

    /// Reads the rest of a finished dump and counts incomplete records. Call until
    /// [`Progress::CaughtUp`].
    ///
    /// # Errors
    ///
    /// Same as [`DumpFile::poll`].
    pub fn finish(
        &mut self,
        at_most: usize,
        events: &mut Vec<Event>,
    ) -> Result<Progress, FileError> {
        let progress = self.poll(at_most, events);
        if !matches!(progress, Ok(Progress::More)) {
            self.decoder.finish(self.length);
        }
        progress
    }

    /// Returns the length with unwritten bytes, or an error for a replaced dump.
    fn begin(&mut self) -> Result<u64, FileError> {
        let length = match self.overwritten {
            Some(length) => length,
            None => {
                let length = self.file().len_now();
                let length = length.map_err(|source| self.unreadable(source))?;
                if length != self.written && self.is_another(length)? {
                    self.overwritten = Some(length);
                }
                self.written = length;
                self.window.length(length).max(self.decoder.offset())
            }
        };
        if self.overwritten.is_some() {
            return Err(FileError::Overwritten {
                path: self.path.clone(),
                length,
                offset: self.decoder.offset(),
            });
        }
        Ok(length)
    }

    fn is_another(&mut self, length: u64) -> Result<bool, FileError> {
        if length < self.decoder.offset().min(self.written) {
            return Ok(true);
        }
        let mut head = [0; HEAD_BYTES];
        let got = self.file().read_some(0, &mut head);
        let got = got.map_err(|source| self.unreadable(source))?;
        let head = head.get(..got).unwrap_or_default();
        // Without a decoded header, any content is right. A header from the VM's buffer is written later.
        if self.decoder.header().is_none() || head.starts_with(&self.head) {
            self.head = head.to_vec();
        }
        Ok(self.head != head)
    }

    fn unreadable(&self, source: std::io::Error) -> FileError {
        FileError::Read {
            path: self.path.clone(),
            source,
        }
    }
}
