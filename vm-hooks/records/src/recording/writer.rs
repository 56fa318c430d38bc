//! Writes a recording into a [`Store`].

use super::frame;
use super::gather::{Finished, Gatherer};
use crate::{Content, EndReason, Record, RecordingEnd};
use std::io;

/// Destination of chunks: a file, or memory.
pub trait Store {
    /// Appends all of `bytes` or nothing.
    ///
    /// # Errors
    /// I/O errors; the store is unchanged.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends the last `bytes` into reserved space, even on a full disk.
    ///
    /// # Errors
    /// I/O errors.
    fn append_last(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.append(bytes)
    }
}

impl Store for Vec<u8> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A failed write: earlier chunks are intact, later writes fail.
#[derive(Debug, thiserror::Error)]
#[error("writing the recording failed after {} bytes: {source}", written.bytes)]
pub struct WriteError {
    /// Amount written before, all readable.
    pub written: Written,
    /// The I/O error.
    #[source]
    pub source: io::Error,
}

/// Amount of written data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of samples.
    pub samples: u64,
    /// Compressed bytes, including headers.
    pub bytes: u64,
    /// Part of `bytes` in chunks of samples.
    pub sample_bytes: u64,
}

/// Turns records into a recording.
///
/// The store gets full chunks only, until [`Writer::flush`]: call it at least once per second, the
/// maximum loss after a crash.
#[derive(Debug)]
pub struct Writer<S> {
    store: S,
    gatherer: Gatherer,
    written: Written,
    /// The store's error; afterwards only the end is written.
    failed: Option<Failure>,
}

/// A copy of the store's error, since [`io::Error`] can't be cloned.
#[derive(Clone, Debug)]
struct Failure {
    kind: io::ErrorKind,
    text: String,
    written: Written,
}

impl Failure {
    fn to_error(&self) -> WriteError {
        WriteError {
            written: self.written,
            source: io::Error::new(self.kind, self.text.clone()),
        }
    }
}

impl<S: Store> Writer<S> {
    /// Begins a recording with the file header.
    ///
    /// # Errors
    /// [`WriteError`] if the store fails.
    pub fn begin(store: S) -> Result<Self, WriteError> {
        let mut writer = Self::resume(store);
        writer.append(&frame::file_header())?;
        Ok(writer)
    }

    /// Continues a recording that already has its file header.
    #[must_use]
    pub fn resume(store: S) -> Self {
        Writer {
            store,
            gatherer: Gatherer::default(),
            written: Written::default(),
            failed: None,
        }
    }

    /// Adds a record. Samples must be in time order (FORMAT.md); other kinds may be late. A
    /// [`crate::Lost`] replaces a record larger than any chunk.
    ///
    /// # Errors
    /// [`WriteError`] if the store fails on a full chunk.
    pub fn put(&mut self, record: Record) -> Result<(), WriteError> {
        self.gatherer.put(record);
        self.store_ready()
    }

    /// Writes all open chunks into the store.
    ///
    /// # Errors
    /// [`WriteError`] if the store fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.gatherer.flush();
        self.store_ready()
    }

    /// Ends the recording. After a failed write, the end record has that reason instead of `end`'s
    /// and goes into reserved space.
    ///
    /// # Errors
    /// [`WriteError`] for an incomplete recording, possibly with its end.
    pub fn end(mut self, mut end: RecordingEnd) -> Result<(S, Written), WriteError> {
        let failure = self.flush().err();
        if let Some(error) = &failure {
            let detail = error.to_string();
            end.detail = match end.reason {
                EndReason::WriteFailed if !end.detail.is_empty() => {
                    format!("{}; {detail}", end.detail)
                }
                _ => detail,
            };
            end.reason = EndReason::WriteFailed;
        }
        end.samples = self.written.samples;
        let mut last = Gatherer::default();
        last.put(Record::End(end));
        last.flush();
        for finished in last.ready {
            self.store
                .append_last(&finished.bytes)
                .map_err(|source| WriteError {
                    written: self.written,
                    source,
                })?;
            self.written.bytes += finished.bytes.len() as u64;
        }
        match failure {
            Some(error) => Err(error),
            None => Ok((self.store, self.written)),
        }
    }

    /// Writes all open chunks and returns the store, without an end record: for additions to a
    /// complete recording.
    ///
    /// # Errors
    /// [`WriteError`] if the store fails.
    pub fn close(mut self) -> Result<S, WriteError> {
        self.flush()?;
        Ok(self.store)
    }

    /// Amount of data in the store.
    #[must_use]
    pub fn written(&self) -> Written {
        self.written
    }

    pub(super) fn store(&self) -> &S {
        &self.store
    }

    pub(super) fn append_finished(&mut self, finished: &Finished) -> Result<(), WriteError> {
        self.append(&finished.bytes)?;
        if finished.content == Content::SAMPLES {
            self.written.samples += u64::from(finished.records);
            self.written.sample_bytes += finished.bytes.len() as u64;
        }
        Ok(())
    }

    fn store_ready(&mut self) -> Result<(), WriteError> {
        if let Some(failure) = &self.failed {
            // Bounds memory: no later write can succeed.
            self.gatherer.ready.clear();
            return Err(failure.to_error());
        }
        while let Some(finished) = self.gatherer.ready.pop_front() {
            self.append_finished(&finished)?;
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if let Some(failure) = &self.failed {
            return Err(failure.to_error());
        }
        if let Err(source) = self.store.append(bytes) {
            let failure = self.failed.insert(Failure {
                kind: source.kind(),
                text: source.to_string(),
                written: self.written,
            });
            return Err(failure.to_error());
        }
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}
