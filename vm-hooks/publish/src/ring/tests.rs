#![allow(clippy::unwrap_used, reason = "a test that fails is to panic")]

use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

struct Memory {
    head: AtomicU64,
    floor: AtomicU64,
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(words: usize) -> Self {
        Self {
            head: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.head, &self.floor, &self.words)
    }
}

fn write(ring: &Ring<'_>, kind: u8, time: u64, payload: &[u64]) -> bool {
    let Some(mut record) = ring.reserve(kind, time, payload.len()) else {
        return false;
    };
    payload.iter().for_each(|&word| record.push(word));
    record.commit();
    true
}

fn all(ring: &Ring<'_>, cursor: &mut Cursor) -> (Vec<(u8, u64, Vec<u64>)>, u64) {
    let (mut records, mut lost) = (Vec::new(), 0);
    loop {
        match cursor.next(ring, 0, 0) {
            Next::Record(r) => records.push((r.kind, r.time, r.payload.to_vec())),
            Next::Empty => return (records, lost),
            Next::Overrun { words } | Next::Torn { words } => lost += words,
        }
    }
}

proptest! {
    /// Readers get the newest records, and count all other words.
    #[test]
    fn records_are_read_or_counted(
        batches in prop::collection::vec(
            prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u64>(), 0..14)), 0..30),
            1..12,
        )
    ) {
        let memory = Memory::new(128);
        let (ring, mut cursor) = (memory.ring(), Cursor::default());
        let mut time = 0;
        for batch in batches {
            let mut written = Vec::new();
            for (kind, payload) in batch {
                time += 1;
                let fits = payload.len() <= ring.longest_payload();
                prop_assert_eq!(write(&ring, kind, time, &payload), fits);
                if fits {
                    written.push((kind, time, payload));
                }
            }
            let words = |records: &[(u8, u64, Vec<u64>)]| {
                records.iter().map(|r| (r.2.len() + RECORD_WORDS) as u64).sum::<u64>()
            };
            let (read, lost) = all(&ring, &mut cursor);
            prop_assert_eq!(words(&read) + lost, words(&written));
            prop_assert!(written.ends_with(&read));
            prop_assert!(lost == 0 || words(&written) > 128);
            prop_assert!(lost == 0 || words(&read) > 128 / 2 - 16);
        }
    }

    /// Whatever the memory holds, reading ends and stays inside.
    #[test]
    fn any_memory_is_read_to_the_end(
        head in prop_oneof![0_u64..600, any::<u64>()],
        start in prop_oneof![0_u64..600, any::<u64>()],
        words in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..1 << 34], 64),
    ) {
        let memory = Memory::new(64);
        memory.head.store(head, Ordering::Relaxed);
        for (place, word) in memory.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        let ring = memory.ring();
        let mut cursor = Cursor::at(start);
        let (records, _) = all(&ring, &mut cursor);
        prop_assert!(records.len() <= 64);
        prop_assert_eq!(cursor.position(), head);
        prop_assert!(Cursor::at_oldest(&ring).position() <= head);
    }
}

#[test]
fn the_oldest_whole_record_is_found() {
    let memory = Memory::new(64);
    let ring = memory.ring();
    for time in 0..20 {
        write(&ring, 1, time, &[time; 3]);
    }
    // Ten records of six words fit 64 words.
    let (records, lost) = all(&ring, &mut Cursor::at_oldest(&ring));
    let times: Vec<_> = records.iter().map(|record| record.1).collect();
    assert_eq!((times, lost), ((10..20).collect(), 0));
    ring.free_before(ring.head());
    assert_eq!(Cursor::at_oldest(&ring).position(), ring.head());
}

#[test]
fn where_the_oldest_stay_new_ones_find_no_room() {
    let memory = Memory::new(64);
    let ring = memory.ring();
    let write = |time| match ring.reserve_free(1, time, 5) {
        Some(record) => {
            record.commit();
            true
        }
        None => false,
    };
    assert_eq!((0..20).filter(|&time| write(time)).count(), 8);
    let mut cursor = Cursor::at_oldest(&ring);
    assert_eq!(all(&ring, &mut cursor).0.len(), 8);
    ring.free_before(cursor.position());
    assert!(write(20));
}

