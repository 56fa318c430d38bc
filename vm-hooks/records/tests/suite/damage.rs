//! Recordings that are cut off, flipped, lied about or of another version: never a
//! panic, never a wrong record, everything that is whole is read, and the damage told.

use crate::common::{self, Claims, chunk_with, file_header, frame, plain_chunk, read, zstd_chunk};
use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use vmscope_records::recording::{ReadError, Reader, VERSION_MAJOR, VERSION_MINOR};
use vmscope_records::*;

const HEADER: usize = 16;
const CHUNK_HEADER: usize = 48;

/// A small recording of several chunks.
fn small() -> Vec<u8> {
    let mut records = vec![common::thread(1, 1), common::thread(1, 2)];
    records.extend(
        (0..40_u32)
            .map(|n| common::sample(u64::from(n) * 713_927, 1 + n % 2, 0x40_0000 + u64::from(n))),
    );
    common::write(&records, &[1, 10, 20, 30])
}

/// Where each chunk of a whole recording begins; then where the file ends.
fn chunk_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![HEADER];
    let mut at = HEADER;
    while at < bytes.len() {
        let stored = u32::from_le_bytes(bytes[at + 16..at + 20].try_into().unwrap());
        at += CHUNK_HEADER + usize::try_from(stored).unwrap();
        starts.push(at);
    }
    starts
}

#[test]
fn cut_off_anywhere_whole_chunks_are_read_and_the_rest_is_told() {
    let whole = small();
    let all = read(&whole).unwrap().records;
    let starts = chunk_starts(&whole);
    // Number of records up to each chunk's end, by reading the beginning only.
    for cut in 0..whole.len() {
        let torn = &whole[..cut];
        match read(torn) {
            Err(ReadError::Empty) => assert_eq!(cut, 0),
            Err(ReadError::HeaderDamaged) => assert!((1..HEADER).contains(&cut)),
            Err(other) => panic!("cut at {cut}: {other}"),
            Ok(part) => {
                let before = *starts.iter().rfind(|&&start| start <= cut).unwrap();
                let expected = read(&whole[..before]).unwrap().records;
                assert_eq!(part.records, expected, "cut at {cut}");
                assert_eq!(part.records[..], all[..expected.len()]);
                assert!(part.end().is_none(), "cut at {cut}");
                let torn_bytes = (cut - before) as u64;
                assert_eq!(part.ending.damaged_bytes, torn_bytes, "cut at {cut}");
                assert_eq!(part.ending.damage_count, u64::from(torn_bytes > 0));
                if let Some(damage) = part.ending.damages.first() {
                    assert!(damage.at_end);
                    assert_eq!(damage.offset, before as u64);
                }
            }
        }
    }
}

#[test]
fn any_single_flipped_bit_costs_its_own_chunk_and_is_told() {
    let whole = small();
    let starts = chunk_starts(&whole);
    let chunks: Vec<Vec<Record>> = (starts.windows(2))
        .map(|pair| {
            let alone = [&whole[..HEADER], &whole[pair[0]..pair[1]]].concat();
            read(&alone).unwrap().records
        })
        .collect();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let got = read(&flipped).unwrap_or_else(|error| panic!("bit {bit}: {error}"));
        // In the file's header: nothing is lost but the header.
        let hit = starts.iter().rposition(|&start| start <= bit / 8);
        let expected: Vec<Record> = (chunks.iter().enumerate())
            .filter(|(index, _)| Some(*index) != hit)
            .flat_map(|(_, records)| records.clone())
            .collect();
        assert_eq!(got.records, expected, "bit {bit}");
        assert_eq!(got.ending.damage_count, 1, "bit {bit}: {:?}", got.ending);
    }
}

#[test]
fn a_newer_major_version_is_refused_by_name() {
    let bytes = [
        file_header(VERSION_MAJOR + 1, 3),
        plain_chunk(&frame(1, &[])),
    ]
    .concat();
    let error = read(&bytes).unwrap_err();
    assert!(
        matches!(error, ReadError::NewerVersion { major, minor: 3 } if major == VERSION_MAJOR + 1)
    );
    assert!(error.to_string().contains("2.3"), "{error}");
}

