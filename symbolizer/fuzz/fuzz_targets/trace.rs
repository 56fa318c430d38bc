//! Any bytes as a recording, from the file to the counts. Corrected checksums let the fuzzer
//! reach the contents.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use vmscope_records::TimeNs;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::trace::memory_for;
use vmscope_symbolizer::{Filter, Id, Stop, Summary, ThreadId, Trace, profile_of};

/// The polynomial of the format's checksums (CRC-32 of IEEE 802.3), bit by bit: the
/// inputs are small.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// Makes the checksums of every chunk that lies where the one before ends right.
fn mend(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 16;
    while let Some(header) = bytes.get(at..at + 48) {
        let stored = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
        let body = at + 48;
        let end = body.saturating_add(stored as usize);
        let Some(payload) = bytes.get(body..end) else {
            break;
        };
        let crc = crc32(payload);
        bytes[at + 20..at + 24].copy_from_slice(&crc.to_le_bytes());
        let crc = crc32(&bytes[at..at + 44]);
        bytes[at + 44..at + 48].copy_from_slice(&crc.to_le_bytes());
        at = end;
    }
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    let bytes = mend(bytes);
    let Ok(mut reader) = Reader::open(Cursor::new(bytes.as_slice())) else {
        return;
    };
    let Ok(trace) = Trace::read(&mut reader) else {
        return;
    };
    // A pass ends at the first record or chain beyond its memory.
    assert!(trace.memory() <= memory_for(bytes.len() as u64) + (32 << 20));
    let samples = trace.samples.times.len() as u64;
    let middle = trace.samples.times.get(trace.samples.times.len() / 2).copied();
    let profile = profile_of(trace, Vec::new(), true);
    assert_eq!(profile.site_of_place.len(), profile.trace.places.len());
    let part = Filter {
        threads: Some([0, 2].map(ThreadId::of).into_iter().collect()),
        from: middle,
        to: Some(TimeNs(u64::MAX)),
        ..Filter::default()
    };
    for filter in [Filter::default(), part] {
        let summary = Summary::with_errors(&profile, &filter);
        assert!(summary.total <= samples);
        assert_eq!(summary.sites.iter().sum::<u64>(), summary.total);
        assert_eq!(summary.entries.iter().sum::<u64>(), summary.total);
        assert_eq!(summary.regions.iter().sum::<u64>(), summary.total);
        let of_threads: u64 = summary.threads.iter().map(|thread| thread.samples).sum();
        assert_eq!(of_threads, summary.total);
        assert!(summary.window.0 <= summary.window.1);
        if let Some(compilers) = Compilers::of(&profile, &filter, &Stop::new()) {
            let nobodys = compilers.between + compilers.unseen + compilers.doubtful;
            assert_eq!(compilers.told + nobodys, compilers.samples);
            let listed: u64 = compilers.methods.iter().map(|method| method.samples).sum();
            assert_eq!(listed + compilers.left_out.1, compilers.told);
        }
    }
    assert_eq!(Summary::with_errors(&profile, &Filter::default()).total, samples);
});
