//! Any bytes as a growing perf map: results do not depend on its pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_jitdump::perf_map::{Decoder, Entry, MAX_LINE_BYTES};

fn read(bytes: &[u8], piece: usize) -> (Vec<Entry>, Decoder) {
    let mut decoder = Decoder::new();
    let mut entries = Vec::new();
    let mut length = 0;
    while length < bytes.len() {
        length = (length + piece).min(bytes.len());
        loop {
            let from = usize::try_from(decoder.offset()).expect("within the file");
            match decoder.step(&bytes[from..length]) {
                Some(entry) => entries.push(entry),
                None => break,
            }
        }
    }
    let rest = usize::try_from(decoder.offset()).expect("within the file");
    assert!(bytes.len() - rest <= MAX_LINE_BYTES);
    entries.extend(decoder.finish(&bytes[rest..]));
    assert_eq!(decoder.offset(), bytes.len() as u64);
    (entries, decoder)
}

fuzz_target!(|bytes: &[u8]| {
    let (entries, decoder) = read(bytes, bytes.len().max(1));
    let in_pieces = read(bytes, 61);
    assert_eq!(in_pieces.0, entries);
    assert_eq!(in_pieces.1.flaws(), decoder.flaws());
    for entry in &entries {
        assert!(entry.size > 0 && entry.start.checked_add(entry.size).is_some());
        assert!(!entry.name.is_empty() && entry.name.len() <= 3 * MAX_LINE_BYTES);
    }
});
