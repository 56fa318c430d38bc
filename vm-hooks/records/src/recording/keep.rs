//! Keeps the newest part of a recording in memory until saved (`--keep-last`).

use super::gather::{Finished, Gatherer};
use super::state::LastingState;
use super::writer::{Store, WriteError, Writer, Written};
use crate::{
    Content, DurationNs, Lifetime, Limit, LimitKind, MethodKey, Record, RecordingEnd, TimeNs,
};
use std::collections::{HashSet, VecDeque};

/// A recording as a circular buffer over time.
///
/// Keeps samples and lifetimes as complete chunks until older than the window, and other records as
/// long as kept samples need them. Memory is bounded by the window, by about twice `max_bytes`, and
/// by live state of the target, independent of the recording's duration.
#[derive(Debug)]
pub struct KeepLast {
    window: DurationNs,
    max_bytes: usize,
    gatherer: Gatherer,
    chunks: VecDeque<Kept>,
    /// Methods referenced by lifetimes of the open chunk.
    lifetime_methods: HashSet<MethodKey>,
    chunk_bytes: usize,
    state: LastingState,
    /// Time of the last removal of old state.
    forgotten_at: TimeNs,
    newest: TimeNs,
    /// Latest time of dropped chunks.
    dropped_to: Option<TimeNs>,
    /// Whether `max_bytes` shortened the window.
    squeezed: bool,
}

#[derive(Debug)]
struct Kept {
    chunk: Finished,
    /// Methods referenced by its lifetimes.
    methods: HashSet<MethodKey>,
}

impl KeepLast {
    /// Keeps the newest `window` in about `max_bytes` of chunks.
    #[must_use]
    pub fn new(window: DurationNs, max_bytes: usize) -> Self {
        KeepLast {
            window,
            max_bytes,
            gatherer: Gatherer::default(),
            chunks: VecDeque::new(),
            lifetime_methods: HashSet::new(),
            chunk_bytes: 0,
            state: LastingState::default(),
            forgotten_at: TimeNs(0),
            newest: TimeNs(0),
            dropped_to: None,
            squeezed: false,
        }
    }

    /// Adds a record.
    pub fn put(&mut self, record: Record) {
        // CPU time readings precede samples still in flight: their times would shorten the window.
        if let Some(time) = record.time()
            && !matches!(record, Record::ThreadCpu(_))
        {
            self.newest = self.newest.max(time);
        }
        if record.content() == Content::STATE {
            self.state.put(record);
        } else {
            if let Record::Lifetime(lifetime) = &record
                && let Lifetime::Birth { site, .. } | Lifetime::Aggregate { site, .. } = &**lifetime
            {
                let methods = site.frames.iter().map(|(method, _)| *method);
                self.lifetime_methods.extend(methods);
            }
            self.gatherer.put(record);
            self.take_ready();
        }
    }

    /// Closes the open chunk and drops old data. Call about once per second, which is the precision
    /// of the window's edge. State of dropped samples goes later, since its removal visits all
    /// state.
    pub fn flush(&mut self) {
        self.gatherer.flush();
        self.take_ready();
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
        let lifetimes = self.chunks.iter().flat_map(|kept| &kept.methods);
        self.state.sweep_methods(lifetimes);
        if self.state.gone_bytes() + self.chunk_bytes > self.max_bytes {
            // Its state goes with the next flush.
            for _ in 0..(self.chunks.len() / 8).max(1) {
                if self.chunks.len() > 1 {
                    self.squeezed = true;
                    self.drop_oldest();
                }
            }
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(Kept { chunk: oldest, .. }) = self.chunks.pop_front() {
            self.dropped_to = self.dropped_to.max(Some(oldest.to));
            self.chunk_bytes -= oldest.bytes.len();
        }
    }

    /// Drops chunks that end before `horizon`, and the oldest ones beyond `max_bytes`.
    fn drop_chunks(&mut self, horizon: TimeNs) {
        while let Some(Kept { chunk: oldest, .. }) = self.chunks.front() {
            let too_many = self.chunk_bytes > self.max_bytes && self.chunks.len() > 1;
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

    /// Compressed bytes of kept samples and lifetimes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunk_bytes as u64
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
        self.flush();
        let mut writer = Writer::begin(store)?;
        // The writer remembers a failure and reports it at the end.
        let _ = self.write(&mut writer);
        writer.end(end)
    }

    fn write<S: Store>(&self, writer: &mut Writer<S>) -> Result<(), WriteError> {
        for record in self.state.records() {
            writer.put(record)?;
        }
        if let Some(dropped_to) = self.dropped_to {
            writer.put(Record::Limit(self.limit(dropped_to)))?;
        }
        writer.flush()?;
        for kept in &self.chunks {
            writer.append_finished(&kept.chunk)?;
        }
        Ok(())
    }

    /// Number of kept records other than samples and lifetimes.
    #[must_use]
    pub fn state_records(&self) -> usize {
        self.state.records().count()
    }

    fn limit(&self, dropped_to: TimeNs) -> Limit {
        let kept = self.newest.since(dropped_to).as_secs_f64();
        let wanted = self.window.as_secs_f64();
        Limit {
            time: dropped_to,
            kind: LimitKind::OnlyNewestKept,
            text: if self.squeezed {
                format!(
                    "only the newest {kept:.1} s were kept: {wanted:.1} s did not fit in {} MiB",
                    self.max_bytes >> 20
                )
            } else {
                format!("only the newest {kept:.1} s were kept (--keep-last {wanted})")
            },
            remedy: String::new(),
        }
    }

    fn take_ready(&mut self) {
        while let Some(finished) = self.gatherer.ready.pop_front() {
            self.chunk_bytes += finished.bytes.len();
            let methods = match finished.content {
                Content::LIFETIMES => std::mem::take(&mut self.lifetime_methods),
                _ => HashSet::new(),
            };
            self.chunks.push_back(Kept {
                chunk: finished,
                methods,
            });
        }
        // Before the second elapses too: stacks may take gigabytes.
        self.drop_chunks(self.newest.minus(self.window));
    }
}