#[test]
fn a_newer_minor_version_is_read_without_what_is_unknown() {
    // ProcessEnd { key: 7, time: 9 } with a field 99 of text and a field 98 of eight
    // bytes, between two kinds of the future.
    let message = [
        &[0x08, 7, 0x10, 9][..],
        &[0x9a, 0x06, 2, b'h', b'i'],
        &[0x91, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    .concat();
    let payload = [
        frame(4_000, b"anything"),
        frame(4, &message),
        frame(77, &[]),
    ]
    .concat();
    let bytes = [
        file_header(VERSION_MAJOR, VERSION_MINOR + 1),
        plain_chunk(&payload),
    ]
    .concat();
    let got = read(&bytes).unwrap();
    assert_eq!(got.unknown, 2);
    assert!(got.malformed.is_empty());
    let end = ProcessEnd {
        key: ProcessKey(7),
        time: TimeNs(9),
        alive: false,
        cpu: None,
        cpu_user: None,
    };
    assert_eq!(got.records, [Record::ProcessEnd(end)]);
}

#[test]
fn a_chunk_of_unknown_codec_or_content_is_passed_over_or_read() {
    let message = frame(4, &[0x08, 7]);
    let length = u32::try_from(message.len()).unwrap();
    let claims = Claims {
        codec: 9,
        content: 4,
        raw: length,
        stored: length,
    };
    let bytes = [
        file_header(VERSION_MAJOR, VERSION_MINOR),
        chunk_with(claims, &message),
        // Unknown content, and an empty content mask.
        chunk_with(
            Claims {
                codec: 0,
                content: 1 << 30,
                ..claims
            },
            &message,
        ),
        chunk_with(
            Claims {
                codec: 0,
                content: 0,
                ..claims
            },
            &message,
        ),
    ]
    .concat();
    let got = read(&bytes).unwrap();
    assert_eq!(got.records.len(), 2);
    assert_eq!(got.ending.damage_count, 1);
    assert!(got.ending.damages[0].why.contains("unknown way"));
    assert_eq!(got.ending.damaged_bytes, 48 + u64::from(length));
}

#[test]
fn what_is_no_recording_is_called_so() {
    let elf = std::fs::read("/proc/self/exe").unwrap();
    let text = b"#!/bin/sh\necho this is a text of some length, longer than a header\n";
    for foreign in [&elf[..], text, b"x", b"\x89PNG\r\n\x1a\n"] {
        assert!(matches!(read(foreign), Err(ReadError::NotARecording)));
    }
    assert!(matches!(read(b""), Err(ReadError::Empty)));
    let header = file_header(VERSION_MAJOR, VERSION_MINOR);
    assert!(matches!(read(&header[..9]), Err(ReadError::HeaderDamaged)));
    let mut flipped = header.clone();
    flipped[10] ^= 1;
    assert!(matches!(read(&flipped), Err(ReadError::HeaderDamaged)));
    // A header alone is a recording in which nothing was written.
    assert!(read(&header).unwrap().records.is_empty());
}

#[test]
fn sizes_that_lie_are_damage_and_allocate_nothing_like_it() {
    let message = frame(4, &[0x08, 7]);
    let length = u32::try_from(message.len()).unwrap();
    let honest = Claims {
        codec: 0,
        content: 4,
        raw: length,
        stored: length,
    };
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    let bomb_length = u32::try_from(bomb.len()).unwrap();
    let lies = [
        chunk_with(
            Claims {
                raw: u32::MAX,
                ..honest
            },
            &message,
        ),
        chunk_with(
            Claims {
                stored: u32::MAX,
                ..honest
            },
            &message,
        ),
        chunk_with(
            Claims {
                raw: 4 << 20,
                stored: 4 << 20,
                ..honest
            },
            &message,
        ),
        chunk_with(
            Claims {
                raw: length + 1,
                ..honest
            },
            &message,
        ),
        chunk_with(Claims { raw: 0, ..honest }, &message),
        chunk_with(Claims { codec: 1, ..honest }, &message),
        // 64 MiB in some kilobytes, with the largest permitted claim.
        chunk_with(
            Claims {
                codec: 1,
                raw: 4 << 20,
                stored: bomb_length,
                ..honest
            },
            &bomb,
        ),
    ];
    for (index, lie) in lies.iter().enumerate() {
        let honest = plain_chunk(&message);
        let bytes = [&file_header(1, 0)[..], lie, &honest].concat();
        let got = read(&bytes).unwrap();
        assert_eq!(
            got.records.len(),
            1,
            "lie {index}: the honest chunk is read"
        );
        assert_eq!(got.ending.damage_count, 1, "lie {index}: {:?}", got.ending);
    }
}

#[test]
fn a_record_that_lies_about_its_length_ends_its_chunk_only() {
    let mut lie = frame(4, &[0x08, 7]);
    // Kind 4, a length of 2^62.
    lie.extend([4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]);
    // A nested length: Symbols.functions (field 2) of 2^31 bytes.
    let nested = frame(21, &[0x12, 0x80, 0x80, 0x80, 0x80, 0x08]);
    let bytes = [file_header(1, 0), plain_chunk(&lie), plain_chunk(&nested)].concat();
    let got = read(&bytes).unwrap();
    assert_eq!(got.records.len(), 1);
    assert_eq!(got.malformed.len(), 2);
    assert_eq!(got.malformed[1].0, 21);
}

/// 3 MiB of empty nested messages would take 250 MB decoded.
#[test]
fn millions_of_empty_parts_are_refused_before_they_take_memory() {
    let many = |field: u8, part: &[u8]| -> Vec<u8> {
        let one = [
            &[field << 3 | 2, u8::try_from(part.len()).unwrap()][..],
            part,
        ]
        .concat();
        one.repeat((3 << 20) / one.len())
    };
    let nested = |field: u8, inner: Vec<u8>| -> Vec<u8> {
        let mut out = vec![field << 3 | 2];
        prost::encoding::encode_varint(inner.len() as u64, &mut out);
        out.extend(inner);
        out
    };
    let bombs = [
        (21, many(2, &[])),                       // Symbols.functions
        (21, nested(2, many(7, &[]))),            // … of one function: lines
        (21, nested(2, nested(7, many(3, &[])))), // … of one line: frames
        (11, many(6, &[])),                       // SampleBatch.details
        (11, nested(6, many(5, &[]))),            // … of one sample: words
        (12, many(12, &[])),                      // Constituent.cases
        (16, many(11, &[])),                      // Collection.phases
        (32, many(7, &[])),                       // LifetimeCounts.buckets
    ];
    for (kind, message) in bombs {
        let bytes = [file_header(1, 0), plain_chunk(&frame(kind, &message))].concat();
        let got = read(&bytes).unwrap();
        assert_eq!(got.malformed, [(kind, WireError::TooManyParts)]);
    }
}

#[test]
fn a_batch_of_more_samples_than_any_may_have_is_refused() {
    // Three columns of 100,000 zeros.
    let column = |field: u8| {
        let mut out = vec![field << 3 | 2];
        prost::encoding::encode_varint(100_000, &mut out);
        out.resize(out.len() + 100_000, 0);
        out
    };
    let message = [column(2), column(3), column(4)].concat();
    let bytes = [file_header(1, 0), plain_chunk(&frame(11, &message))].concat();
    assert_eq!(
        read(&bytes).unwrap().malformed,
        [(11, WireError::TooManyParts)]
    );
}

/// 90 kB of such chunks would take gigabytes.
#[test]
fn chunks_that_inflate_a_thousand_times_are_damage() {
    let payloads = [
        frame(2, &[]).repeat(2 << 20),  // empty limits
        frame(99, &vec![0; 4_000_000]), // of an unknown kind
        frame(11, &[&[0x12, 0x10][..], &[0; 16]].concat()).repeat(200_000), // samples
    ];
    for payload in payloads {
        let bomb = zstd_chunk(&payload);
        assert!(bomb.len() < 2_000, "{}", bomb.len());
        let chunks = [&bomb[..], &plain_chunk(&frame(4, &[0x08, 7]))].concat();
        let got = read(&[file_header(1, 0), chunks.repeat(10)].concat()).unwrap();
        assert_eq!([got.records.len(), got.malformed.len()], [10, 0]);
        assert_eq!(got.unknown, 0);
        assert_eq!(got.ending.damage_count, 10);
        assert_eq!(got.ending.damaged_bytes, 10 * bomb.len() as u64);
        assert!(got.ending.damages[0].why.contains("inflate"));
    }
}

/// The writer keeps the bound that readers have.
#[test]
fn records_that_compress_a_thousand_times_are_written_and_read() {
    let method = Record::Method(Box::new(Method {
        bytecodes: vec![0; 1 << 20],
        ..Method::default()
    }));
    let bytes = common::write(std::slice::from_ref(&method), &[]);
    let got = read(&bytes).unwrap();
    assert_eq!(got.records[0], method);
    assert_eq!(got.ending.damage_count, 0);
}

/// Bytes count once, numbers in lists with what they take in memory.
#[test]
fn the_memory_of_records_is_measured() {
    let frames = ChainFrame {
        method: MethodKey(1),
        position: Position::Unknown,
    };
    let map = PcMap::Covers {
        covers: Vec::new(),
        chains: vec![vec![frames; 1 << 16]],
    };
    let constituent = Record::Constituent(Box::new(Constituent {
        key: ConstituentKey(1),
        process: ProcessKey(1),
        since: TimeNs(0),
        absent_at: None,
        start: Avma(0),
        end: Avma(1),
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: String::new(),
        method: None,
        cases: Vec::new(),
        map,
    }));
    let method = Record::Method(Box::new(Method {
        bytecodes: vec![0; 1 << 20],
        ..Method::default()
    }));
    let limit = Record::Limit(Limit {
        time: TimeNs(0),
        kind: LimitKind::Other,
        text: String::new(),
        remedy: String::new(),
    });
    for (record, least, most) in [
        (constituent, 1 << 20, 3 << 20),
        (method, 1 << 20, 5 << 18),
        (limit, size_of::<Record>(), 512),
    ] {
        let bytes = common::write(&[record], &[]);
        let mut reader = Reader::open(Cursor::new(&bytes)).unwrap();
        let chunk = reader.next_chunk(Content::STATE).unwrap().unwrap();
        let (_, memory) = chunk.measured_items().next().unwrap();
        assert!(
            (least..=most).contains(&memory),
            "{memory}: {least} to {most}"
        );
    }
}

/// A source that counts the bytes read from it.
struct Counted<'a>(Cursor<&'a [u8]>, &'a Cell<usize>);

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.0.read(into)?;
        self.1.set(self.1.get() + bytes);
        Ok(bytes)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// The search behind a damage reads in proportion to the file, however many false starts are in it:
/// 64 KiB for each of a million would take minutes.
#[test]
fn false_chunk_starts_do_not_multiply_the_work() {
    let mut bytes = file_header(1, 0);
    bytes.extend(b"VMSC".repeat(1 << 20));
    bytes.extend(plain_chunk(&frame(4, &[0x08, 7])));
    let bytes_read = Cell::new(0);
    let mut reader = Reader::open(Counted(Cursor::new(&bytes), &bytes_read)).unwrap();
    let chunk = reader.next_chunk(Content::ALL).unwrap().unwrap();
    assert_eq!(chunk.items().count(), 1);
    assert_eq!(reader.ending().damage_count, 1);
    let times = bytes_read.get() / bytes.len();
    assert!(times < 3, "the file was read {times} times over");
}
