//! Invalid dumps.

use vmscope_records::{Arch, Avma};

use super::encode::Encoder;
use super::{decode, decode_whole};
use crate::dump::{
    Decoder, DumpError, DumpFlaw, Event, LineStart, Load, MAX_LINES, MAX_NAME_BYTES, Move,
    RecordFault, Step,
};

fn load(name: &str) -> Load {
    Load {
        time: 5,
        address: Avma(0x7f00_0000_1000),
        size: 64,
        index: 1,
        name: name.to_owned(),
        lines: Vec::new(),
    }
}

fn line(offset: u64, line: u32, file: &str) -> LineStart {
    LineStart {
        address: Avma(0x7f00_0000_1000 + offset),
        line,
        column: 3,
        file: file.into(),
    }
}

fn dump() -> Encoder {
    Encoder::new(false, 0)
}

fn names(events: &[Event]) -> Vec<&str> {
    let mut names = Vec::new();
    for event in events {
        if let Event::Load(load) = event {
            names.push(&*load.name);
        }
    }
    names
}

/// Dump: good load, output of `write`, good load.
fn between(write: impl FnOnce(&mut Encoder)) -> (Vec<Event>, Decoder, Option<DumpError>) {
    let mut dump = dump();
    dump.load(&load("first"));
    write(&mut dump);
    dump.load(&load("last"));
    let whole = decode_whole(&dump.bytes);
    let (events, decoder, error) = decode(&dump.bytes, &[1]);
    assert_eq!((&events, error), (&whole.0, whole.2), "in pieces");
    (events, decoder, error)
}

#[test]
fn what_a_forked_process_writes_into_its_parents_dump_is_not_the_parents() {
    let (events, decoder, error) = between(|dump| {
        dump.pid = 4799;
        let lines = vec![line(0, 7, "child.js")];
        dump.load(&Load {
            lines,
            ..load("child")
        });
        dump.moved(&Move {
            time: 6,
            from: Avma(0x7f00_0000_1000),
            to: Avma(0x7f00_0000_2000),
            size: 64,
            index: 1,
        });
        // Pid 0 counts as the same process.
        dump.pid = 0;
        dump.load(&load("nobody's"));
        dump.pid = 4711;
    });
    assert_eq!(
        (names(&events), error),
        (vec!["first", "nobody's", "last"], None)
    );
    assert_eq!(events.len(), 3);
    assert_eq!(decoder.flaws().count(DumpFlaw::OtherProcess), 2);
    assert_eq!(decoder.flaws().iter().count(), 1, "nothing else is wrong");
}

#[test]
fn heads_that_are_none() {
    let with = |at: usize, byte: u8| {
        let mut dump = dump();
        dump.bytes[at] = byte;
        decode_whole(&dump.bytes).2
    };
    let found = [0, 0x54, 0x69, 0x4a];
    assert_eq!(with(0, 0), Some(DumpError::NotADump { found }));
    assert_eq!(with(4, 2), Some(DumpError::Version { version: 2 }));
    assert_eq!(with(8, 39), Some(DumpError::HeaderSize { size: 39 }));
    assert_eq!(
        with(11, 1),
        Some(DumpError::HeaderSize { size: 0x100_0028 })
    );
    assert_eq!(with(14, 1), Some(DumpError::Machine { machine: 0x1_003e }));
    assert_eq!(with(32, 2), Some(DumpError::Flags { flags: 2 }));
    assert_eq!(with(32, 1), None);
}

#[test]
fn a_dump_of_another_machine_says_so() {
    let head = |machine: u8| {
        let mut dump = dump();
        dump.bytes[12] = machine;
        *decode_whole(&dump.bytes).1.header().unwrap()
    };
    assert_eq!(head(183).arch, Arch::Aarch64);
    assert!(!head(183).may_be_for(Arch::X86_64));
    assert!(head(62).may_be_for(Arch::X86_64));
    // CPython 3.13.
    assert!(head(0).may_be_for(Arch::X86_64));
}

#[test]
fn a_record_smaller_than_its_header_ends_the_reading() {
    for size in [0, 1, 15, 16, 55] {
        let mut dump = dump();
        dump.load(&load("first"));
        let at = dump.bytes.len();
        dump.load(&load("second"));
        dump.resize(at, size);
        dump.load(&load("third"));
        let (events, _, error) = decode(&dump.bytes, &[7]);
        assert_eq!(names(&events), ["first"]);
        let at = at as u64;
        let why = RecordFault::TooSmall { least: 57 };
        assert!(
            matches!(error, Some(DumpError::Record { at: a, why: w, .. }) if (a, w) == (at, why))
        );
        assert!(error.unwrap().to_string().contains("byte 166"), "{error:?}");
    }
}

