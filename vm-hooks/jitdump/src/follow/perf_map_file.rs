//! Follows a growing perf map.

use std::sync::Arc;

use vmscope_process::{ModuleFile, ReadAt as _};

use super::window::{MAX_BYTES_A_READING, Window};
use super::{FileError, Progress, Unwritten};
use crate::Flaws;
use crate::perf_map::{Decoder, Entry, MAX_LINE_BYTES, MapFlaw};

/// Number of last read bytes compared to detect rewriting.
const TAIL_BYTES: usize = 64;

/// No VM writes more: longer maps are sparse files or attacks on the reader.
const MAX_MAP_BYTES: u64 = 4 << 30;

/// Reader for a growing perf map.
#[derive(Debug)]
pub struct PerfMapFile {
    path: String,
    window: Window,
    decoder: Decoder,
    /// Length with unwritten bytes at the last complete reading.
    length: u64,
    /// Length of the file itself at the last reading.
    written: u64,
    /// Last decoded bytes.
    tail: Vec<u8>,
    /// Length limit in bytes.
    pub(super) most: u64,
}

enum Next {
    Entry(Entry),
    /// No complete line yet.
    None,
    /// Read limit reached.
    Enough,
}

impl PerfMapFile {
    /// Follows the perf map `file`; messages use `path`.
    #[must_use]
    pub fn new(file: Arc<ModuleFile>, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            window: Window::new(file),
            decoder: Decoder::new(),
            length: 0,
            written: 0,
            tail: Vec::new(),
            most: MAX_MAP_BYTES,
        }
    }

    /// Path for messages.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The perf map file.
    #[must_use]
    pub fn file(&self) -> &Arc<ModuleFile> {
        self.window.file()
    }

    /// Decoder position in bytes.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Sets the bytes behind the file's end, for the next poll.
    pub fn set_unwritten(&mut self, unwritten: Unwritten) {
        self.window.unwritten = unwritten;
    }

    /// Total bytes read, including rewritten contents.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.window.bytes_read()
    }

    /// Flaws since the last rewrite.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<MapFlaw> {
        self.decoder.flaws()
    }

    /// Appends at most `at_most` new entries to `entries`. Reads about 4 MiB per call.
    ///
    /// # Errors
    ///
    /// [`FileError`]; `entries` keeps earlier entries.
    pub fn poll(
        &mut self,
        at_most: usize,
        entries: &mut Vec<Entry>,
    ) -> Result<Progress, FileError> {
        let length = self.file().len_now();
        let length = length.map_err(|source| self.unreadable(source))?;
        if length != self.written && self.is_rewritten(length)? {
            self.decoder = Decoder::new();
            self.window.forget();
            self.tail.clear();
            self.length = 0;
            self.written = 0;
            return Ok(Progress::Rewritten);
        }
        self.written = length;
        let length = self.window.length(length);
        let until = self.window.bytes_read().saturating_add(MAX_BYTES_A_READING);
        for _ in 0..at_most {
            match self.next(length, until)? {
                Next::Entry(entry) => entries.push(entry),
                Next::None => {
                    self.keep_tail();
                    self.window.forget();
                    self.length = length;
                    return Ok(Progress::CaughtUp);
                }
                Next::Enough => break,
            }
        }
        Ok(Progress::More)
    }

    /// Reads the rest of a finished map, including an unterminated last line. Call until
    /// [`Progress::CaughtUp`].
    ///
    /// # Errors
    ///
    /// Same as [`PerfMapFile::poll`].
    pub fn finish(
        &mut self,
        at_most: usize,
        entries: &mut Vec<Entry>,
    ) -> Result<Progress, FileError> {
        let progress = self.poll(at_most, entries)?;
        if progress == Progress::CaughtUp {
            let offset = self.decoder.offset();
            let read = self.window.read(offset, MAX_LINE_BYTES, self.length);
            read.map_err(|source| self.unreadable(source))?;
            entries.extend(self.decoder.finish(self.window.from(offset)));
            self.window.forget();
        }
        Ok(progress)
    }

    /// Decodes the next entry; stops reading at `until` total bytes.
    fn next(&mut self, length: u64, until: u64) -> Result<Next, FileError> {
        loop {
            let from = self.window.from(self.decoder.offset());
            if let Some(entry) = self.decoder.step(from) {
                return Ok(Next::Entry(entry));
            }
            let offset = self.decoder.offset();
            if offset >= self.most {
                return Err(FileError::TooLong {
                    path: self.path.clone(),
                    most: self.most,
                });
            }
            if self.window.bytes_read() >= until {
                return Ok(Next::Enough);
            }
            let at_hand = self.window.from(offset).len();
            self.keep_tail();
            let read = self.window.read(offset, MAX_LINE_BYTES + 1, length);
            if read.map_err(|source| self.unreadable(source))? <= at_hand {
                return Ok(Next::None);
            }
        }
    }

    /// Whether previously read bytes changed.
    fn is_rewritten(&mut self, length: u64) -> Result<bool, FileError> {
        let offset = self.decoder.offset();
        if length < offset.min(self.written) {
            return Ok(true);
        }
        self.keep_tail();
        let mut now = vec![0; self.tail.len()];
        let from = offset.saturating_sub(now.len() as u64);
        let got = self.file().read_some(from, &mut now);
        let got = got.map_err(|source| self.unreadable(source))?;
        now.truncate(got);
        Ok(now != self.tail)
    }

    /// Saves the last decoded bytes before the window moves.
    fn keep_tail(&mut self) {
        let taken = self.window.take_before(self.decoder.offset());
        let last = taken.len().saturating_sub(TAIL_BYTES);
        self.tail.extend(taken.skip(last));
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus);
    }

    fn unreadable(&self, source: std::io::Error) -> FileError {
        FileError::Read {
            path: self.path.clone(),
            source,
        }
    }
}
