//! Recordings that ask for much memory or work: what is read stays within its bound, the rest is
//! told, and real recordings are far from it.

use crate::recordings::{PROGRAM_AT, Recording, THREAD, code, read, screens};
use std::io::Cursor;
use std::ops::ControlFlow;
use vmscope_records::recording::Reader;
use vmscope_records::{
    ChainFrame, Cover, CpuMode, Exactness, Limit, LimitKind, MethodKey, PcMap, Position, Record,
    ThreadKey, TimeNs,
};
use vmscope_symbolizer::trace::memory_for;
use vmscope_symbolizer::{Filter, Summary, Trace, profile_of};

/// Memory for these tests, in bytes.
const SMALL: u64 = 1 << 20;

/// What a pass reads beyond its bound before it ends: a chain of a sample, or 64 samples.
const MORE: u64 = 64 << 10;

fn read_small(bytes: &[u8]) -> Trace {
    let mut reader = Reader::open(Cursor::new(bytes)).unwrap();
    Trace::read_with(&mut reader, SMALL, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Part of the recording was left out, in the given memory.
fn is_bounded(bytes: &[u8], trace: &Trace) {
    let unread = trace.unread.unwrap();
    assert_eq!(unread.max_memory, SMALL);
    assert_eq!(unread.offset + unread.bytes, bytes.len() as u64);
    assert!(trace.memory() <= SMALL + MORE, "{}", trace.memory());
}

#[test]
fn state_beyond_the_memory_is_left_out_and_samples_are_not() {
    let mut recording = Recording::of("native");
    for time in 0..20_000 {
        recording.put(Record::Limit(Limit {
            time: TimeNs(time),
            kind: LimitKind::Other,
            text: "much ado".to_owned(),
            remedy: String::new(),
        }));
    }
    let bytes = recording.sample(5, THREAD, PROGRAM_AT).end(9).bytes();
    let trace = read_small(&bytes);
    is_bounded(&bytes, &trace);
    assert!((100..10_000).contains(&trace.limits.len()));
    assert_eq!(trace.samples.times.len(), 1);
    let all = read(&bytes).unwrap();
    assert_eq!((all.limits.len(), all.unread), (20_000, None));
}

/// Places, threads and callers that each sample has for itself.
#[test]
fn samples_beyond_the_memory_are_left_out() {
    let many = |add: fn(&mut Recording, u32)| {
        let mut recording = Recording::of("native");
        (1..=20_000).for_each(|n| add(&mut recording, n));
        recording.bytes()
    };
    let recordings = [
        many(|all, n| _ = all.sample_in(u64::from(n), THREAD, u64::from(n), CpuMode::Kernel)),
        many(|all, n| _ = all.sample(u64::from(n), ThreadKey(n), PROGRAM_AT)),
        many(|all, n| {
            let callers = (0..8).map(|depth| PROGRAM_AT + 1 + (u64::from(n) >> depth) % 0xffe);
            all.stack(u64::from(n), THREAD, callers);
        }),
    ];
    for bytes in recordings {
        let trace = read_small(&bytes);
        is_bounded(&bytes, &trace);
        let count = trace.samples.times.len() as u64;
        assert!((100..20_000).contains(&count), "{count}");
        let profile = profile_of(trace, Vec::new(), true);
        assert_eq!(
            Summary::with_errors(&profile, &Filter::default()).total,
            count
        );
        assert_eq!(read(&bytes).unwrap().samples.times.len(), 20_000);
    }
}

#[test]
fn a_chain_has_no_more_callers_than_an_engine_records() {
    let mut recording = Recording::of("native");
    let callers = (0..100_000).map(|n| PROGRAM_AT + 1 + n % 0xffe);
    let trace = recording.stack(5, THREAD, callers).read().unwrap();
    assert_eq!(trace.samples.chain_ends.depth, 1);
    assert_eq!(trace.chains.len(), usize::from(u16::MAX));
}

/// 8,000 methods, each inlined into the next, at each of 1,000 places.
#[test]
fn a_very_long_inlined_chain_loses_its_middle() {
    const METHODS: u64 = 8_000;
    const PIECES: u32 = 1_000;
    let mut recording = Recording::of("java");
    for key in 1..=METHODS {
        recording.method(key, "Deep", &format!("m{key}"));
    }
    let chain = (1..=METHODS).map(|key| ChainFrame {
        method: MethodKey(key),
        position: Position::Unknown,
    });
    let covers = (0..PIECES).map(|piece| Cover {
        start: piece,
        end: piece + 1,
        chain: 0,
        exactness: Exactness::Exact,
        method_error: 0,
    });
    let mut code = code(1, 0, 0x9000, 0x9000 + u64::from(PIECES));
    code.map = PcMap::Covers {
        covers: covers.collect(),
        chains: vec![chain.collect()],
    };
    recording.constituent(code);
    for piece in 0..PIECES {
        recording.sample(u64::from(piece) + 5, THREAD, 0x9000 + u64::from(piece));
    }
    let profile = recording.profile();
    let [site] = &*profile.sites else {
        panic!("{} sites", profile.sites.len());
    };
    assert!(site.is_cut());
    let names: Vec<&str> = site.via.iter().map(|frame| &*frame.name).collect();
    assert_eq!(&*site.frame.name, "Deep.m1");
    assert_eq!(names.len(), 64);
    assert_eq!(
        names[61..],
        ["Deep.m63", "(7936 inlined calls left out)", "Deep.m8000"]
    );
}

#[test]
fn real_recordings_take_a_small_part_of_their_bound() {
    for bytes in [
        screens::java(),
        screens::node(),
        screens::cog(),
        screens::native(),
    ] {
        let trace = read(&bytes).unwrap();
        let (memory, most) = (trace.memory(), memory_for(bytes.len() as u64));
        let per_byte = memory / bytes.len() as u64;
        assert!(
            per_byte < 64 && memory < most / 4,
            "{memory} for {} bytes",
            bytes.len()
        );
        assert_eq!(trace.unread, None);
    }
}
