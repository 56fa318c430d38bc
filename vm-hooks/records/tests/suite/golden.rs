//! A recording made by an earlier build reads as it did then: see golden/README.md.

use crate::common;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use vmscope_records::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// The fixed records of the golden recording.
fn records() -> Vec<Record> {
    let mut records = common::every_kind();
    records.retain(|record| !matches!(record, Record::Sample(_)));
    records.push(common::thread(5, 1));
    records.extend((0..200_u32).map(|n| {
        common::sample(
            u64::from(n) * 713_927,
            1 + n % 2,
            0x40_0000 + u64::from(n * n),
        )
    }));
    let Some(Record::Sample(last)) = records.last_mut() else {
        unreachable!()
    };
    last.mode = CpuMode::Kernel;
    last.detail = Some(Box::new(SampleDetail {
        chain: Some(CallChain {
            kernel: vec![Avma(u64::MAX - 5)],
            user: vec![Avma(0x40_1000), Avma(0x40_0ff0)],
            end: ChainEnd::Depth,
            guessed: false,
            late: false,
        }),
        registers: Some(Registers {
            arch: Arch::X86_64,
            mask: 0b1010,
            values: vec![1, u64::MAX],
        }),
        stack: Some(StackBytes {
            sp: Avma(0x7fff_0000),
            bytes: vec![1, 2, 3],
        }),
        words: vec![Word {
            at: Avma(8),
            value: 9,
        }],
    }));
    records
}

/// What is read, record by record.
fn listing(bytes: &[u8]) -> String {
    let read = common::read(bytes).unwrap();
    // Three records of kind 18, which only tests have ever written.
    assert_eq!(
        (read.ending.damage_count, read.unknown, read.malformed.len()),
        (0, 3, 0)
    );
    let mut text = String::new();
    for record in &read.records {
        writeln!(text, "{record:?}").unwrap();
    }
    text
}

#[test]
fn the_golden_recording_reads_as_it_did() {
    let (recording, text) = (golden("v1.recording"), golden("v1.txt"));
    if std::env::var_os("BLESS_RECORDING").is_some() {
        fs::write(&recording, common::write(&records(), &[50, 150])).unwrap();
    }
    let listing = listing(&fs::read(&recording).unwrap());
    // Records have other fields in Rust: their bytes stay.
    if std::env::var_os("BLESS").is_some() {
        fs::write(&text, &listing).unwrap();
    }
    let expected = fs::read_to_string(&text).unwrap();
    for (number, (got, want)) in listing.lines().zip(expected.lines()).enumerate() {
        assert_eq!(got, want, "record {number}: see golden/README.md");
    }
    assert_eq!(listing, expected);
}
