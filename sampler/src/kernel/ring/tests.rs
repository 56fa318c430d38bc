//! A ring of our own making, in which the test plays the kernel.

use super::*;
use proptest::prelude::*;

const PAGE: usize = 4096;

struct FakeRing {
    /// u64s, so that the control page is aligned.
    words: Vec<u64>,
    data_len: usize,
}

impl FakeRing {
    /// An empty ring of `data_len` bytes whose positions start at `at`.
    fn new(data_len: usize, at: u64) -> Self {
        let mut fake = Self {
            words: vec![0; (PAGE + data_len) / 8],
            data_len,
        };
        fake.set_head(at);
        let tail = std::mem::offset_of!(perf_event_mmap_page, data_tail) / 8;
        fake.words[tail] = at;
        fake
    }

    fn head_index() -> usize {
        std::mem::offset_of!(perf_event_mmap_page, data_head) / 8
    }

    fn set_head(&mut self, head: u64) {
        self.words[Self::head_index()] = head;
    }

    fn head(&self) -> u64 {
        self.words[Self::head_index()]
    }

    fn tail(&self) -> u64 {
        self.words[std::mem::offset_of!(perf_event_mmap_page, data_tail) / 8]
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let at = PAGE + usize::try_from(self.head() % self.data_len as u64).expect("fits");
            let mut word = self.words[at / 8].to_ne_bytes();
            word[at % 8] = byte;
            self.words[at / 8] = u64::from_ne_bytes(word);
            self.set_head(self.head() + 1);
        }
    }

    fn push(&mut self, kind: u32, size: u16, body: &[u8]) {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0u16.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        self.push_bytes(&bytes);
    }

    fn record(&mut self, kind: u32, body: &[u8]) {
        self.push(
            kind,
            u16::try_from(body.len() + HEADER).expect("fits"),
            body,
        );
    }

    fn memory(&mut self) -> RingMemory {
        let base = self.words.as_mut_ptr().cast();
        // SAFETY: the vector holds PAGE + data_len bytes and is not resized.
        unsafe { RingMemory::new(base, PAGE, self.data_len) }
    }

    fn read(&mut self) -> (Vec<(u32, Vec<u8>)>, Round) {
        let mut seen = Vec::new();
        let round = self
            .memory()
            .read(|record| seen.push((record.kind, record.body.to_vec())));
        (seen, round)
    }
}

#[test]
fn an_empty_ring_has_nothing() {
    let mut fake = FakeRing::new(64, 0);
    assert_eq!(fake.read(), (vec![], Round::default()));
}

#[test]
fn records_come_in_order_and_free_their_place() {
    let mut fake = FakeRing::new(64, 0);
    fake.record(9, &[1; 8]);
    fake.record(7, &[2; 16]);
    let (seen, round) = fake.read();
    assert_eq!(seen, vec![(9, vec![1; 8]), (7, vec![2; 16])]);
    assert_eq!(round.records, 2);
    assert_eq!(fake.tail(), fake.head());
    assert_eq!(fake.read().0, vec![]);
}

#[test]
fn records_straddle_the_end_at_every_position() {
    for at in 0..64 {
        let mut fake = FakeRing::new(64, at);
        let body: Vec<u8> = (0..24).collect();
        fake.record(9, &body);
        fake.record(3, &[7; 8]);
        let (seen, round) = fake.read();
        assert_eq!(seen, vec![(9, body), (3, vec![7; 8])], "from {at}");
        assert!(!round.garbage);
    }
}

#[test]
fn positions_wrap_around_the_number_range() {
    let mut fake = FakeRing::new(64, 0);
    fake.words[FakeRing::head_index()] = 0;
    let start = u64::MAX - 7;
    let tail = std::mem::offset_of!(perf_event_mmap_page, data_tail) / 8;
    fake.words[tail] = start;
    // Sixteen bytes from 2^64 - 8: a header there, its body at 0.
    fake.words[(PAGE + 56) / 8] = u64::from_ne_bytes([9, 0, 0, 0, 0, 0, 16, 0]);
    fake.words[PAGE / 8] = 5;
    fake.set_head(8);
    let (seen, round) = fake.read();
    assert_eq!(seen, vec![(9, 5u64.to_ne_bytes().to_vec())]);
    assert!(!round.garbage);
}

#[test]
fn sizes_that_lie_end_the_round_and_are_counted() {
    for size in [0, 1, 7, 9999] {
        let mut fake = FakeRing::new(128, 0);
        fake.record(9, &[1; 8]);
        fake.push(9, size, &[0; 8]);
        fake.record(9, &[1; 8]);
        let (seen, round) = fake.read();
        assert_eq!(seen.len(), 1, "size {size}");
        assert!(round.garbage);
        assert_eq!(fake.tail(), fake.head(), "the rest is given up");
    }
}

#[test]
fn a_head_further_than_the_ring_is_long_is_not_believed() {
    let mut fake = FakeRing::new(64, 0);
    fake.set_head(65);
    let (seen, round) = fake.read();
    assert!(seen.is_empty() && round.garbage);
    assert_eq!(fake.tail(), 65);
}

#[test]
fn a_panic_leaves_the_tail_after_what_was_lent() {
    let mut fake = FakeRing::new(64, 0);
    fake.record(9, &[1; 8]);
    fake.record(9, &[2; 8]);
    let mut memory = fake.memory();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        memory.read(|_| panic!("on purpose"))
    }));
    assert!(result.is_err());
    assert_eq!(fake.tail(), 16);
}

proptest! {
    #[test]
    fn any_bytes_at_all_end(bytes in prop::collection::vec(any::<u8>(), 256), at in any::<u64>(), len in 0u64..600) {
        let at = at / 2;
        let mut fake = FakeRing::new(256, at);
        fake.push_bytes(&bytes);
        fake.set_head(at + len);
        let (_, round) = fake.read();
        prop_assert!(round.records <= 256 / 8);
        prop_assert_eq!(fake.tail(), fake.head());
    }
}
