//! The file of a recording that keeps its newest part only.

use super::file::{RecordingFile, create_private, create_successor, is_taken, successor};
use super::gather::Finished;
use super::writer::{WriteError, Writer, Written};
use crate::{Record, RecordingEnd, TimeNs};
use std::io;
use std::path::{Path, PathBuf};

/// Files below this size need not be replaced.
const SMALL_BYTES: u64 = 16 << 10;

/// A growing file, replaced by a shorter one from time to time.
///
/// At any moment the file is a readable recording with all kept data up to the last flush.
#[derive(Debug)]
pub(super) struct NewestFile {
    path: PathBuf,
    writer: Writer<RecordingFile>,
    /// Since the last replacement: time of the oldest data, and size at that time.
    since: Option<(TimeNs, u64)>,
}

impl NewestFile {
    pub fn create(path: &Path) -> io::Result<Self> {
        // Not beside another recorder's file.
        is_taken(path)?;
        // A successor that cannot be created must not surprise later.
        drop(create_successor(path)?);
        std::fs::remove_file(successor(path))?;
        let writer = Writer::begin(RecordingFile::new(create_private(path)?));
        let writer = writer.map_err(|error| {
            // The file is useless.
            let _ = std::fs::remove_file(path);
            error.source
        })?;
        Ok(NewestFile {
            path: path.to_owned(),
            writer,
            since: None,
        })
    }

    /// Adds a record other than samples and lifetimes. [`NewestFile::flush`] reports a failure.
    pub fn put(&mut self, record: Record) {
        let _ = self.writer.put(record);
    }

    /// Appends a chunk behind the records that it refers to; returns its offset.
    pub fn append(&mut self, chunk: &Finished) -> Result<u64, WriteError> {
        self.writer.flush()?;
        let offset = self.bytes();
        self.writer.append_finished(chunk)?;
        Ok(offset)
    }

    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.writer.written().bytes
    }

    /// An appended chunk.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, WriteError> {
        let read = self.writer.store().read(offset, length);
        read.map_err(|error| self.failed(&error))
    }

    /// Whether a replacement would save about a third of the file. The file must hold more than one and
    /// a half times the time from `oldest` to `newest`, and must have grown by half. Each byte is thus
    /// copied about twice, in recordings of any length.
    pub fn is_due(&mut self, oldest: TimeNs, newest: TimeNs) -> bool {
        let bytes = self.bytes();
        let (from, base) = *self.since.get_or_insert((oldest, bytes));
        let is_more = |has: u64, needs: u64| has > needs.saturating_add(needs / 2);
        is_more(newest.since(from).0, newest.since(oldest).0)
            && is_more(bytes, base.max(SMALL_BYTES))
    }

    /// Whether it holds data from before `time`.
    pub fn holds_before(&self, time: TimeNs) -> bool {
        self.since.is_some_and(|(from, _)| from < time)
    }

    /// Begins a successor beside the file, to be given to [`NewestFile::replace`].
    pub fn successor(&self) -> Result<Writer<RecordingFile>, WriteError> {
        let file = create_successor(&self.path).map_err(|error| self.failed(&error))?;
        Writer::begin(RecordingFile::new(file))
    }

    /// Renames a `written` successor over the file; its data begin at `oldest`. An error
    /// leaves the file unchanged.
    pub fn replace(
        &mut self,
        next: Writer<RecordingFile>,
        written: Result<(), WriteError>,
        oldest: TimeNs,
    ) -> Result<(), WriteError> {
        let replaced = written.and_then(|()| {
            let replaced = next.store().replace(self.writer.store(), &self.path);
            replaced.map_err(|error| self.failed(&error))
        });
        match &replaced {
            Ok(()) => {
                self.writer = next;
                self.since = Some((oldest, self.bytes()));
            }
            // If this fails too, the next recording removes it.
            Err(_) => _ = std::fs::remove_file(successor(&self.path)),
        }
        replaced
    }

    pub fn end(self, end: RecordingEnd) -> Result<(RecordingFile, Written), WriteError> {
        self.writer.end(end)
    }

    fn failed(&self, error: &io::Error) -> WriteError {
        let text = format!("cannot replace the file by its newest part: {error}");
        WriteError {
            written: self.writer.written(),
            source: io::Error::new(error.kind(), text),
        }
    }
}
