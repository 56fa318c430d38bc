//! Keeps the newest part of a recording, in a file (`--keep-last`) or in memory until saved (`top`).

use super::file::RecordingFile;
use super::gather::{Finished, Gatherer};
use super::newest::NewestFile;
use super::state::LastingState;
use super::writer::{Store, WriteError, Writer, Written};
use crate::{Content, DurationNs, Limit, LimitKind, Record, RecordingEnd, TimeNs};
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// A recording as a circular buffer over time.
///
/// Keeps samples and lifetimes as complete chunks until older than the window, and other records as
/// long as kept samples need them. The chunks are in memory, or in a file that is readable at any
/// moment. Window, `max_bytes` (about twice), and live state of the target bound the memory, whatever
/// the recording's duration.
#[derive(Debug)]
pub struct KeepLast {
    window: DurationNs,
    max_bytes: usize,
    gatherer: Gatherer,
    chunks: VecDeque<Kept>,
    chunk_bytes: usize,
    state: LastingState,
    /// Time of the last removal of old state.
    forgotten_at: TimeNs,
    newest: TimeNs,
    /// Later records do not move the window.
    end: TimeNs,
    /// Latest time of dropped chunks.
    dropped_to: Option<TimeNs>,
    /// Whether `max_bytes` shortened the window.
    squeezed: bool,
    file: Option<NewestFile>,
}

#[derive(Debug)]
struct Kept {
    /// With a file: without bytes.
    chunk: Finished,
    /// Offset in the file.
    offset: u64,
    /// Length in bytes.
    length: usize,
}

impl KeepLast {
    /// Keeps the newest `window` in memory, in about `max_bytes` of chunks and removed code.
    #[must_use]
    pub fn new(window: DurationNs, max_bytes: usize) -> Self {
        KeepLast {
            window,
            max_bytes,
            gatherer: Gatherer::default(),
            chunks: VecDeque::new(),
            chunk_bytes: 0,
            state: LastingState::default(),
            forgotten_at: TimeNs(0),
            newest: TimeNs(0),
            end: TimeNs(u64::MAX),
            dropped_to: None,
            squeezed: false,
            file: None,
        }
    }

    /// Keeps the newest `window` in a new file at `path`, as by [`super::create_private`], and about
    /// `max_bytes` of removed code in memory.
    ///
    /// # Errors
    /// I/O errors, `AlreadyExists` as by [`super::create_private`]; no file is left behind.
    pub fn in_file(path: &Path, window: DurationNs, max_bytes: usize) -> io::Result<Self> {
        Ok(KeepLast {
            file: Some(NewestFile::create(path)?),
            ..KeepLast::new(window, max_bytes)
        })
    }

    /// Adds a record. [`KeepLast::flush`] reports a failed write.
    pub fn put(&mut self, record: Record) {
        // CPU time readings precede samples still in flight: their times would shorten the window.
        if let Some(time) = record.time()
            && !matches!(record, Record::ThreadCpu(_))
        {
            self.newest = self.newest.max(time.min(self.end));
        }
        if record.content() == Content::STATE {
            if let Some(file) = &mut self.file {
                file.put(record.clone());
            }
            self.state.put(record);
        } else {
            self.gatherer.put(record);
            self.take_ready();
        }
    }

    /// Sampling has ended at `time`. Later records, such as last readings of a VM, do not move the
    /// window.
    pub fn sampled_until(&mut self, time: TimeNs) {
        self.end = time;
    }