#[test]
fn a_record_far_larger_than_its_contents_is_not_waited_for() {
    // Each error appears once the record's own contents have arrived.
    let write: [fn(&mut Encoder); 5] = [
        |dump| dump.load_body(&load("x"), b"x", 64, 1 << 20),
        |dump| dump.load_body(&load("x"), b"x", 64, 1 << 30),
        |dump| dump.record(3, 0, 1 << 20, |_| {}),
        |dump| dump.record(4, 0, 1 << 20, |dump| dump.numbers64(&[0, 0, 0])),
        |dump| dump.record(9, 0, 1 << 25, |_| {}),
    ];
    for write in write {
        let (events, _, error) = between(write);
        assert_eq!(names(&events), ["first"]);
        let Some(DumpError::Record { at, why, .. }) = error else {
            panic!("{error:?}");
        };
        assert_eq!(at, 166);
        assert!(matches!(why, RecordFault::TooLarge { .. }), "{why:?}");
    }
}

#[test]
fn a_record_that_swallows_others_leads_to_an_error_not_to_silence() {
    // The first size is 24 too large; decoding continues inside a record.
    let (events, _, error) = between(|dump| dump.load_body(&load("x"), b"x", 64, 24));
    assert_eq!(names(&events), ["first", "x"]);
    assert!(matches!(error, Some(DumpError::Record { .. })), "{error:?}");
}

#[test]
fn code_that_does_not_fit_its_record_is_counted_and_gone_past() {
    let (events, decoder, error) = between(|dump| dump.load_body(&load("x"), b"x", 3, 0));
    assert_eq!((names(&events), error), (vec!["first", "last"], None));
    let seen: Vec<_> = decoder.flaws().iter().collect();
    assert_eq!(
        (seen[0].0, seen[0].1.count, seen[0].1.first_at),
        (DumpFlaw::Misfit, 1, 166)
    );
}

