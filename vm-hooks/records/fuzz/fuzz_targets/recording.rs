//! Any bytes as a recording: reads all readable chunks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use vmscope_records::Content;
use vmscope_records::recording::Reader;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::open(Cursor::new(bytes)) else {
        return;
    };
    while let Ok(Some(chunk)) = reader.next_chunk(Content::ALL) {
        chunk.items().for_each(drop);
    }
    let ending = reader.ending();
    assert!(ending.damaged_bytes <= bytes.len() as u64);
    assert_eq!(reader.progress().0, bytes.len() as u64);
});
