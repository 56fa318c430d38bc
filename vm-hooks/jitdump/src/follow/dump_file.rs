//! Following a dump.

use std::sync::Arc;

use vmscope_process::{ModuleFile, ReadAt as _};

use super::window::{MAX_BYTES_A_READING, Window};
use super::{FileError, Progress};
use crate::Flaws;
use crate::dump::{Decoder, DumpFlaw, Event, Header, Step};

/// How much of a dump's beginning is compared to see that it is the same dump.
const HEAD_BYTES: usize = 40;

/// A dump that is followed.
#[derive(Debug)]
pub struct DumpFile {
    path: String,
    window: Window,
    decoder: Decoder,
    /// How long it was when it was last read to its end.
    length: u64,
    /// Its first bytes.
    head: Vec<u8>,
    /// It was cut off or begun anew, when it was that long.
    overwritten: Option<u64>,
}

impl DumpFile {
    /// The dump `file`, called `path` in messages.
    #[must_use]
    pub fn new(file: Arc<ModuleFile>, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            window: Window::new(file),
            decoder: Decoder::new(),
            length: 0,
            head: Vec::new(),
            overwritten: None,
        }
    }

    /// Its path, as messages call it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> &Arc<ModuleFile> {
        self.window.file()
    }

    /// Its head; `None` as long as that was not read.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.decoder.header()
    }

    /// How much of it was read, in bytes, code that was gone past included.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// How much was read so far, in bytes, without the code that was gone past.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.window.bytes_read()
    }

    /// What was wrong so far and could be gone past.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<DumpFlaw> {
        self.decoder.flaws()
    }

    /// Reads what is new, at most `at_most` events, and appends it to `events`; some
    /// 4 MiB of the file at a time, however few events they hold. Never
    /// says [`Progress::Rewritten`].
    ///
    /// # Errors
    ///
    /// [`FileError`]; what was read before the error is in `events`. Where it is
    /// [final](FileError::is_final), it is the same again from then on.
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
                        // It was cut off since its length was asked for: the next
                        // reading tells.
                        self.window.forget();
                        return Ok(Progress::CaughtUp);
                    }
                }
            }
        }
    }

    /// Reads what is left, when nothing will be added any more, and counts what can't
    /// be completed.
    ///
    /// # Errors
    ///
    /// As [`DumpFile::poll`]; it is to be called until it says
    /// [`Progress::CaughtUp`].
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

    /// Its length, if it is the dump that was read so far.
    fn begin(&mut self) -> Result<u64, FileError> {
        let length = match self.overwritten {
            Some(length) => length,
            None => {
                let length = self.file().len_now();
                let length = length.map_err(|source| self.unreadable(source))?;
                if length != self.length && self.is_another(length)? {
                    self.overwritten = Some(length);
                }
                length
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
        if length < self.decoder.offset() {
            return Ok(true);
        }
        let mut head = [0; HEAD_BYTES];
        let got = self.file().read_some(0, &mut head);
        let got = got.map_err(|source| self.unreadable(source))?;
        let head = head.get(..got).unwrap_or_default();
        if self.decoder.header().is_none() {
            // Not even its head was taken in: it may still be anything.
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
