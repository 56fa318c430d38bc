//! Zones that an image saved: primitive 253's own answers, and damaged ones.

use std::collections::BTreeMap;

use crate::common::{places, seen, snapshot, text};
use proptest::prelude::*;
use vmscope_cog::saved::{SavedPiece, SavedSamples, SavedZone};
use vmscope_process::KeySource;
use vmscope_records::{ConstituentKind, PcMap, ProcessKey, Record, TimeNs};

fn saved(name: &str) -> SavedZone {
    SavedZone::parse(text(&format!("idle.constituents-{name}.txt")).as_bytes()).unwrap()
}

fn kinds(zone: &SavedZone) -> Vec<(String, usize)> {
    let mut kinds = BTreeMap::new();
    for piece in &zone.pieces {
        *kinds.entry(format!("{:?}", piece.kind)).or_default() += 1;
    }
    kinds.into_iter().collect()
}

fn named<'z>(zone: &'z SavedZone, name: &str) -> &'z SavedPiece {
    zone.pieces.iter().find(|piece| piece.name == name).unwrap()
}

#[test]
fn both_answers_of_the_primitive_are_read() {
    let (plain, detailed) = (saved("plain"), saved("detailed"));
    let expected = |code: &[(&str, usize)]| -> Vec<(String, usize)> {
        let others = [("Enilopmart", 10), ("Free", 1), ("Trampoline", 63)];
        let mut all: Vec<_> = others.iter().chain(code).collect();
        all.sort_unstable();
        let all = all.into_iter();
        all.map(|(kind, n)| (kind.to_string(), *n)).collect()
    };
    // A plain answer tells closed and open PICs alike. The VM compiled more methods between both answers.
    let code = [("Block", 2), ("Method", 117), ("Other(\"pic\")", 14)];
    assert_eq!(kinds(&plain), expected(&code));
    let code = [
        ("Block", 2),
        ("ClosedPic", 17),
        ("Method", 132),
        ("OpenPic", 8),
    ];
    assert_eq!(kinds(&detailed), expected(&code));
    assert!(!plain.is_detailed && detailed.is_detailed && !detailed.is_complete);
    assert!(plain.pieces.iter().all(|piece| piece.map == PcMap::None));
    assert_eq!((plain.limits().len(), detailed.limits().len()), (2, 1));
    let addresses = |zone: &SavedZone| -> Vec<_> {
        zone.pieces
            .iter()
            .map(|piece| (piece.start, piece.end))
            .collect()
    };
    assert_eq!(addresses(&plain)[..206], addresses(&detailed)[..206]);
    let cases = &named(
        &detailed,
        ", - 2 (String -> SequenceableCollection>>,, Symbol -> SequenceableCollection>>,)",
    )
    .cases;
    assert_eq!(cases[1].class, "Symbol");
    let fib = named(&detailed, "Bench>>fib:");
    let names = ("Bench".to_owned(), "fib:".to_owned());
    assert_eq!(fib.method, Some(names));
}

