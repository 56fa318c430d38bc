use proptest::prelude::*;
use vmscope_records::Avma;

use super::{Decoder, Entry, MAX_LINE_BYTES, MapFlaw};

/// Decodes a map growing by `pieces` bytes (cyclically).
fn decode(bytes: &[u8], pieces: &[usize]) -> (Vec<Entry>, Decoder) {
    let mut decoder = Decoder::new();
    let mut entries = Vec::new();
    let mut length = 0;
    let mut pieces = pieces.iter().cycle();
    while length < bytes.len() {
        length = (length + pieces.next().unwrap()).min(bytes.len());
        let from = |decoder: &Decoder| usize::try_from(decoder.offset()).unwrap();
        while let Some(entry) = decoder.step(&bytes[from(&decoder)..length]) {
            entries.push(entry);
        }
    }
    let rest = usize::try_from(decoder.offset()).unwrap();
    entries.extend(decoder.finish(&bytes[rest..]));
    (entries, decoder)
}

fn entry(start: u64, size: u64, name: &str) -> Entry {
    Entry {
        start: Avma(start),
        size,
        name: name.to_owned(),
    }
}

#[test]
fn lines_of_all_kinds() {
    let map = b"7f00 10 a name with  spaces\n0x7F10 0x20 $other\n  30 1\ttab\n\n\
        nonsense\n40 50\n40 50 \nzz 1 a\n10 zz a\n123456789abcdef01 1 long\n\
        50 0 nothing\nffffffffffffffff 2 beyond\n60 1 \x1b[31mred\x07\xff\n70 1 crlf\r\n80 1 last";
    let (entries, decoder) = decode(map, &[map.len()]);
    let expected = [
        entry(0x7f00, 0x10, "a name with  spaces"),
        entry(0x7f10, 0x20, "$other"),
        entry(0x30, 1, "tab"),
        entry(0x60, 1, "\u{1b}[31mred\u{7}\u{fffd}"),
        entry(0x70, 1, "crlf"),
        entry(0x80, 1, "last"),
    ];
    assert_eq!(entries, expected);
    assert_eq!(decoder.flaws().count(MapFlaw::Garbage), 6);
    assert_eq!(decoder.flaws().count(MapFlaw::NoRange), 2);
    let first = decoder.flaws().iter().next().unwrap().1.first_at;
    assert_eq!(
        map.get(usize::try_from(first).unwrap()..).unwrap()[..8],
        *b"nonsense"
    );
}

#[test]
fn a_last_line_without_end_is_not_taken_before_the_file_is_complete() {
    let mut decoder = Decoder::new();
    assert_eq!(decoder.step(b"10 1 fi"), None);
    assert_eq!(decoder.offset(), 0);
    assert_eq!(decoder.step(b"10 1 fib\n20"), Some(entry(0x10, 1, "fib")));
    assert_eq!(decoder.finish(b"20 1 x"), Some(entry(0x20, 1, "x")));
}

#[test]
fn an_endless_line_is_cut_once() {
    let long = format!("10 1 {}\n20 1 next\n", "n".repeat(3 * MAX_LINE_BYTES));
    for pieces in [&[1][..], &[100_000], &[5000, 1]] {
        let (entries, decoder) = decode(long.as_bytes(), pieces);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].name.len(), MAX_LINE_BYTES - 5);
        assert_eq!(entries[1].name, "next");
        assert_eq!(decoder.flaws().count(MapFlaw::CutLine), 1);
    }
    let garbage = vec![b'x'; 1 << 20];
    let (entries, decoder) = decode(&garbage, &[4096]);
    assert!(entries.is_empty());
    assert_eq!(decoder.flaws().count(MapFlaw::CutLine), 1);
}

#[test]
fn real_ones() {
    let maps: [(&[u8], usize, &str); 4] = [
        (
            include_bytes!("../../tests/fixtures/php82.map"),
            43,
            "TRACE-5$fib$2",
        ),
        (include_bytes!("../../tests/fixtures/erlang25.map"), 20, ""),
        (
            include_bytes!("../../tests/fixtures/cpython312.map"),
            14,
            "py::fib:/tmp/demo-program/fib.py",
        ),
        (include_bytes!("../../tests/fixtures/mono68.map"), 27, ""),
    ];
    for (map, count, last) in maps {
        let (entries, decoder) = decode(map, &[13]);
        assert_eq!(entries.len(), count);
        assert!(entries.last().unwrap().name.ends_with(last));
        assert!(decoder.flaws().is_empty(), "{:?}", decoder.flaws());
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        lines in proptest::collection::vec((any::<u32>(), 1..u64::from(u32::MAX), "[^\\n\\r\\s][^\\n\\r]{0,30}", any::<bool>()), 0..20),
        pieces in proptest::collection::vec(1..50usize, 1..5),
    ) {
        let mut map = String::new();
        let mut expected = Vec::new();
        for (start, size, name, prefix) in lines {
            let prefix = if prefix { "0x" } else { "" };
            map.push_str(&format!("{prefix}{start:x} {prefix}{size:x} {name}\n"));
            expected.push(entry(start.into(), size, &name));
        }
        let (entries, decoder) = decode(map.as_bytes(), &pieces);
        prop_assert_eq!(entries, expected);
        prop_assert!(decoder.flaws().is_empty());
    }

    #[test]
    fn any_bytes_are_the_same_in_any_pieces(
        bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), Just(b'1'), any::<u8>()], 0..300),
        pieces in proptest::collection::vec(1..50usize, 1..5),
    ) {
        let (entries, decoder) = decode(&bytes, &pieces);
        let (whole, other) = decode(&bytes, &[bytes.len().max(1)]);
        prop_assert_eq!(entries, whole);
        prop_assert_eq!(decoder.flaws(), other.flaws());
    }
}