    /// Closes the open chunk and drops old data. Call about three times per second, which is the precision
    /// of the window's edge and the loss after a crash.
    ///
    /// # Errors
    /// [`WriteError`] if the file failed; it stays a readable recording.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.gatherer.flush();
        self.take_ready();
        if let Some(file) = &mut self.file {
            file.flush()?;
        }
        self.forget();
        let (oldest, newest) = (self.oldest(), self.newest);
        let file = self.file.as_mut();
        if file.is_some_and(|file| file.is_due(oldest, newest)) {
            self.renew()?;
        }
        Ok(())
    }

    /// Earliest time of kept chunks.
    fn oldest(&self) -> TimeNs {
        self.chunks
            .front()
            .map_or(self.newest, |kept| kept.chunk.from)
    }

    /// Drops old data. State of dropped samples goes later, since its removal visits all state.
    fn forget(&mut self) {
        let horizon = self.newest.minus(self.window);
        self.drop_chunks(horizon);
        // A kept chunk may begin before the window; its first samples need their state.
        let oldest = self.chunks.iter().map(|kept| kept.chunk.from).min();
        let horizon = match (oldest, self.dropped_to) {
            // Earlier chunks are already dropped.
            (Some(oldest), Some(_)) => oldest,
            (Some(oldest), None) => oldest.min(horizon),
            (None, _) => horizon,
        };
        if self.newest.since(self.forgotten_at).0 < self.window.0 / 32 {
            return;
        }
        self.forgotten_at = self.newest;
        self.state.forget_before(horizon);
        self.state.sweep_methods();
        if self.state.gone_bytes() + self.chunk_memory() > self.max_bytes {
            // Its state goes with the next flush.
            for _ in 0..(self.chunks.len() / 8).max(1) {
                if self.chunks.len() > 1 {
                    self.squeezed = true;
                    self.drop_oldest();
                }
            }
        }
    }

    /// Replaces the file by one without the dropped data.
    fn renew(&mut self) -> Result<(), WriteError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut next = file.successor()?;
        let mut offsets = Vec::with_capacity(self.chunks.len());
        let written = self.write(&mut next, &mut offsets);
        let oldest = self.oldest();
        if let Some(file) = &mut self.file {
            file.replace(next, written, oldest)?;
        }
        for (kept, offset) in self.chunks.iter_mut().zip(offsets) {
            kept.offset = offset;
        }
        Ok(())
    }

    fn drop_oldest(&mut self) {
        if let Some(kept) = self.chunks.pop_front() {
            let (oldest, length) = (kept.chunk, kept.length);
            self.dropped_to = self.dropped_to.max(Some(oldest.to));
            self.chunk_bytes -= length;
        }
    }

    /// Drops chunks that end before `horizon`, and the oldest ones beyond `max_bytes`.
    fn drop_chunks(&mut self, horizon: TimeNs) {
        while let Some(Kept { chunk: oldest, .. }) = self.chunks.front() {
            let too_many = self.chunk_memory() > self.max_bytes && self.chunks.len() > 1;
            if oldest.to >= horizon && !too_many {
                break;
            }
            self.squeezed |= oldest.to >= horizon;
            self.drop_oldest();
        }
    }

    /// Number of kept samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let samples = self
            .chunks
            .iter()
            .map(|kept| &kept.chunk)
            .filter(|chunk| chunk.content == Content::SAMPLES);
        samples.map(|chunk| u64::from(chunk.records)).sum()
    }

    /// Length of the file, or the compressed bytes of kept samples and lifetimes in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let in_memory = self.chunk_bytes as u64;
        self.file.as_ref().map_or(in_memory, NewestFile::bytes)
    }

    /// Memory of chunks in bytes.
    fn chunk_memory(&self) -> usize {
        match self.file {
            Some(_) => 0,
            None => self.chunk_bytes,
        }
    }

    /// Writes kept data as a separate recording, and continues.
    ///
    /// # Errors
    /// [`WriteError`] if the store fails.
    pub fn save<S: Store>(
        &mut self,
        store: S,
        end: RecordingEnd,
    ) -> Result<(S, Written), WriteError> {
        // The store may have room even if the file's disk is full.
        let _ = self.flush();
        let mut writer = Writer::begin(store)?;
        // The writer remembers a failure and reports it at the end.
        let _ = self.write(&mut writer, &mut Vec::new());
        writer.end(end)
    }

    /// Ends the recording in its file; in memory, `None`.
    ///
    /// # Errors
    /// [`WriteError`] for an incomplete recording, possibly with its end.
    pub fn end(
        &mut self,
        end: RecordingEnd,
    ) -> Result<Option<(RecordingFile, Written)>, WriteError> {
        let flushed = self.flush();
        let holds_dropped =
            |file: &NewestFile| self.dropped_to.is_some_and(|to| file.holds_before(to));
        if flushed.is_ok() && self.file.as_ref().is_some_and(holds_dropped) {
            // Without room for a successor, the file keeps more than the window.
            let _ = self.renew();
        }
        let file = self.file.take();
        file.map(|file| file.end(end)).transpose()
    }

    /// Writes kept data; appends the chunks' offsets to `offsets`.
    fn write<S: Store>(
        &self,
        writer: &mut Writer<S>,
        offsets: &mut Vec<u64>,
    ) -> Result<(), WriteError> {
        for record in self.state.records() {
            writer.put(record)?;
        }
        if let Some(dropped_to) = self.dropped_to {
            writer.put(Record::Limit(self.limit(dropped_to)))?;
        }
        writer.flush()?;
        for kept in &self.chunks {
            offsets.push(writer.written().bytes);
            match &self.file {
                None => writer.append_finished(&kept.chunk)?,
                Some(file) => writer.append_finished(&Finished {
                    bytes: file.read(kept.offset, kept.length)?,
                    ..kept.chunk.clone()
                })?,
            }
        }
        Ok(())
    }

    /// Number of kept records other than samples and lifetimes.
    #[must_use]
    pub fn state_records(&self) -> usize {
        self.state.records().count()
    }

    fn limit(&self, dropped_to: TimeNs) -> Limit {
        let wanted = self.window.as_secs_f64();
        Limit {
            time: dropped_to,
            kind: LimitKind::OnlyNewestKept,
            text: if self.squeezed {
                let most = self.max_bytes >> 20;
                format!(
                    "only the newest samples were kept: {wanted:.1} s did not fit in {most} MiB"
                )
            } else {
                format!("only the newest {wanted} s were kept (--keep-last)")
            },
            remedy: String::new(),
        }
    }

    fn take_ready(&mut self) {
        while let Some(mut chunk) = self.gatherer.ready.pop_front() {
            let (length, mut offset) = (chunk.bytes.len(), 0);
            if let Some(file) = &mut self.file {
                match file.append(&chunk) {
                    Ok(at) => offset = at,
                    // The next flush reports it.
                    Err(_) => continue,
                }
                chunk.bytes = Vec::new();
            }
            self.chunk_bytes += length;
            self.chunks.push_back(Kept {
                chunk,
                offset,
                length,
            });
        }
        // Before the second elapses too: stacks may take gigabytes.
        self.drop_chunks(self.newest.minus(self.window));
    }
}