/// The maps of the VM's own answer are those that the reader of memory finds, without the stack check.
#[test]
fn saved_maps_are_those_in_memory() {
    let zone = saved("detailed");
    let seen = seen(&snapshot("idle").process());
    let mut compared = 0;
    for (entry, described) in seen.zone.methods.entries.iter().zip(&seen.described) {
        let piece = zone.pieces.iter().find(|piece| piece.start == entry.at);
        let Some(PcMap::Boundary { entries, .. }) = piece.map(|piece| &piece.map) else {
            continue;
        };
        let saved: Vec<(u32, u32)> = entries.iter().map(|(at, bc)| (*at, bc.0)).collect();
        let places = places(&described.map);
        assert_eq!(saved, places[1.min(places.len())..], "{described:?}");
        compared += usize::from(!saved.is_empty());
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn a_wrong_line_is_told() {
    let begin = "~CogCode~ | 100\n";
    let end = "~CCEnd~ | 900\n";
    for (text, what) in [
        ("", "line 1: the end of the file without"),
        (begin, "line 1: the end of the file without"),
        (end, "line 1: wrong begin"),
        (
            "~CogCode~\n",
            "line 1: no pair in `~CogCode~`; expected `ITEM | ADDRESS`",
        ),
        ("~CogCode~ | -1\n", "line 1: not an address or list: `-1`"),
        (
            "~CogCode~ | 99999999999999999999\n",
            "line 1: not an address",
        ),
    ] {
        let error = SavedZone::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(what), "{error}");
    }
    for (middle, what) in [
        ("\nA>>b | (200 210 3\n", "line 3: not an address or list"),
        ("A>>b | (200 210 )\n", "line 2: not an address or list"),
        (
            "A>>b | (200 190 3 )\n",
            "line 2: the machine pc `190`; expected ascending",
        ),
        ("A>>b | (200 901 3 )\n", "line 2: the machine pc `901`"),
        (
            "A>>b | (200 220 3 210 4 )\n",
            "line 2: the machine pc `210`",
        ),
        (
            "A>>b | (200 210 4294967296 )\n",
            "line 2: not an address or list",
        ),
        (
            "A>>b | 200\n#c | 199\n",
            "line 3: a smaller address than before: `199`",
        ),
        (
            "a b | 200\n",
            "line 2: unknown item `a b`; expected `~NAME~`",
        ),
        (begin, "line 2: wrong begin"),
        ("~CCEnd~ | 800\n", "line 3: a pair after the end"),
    ] {
        let text = format!("{begin}{middle}{end}");
        let error = SavedZone::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(what), "{middle}: {error}");
    }
    let error = SavedZone::parse(b"~CogCode~ | 100\n~\xff~ | 200\n").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 2: bytes that are not UTF-8")
    );
    let long = format!("{begin}{} | 200\n", "x".repeat(1 << 20));
    assert!(
        SavedZone::parse(long.as_bytes())
            .unwrap_err()
            .to_string()
            .len()
            < 500
    );
}

/// Blocks inside methods share their method; others have one of their own.
#[test]
fn blocks_belong_to_their_methods() {
    let text = "~CogCode~ | 100\nA>>b | 200\ninside [] in A>>b | (240 250 9 )\n[] in A>>b | 300\n\
                freed #c | 400\n~CCFree~ | 500\n~CCYoung~ | 900\n~CCEnd~ | 900\n";
    let zone = SavedZone::parse(text.as_bytes()).unwrap();
    assert!(zone.is_complete && zone.limits().is_empty());
    let records = zone.records(ProcessKey(1), TimeNs(7), &KeySource::new());
    let constituents = records.iter().filter_map(|record| match record {
        Record::Constituent(one) => Some(&**one),
        _ => None,
    });
    let told: Vec<_> = constituents
        .map(|one| {
            (
                one.start.0,
                one.end.0,
                one.name.as_str(),
                one.method.map(|key| key.0),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (200, 240, "A>>b", Some(1)),
            (240, 300, "[] in A>>b", Some(1)),
            (300, 400, "[] in A>>b", Some(2)),
            (400, 500, "freed c", None),
            (500, 900, "", None),
        ]
    );
    let freed = ConstituentKind::Other("freed".to_owned());
    assert_eq!(named(&zone, "freed c").kind, freed);
}

/// Replaces some bytes of a text.
fn damaged(name: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let whole = text(name).into_bytes();
    let place = 0..whole.len();
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(b"0123456789 |()~#>\n".to_vec()),
    ];
    let patches = prop::collection::vec((place.clone(), byte), 0..6);
    (patches, 0..=whole.len(), any::<bool>()).prop_map(move |(patches, cut, is_cut)| {
        let mut bytes = whole.clone();
        for (place, byte) in patches {
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_zones_are_errors_or_zones(bytes in damaged("idle.constituents-detailed.txt")) {
        if let Ok(zone) = SavedZone::parse(&bytes) {
            let mut last = zone.start;
            for piece in &zone.pieces {
                prop_assert!(last <= piece.start && piece.start < piece.end);
                last = piece.end;
                if let PcMap::Boundary { entries, .. } = &piece.map {
                    prop_assert!(entries.is_sorted_by_key(|(offset, _)| *offset));
                }
            }
            prop_assert!(last <= zone.end);
        }
    }

    #[test]
    fn any_bytes_are_samples_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let zone = saved("plain");
        if let Ok(samples) = SavedSamples::new(&bytes, &zone, None) {
            let all: Vec<_> = samples.iter().collect();
            prop_assert!(all.iter().rev().skip(1).all(Result::is_ok));
        }
    }
}
