//! Collects records into chunks.

use super::chunk::put_frame;
use super::frame::{self, ChunkHeader, Codec, MAX_RAW_BYTES};
use crate::record::SAMPLES_KIND;
use crate::wire;
use crate::{Content, LossReason, Lost, Record, Sample, SampleDetail, Stream, TimeNs};
use std::collections::VecDeque;

/// A chunk is closed at this size, far below the maximum: one more large record still fits.
const TARGET_RAW_BYTES: usize = 512 << 10;

/// Maximum number of samples per batch, which bounds a reader's decoding.
const MAX_BATCH: usize = 4096;

/// Maximum size of a batch's details (chains, stacks).
const MAX_BATCH_DETAIL_BYTES: usize = 256 << 10;

/// Maximum size of a record: the rest of an open chunk.
const MAX_RECORD_BYTES: usize = MAX_RAW_BYTES - TARGET_RAW_BYTES - 32;

/// zstd's default. At a profiler's data rates the level does not affect CPU time measurably.
const ZSTD_LEVEL: i32 = 3;

/// A complete chunk: header and payload.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub content: Content,
    pub from: TimeNs,
    pub to: TimeNs,
    pub records: u32,
    pub bytes: Vec<u8>,
}

/// Collects records; complete chunks queue up in `ready`.
#[derive(Debug, Default)]
pub(super) struct Gatherer {
    /// Records other than samples and lifetimes.
    state: Gathering,
    lifetimes: Gathering,
    /// Encoded batches of samples.
    samples: Gathering,
    /// Samples of the open batch.
    batch: Vec<Sample>,
    batch_detail_bytes: usize,
    scratch: Vec<u8>,
    pub ready: VecDeque<Finished>,
}

impl Gatherer {
    /// Adds a record, with fewer details if it exceeds any chunk, or else a [`Lost`].
    pub fn put(&mut self, record: Record) {
        let mut record = match record {
            Record::Sample(sample) => return self.put_sample(sample),
            other => other,
        };
        let (content, time) = (record.content(), record.time());
        self.scratch.clear();
        let Some(kind) = record.encode(&mut self.scratch) else {
            return;
        };
        if self.scratch.len() > MAX_RECORD_BYTES {
            return match record.leave_out() {
                true => self.put(record),
                false => self.put(too_large(content, time.unwrap_or_default())),
            };
        }
        let gathering = if content == Content::LIFETIMES {
            &mut self.lifetimes
        } else {
            &mut self.state
        };
        gathering.put(kind, &self.scratch, 1, time, time);
        if gathering.payload.len() >= TARGET_RAW_BYTES {
            // References come first: a file truncated here is consistent.
            self.close(Content::STATE);
            if content == Content::LIFETIMES {
                self.close(content);
            }
        }
    }

    /// Closes all open chunks: state first, then lifetimes and samples, which refer to it.
    pub fn flush(&mut self) {
        self.close_batch();
        self.close(Content::STATE);
        self.close(Content::LIFETIMES);
        self.close(Content::SAMPLES);
    }

