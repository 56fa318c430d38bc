//! Any bytes as a chunk's payload, behind headers that are right, so that the fuzzer
//! gets past the checksums to the records; what is read is written again and must
//! read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use vmscope_records::recording::{Item, Reader, Writer, plain_recording};
use vmscope_records::{Content, Record};

fn records(recording: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let Ok(mut reader) = Reader::open(Cursor::new(recording)) else {
        panic!("an honest header was refused");
    };
    while let Ok(Some(chunk)) = reader.next_chunk(Content::ALL) {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(samples) => records.extend(samples.into_iter().map(Record::Sample)),
                Item::Unknown(_) | Item::Malformed(..) => {}
            }
        }
    }
    assert_eq!(reader.ending().damage_count, 0);
    records
}

/// The debug form: a counter that is not a number does not equal itself.
fn sorted(records: &[Record]) -> Vec<String> {
    // The writer keeps the order within a stream, not among streams.
    let mut texts: Vec<String> = records.iter().map(|record| format!("{record:?}")).collect();
    texts.sort();
    texts
}

fuzz_target!(|payload: &[u8]| {
    let first = records(&plain_recording(payload));
    let mut writer = Writer::begin(Vec::new()).expect("memory takes everything");
    for record in &first {
        writer.put(record.clone()).expect("memory takes everything");
    }
    let bytes = writer.close().expect("memory takes everything");
    assert_eq!(sorted(&records(&bytes)), sorted(&first));
});
