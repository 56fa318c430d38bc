//! What the tests of the recording share: a record of every kind, reading everything
//! back, and making chunks by hand as FORMAT.md describes them.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

pub mod strategies;

use std::io::Cursor;
use vmscope_records::recording::{Ending, Item, ReadError, Reader, Writer};
use vmscope_records::*;

/// Everything in a recording, in its order, samples among the other records.
#[derive(Debug, Default)]
pub struct Everything {
    pub records: Vec<Record>,
    pub unknown: u64,
    pub malformed: Vec<(u32, WireError)>,
    pub ending: Ending,
}

impl Everything {
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.records.iter().filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    pub fn end(&self) -> Option<&RecordingEnd> {
        self.records.iter().rev().find_map(|record| match record {
            Record::End(end) => Some(end),
            _ => None,
        })
    }
}

/// Reads all that can be read.
pub fn read(bytes: &[u8]) -> Result<Everything, ReadError> {
    let mut reader = Reader::open(Cursor::new(bytes))?;
    let mut all = Everything::default();
    while let Some(chunk) = reader.next_chunk(Content::ALL)? {
        for item in chunk.items() {
            match item {
                Item::Record(record) => all.records.push(record),
                Item::Samples(samples) => {
                    all.records.extend(samples.into_iter().map(Record::Sample));
                }
                Item::Unknown(_) => all.unknown += 1,
                Item::Malformed(kind, error) => all.malformed.push((kind, error)),
            }
        }
    }
    all.ending = reader.ending().clone();
    Ok(all)
}

/// Writes `records` and an end, flushing after each of `flush_after` indices.
pub fn write(records: &[Record], flush_after: &[usize]) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new()).unwrap();
    for (index, record) in records.iter().enumerate() {
        writer.put(record.clone()).unwrap();
        if flush_after.contains(&index) {
            writer.flush().unwrap();
        }
    }
    writer.end(end(EndReason::TargetExited)).unwrap().0
}

pub fn end(reason: EndReason) -> RecordingEnd {
    RecordingEnd {
        time: TimeNs(9_000_000),
        reason,
        detail: "so it goes".to_owned(),
        samples: 0,
        recorder_cpu_ns: 123_456,
    }
}

/// Says that a test is skipped. Test runners hide what a passing test prints, so it
/// also goes to the file that `cargo xtask test` names and shows at the end.
pub fn skip(name: &str, why: &str) {
    use std::io::Write;
    eprintln!("SKIPPED {name}: {why}");
    if let Some(path) = std::env::var_os("VMSCOPE_SKIPPED") {
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.append(true).create(true).open(path).unwrap();
        writeln!(file, "{name}: {why}").unwrap();
    }
}

/// A plain sample.
pub fn sample(time: u64, thread: u32, pc: u64) -> Record {
    Record::Sample(Sample {
        time: TimeNs(time),
        thread: ThreadKey(thread),
        pc: Avma(pc),
        mode: CpuMode::User,
        detail: None,
    })
}

/// A thread from `time` on.
pub fn thread(time: u64, key: u32) -> Record {
    Record::Thread(Thread {
        key: ThreadKey(key),
        process: ProcessKey(1),
        tid: Tid(1000 + key),
        time: TimeNs(time),
        name: format!("worker {key}"),
        role: ThreadRole::Mutator,
        cpu_before: DurationNs(0),
    })
}

/// The file's header, by hand.
pub fn file_header(major: u16, minor: u16) -> Vec<u8> {
    let mut bytes = b"\x89VMSCOPE".to_vec();
    bytes.extend(major.to_le_bytes());
    bytes.extend(minor.to_le_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

/// What a chunk's header claims.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    pub codec: u8,
    pub content: u32,
    pub raw: u32,
    pub stored: u32,
}

/// A chunk by hand: `stored` behind a header that claims what `claims` says.
pub fn chunk_with(claims: Claims, stored: &[u8]) -> Vec<u8> {
    let mut bytes = b"VMSC".to_vec();
    bytes.extend([claims.codec, 0, 0, 0]);
    bytes.extend(claims.content.to_le_bytes());
    bytes.extend(claims.raw.to_le_bytes());
    bytes.extend(claims.stored.to_le_bytes());
    bytes.extend(crc32fast::hash(stored).to_le_bytes());
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend(2_u64.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes.extend(stored);
    bytes
}

/// An honest plain chunk with that payload.
pub fn plain_chunk(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let claims = Claims {
        codec: 0,
        content: 4,
        raw: length,
        stored: length,
    };
    chunk_with(claims, payload)
}

/// An honest compressed chunk with that payload.
pub fn zstd_chunk(payload: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(payload, 3).unwrap();
    let claims = Claims {
        codec: 1,
        content: 4,
        raw: u32::try_from(payload.len()).unwrap(),
        stored: u32::try_from(stored.len()).unwrap(),
    };
    chunk_with(claims, &stored)
}

/// A record's frame: kind, length, message.
pub fn frame(kind: u32, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(u64::from(kind), &mut out);
    prost::encoding::encode_varint(message.len() as u64, &mut out);
    out.extend(message);
    out
}

/// One fixed record of every kind, samples with and without details.
pub fn every_kind() -> Vec<Record> {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    // A fixed seed: the same records in every run.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut records = Vec::new();
    for strategy in strategies::all() {
        for _ in 0..3 {
            records.push(strategy.new_tree(&mut runner).unwrap().current());
        }
    }
    records
}
