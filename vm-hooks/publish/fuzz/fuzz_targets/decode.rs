//! Any words as events: decoded within their words, or refused; equal after another encoding and
//! decoding. The zone's books take all events.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_publish::event::Event;
use vmscope_publish::sample::Sample;
use vmscope_publish::zone::{Change, Zone};

fuzz_target!(|input: &[u8]| {
    let mut zone = Zone::default();
    // Each event: its kind, its number of words, and the words.
    let mut rest = input;
    while let [kind, count, tail @ ..] = rest {
        let bytes = tail.len().min(usize::from(*count) * 8);
        let (words, after) = tail.split_at(bytes);
        rest = after;
        let words: Vec<u64> = words
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        if let Ok(sample) = Sample::decode(0, &words) {
            assert!(sample.chain.len() < words.len());
        }
        let Ok(mut event) = Event::decode(*kind, &words) else {
            continue;
        };
        let mut again = Vec::new();
        event.encode(&mut again);
        assert!(again.len() <= words.len());
        let decoded = Event::decode(*kind, &again).expect("what was encoded");
        let mut twice = Vec::new();
        decoded.encode(&mut twice);
        assert_eq!(again, twice);
        if let Event::Method(method) = &event {
            assert_eq!(method.listing_lines().count(), method.listing.len());
        }
        let before = zone.len();
        match zone.apply(&mut event) {
            Change::Seen { new } => assert_eq!(zone.len(), before + usize::from(new)),
            Change::Gone => assert_eq!(zone.len(), before - 1),
            Change::Complete { missing } => assert_eq!(zone.len(), before - missing.len()),
            _ => assert_eq!(zone.len(), before),
        }
        assert!(zone.iter().all(|(_, place)| place.start < place.end));
    }
});
