//! Any bytes as a chunk's payload, behind correct headers: the fuzzer passes the checksums and
//! reaches the records. Decoded records, written again, read back the
//! same.
#![no_main]

mod common;

use common::{records, texts};
use libfuzzer_sys::fuzz_target;
use vmscope_records::Record;
use vmscope_records::recording::{Writer, plain_recording};

fn sorted(records: &[Record]) -> Vec<String> {
    // The writer keeps the order within a stream, not among streams.
    let mut texts = texts(records);
    texts.sort();
    texts
}

fuzz_target!(|payload: &[u8]| {
    let (first, _) = records(&plain_recording(payload));
    let mut writer = Writer::begin(Vec::new()).expect("memory takes everything");
    for record in &first {
        writer.put(record.clone()).expect("memory takes everything");
    }
    let bytes = writer.close().expect("memory takes everything");
    let (second, others) = records(&bytes);
    assert_eq!(others, 0);
    assert_eq!(sorted(&second), sorted(&first));
});
