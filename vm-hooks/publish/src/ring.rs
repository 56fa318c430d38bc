//! A broadcast ring of records in shared memory: any number of producers, any number of readers.
//!
//! Producers never wait, block or allocate, so threads and signal handlers may both produce. A
//! producer reserves words by adding to the head, and overwrites the oldest records. Readers only
//! read: each reader keeps its own [`Cursor`], and no reader can hinder a producer.
//!
//! ```text
//! position  p               p+1    p+2       p+3 … p+length
//!           lap│length│kind time   checksum  payload
//! ```
//!
//! Positions count words since the start and never wrap in practice. The word at position `p` lies
//! at index `p % capacity`, so a record may continue at the ring's start.
//!
//! A producer writes the first word last, with release ordering. The first word holds the lap's
//! number, so leftovers of an earlier lap never look like a record. A producer that stalls for a
//! whole lap writes over newer records. The checksum covers the position, so no reader takes such a
//! mixture for a record. A reader also compares the head after its copy: if the producers came
//! round meanwhile, the copy does not count.

use crate::sync::{AtomicU64, Ordering, fence};

mod cursor;

pub use cursor::{Cursor, Next, Record};

/// Words of a record before its payload.
pub const RECORD_WORDS: usize = 3;

/// The longest record of any ring, in words.
pub const LONGEST_RECORD: usize = 1 << 20;

/// Bits of the first word that hold the length.
const LENGTH_BITS: u32 = 21;
/// Bits above the length that hold the kind.
const KIND_BITS: u32 = 8;
/// Lowest bit of the lap.
const LAP_SHIFT: u32 = LENGTH_BITS + KIND_BITS;

/// How often a producer that must not overwrite tries to reserve. Each failure is another
/// producer's success, so even a few hundred threads leave a try for each.
const TRIES: u32 = 1000;

/// The words of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'m> {
    head: &'m AtomicU64,
    floor: &'m AtomicU64,
    words: &'m [AtomicU64],
    longest: usize,
}

/// Checksum of a record: each step is a bijection of its word, so that a single wrong word never
/// passes.
#[derive(Clone, Copy, Debug)]
struct Checksum(u64);

impl Checksum {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn new(position: u64, kind: u8, time: u64) -> Self {
        let mut sum = Self(position ^ 0x766d_7363_6f70_6521);
        sum.add(time);
        sum.add(u64::from(kind));
        sum
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::FACTOR);
    }
}

impl<'m> Ring<'m> {
    /// A ring in `words`. Its capacity is the number of `words`, rounded down to a power of two.
    /// `head` is the position after the newest reservation. `floor` is the position below which
    /// records may be overwritten by [`reserve_free`](Self::reserve_free).
    ///
    /// A record fills at most an eighth of the ring, and never exceeds [`LONGEST_RECORD`] words.
    #[must_use]
    pub fn new(head: &'m AtomicU64, floor: &'m AtomicU64, words: &'m [AtomicU64]) -> Self {
        Self::with_longest(head, floor, words, words.len() / 8)
    }

    /// Like [`new`](Self::new), with another limit for the length of records, in words.
    #[must_use]
    pub fn with_longest(
        head: &'m AtomicU64,
        floor: &'m AtomicU64,
        words: &'m [AtomicU64],
        longest: usize,
    ) -> Self {
        let capacity = words
            .len()
            .checked_ilog2()
            .map_or(0, |bits| 1_usize << bits);
        Self {
            head,
            floor,
            words: words.get(..capacity).unwrap_or_default(),
            longest: longest.min(LONGEST_RECORD).min(capacity),
        }
    }