#[test]
fn an_incomplete_record_is_waited_for_and_then_passed_over() {
    let memory = Memory::new(64);
    let ring = memory.ring();
    let slow = ring.reserve(1, 1, 2).unwrap();
    write(&ring, 2, 2, &[7]);
    let mut cursor = Cursor::default();
    assert_eq!(cursor.next(&ring, 100, 50), Next::Empty);
    assert_eq!(cursor.next(&ring, 149, 50), Next::Empty);
    assert_eq!(cursor.next(&ring, 150, 50), Next::Torn { words: 5 });
    assert!(matches!(
        cursor.next(&ring, 150, 50),
        Next::Record(Record { kind: 2, .. })
    ));
    // Completed too late for this reader, it comes in time for another one.
    slow.commit();
    assert_eq!(cursor.next(&ring, 150, 50), Next::Empty);
    assert_eq!(all(&ring, &mut Cursor::default()).0.len(), 2);
}

#[test]
fn a_producer_that_was_overtaken_spoils_a_record_that_is_noticed() {
    for stalled in 0..3 {
        let memory = Memory::new(64);
        let ring = memory.ring();
        let mut slow = ring.reserve(1, 1, 3).unwrap();
        (0..stalled).for_each(|_| slow.push(9));
        for time in 0..10 {
            write(&ring, 2, time, &[time; 3]);
        }
        let mut cursor = Cursor::at(6);
        (0..9).for_each(|_| assert!(matches!(cursor.next(&ring, 0, 0), Next::Record(_))));
        slow.commit();
        // The tenth record lies at 60..66: its last words are the slow one's first.
        assert!(matches!(cursor.next(&ring, 0, 0), Next::Torn { words: 6 }));
        assert_eq!(cursor.next(&ring, 0, 0), Next::Empty);
    }
}

/// Fast writer threads, with readers that may fall behind.
#[test]
fn threads_write_and_readers_see_no_wrong_record() {
    const EACH: u64 = 30_000;
    let memory = Memory::new(1 << 12);
    let done = AtomicBool::new(false);
    let words = std::thread::scope(|scope| {
        let producers: Vec<_> = (0..3)
            .map(|producer: u64| {
                let ring = memory.ring();
                scope.spawn(move || {
                    for number in 0..EACH {
                        let word = producer << 32 | number;
                        let payload = [word; 9];
                        write(
                            &ring,
                            producer as u8,
                            word,
                            &payload[..(number % 9) as usize],
                        );
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (ring, done) = (memory.ring(), &done);
                scope.spawn(move || {
                    let (mut cursor, mut last) = (Cursor::default(), [None; 3]);
                    let (mut words, mut lost) = (0, 0);
                    loop {
                        let over = done.load(std::sync::atomic::Ordering::Acquire);
                        match cursor.next(&ring, 0, u64::from(!over)) {
                            Next::Record(record) => {
                                let number = record.time & 0xffff_ffff;
                                assert!(record.payload.iter().all(|&word| word == record.time));
                                assert_eq!(record.payload.len() as u64, number % 9);
                                assert_eq!(record.time >> 32, u64::from(record.kind));
                                let last = &mut last[usize::from(record.kind)];
                                assert!(last.is_none_or(|last| last < number), "out of order");
                                *last = Some(number);
                                words += (record.payload.len() + RECORD_WORDS) as u64;
                            }
                            Next::Overrun { words } | Next::Torn { words } => lost += words,
                            Next::Empty if over => break,
                            Next::Empty => std::thread::yield_now(),
                        }
                    }
                    (words, lost)
                })
            })
            .collect();
        producers
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        done.store(true, std::sync::atomic::Ordering::Release);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().unwrap();
        readers.into_iter().map(join).collect::<Vec<(u64, u64)>>()
    });
    for (read, lost) in words {
        assert_eq!(read + lost, memory.ring().head());
        assert!(read > 0);
    }
}
