//! A fake VM that moves, frees, recycles and recompiles its code, read from outside
//! by an adapter that knows only its memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test that fails is to panic"
)]

mod adapter;
mod vm;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vmscope_process::testing::FakeMemory;
use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, KeySource, MemoryError, Poll, ProcessView, recognise,
};
use vmscope_records::{
    Avma, BytecodePc, ConstituentKey, ConstituentMoved, GoneReason, MethodKey, PcMap, Pid,
    ProcessKey, Range, Record, TimeNs,
};

use crate::adapter::FakeFamily;
use crate::vm::{Code, HEADER, MAGIC, VmMemory, lay_out, mapping, process, put_u64};

/// The VM, its adapter, and a clock that goes on by 10 ns whenever it is asked.
struct Bench {
    memory: Arc<VmMemory>,
    process: ProcessView,
    adapter: Box<dyn Adapter>,
    keys: KeySource,
    clock: Arc<AtomicU64>,
}

fn code(method: u64, compile_id: u64, start: u64, name: &'static str) -> Code {
    Code {
        method,
        compile_id,
        start,
        size: 0x100,
        name,
        map: vec![(0x10, 3), (0x40, 7)],
    }
}

impl Bench {
    fn new(zone: &[Code]) -> Self {
        let memory = Arc::new(VmMemory::default());
        memory.change(|memory| lay_out(memory, 2, zone));
        let process = process(Arc::clone(&memory));
        let adapter = FakeFamily.recognise(&process).unwrap().unwrap();
        Self {
            memory,
            process,
            adapter,
            keys: KeySource::new(),
            clock: Arc::new(AtomicU64::new(0)),
        }
    }

    fn begin(&self) -> Poll {
        let clock = Arc::clone(&self.clock);
        let clock = move || TimeNs(clock.fetch_add(10, Ordering::Relaxed));
        Poll::new(self.keys.clone(), self.process.key(), Arc::new(clock))
    }

    fn poll(&mut self) -> Result<Vec<Record>, AdapterError> {
        let mut poll = self.begin();
        self.adapter.poll(&self.process, &mut poll)?;
        Ok(poll.finish())
    }

    /// Polls after samples at `address`; returns the emitted maps, by key.
    fn touch(&mut self, address: u64) -> Result<Vec<(ConstituentKey, PcMap)>, AdapterError> {
        let mut poll = self.begin().with_touched(vec![Avma(address)]);
        self.adapter.poll(&self.process, &mut poll)?;
        let maps = poll.finish().into_iter().filter_map(|record| match record {
            Record::Constituent(told) if told.map != PcMap::None => Some((told.key, told.map)),
            _ => None,
        });
        Ok(maps.collect())
    }
}

/// A change of the code zone, short enough to write a sequence of them.
#[derive(Debug, PartialEq)]
enum Short {
    Method(u64, String),
    Seen {
        key: u64,
        start: u64,
        method: u64,
        since: u64,
        absent_at: Option<u64>,
    },
    Gone {
        key: u64,
        last_seen: u64,
        time: u64,
        reason: GoneReason,
    },
    Moved {
        key: u64,
        to: u64,
        last_seen: u64,
        time: u64,
    },
}

fn short(records: &[Record]) -> Vec<Short> {
    let changes = records.iter().filter_map(|record| match record {
        Record::Method(method) => Some(Short::Method(method.key.get(), method.name.clone())),
        Record::Constituent(seen) => {
            assert_eq!(seen.process, ProcessKey(3));
            assert_eq!(seen.map, PcMap::None);
            Some(Short::Seen {
                key: seen.key.get(),
                start: seen.start.get(),
                method: seen.method.map_or(0, MethodKey::get),
                since: seen.since.get(),
                absent_at: seen.absent_at.map(TimeNs::get),
            })
        }
        Record::ConstituentGone(gone) => Some(Short::Gone {
            key: gone.key.get(),
            last_seen: gone.last_seen.get(),
            time: gone.time.get(),
            reason: gone.reason,
        }),
        Record::ConstituentMoved(ConstituentMoved {
            key,
            last_seen,
            time,
            to,
        }) => Some(Short::Moved {
            key: key.get(),
            to: to.get(),
            last_seen: last_seen.get(),
            time: time.get(),
        }),
        _ => None,
    });
    changes.collect()
}