    /// Number of words.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64
    }

    /// Maximum payload of a record, in words.
    #[must_use]
    pub fn longest_payload(&self) -> usize {
        self.longest.saturating_sub(RECORD_WORDS)
    }

    /// Position after the newest reservation.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Lets [`reserve_free`](Self::reserve_free) overwrite everything before `position`.
    pub fn free_before(&self, position: u64) {
        self.floor.fetch_max(position, Ordering::Release);
    }

    /// Reserves a record with `payload` words over the oldest records. `None` for too long records.
    #[inline]
    #[must_use]
    pub fn reserve(&self, kind: u8, time: u64, payload: usize) -> Option<Reservation<'m>> {
        let length = self.length(payload)?;
        // Acquire and release: a producer's writes before its reservation are visible to the
        // producer of every later reservation. Snapshots rely on this order (`zone`).
        let position = self.head.fetch_add(length as u64, Ordering::AcqRel);
        Some(self.reserved(position, length, kind, time))
    }

    /// Reserves a record with `payload` words without overwriting anything since the floor. `None`
    /// if the ring lacks space, the record is too long, or other producers win every try.
    #[must_use]
    pub fn reserve_free(&self, kind: u8, time: u64, payload: usize) -> Option<Reservation<'m>> {
        let length = self.length(payload)?;
        let mut position = self.head.load(Ordering::Relaxed);
        for _ in 0..TRIES {
            let floor = self.floor.load(Ordering::Acquire);
            let end = position.wrapping_add(length as u64);
            if end.saturating_sub(floor) > self.capacity() {
                return None;
            }
            let swap = (Ordering::AcqRel, Ordering::Relaxed);
            match (self.head).compare_exchange_weak(position, end, swap.0, swap.1) {
                Ok(_) => return Some(self.reserved(position, length, kind, time)),
                Err(other) => position = other,
            }
        }
        None
    }

    fn length(&self, payload: usize) -> Option<usize> {
        let length = payload.checked_add(RECORD_WORDS)?;
        (length <= self.longest).then_some(length)
    }

    #[inline]
    fn reserved(self, position: u64, length: usize, kind: u8, time: u64) -> Reservation<'m> {
        // A reader that sees a word of this record, and then passes an acquire fence, also sees the
        // head that reserved the record. Readers thereby notice overtaking producers.
        fence(Ordering::Release);
        Reservation {
            ring: self,
            position,
            next: position.wrapping_add(RECORD_WORDS as u64),
            end: position.wrapping_add(length as u64),
            length,
            kind,
            time,
            sum: Checksum::new(position, kind, time),
        }
    }

    #[inline]
    fn word(&self, position: u64) -> Option<&'m AtomicU64> {
        let mask = self.words.len().wrapping_sub(1);
        // Positions beyond `usize` lose high bits, which the mask drops anyway.
        self.words.get(position as usize & mask)
    }

    #[inline]
    fn store(&self, position: u64, word: u64) {
        if let Some(place) = self.word(position) {
            place.store(word, Ordering::Relaxed);
        }
    }

    fn load(&self, position: u64) -> u64 {
        self.word(position)
            .map_or(0, |place| place.load(Ordering::Relaxed))
    }

    /// The first word of a record. Never zero, unlike fresh memory.
    fn first_word(&self, position: u64, length: usize, kind: u8) -> u64 {
        let lap = position.checked_div(self.capacity()).unwrap_or(0);
        (lap.wrapping_add(1) << LAP_SHIFT) | (u64::from(kind) << LENGTH_BITS) | length as u64
    }
}

/// A reserved record, completed by [`commit`](Self::commit). Readers count a reservation dropped
/// without a commit as torn.
#[derive(Debug)]
#[must_use = "a record that is not committed is lost"]
pub struct Reservation<'m> {
    ring: Ring<'m>,
    position: u64,
    next: u64,
    end: u64,
    length: usize,
    kind: u8,
    time: u64,
    sum: Checksum,
}

impl Reservation<'_> {
    /// Appends a word to the payload. Words beyond the reserved number are left out.
    #[inline]
    pub fn push(&mut self, word: u64) {
        if self.next < self.end {
            self.ring.store(self.next, word);
            self.sum.add(word);
            self.next += 1;
        }
    }

    /// Completes the record, with zeros for words that were not given.
    #[inline]
    pub fn commit(mut self) {
        while self.next < self.end {
            self.push(0);
        }
        let Self { ring, position, .. } = self;
        ring.store(position.wrapping_add(1), self.time);
        ring.store(position.wrapping_add(2), self.sum.0);
        if let Some(first) = ring.word(position) {
            let word = ring.first_word(position, self.length, self.kind);
            first.store(word, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