    fn put_sample(&mut self, sample: Sample) {
        let detail_bytes = sample.detail.as_deref().map_or(0, most_detail_bytes);
        if self.batch_detail_bytes + detail_bytes > MAX_BATCH_DETAIL_BYTES {
            // An oversized sample gets its own batch.
            self.close_batch();
        }
        self.batch_detail_bytes += detail_bytes;
        self.batch.push(sample);
        if self.batch.len() >= MAX_BATCH || self.batch_detail_bytes >= MAX_BATCH_DETAIL_BYTES {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.scratch.clear();
        wire::encode_samples(&self.batch, &mut self.scratch);
        let from = self.batch.iter().map(|sample| sample.time).min();
        let to = self.batch.iter().map(|sample| sample.time).max();
        if self.scratch.len() > MAX_RECORD_BYTES {
            // A lone sample with megabytes of stack, possible in imports only.
            self.batch.clear();
            self.batch_detail_bytes = 0;
            return self.put(too_large(Content::SAMPLES, to.unwrap_or_default()));
        }
        let count = u32::try_from(self.batch.len()).unwrap_or(u32::MAX);
        self.samples
            .put(SAMPLES_KIND, &self.scratch, count, from, to);
        self.batch.clear();
        self.batch_detail_bytes = 0;
        if self.samples.payload.len() >= TARGET_RAW_BYTES {
            // References come first: a file truncated here is consistent.
            self.close(Content::STATE);
            self.close(Content::SAMPLES);
        }
    }

    fn close(&mut self, content: Content) {
        let gathering = match content {
            Content::SAMPLES => &mut self.samples,
            Content::LIFETIMES => &mut self.lifetimes,
            _ => &mut self.state,
        };
        self.ready.extend(gathering.take(content));
    }
}

/// Approximate maximum size of `detail` in a message.
fn most_detail_bytes(detail: &SampleDetail) -> usize {
    let chain = detail.chain.as_ref();
    let addresses = chain.map_or(0, |chain| chain.kernel.len() + chain.user.len());
    let registers = detail.registers.as_ref().map_or(0, |r| r.values.len());
    let stack = detail.stack.as_ref().map_or(0, |stack| stack.bytes.len());
    // Ten bytes: the longest varint. A word takes two, with tags.
    32 + 10 * (addresses + registers) + 24 * detail.words.len() + stack
}

/// A recording with one chunk of arbitrary payload and correct headers: lets tests and fuzzers pass
/// the checksums. Truncates oversized payloads.
#[must_use]
pub fn plain_recording(payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min(MAX_RAW_BYTES)];
    let header = ChunkHeader {
        codec: Codec::Plain,
        content: Content::default(),
        raw_bytes: payload.len(),
        stored_bytes: payload.len(),
        payload_crc: crc32fast::hash(payload),
        from: TimeNs(0),
        to: TimeNs(0),
        records: 0,
    };
    [&frame::file_header()[..], &header.to_bytes(), payload].concat()
}

fn too_large(content: Content, time: TimeNs) -> Record {
    Record::Lost(Lost {
        stream: match content {
            Content::SAMPLES => Stream::Samples,
            Content::LIFETIMES => Stream::Lifetimes,
            _ => Stream::Any,
        },
        reason: LossReason::TooLarge,
        count: 1,
        from: time,
        to: time,
        thread: None,
    })
}

/// An open chunk.
#[derive(Debug, Default)]
struct Gathering {
    payload: Vec<u8>,
    records: u32,
    span: Option<(TimeNs, TimeNs)>,
}

impl Gathering {
    fn put(
        &mut self,
        kind: u32,
        body: &[u8],
        records: u32,
        from: Option<TimeNs>,
        to: Option<TimeNs>,
    ) {
        put_frame(kind, body, &mut self.payload);
        self.records = self.records.saturating_add(records);
        if let (Some(from), Some(to)) = (from, to) {
            self.span = Some(match self.span {
                Some((first, last)) => (first.min(from), last.max(to)),
                None => (from, to),
            });
        }
    }

    /// The complete chunk; `None` if empty.
    fn take(&mut self, content: Content) -> Option<Finished> {
        if self.payload.is_empty() {
            return None;
        }
        let payload = std::mem::take(&mut self.payload);
        let (from, to) = self.span.take().unwrap_or_default();
        let records = std::mem::take(&mut self.records);
        let raw_bytes = payload.len();
        let (codec, stored) = match zstd::bulk::compress(&payload, ZSTD_LEVEL) {
            Ok(compressed)
                if compressed.len() < raw_bytes
                    && raw_bytes <= frame::max_raw_bytes(compressed.len()) =>
            {
                (Codec::Zstd, compressed)
            }
            _ => (Codec::Plain, payload),
        };
        let header = ChunkHeader {
            codec,
            content,
            raw_bytes,
            stored_bytes: stored.len(),
            payload_crc: crc32fast::hash(&stored),
            from,
            to,
            records,
        };
        let mut bytes = Vec::with_capacity(frame::CHUNK_HEADER_BYTES + stored.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(&stored);
        Some(Finished {
            content,
            from,
            to,
            records,
            bytes,
        })
    }
}
