//! Decoder tests: round trips, bad dumps, real dumps.

mod bad;
pub(crate) mod encode;
mod real;
mod round_trip;

use super::{Decoder, DumpError, Event, Step};

/// Decodes a file growing by `pieces` bytes (cyclically), with windows no larger than requested.
pub(crate) fn decode(bytes: &[u8], pieces: &[usize]) -> (Vec<Event>, Decoder, Option<DumpError>) {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    let mut length = 0;
    let mut wanted = 0;
    let mut pieces = pieces.iter().cycle();
    loop {
        let from = usize::try_from(decoder.offset()).unwrap();
        let to = (from + wanted).min(length);
        let window = bytes.get(from..to).unwrap_or_default();
        match decoder.step(window, length as u64) {
            Ok(Step::Event(event)) => events.push(event),
            Ok(Step::Need(more)) => {
                let now = usize::try_from(decoder.offset()).unwrap();
                assert!(now + more > to, "asks for what it has");
                assert!(now + more <= length, "asks for what is not there");
                wanted = more;
                continue;
            }
            Ok(Step::NotYet) if length == bytes.len() => {
                decoder.finish(length as u64);
                return (events, decoder, None);
            }
            Ok(Step::NotYet) => length = (length + pieces.next().unwrap()).min(bytes.len()),
            Err(error) => {
                assert_eq!(decoder.step(&[], length as u64), Err(error), "it stays");
                decoder.finish(length as u64);
                return (events, decoder, Some(error));
            }
        }
        wanted = 0;
    }
}

pub(crate) fn decode_whole(bytes: &[u8]) -> (Vec<Event>, Decoder, Option<DumpError>) {
    decode(bytes, &[bytes.len().max(1)])
}