#[test]
fn code_comes_moves_is_freed_recycled_and_recompiled() {
    let (a, b) = (code(1, 1, 0x90_0000, "a"), code(2, 2, 0x90_0100, "b"));
    let mut bench = Bench::new(&[a.clone(), b]);
    // A poll asks the clock when it begins, when the zone is read, and for its counter:
    // the first begins at 0 and has read at 10, the second begins at 30 …
    assert_eq!(
        short(&bench.poll().unwrap()),
        [
            Short::Method(1, "a".to_owned()),
            Short::Seen {
                key: 1,
                start: 0x90_0000,
                method: 1,
                since: 10,
                absent_at: None
            },
            Short::Method(2, "b".to_owned()),
            Short::Seen {
                key: 2,
                start: 0x90_0100,
                method: 2,
                since: 10,
                absent_at: None
            },
        ]
    );

    // `a` moves; `b` is freed and `c` compiled over it.
    let moved = Code {
        start: 0x90_0400,
        ..a
    };
    let c = code(3, 3, 0x90_0180, "c");
    bench
        .memory
        .change(|m| lay_out(m, 4, &[moved.clone(), c.clone()]));
    assert_eq!(
        short(&bench.poll().unwrap()),
        [
            Short::Gone {
                key: 2,
                last_seen: 0,
                time: 40,
                reason: GoneReason::Recycled
            },
            Short::Moved {
                key: 1,
                to: 0x90_0400,
                last_seen: 0,
                time: 40
            },
            Short::Method(3, "c".to_owned()),
            Short::Seen {
                key: 3,
                start: 0x90_0180,
                method: 3,
                since: 40,
                absent_at: Some(0)
            },
        ]
    );

    // `a` is recompiled elsewhere: a new life of the same method.
    let again = Code {
        compile_id: 4,
        start: 0x90_0800,
        ..moved
    };
    bench.memory.change(|m| lay_out(m, 6, &[c.clone(), again]));
    assert_eq!(
        short(&bench.poll().unwrap()),
        [
            Short::Gone {
                key: 1,
                last_seen: 30,
                time: 70,
                reason: GoneReason::Freed
            },
            Short::Seen {
                key: 4,
                start: 0x90_0800,
                method: 1,
                since: 70,
                absent_at: Some(30)
            },
        ]
    );

    // Nothing happens; then the very place of `c` goes to another method.
    assert_eq!(short(&bench.poll().unwrap()), []);
    let d = Code {
        method: 9,
        compile_id: 5,
        name: "d",
        ..c
    };
    bench.memory.change(|m| lay_out(m, 8, &[d]));
    assert_eq!(
        short(&bench.poll().unwrap()),
        [
            Short::Gone {
                key: 3,
                last_seen: 90,
                time: 130,
                reason: GoneReason::Recycled
            },
            Short::Gone {
                key: 4,
                last_seen: 90,
                time: 130,
                reason: GoneReason::Freed
            },
            Short::Method(4, "d".to_owned()),
            Short::Seen {
                key: 5,
                start: 0x90_0180,
                method: 4,
                since: 130,
                absent_at: Some(90)
            },
        ]
    );
}

#[test]
fn pc_maps_are_read_when_they_are_needed() {
    let mut bench = Bench::new(&[code(1, 1, 0x90_0000, "a"), code(2, 2, 0x90_0100, "b")]);
    bench.poll().unwrap();
    assert_eq!(bench.touch(0x90_0200).unwrap(), [], "nothing is there");
    let maps = bench.touch(0x90_00ff).unwrap();
    let [(ConstituentKey(1), map)] = &maps[..] else {
        panic!("{maps:?}");
    };
    let range = |from, to| Some(Range { from, to });
    let (first, second) = (Some(BytecodePc(3)), Some(BytecodePc(7)));
    assert_eq!(map.boundary_range(0), range(None, first));
    assert_eq!(map.boundary_range(0x10), range(first, second));
    assert_eq!(map.boundary_range(0xff), range(second, None));
    assert_eq!(bench.touch(0x90_00ff).unwrap(), [], "it was told");
    bench.memory.change(|memory| lay_out(memory, 4, &[]));
    assert_eq!(bench.touch(0x90_0110).unwrap(), [], "it is gone");
}

#[test]
fn a_zone_that_changes_while_it_is_read_is_read_again() {
    let old = [code(1, 1, 0x90_0000, "a"), code(2, 2, 0x90_0100, "b")];
    let new = [code(3, 3, 0x90_0000, "c"), code(4, 4, 0x90_0100, "d")];
    // The version, the first entry, two entries with their names, the version again:
    // try every place in it, and after the end.
    const READS: u64 = 7;
    for reads in 1..READS + 3 {
        let mut bench = Bench::new(&old);
        let zone = new.clone();
        bench
            .memory
            .after_reads(reads, move |memory| lay_out(memory, 4, &zone));
        let names: Vec<String> = bench
            .poll()
            .unwrap()
            .iter()
            .filter_map(|record| match record {
                Record::Constituent(seen) => Some(seen.name.clone()),
                _ => None,
            })
            .collect();
        let expected = if reads < READS {
            ["c", "d"]
        } else {
            ["a", "b"]
        };
        assert_eq!(names, expected, "a change after {reads} reads");
    }
}

#[test]
fn a_zone_that_never_stands_still_is_an_error_and_tells_nothing() {
    let zone = [code(1, 1, 0x90_0000, "a")];
    let mut bench = Bench::new(&zone);
    for reads in 1..60 {
        bench
            .memory
            .after_reads(reads, move |memory| put_u64(memory, HEADER + 8, 2 * reads));
    }
    let mut poll = bench.begin();
    let result = bench.adapter.poll(&bench.process, &mut poll);
    assert!(
        matches!(result, Err(AdapterError::Torn { .. })),
        "{result:?}"
    );
    assert!(!result.unwrap_err().is_final());
    assert!(poll.is_empty());
    // In the middle of a change, the VM says so itself.
    let mut bench = Bench::new(&zone);
    bench.memory.change(|memory| put_u64(memory, HEADER + 8, 3));
    assert!(matches!(bench.poll(), Err(AdapterError::Torn { .. })));
    bench.memory.change(|memory| put_u64(memory, HEADER + 8, 4));
    assert_eq!(short(&bench.poll().unwrap()).len(), 2);
}

