//! The ring under every order of memory accesses that the memory model allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p vmscope-publish --release --test loom`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::sync::Arc;

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use vmscope_publish::lease::Leases;
use vmscope_publish::ring::{Cursor, Next, RECORD_WORDS, Ring};

struct Memory {
    head: AtomicU64,
    floor: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(words: usize) -> Arc<Self> {
        Arc::new(Self {
            head: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring::with_longest(&self.head, &self.floor, &self.words, self.words.len())
    }
}

fn write(ring: &Ring<'_>, value: u64) {
    let mut record = ring.reserve(value as u8, value, 1).unwrap();
    record.push(value * 1000);
    record.commit();
}

/// Reads until nothing is left, and returns the values with the number of words passed over.
fn read(ring: &Ring<'_>, cursor: &mut Cursor, patience: u64, values: &mut Vec<u64>) -> u64 {
    let mut lost = 0;
    loop {
        match cursor.next(ring, 0, patience) {
            Next::Record(record) => {
                assert_eq!(record.payload, [record.time * 1000]);
                assert_eq!(u64::from(record.kind), record.time);
                values.push(record.time);
            }
            Next::Empty => return lost,
            Next::Overrun { words } | Next::Torn { words } => lost += words,
        }
    }
}

fn model(bound: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(bound);
    builder.check(test);
}

/// Two producers and a reader on a ring that both records fit.
#[test]
fn loom_records_arrive_whole() {
    model(3, || {
        let memory = Memory::new(8);
        let producers: Vec<_> = [1, 2]
            .map(|value| {
                let memory = Arc::clone(&memory);
                thread::spawn(move || write(&memory.ring(), value))
            })
            .into();
        let (ring, mut cursor, mut values) = (memory.ring(), Cursor::default(), Vec::new());
        let mut lost = read(&ring, &mut cursor, 1, &mut values);
        for producer in producers {
            producer.join().unwrap();
        }
        lost += read(&ring, &mut cursor, 1, &mut values);
        values.sort_unstable();
        assert_eq!((values.as_slice(), lost), ([1, 2].as_slice(), 0));
    });
}

/// Two producers overwrite each other on a ring of one record while a reader reads.
#[test]
fn loom_what_is_overwritten_is_counted() {
    model(3, || {
        let memory = Memory::new(4);
        let producers: Vec<_> = [1, 2]
            .map(|value| {
                let memory = Arc::clone(&memory);
                thread::spawn(move || write(&memory.ring(), value))
            })
            .into();
        let (ring, mut cursor, mut values) = (memory.ring(), Cursor::default(), Vec::new());
        let mut lost = read(&ring, &mut cursor, 1, &mut values);
        for producer in producers {
            producer.join().unwrap();
        }
        lost += read(&ring, &mut cursor, 0, &mut values);
        let words = (RECORD_WORDS as u64 + 1) * values.len() as u64;
        assert_eq!(words + lost, ring.head());
        values.dedup();
        assert!(values.len() <= 2 && values.iter().all(|value| [1, 2].contains(value)));
    });
}

/// Producers that must not overwrite: one of three records finds no room.
#[test]
fn loom_the_oldest_stay() {
    model(2, || {
        let memory = Memory::new(8);
        let write = |value: u64| {
            let memory = Arc::clone(&memory);
            move || {
                let reserved = memory.ring().reserve_free(value as u8, value, 1);
                reserved
                    .map(|mut record| {
                        record.push(value * 1000);
                        record.commit();
                    })
                    .is_some()
            }
        };
        let producers = [1, 2].map(|value| thread::spawn(write(value)));
        let mut written = usize::from(write(3)());
        for producer in producers {
            written += usize::from(producer.join().unwrap());
        }
        let (mut cursor, mut values) = (Cursor::default(), Vec::new());
        let lost = read(&memory.ring(), &mut cursor, 0, &mut values);
        assert_eq!((written, values.len(), lost), (2, 2, 0));
    });
}

/// A profiler comes while the VM is about to go quiet because another one's lease ran out: it is
/// heard.
#[test]
fn loom_a_profiler_that_comes_is_heard() {
    model(3, || {
        let listening = Arc::new(AtomicU64::new(1));
        let ends = Arc::new([AtomicU64::new(5), AtomicU64::new(0)]);
        let vm = {
            let (listening, ends) = (Arc::clone(&listening), Arc::clone(&ends));
            thread::spawn(move || Leases::new(&listening, &*ends, 100).check(10))
        };
        let slot = Leases::new(&listening, &*ends, 100).take(10, 50);
        vm.join().unwrap();
        assert!(slot.is_some());
        assert_eq!(listening.load(Ordering::Relaxed), 1);
    });
}
