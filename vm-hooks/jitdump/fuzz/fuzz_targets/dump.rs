//! Any bytes as a growing jitdump: results do not depend on its pieces, and decoding always
//! ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_jitdump::dump::{Decoder, DumpError, Event, MAX_LINES, MAX_NAME_BYTES, Step};

fn read(bytes: &[u8], piece: usize) -> (Vec<Event>, Decoder, Option<DumpError>) {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    let (mut length, mut wanted) = (0, 0);
    loop {
        let from = usize::try_from(decoder.offset()).expect("within the file");
        let to = (from + wanted).min(length);
        let window = bytes.get(from..to).unwrap_or_default();
        let step = decoder.step(window, length as u64);
        assert!(decoder.offset() <= length as u64);
        match step {
            Ok(Step::Event(event)) => events.push(event),
            Ok(Step::Need(more)) => {
                let now = usize::try_from(decoder.offset()).expect("within the file");
                assert!(now + more > to);
                assert!(now + more <= length);
                wanted = more;
                continue;
            }
            Ok(Step::NotYet) if length == bytes.len() => return (events, decoder, None),
            Ok(Step::NotYet) => length = (length + piece).min(bytes.len()),
            Err(error) => {
                assert_eq!(decoder.step(bytes, u64::MAX), Err(error));
                return (events, decoder, Some(error));
            }
        }
        wanted = 0;
    }
}

fuzz_target!(|bytes: &[u8]| {
    let (events, mut decoder, error) = read(bytes, bytes.len().max(1));
    let in_pieces = read(bytes, 61);
    assert_eq!(in_pieces.0, events);
    assert_eq!(in_pieces.2, error);
    assert_eq!(in_pieces.1.flaws(), decoder.flaws());
    for event in &events {
        if let Event::Load(load) = event {
            assert!(load.size > 0 && load.address.checked_add(load.size).is_some());
            assert!(load.lines.len() <= MAX_LINES);
            // A byte that is no UTF-8 becomes a character of three.
            assert!(load.name.len() <= 3 * MAX_NAME_BYTES);
            assert!(load.lines.is_sorted_by_key(|line| line.address));
        }
    }
    decoder.finish(bytes.len() as u64);
    if let Some(error) = error {
        assert!(!error.to_string().is_empty());
    }
});