#[test]
fn hostile_contents_are_typed_errors() {
    const FIRST: u64 = 0x2_0000;
    let hostile = |change: fn(&mut FakeMemory)| {
        let mut bench = Bench::new(&[code(1, 1, 0x90_0000, "a"), code(2, 2, 0x90_0100, "b")]);
        bench.memory.change(change);
        bench.poll().unwrap_err()
    };
    // A list that runs in a circle.
    let error = hostile(|memory| put_u64(memory, FIRST, FIRST));
    assert!(
        matches!(error, AdapterError::TooMany { cap: 1000, .. }),
        "{error}"
    );
    // Pointers to nowhere, and to the end of the address space.
    for error in [
        hostile(|memory| put_u64(memory, FIRST, 0xdead_0000)),
        hostile(|memory| put_u64(memory, FIRST, u64::MAX - 8)),
        hostile(|memory| put_u64(memory, FIRST + 48, u64::MAX)),
    ] {
        assert!(matches!(error, AdapterError::Memory { .. }), "{error}");
    }
    // Code of no size, and past the end of the address space.
    let error = hostile(|memory| put_u64(memory, FIRST + 32, 0));
    assert!(matches!(error, AdapterError::Implausible { .. }), "{error}");
    let error = hostile(|memory| put_u64(memory, FIRST + 24, u64::MAX - 1));
    assert!(matches!(error, AdapterError::Implausible { .. }), "{error}");
    // A name without an end.
    let error = hostile(|memory| {
        memory.put(Avma(0x8_0000), vec![b'x'; 1 << 20]);
    });
    assert!(
        matches!(
            error,
            AdapterError::Memory {
                source: MemoryError::TooLong { cap: 100, .. },
                ..
            }
        ),
        "{error}"
    );
    // A map of four billion entries.
    let mut bench = Bench::new(&[code(1, 1, 0x90_0000, "a")]);
    bench
        .memory
        .change(|memory| put_u64(memory, FIRST + 32, u64::MAX));
    bench.poll().unwrap();
    let error = bench.touch(0x90_0000).unwrap_err();
    assert!(
        matches!(
            error,
            AdapterError::Memory {
                source: MemoryError::TooLong { .. },
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_zone_larger_than_a_look_may_be_is_counted() {
    let zone: Vec<Code> = (0..50)
        .map(|n| code(n, n, 0x90_0000 + 0x100 * n, "m"))
        .collect();
    let mut bench = Bench::new(&zone);
    let mut poll = bench.begin().with_room_for(10);
    bench.adapter.poll(&bench.process, &mut poll).unwrap();
    let records = poll.finish();
    assert_eq!(records.len(), 11);
    // 50 methods, 50 constituents and a counter.
    assert!(matches!(&records[10], Record::Lost(lost) if lost.count == 91));
}

#[test]
fn families_recognise_their_own_vm_and_say_why_not() {
    let families: Vec<Box<dyn AdapterFamily>> = vec![Box::new(FakeFamily)];
    let memory = Arc::new(VmMemory::default());
    let found = |process: &ProcessView| recognise(&families, process);
    memory.change(|memory| lay_out(memory, 2, &[]));
    let vm = process(Arc::clone(&memory));
    let recognised = found(&vm);
    assert_eq!(recognised.adapters.len(), 1);
    let (name, adapter) = &recognised.adapters[0];
    assert_eq!(*name, "fake");
    assert_eq!(adapter.identity().kind, "fake");
    let needs = adapter.sample_needs();
    assert_eq!(needs.clone().with(&needs), needs);
    assert!(
        families[0]
            .launch_environment(&vmscope_process::Launch::default())
            .is_empty()
    );

    memory.change(|memory| put_u64(memory, HEADER, 0));
    let failures = found(&vm).failures;
    assert!(matches!(failures[0].1, AdapterError::NotReady { .. }));
    memory.change(|memory| put_u64(memory, HEADER, MAGIC + 1));
    let failures = found(&vm).failures;
    assert!(matches!(failures[0].1, AdapterError::Implausible { .. }));

    let stripped = ProcessView::fake(Pid(7), Arc::clone(&memory) as _, vec![mapping()])
        .with_symbols("/opt/fakevm", Vec::new());
    let failures = found(&stripped).failures;
    assert!(failures[0].1.is_final(), "{}", failures[0].1);
    assert!(failures[0].1.remedy().contains("stripped"));
    let other = ProcessView::fake(Pid(7), memory, Vec::new());
    assert!(found(&other).adapters.is_empty() && found(&other).failures.is_empty());
}
