//! Eden and the survivor spaces.

use super::reservation::{Reservation, whole_pages};
use super::{MemoryError, Oop};
use std::ops::Range;

/// An address range, filled from its start.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// First address.
    pub start: usize,
    /// Address of the next object.
    pub free: usize,
    /// Address after the last byte.
    pub end: usize,
}

impl Area {
    const fn new(start: usize, bytes: usize) -> Self {
        Self {
            start,
            free: start,
            end: start + bytes,
        }
    }

    /// Takes `bytes` bytes, if they fit.
    #[inline]
    pub const fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let address = self.free;
        if bytes > self.end - address {
            return None;
        }
        self.free = address + bytes;
        Some(address)
    }

    /// Bytes in use.
    pub const fn used(&self) -> usize {
        self.free - self.start
    }

    /// Bytes in all.
    pub const fn capacity(&self) -> usize {
        self.end - self.start
    }

    /// Whether `oop`, an object, lies here.
    #[inline]
    pub const fn contains(&self, oop: Oop) -> bool {
        oop.address().wrapping_sub(self.start) < self.end - self.start
    }
}

/// New space: eden (5/7) and two survivor spaces (1/7 each). The spaces share one address range: a
/// single comparison recognizes new objects.
#[derive(Debug)]
pub struct NewSpace {
    reservation: Reservation,
    /// The whole range, for [`contains`](Self::contains).
    start: u64,
    size_by_8: u64,
    /// First address of eden, and the address after its last byte.
    pub eden_start: usize,
    /// See `eden_start`.
    pub eden_end: usize,
    /// Survivors of the last scavenge.
    pub past: Area,
    /// Survivor space for the next scavenge's copies. Empty between scavenges.
    pub future: Area,
}

impl NewSpace {
    /// A new space whose eden has `eden_bytes` bytes, rounded to whole pages.
    pub fn new(eden_bytes: usize) -> Result<Self, MemoryError> {
        let eden = whole_pages(eden_bytes);
        let survivor = whole_pages(eden / 5);
        let bytes = eden + 2 * survivor;
        let reservation = Reservation::new(bytes)?;
        let start = reservation.start();
        reservation.commit(start, bytes)?;
        Ok(Self {
            reservation,
            start: start as u64,
            size_by_8: bytes as u64 / 8,
            eden_start: start,
            eden_end: start + eden,
            past: Area::new(start + eden, survivor),
            future: Area::new(start + eden + survivor, survivor),
        })
    }

    /// Bytes of eden.
    pub const fn eden_bytes(&self) -> usize {
        self.eden_end - self.eden_start
    }

    /// All addresses.
    pub fn range(&self) -> Range<usize> {
        self.reservation.start()..self.reservation.end()
    }

    /// Whether `oop` is an object in this space. The rotation moves the tag of an immediate value
    /// to the top bits, making the difference too large.
    #[inline]
    pub const fn contains(&self, oop: Oop) -> bool {
        oop.0.wrapping_sub(self.start).rotate_right(3) < self.size_by_8
    }
}
