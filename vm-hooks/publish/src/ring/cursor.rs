//! Reading a ring during concurrent writes.

use super::{Checksum, LENGTH_BITS, RECORD_WORDS, Ring};
use crate::sync::{Ordering, fence};

/// A reader's position in a ring, with a copy of the newest record read.
#[derive(Debug, Default)]
pub struct Cursor {
    position: u64,
    /// Position of an incomplete record, and time of its first sighting.
    waiting: Option<(u64, u64)>,
    copy: Vec<u64>,
}

/// Result of [`Cursor::next`].
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'c> {
    /// A record.
    Record(Record<'c>),
    /// No complete record yet.
    Empty,
    /// Producers overwrote unread records.
    Overrun {
        /// Number of words in them.
        words: u64,
    },
    /// A record was not completed in time, or damaged by a stalled producer.
    Torn {
        /// Number of words skipped, up to the next intact record.
        words: u64,
    },
}

/// A record, copied out of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'c> {
    /// Kind, as the producer gave it.
    pub kind: u8,
    /// Time in nanoseconds of `CLOCK_MONOTONIC`, as the producer gave it.
    pub time: u64,
    /// Position of its first word.
    pub position: u64,
    /// Payload.
    pub payload: &'c [u64],
}

/// Outcome of an attempt to copy a record.
enum Copied {
    Whole { kind: u8, time: u64, length: u64 },
    Incomplete,
    Overtaken,
}

impl Cursor {
    /// A cursor at the head, for records reserved later.
    #[must_use]
    pub fn at_head(ring: &Ring<'_>) -> Self {
        Self::at(ring.head())
    }

    /// A cursor at the oldest intact record.
    #[must_use]
    pub fn at_oldest(ring: &Ring<'_>) -> Self {
        let head = ring.head();
        let mut cursor = Self::at(head);
        let floor = ring.floor.load(Ordering::Acquire).min(head);
        let oldest = head.saturating_sub(ring.capacity()).max(floor);
        cursor.position = cursor.first_record(ring, oldest, head);
        cursor.copy.clear();
        cursor
    }

    /// A cursor at `position`, where a record must start.
    #[must_use]
    pub fn at(position: u64) -> Self {
        Self {
            position,
            ..Self::default()
        }
    }

    /// Position of the next record.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next record. Never waits: a record that is being written counts as
    /// [`Next::Empty`] until `patience` nanoseconds have passed by the caller's clock `now`, and
    /// as [`Next::Torn`] then.
    ///
    /// The memory may hold anything, and may change during the call. A call reads each word of the
    /// ring only a few times, and copies at most [`LONGEST_RECORD`](super::LONGEST_RECORD) words.
    pub fn next(&mut self, ring: &Ring<'_>, now: u64, patience: u64) -> Next<'_> {
        let head = ring.head();
        if head == self.position {
            self.waiting = None;
            return Next::Empty;
        }
        match self.copy_record(ring, self.position, head) {
            Copied::Whole { kind, time, length } => {
                let position = self.position;
                self.position = position.wrapping_add(length);
                self.waiting = None;
                Next::Record(Record {
                    kind,
                    time,
                    position,
                    payload: &self.copy,
                })
            }
            Copied::Overtaken => {
                let head = ring.head();
                // Keep half a ring of distance, so that producers cannot overtake again at once.
                let from = head.saturating_sub(ring.capacity() / 2);
                Next::Overrun {
                    words: self.jump(ring, from.max(self.position.min(head)), head),
                }
            }
            Copied::Incomplete => {
                let since = match self.waiting {
                    Some((position, since)) if position == self.position => since,
                    _ => now,
                };
                self.waiting = Some((self.position, since));
                if now.saturating_sub(since) < patience {
                    return Next::Empty;
                }
                let from = self.position.wrapping_add(1);
                Next::Torn {
                    words: self.jump(ring, from, head),
                }
            }
        }
    }

    /// Goes to the first record from `from` on. Returns the number of words passed over.
    fn jump(&mut self, ring: &Ring<'_>, from: u64, head: u64) -> u64 {
        let before = self.position;
        self.waiting = None;
        self.position = self.first_record(ring, from, head);
        self.position.saturating_sub(before)
    }

    /// Position of the first whole record in `from..head`, else `head`.
    fn first_record(&mut self, ring: &Ring<'_>, from: u64, head: u64) -> u64 {
        // Each word that merely looks like a record costs a copy. Hostile memory could cause a copy
        // of the longest record for every word.
        let mut budget = ring.capacity().saturating_mul(4);
        let mut position = from;
        while position < head && budget > 0 {
            let length = match self.copy_record(ring, position, head) {
                Copied::Whole { .. } => return position,
                Copied::Incomplete => self.copy.len() as u64,
                Copied::Overtaken => 0,
            };
            budget = budget.saturating_sub(length.saturating_add(1));
            position += 1;
        }
        head
    }

    /// Copies the payload of the record at `position`, and verifies the record.
    fn copy_record(&mut self, ring: &Ring<'_>, position: u64, head: u64) -> Copied {
        self.copy.clear();
        let ahead = head.wrapping_sub(position);
        if ahead > ring.capacity() {
            return Copied::Overtaken;
        }
        let Some(first) = ring.word(position) else {
            return Copied::Incomplete;
        };
        let first = first.load(Ordering::Acquire);
        let length = first & ((1 << LENGTH_BITS) - 1);
        let kind = (first >> LENGTH_BITS) as u8;
        let possible = RECORD_WORDS as u64..=ahead.min(ring.longest as u64);
        let size = usize::try_from(length).unwrap_or(usize::MAX);
        if !possible.contains(&length) || first != ring.first_word(position, size, kind) {
            // Either the record is still unwritten, or the producers came round.
            return self.incomplete(ring, position);
        }
        let time = ring.load(position.wrapping_add(1));
        let stored = ring.load(position.wrapping_add(2));
        let mut sum = Checksum::new(position, kind, time);
        for at in RECORD_WORDS as u64..length {
            let word = ring.load(position.wrapping_add(at));
            sum.add(word);
            self.copy.push(word);
        }
        if sum.0 != stored {
            return self.incomplete(ring, position);
        }
        // Pairs with the fence of `Ring::reserved`: if a newer record overwrote a copied word, the
        // head now shows the newer record.
        fence(Ordering::Acquire);
        let head = ring.head.load(Ordering::Relaxed);
        if head.wrapping_sub(position) > ring.capacity() {
            return Copied::Overtaken;
        }
        Copied::Whole { kind, time, length }
    }

    fn incomplete(&self, ring: &Ring<'_>, position: u64) -> Copied {
        fence(Ordering::Acquire);
        let head = ring.head.load(Ordering::Relaxed);
        if head.wrapping_sub(position) > ring.capacity() {
            Copied::Overtaken
        } else {
            Copied::Incomplete
        }
    }
}
