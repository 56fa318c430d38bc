//! Objects as the collectors see them.

use super::classes::FORWARDER;
use super::header::MANY_SLOTS;
use super::object::{self, WORD};
use super::{Format, Header, Oop};
use std::ops::Range;

/// An oop known to be an object's address, possibly an object already copied by the scavenger.
/// Collectors create and drop these values before reusing the memory, so the operations are safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object(Oop);

impl Object {
    /// # Safety
    /// `oop` is an object, and remains valid during the use of the result and its copies.
    #[inline]
    pub unsafe fn new(oop: Oop) -> Self {
        Self(oop)
    }

    /// The object whose first word lies at `address`.
    ///
    /// # Safety
    /// An object begins at `address`; other conditions: see [`new`](Self::new).
    #[inline]
    pub unsafe fn first_at(address: usize) -> Self {
        // SAFETY: an object begins there (this function's contract).
        Self(unsafe { object::first_at(address) })
    }

    /// The reference to the object.
    #[inline]
    pub fn oop(self) -> Oop {
        self.0
    }

    /// The object's header.
    #[inline]
    pub fn header(self) -> Header {
        // SAFETY: an object (the constructors' contract).
        unsafe { object::header(self.0) }
    }

    /// Replaces the header, but preserves the slot count.
    #[inline]
    pub fn set_header(self, header: Header) {
        debug_assert_eq!(header.slots(), self.header().slots());
        // SAFETY: an object (the constructors' contract).
        unsafe { object::set_header(self.0, header) };
    }

    /// Address of the object's first word.
    #[inline]
    pub fn start(self) -> usize {
        if self.header().slots() < MANY_SLOTS {
            self.0.address()
        } else {
            self.0.address() - WORD
        }
    }

    /// Object size in bytes, including headers.
    #[inline]
    pub fn size(self) -> usize {
        // SAFETY: an object (the constructors' contract).
        unsafe { object::size_in_bytes(self.0) }
    }

    /// Address after the object's last byte.
    #[inline]
    pub fn end(self) -> usize {
        self.start() + self.size()
    }

    /// The first slot, which every object has room for.
    #[inline]
    pub fn first_slot(self) -> Oop {
        // SAFETY: every object has memory for one slot.
        unsafe { object::slot(self.0, 0) }
    }

    /// Number of slots that are references; they come first.
    #[inline]
    pub fn reference_count(self) -> usize {
        let format = self.header().format();
        if format.is_pointers() {
            // SAFETY: an object (the constructors' contract).
            unsafe { object::num_slots(self.0) }
        } else if format.is_method() {
            self.literal_count()
        } else {
            0
        }
    }

    /// Number of references in a method: header plus literals. 0 before the creator writes the
    /// method's header.
    fn literal_count(self) -> usize {
        const LITERALS: u64 = 0x7fff;
        let Some(header) = self.first_slot().as_integer() else {
            return 0;
        };
        let literals = usize::try_from(header.cast_unsigned() & LITERALS).unwrap_or(0) + 1;
        // SAFETY: an object (the constructors' contract).
        literals.min(unsafe { object::num_slots(self.0) })
    }

    /// Replaces references in an index range by the results of `update`.
    #[inline]
    pub fn update(self, indices: Range<usize>, mut update: impl FnMut(Oop) -> Oop) {
        debug_assert!(indices.is_empty() || indices.end <= self.reference_count());
        for index in indices {
            // SAFETY: the object has this slot.
            let value = unsafe { object::slot(self.0, index) };
            let updated = update(value);
            if updated != value {
                // SAFETY: the object has this slot.
                unsafe { object::set_slot(self.0, index, updated) };
            }
        }
    }

    /// Calls `visit` with each reference in an index range.
    #[inline]
    pub fn visit(self, indices: Range<usize>, mut visit: impl FnMut(Oop)) {
        self.update(indices, |value| {
            visit(value);
            value
        });
    }

    /// Whether the scavenger has copied the object away from this address.
    #[inline]
    pub fn is_forwarded(self) -> bool {
        self.header().class_index() == FORWARDER
    }

    /// Forwards the object to `target`. `header` is the object's header, `holder` the class index of
    /// its holder.
    #[inline]
    pub fn forward(self, header: Header, target: Oop, holder: u32) {
        let forwarder = Header::new(FORWARDER, Format::FORWARDER, header.slots());
        self.set_header(forwarder.with_hash(holder));
        // SAFETY: every object has memory for one slot.
        unsafe { object::set_slot(self.0, 0, target) };
    }

    /// Copies the object to free memory.
    ///
    /// # Safety
    /// `size` is the object's size, and `size` bytes at `address` are free memory of a space.
    #[inline]
    pub unsafe fn copy_to(self, address: usize, size: usize) -> Self {
        let start = self.start();
        // SAFETY: from an object to free memory (this function's contract).
        unsafe { object::copy(start, address, size) };
        Self(Oop::from_address(address + (self.0.address() - start)))
    }
}

/// All objects between `start` and `end`, which lie without gaps.
///
/// # Safety
/// The range contains only objects, unchanged during the iterator's use.
pub unsafe fn walk(start: usize, end: usize) -> impl Iterator<Item = Object> {
    let mut next = start;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        // SAFETY: an object begins at the start, and where another ends (this function's contract).
        let object = unsafe { Object::first_at(next) };
        next = object.end();
        Some(object)
    })
}
