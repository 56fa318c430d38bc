//! Spaces that grow by segments: old space and the permanent space.

use super::reservation::{Reservation, whole_pages};
use super::{MemoryError, Oop};
use std::ops::Range;

/// A space made of consecutive segments in one address range. Objects lie without gaps from the
/// first segment's start; objects may cross segment boundaries.
#[derive(Debug)]
pub struct Segments {
    reservation: Reservation,
    /// Address of the next object.
    free: usize,
    /// End address of each segment; each segment begins at its predecessor's end.
    ends: Vec<usize>,
    /// Least bytes of a segment.
    headroom: usize,
}

impl Segments {
    /// A space for up to `most` bytes, without segments at first.
    pub fn new(most: usize, headroom: usize) -> Result<Self, MemoryError> {
        let reservation = Reservation::new(most)?;
        Ok(Self {
            free: reservation.start(),
            reservation,
            ends: Vec::new(),
            headroom: whole_pages(headroom.max(1)),
        })
    }

    /// Sets the least bytes of a new segment.
    pub fn set_headroom(&mut self, headroom: usize) {
        self.headroom = whole_pages(headroom.max(1));
    }

    /// First address.
    #[inline]
    pub fn start(&self) -> usize {
        self.reservation.start()
    }

    /// Address after the last object.
    #[inline]
    pub fn free(&self) -> usize {
        self.free
    }

    /// Address after the last segment.
    #[inline]
    pub fn end(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.start())
    }

    /// Bytes in objects.
    pub fn used(&self) -> usize {
        self.free - self.start()
    }

    /// Free bytes in segments.
    #[inline]
    pub fn free_bytes(&self) -> usize {
        self.end() - self.free
    }

    /// Bytes of all segments.
    pub fn capacity(&self) -> usize {
        self.end() - self.start()
    }

    /// Address ranges of the segments.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = std::iter::once(self.start()).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }

    /// Number of segments.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Takes `bytes` bytes from the present segments.
    #[inline]
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let address = self.free;
        if bytes > self.free_bytes() {
            return None;
        }
        self.free = address + bytes;
        Some(address)
    }

    /// Ensures `needed` free bytes by adding a segment if necessary. First asks `prepare` to
    /// approve the new size. Returns whether `needed` bytes are free.
    pub fn grow(&mut self, needed: usize, prepare: impl FnOnce(usize) -> bool) -> bool {
        if needed <= self.free_bytes() {
            return true;
        }
        let end = self.end();
        let missing = needed - self.free_bytes();
        let most = self.reservation.end() - end;
        if missing > most || self.ends.try_reserve(1).is_err() {
            return false;
        }
        let bytes = whole_pages(missing.max(self.headroom)).min(most);
        if !prepare(end + bytes - self.start()) || self.reservation.commit(end, bytes).is_err() {
            return false;
        }
        self.ends.push(end + bytes);
        true
    }

    /// After compaction: objects end at `free`.
    pub fn set_free(&mut self, free: usize) {
        debug_assert!(free >= self.start() && free <= self.free);
        self.free = free;
    }

    /// Frees empty segments from the end as long as more than `keep` bytes stay free. Answers the
    /// number of segments freed.
    pub fn shrink(&mut self, keep: usize) -> u64 {
        let mut freed = 0;
        while let Some(range) = self.ranges().last() {
            if range.start < self.free || range.start - self.free < keep {
                break;
            }
            self.reservation.release(range.start, range.len());
            self.ends.pop();
            freed += 1;
        }
        freed
    }

    /// Whether `oop` is an object in this space.
    #[inline]
    pub fn contains(&self, oop: Oop) -> bool {
        let size = self.free - self.start();
        // As in `NewSpace::contains`.
        let distance = oop.address().wrapping_sub(self.start());
        distance.rotate_right(3) < size / 8
    }
}
