//! Keeping only the newest part of a recording, in memory, until it is saved
//! (`--keep-last`).

use super::gather::{Finished, Gatherer};
use super::state::LastingState;
use super::writer::{Store, WriteError, Writer, Written};
use crate::{
    Content, DurationNs, Lifetime, Limit, LimitKind, MethodKey, Record, RecordingEnd, TimeNs,
};
use std::collections::{HashSet, VecDeque};

/// A recording that is a circular buffer in time.
///
/// Samples and lifetimes are kept as finished chunks and dropped when they are
/// older than the window; of everything else, what the window needs to make sense.
/// Memory is bounded by the window, by about twice `max_bytes`, and by what is alive in
/// the target, not by how long it runs.
#[derive(Debug)]
pub struct KeepLast {
    window: DurationNs,
    max_bytes: usize,
    gatherer: Gatherer,
    chunks: VecDeque<Kept>,
    /// The methods that the lifetimes being gathered refer to.
    lifetime_methods: HashSet<MethodKey>,
    chunk_bytes: usize,
    state: LastingState,
    /// When what has become irrelevant was last forgotten.
    forgotten_at: TimeNs,
    newest: TimeNs,
    /// The latest time of anything that was dropped.
    dropped_to: Option<TimeNs>,
    /// Whether `max_bytes` made the window shorter than asked for.
    squeezed: bool,
}

/// A chunk that is kept.
#[derive(Debug)]
struct Kept {
    chunk: Finished,
    /// The methods that its lifetimes refer to.
    methods: HashSet<MethodKey>,
}

impl KeepLast {
    /// Keeps the newest `window` of what is put in, in at most about `max_bytes` of
    /// chunks.
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
        // A reading of CPU time is ahead of the samples that are still on their way: by
        // its time the window would be shorter than asked for.
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

    /// Closes the chunk being gathered and forgets what is too old; to be called
    /// about once a second: that is how coarse the window's edge is. What only samples
    /// before the edge refer to goes by and by: it takes going through all of it.
    pub fn flush(&mut self) {
        self.gatherer.flush();
        self.take_ready();
        let horizon = self.newest.minus(self.window);
        self.drop_chunks(horizon);
        // A chunk that reaches into the window may begin before it: what its first
        // samples refer to must stay.
        let oldest = self.chunks.iter().map(|kept| kept.chunk.from).min();
        let horizon = match (oldest, self.dropped_to) {
            // There is nothing before it any more.
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
            // What it refers to goes the next time.
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

    /// Drops chunks that end before `horizon`, and the oldest of those that are too
    /// many.
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

    /// Samples that are kept.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let samples = self
            .chunks
            .iter()
            .map(|kept| &kept.chunk)
            .filter(|chunk| chunk.content == Content::SAMPLES);
        samples.map(|chunk| u64::from(chunk.records)).sum()
    }

    /// Bytes of samples and lifetimes that are kept, compressed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.chunk_bytes as u64
    }

    /// Writes what is kept as a recording of its own, and goes on keeping.
    ///
    /// # Errors
    /// [`WriteError`] when the store does not take it.
    pub fn save<S: Store>(
        &mut self,
        store: S,
        end: RecordingEnd,
    ) -> Result<(S, Written), WriteError> {
        self.flush();
        let mut writer = Writer::begin(store)?;
        // Where this fails the end says so: the writer remembers.
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

    /// How many records are kept beside samples and lifetimes.
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
        // Not only when the second is over: stacks may fill gigabytes before.
        self.drop_chunks(self.newest.minus(self.window));
    }
}
