//! Decoding returns all encoded records, for any split into pieces.

use proptest::prelude::*;
use vmscope_records::Avma;

use super::encode::Encoder;
use super::{decode, decode_whole};
use crate::dump::{Event, LineStart, Load, Move};

#[derive(Clone, Debug)]
enum Written {
    Told(Event),
    Unwinding(u64),
    Unknown(u32, usize),
}

fn loads() -> impl Strategy<Value = Load> {
    let lines = proptest::collection::vec((0..500u64, 0..900u32, 0..80u32, "[a-c/]{1,3}"), 0..5);
    let name = "[^\\x00]{0,20}";
    (
        any::<u64>(),
        1..1u64 << 47,
        1..300u64,
        any::<u64>(),
        name,
        lines,
    )
        .prop_map(|(time, address, size, index, name, lines)| {
            let mut lines: Vec<LineStart> = lines
                .into_iter()
                .map(|(offset, line, column, file)| LineStart {
                    address: Avma(address + offset),
                    line,
                    column,
                    file: file.into(),
                })
                .collect();
            lines.sort_by_key(|line| line.address);
            Load {
                time,
                address: Avma(address),
                size,
                index,
                name,
                lines,
            }
        })
}

fn moves() -> impl Strategy<Value = Move> {
    let address = 1..1u64 << 47;
    (
        any::<u64>(),
        address.clone(),
        address,
        1..1u64 << 40,
        any::<u64>(),
    )
        .prop_map(|(time, from, to, size, index)| Move {
            time,
            from: Avma(from),
            to: Avma(to),
            size,
            index,
        })
}

fn written() -> impl Strategy<Value = Vec<Written>> {
    let one = prop_oneof![
        4 => loads().prop_map(|load| Written::Told(Event::Load(load))),
        1 => moves().prop_map(|moved| Written::Told(Event::Move(moved))),
        1 => Just(Written::Told(Event::Close)),
        1 => (0..90u64).prop_map(Written::Unwinding),
        1 => (5..1000u32, 0..50usize).prop_map(|(kind, size)| Written::Unknown(kind, size)),
    ];
    proptest::collection::vec(one, 0..12)
}

fn write(all: &[Written], big_endian: bool, extra: u32) -> Encoder {
    let mut dump = Encoder::new(big_endian, extra);
    for one in all {
        match one {
            Written::Told(Event::Load(load)) => dump.load(load),
            Written::Told(Event::Move(moved)) => dump.moved(moved),
            Written::Told(Event::Close) => dump.close(9),
            Written::Unwinding(bytes) => dump.unwinding(*bytes),
            Written::Unknown(kind, size) => dump.record(*kind, 7, 0, |dump| {
                let end = dump.bytes.len() + size;
                dump.bytes.resize(end, 0x55);
            }),
        }
    }
    dump
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        all in written(),
        big_endian in any::<bool>(),
        extra in prop_oneof![Just(0u32), 1..40u32],
        pieces in proptest::collection::vec(1..200usize, 1..6),
    ) {
        let dump = write(&all, big_endian, extra);
        let told: Vec<Event> = all.iter().filter_map(|one| match one {
            Written::Told(event) => Some(event.clone()),
            _ => None,
        }).collect();
        let unknown = all.iter().filter(|one| matches!(one, Written::Unknown(..))).count();
        let (events, decoder, error) = decode(&dump.bytes, &pieces);
        prop_assert_eq!(error, None);
        prop_assert_eq!(&events, &told);
        let header = decoder.header().unwrap();
        prop_assert_eq!((header.pid, header.big_endian), (4711, big_endian));
        prop_assert_eq!(decoder.flaws().iter().map(|(_, seen)| seen.count).sum::<u64>(), unknown as u64);
        prop_assert_eq!(decode_whole(&dump.bytes).0, told);
    }

    #[test]
    fn damage_neither_panics_nor_hangs(
        all in written(),
        big_endian in any::<bool>(),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..5),
        pieces in proptest::collection::vec(1..400usize, 1..4),
    ) {
        let mut dump = write(&all, big_endian, 0);
        for (at, bit) in flips {
            let at = at.index(dump.bytes.len());
            dump.bytes[at] ^= 1 << bit;
        }
        let (in_pieces, decoder, error) = decode(&dump.bytes, &pieces);
        let (at_once, other, same_error) = decode_whole(&dump.bytes);
        prop_assert_eq!(in_pieces, at_once);
        prop_assert_eq!(error, same_error);
        prop_assert_eq!(decoder.flaws(), other.flaws());
    }

    #[test]
    fn a_cut_dump_tells_what_came_before_the_cut(
        all in written(), big_endian in any::<bool>(), at in any::<prop::sample::Index>(),
    ) {
        let dump = write(&all, big_endian, 0);
        let cut = &dump.bytes[..at.index(dump.bytes.len())];
        let (whole, _, _) = decode_whole(&dump.bytes);
        let (events, _, error) = decode_whole(cut);
        prop_assert_eq!(error, None);
        prop_assert!(whole.starts_with(&events));
    }
}
