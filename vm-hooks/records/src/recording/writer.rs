//! Writing a recording: chunks go to a [`Store`].

use super::frame;
use super::gather::{Finished, Gatherer};
use crate::{Content, EndReason, Record, RecordingEnd};
use std::io;

/// Where chunks go: a file, or memory.
pub trait Store {
    /// Appends `bytes`, all of them or none.
    ///
    /// # Errors
    /// What the operating system says. The store is as it was before the call.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Appends `bytes` when nothing else fits any more, using what was set aside for
    /// it.
    ///
    /// # Errors
    /// What the operating system says.
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

/// Writing failed: nothing more can be written, what was written before is whole.
#[derive(Debug, thiserror::Error)]
#[error("writing the recording failed after {written_bytes} bytes: {source}")]
pub struct WriteError {
    /// Bytes that were written before.
    pub written_bytes: u64,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Samples.
    pub samples: u64,
    /// Bytes, compressed, headers included.
    pub bytes: u64,
    /// The part of `bytes` that is chunks of samples.
    pub sample_bytes: u64,
}

/// Turns records into a recording.
///
/// Nothing reaches the store before [`Writer::flush`] or before a chunk is full:
/// whoever drives the writer flushes at least once a second, and that is what a
/// crash may cost.
#[derive(Debug)]
pub struct Writer<S> {
    store: S,
    gatherer: Gatherer,
    written: Written,
    /// Why the store refused a chunk: nothing but the end is written after that.
    failed: Option<Failure>,
}

/// A store's refusal. [`io::Error`] can't be cloned: its kind and its words are kept.
#[derive(Clone, Debug)]
struct Failure {
    kind: io::ErrorKind,
    text: String,
    written_bytes: u64,
}

impl Failure {
    fn to_error(&self) -> WriteError {
        WriteError {
            written_bytes: self.written_bytes,
            source: io::Error::new(self.kind, self.text.clone()),
        }
    }
}

impl<S: Store> Writer<S> {
    /// Begins a recording: writes the file's header.
    ///
    /// # Errors
    /// [`WriteError`] when the store takes nothing.
    pub fn begin(store: S) -> Result<Self, WriteError> {
        let mut writer = Self::resume(store);
        writer.append(&frame::file_header())?;
        Ok(writer)
    }

    /// Goes on with a recording that has its header already.
    #[must_use]
    pub fn resume(store: S) -> Self {
        Writer {
            store,
            gatherer: Gatherer::default(),
            written: Written::default(),
            failed: None,
        }
    }

    /// Adds a record. Samples must come in time order (FORMAT.md); other kinds may
    /// come late. A record that no chunk can hold is replaced by a [`crate::Lost`].
    ///
    /// # Errors
    /// [`WriteError`] when a chunk became full and the store did not take it.
    pub fn put(&mut self, record: Record) -> Result<(), WriteError> {
        self.gatherer.put(record);
        self.store_ready()
    }

    /// Hands everything gathered so far to the store.
    ///
    /// # Errors
    /// [`WriteError`] when the store does not take it.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.gatherer.flush();
        self.store_ready()
    }

    /// Ends the recording. Where writing failed, now or before, the end says so,
    /// whatever `end` says, and goes to what the store set aside for it.
    ///
    /// # Errors
    /// [`WriteError`] when the recording is not all there; its end may be.
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
                    written_bytes: self.written.bytes,
                    source,
                })?;
            self.written.bytes += finished.bytes.len() as u64;
        }
        match failure {
            Some(error) => Err(error),
            None => Ok((self.store, self.written)),
        }
    }

    /// Hands everything to the store and gives that back: for what is added to a
    /// recording that has its end already.
    ///
    /// # Errors
    /// [`WriteError`] when the store does not take it.
    pub fn close(mut self) -> Result<S, WriteError> {
        self.flush()?;
        Ok(self.store)
    }

    /// How much has reached the store.
    #[must_use]
    pub fn written(&self) -> Written {
        self.written
    }

    /// Appends a chunk that was finished elsewhere.
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
            // Nothing will take it any more, and memory is bounded.
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
                written_bytes: self.written.bytes,
            });
            return Err(failure.to_error());
        }
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }
}