#[test]
fn a_size_that_lies_is_blamed_when_the_next_record_is_garbage() {
    let (_, _, error) = between(|dump| dump.load_body(&load("x"), b"x", 64, -9));
    let Some(DumpError::Record { suspect, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(suspect, Some(166));
    assert!(
        error
            .unwrap()
            .to_string()
            .contains("record at byte 166 is wrong")
    );
}

#[test]
fn records_that_never_fit_end_the_reading() {
    let (_, decoder, error) = between(|dump| {
        for _ in 0..40 {
            dump.load_body(&load("x"), b"x", 3, 0);
        }
    });
    let why = |why| why == RecordFault::Misfits;
    assert!(matches!(error, Some(DumpError::Record { why: w, .. }) if why(w)));
    assert_eq!(decoder.flaws().count(DumpFlaw::Misfit), 17);
}

#[test]
fn unknown_kinds_are_counted_and_garbage_is_not_one() {
    let (events, decoder, error) =
        between(|dump| dump.record(99, 0, 0, |dump| dump.numbers64(&[1])));
    assert_eq!((names(&events), error), (vec!["first", "last"], None));
    assert_eq!(decoder.flaws().count(DumpFlaw::UnknownKind), 1);
    let (_, _, error) = between(|dump| dump.record(0x0101_0101, 0, 0, |_| {}));
    let why = |why| why == RecordFault::NoSuchKind;
    assert!(matches!(error, Some(DumpError::Record { why: w, .. }) if why(w)));
}

#[test]
fn names_without_end_and_names_too_long() {
    let (events, decoder, error) = between(|dump| {
        // The first zero belongs to the code, not the name.
        dump.record(0, 0, 0, |dump| {
            dump.numbers64(&[0, 1, 1, 3, 1]);
            dump.bytes.extend_from_slice(b"endless");
        });
    });
    assert_eq!((names(&events), error), (vec!["first", "last"], None));
    assert_eq!(decoder.flaws().count(DumpFlaw::EndlessName), 1);
    let long = "n".repeat(MAX_NAME_BYTES + 1000);
    let (events, decoder, error) = between(|dump| dump.load(&load(&long)));
    assert_eq!(error, None);
    assert_eq!(names(&events)[1].len(), MAX_NAME_BYTES);
    assert_eq!(decoder.flaws().count(DumpFlaw::CutName), 1);
    let (events, _, _) = between(|dump| dump.load_body(&load(""), b"a\xffb\nc", 64, 0));
    assert_eq!(names(&events)[1], "a\u{fffd}b\nc");
}

#[test]
fn code_of_no_range_is_counted() {
    let (events, decoder, error) = between(|dump| {
        dump.load(&Load {
            size: 0,
            ..load("none")
        });
        dump.load(&Load {
            address: Avma(u64::MAX - 3),
            ..load("beyond")
        });
        dump.moved(&Move {
            time: 1,
            from: Avma(1),
            to: Avma(u64::MAX),
            size: 8,
            index: 1,
        });
    });
    assert_eq!((names(&events), error), (vec!["first", "last"], None));
    assert_eq!(decoder.flaws().count(DumpFlaw::NoRange), 3);
}

#[test]
fn times_that_run_backwards_and_code_that_overlaps_are_told_as_they_are() {
    let (events, decoder, _) = between(|dump| {
        dump.load(&Load {
            time: 1,
            ..load("before")
        })
    });
    assert_eq!(names(&events), ["first", "before", "last"]);
    assert!(decoder.flaws().is_empty());
}

#[test]
fn source_positions_come_with_their_code_in_order() {
    let unsorted = [line(9, 2, "b.js"), line(0, 1, "a.js"), line(40, 7, "a.js")];
    let with = Load {
        lines: unsorted.to_vec(),
        ..load("with")
    };
    let (events, decoder, _) = between(|dump| {
        dump.lines(&with);
        dump.unwinding(20);
        dump.load(&Load {
            address: Avma(0x10),
            ..load("other")
        });
        dump.load(&load("with"));
    });
    let Event::Load(told) = &events[2] else {
        panic!()
    };
    assert_eq!(
        told.lines,
        [line(0, 1, "a.js"), line(9, 2, "b.js"), line(40, 7, "a.js")]
    );
    let Event::Load(last) = &events[3] else {
        panic!()
    };
    assert!(last.lines.is_empty() && decoder.flaws().is_empty());
}

#[test]
fn debug_information_that_lies() {
    let debug = |count: u64, rest: &'static [u8]| {
        between(move |dump| {
            dump.record(2, 0, 0, |dump| {
                dump.numbers64(&[0x7f00_0000_1000, count, 0x7f00_0000_1000]);
                dump.bytes.extend_from_slice(rest);
            })
        })
    };
    for (count, rest) in [
        (u64::MAX, &b"12345678a.js\0"[..]),
        (2, b"12345678a.js\0"),
        (1, b"12345678a.js"),
        (1, b"1234567"),
    ] {
        let (events, decoder, error) = debug(count, rest);
        assert_eq!((names(&events), error), (vec!["first", "last"], None));
        assert_eq!(decoder.flaws().count(DumpFlaw::BadDebugInfo), 1, "{rest:?}");
    }
    let (events, decoder, _) = debug(1, b"12345678\xff\0");
    let Event::Load(last) = &events[1] else {
        panic!()
    };
    assert_eq!(&*last.lines[0].file, "");
    assert_eq!(decoder.flaws().count(DumpFlaw::NoFile), 1);
}

#[test]
fn debug_information_is_bounded_and_never_forgotten_silently() {
    let lines = vec![line(0, 1, "a.js"); MAX_LINES + 3];
    let mut dump = dump();
    dump.load(&Load {
        lines,
        ..load("large")
    });
    for number in 0..100 {
        let address = Avma(0x1000 * number);
        let lines = vec![LineStart {
            address,
            ..line(0, 1, "b.js")
        }];
        dump.lines(&Load {
            address,
            lines,
            ..load("")
        });
    }
    let (events, decoder, error) = decode_whole(&dump.bytes);
    let Event::Load(large) = &events[0] else {
        panic!()
    };
    assert_eq!((large.lines.len(), error), (MAX_LINES, None));
    assert_eq!(decoder.flaws().count(DumpFlaw::TooManyLines), 3);
    assert_eq!(decoder.flaws().count(DumpFlaw::Unclaimed), 100);
}

#[test]
fn code_is_gone_past_without_being_read() {
    let large = Load {
        size: 200 << 20,
        ..load("large")
    };
    let mut dump = dump();
    dump.load_body(&large, b"large", 0, 200 << 20);
    let mut decoder = Decoder::new();
    let length = dump.bytes.len() as u64 + large.size;
    assert!(matches!(
        decoder.step(&dump.bytes, length - 1),
        Ok(Step::NotYet)
    ));
    let record = dump.bytes.get(40..).unwrap();
    let step = decoder.step(record, length);
    assert_eq!(step, Ok(Step::Event(Event::Load(large))));
    assert_eq!(decoder.offset(), length);
    assert_eq!(decoder.step(&[], length), Ok(Step::NotYet));
}

#[test]
fn what_is_torn_off_is_counted() {
    let mut dump = dump();
    dump.load(&load("first"));
    dump.load(&load("second"));
    let cut = &dump.bytes[..dump.bytes.len() - 1];
    let (events, decoder, error) = decode(cut, &[3]);
    assert_eq!((names(&events), error), (vec!["first"], None));
    assert_eq!(decoder.flaws().count(DumpFlaw::Torn), 1);
}
