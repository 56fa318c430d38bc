//! Raw access to objects.
//!
//! All functions here trust the caller: the oop is an object of an existing heap, and no collection
//! has moved the object since the caller obtained the oop.

use super::header::MANY_SLOTS;
use super::{Format, Header, Oop};

/// Size in bytes of a slot, a header, or an overflow word.
pub const WORD: usize = 8;
/// Mask for the slot count in an overflow word. The top byte contains [`MANY_SLOTS`], as in a
/// header, so heap walks can distinguish overflow words from headers.
const COUNT_MASK: u64 = (1 << 56) - 1;

/// The words at an object's address: the header, then the slots.
#[inline]
fn words(oop: Oop) -> *mut u64 {
    std::ptr::with_exposed_provenance_mut(oop.address())
}

/// The object's header.
///
/// # Safety
/// `oop` is an object.
#[must_use]
#[inline]
pub unsafe fn header(oop: Oop) -> Header {
    // SAFETY: the object's header lies at this address (this function's contract).
    Header(unsafe { words(oop).read() })
}

/// Replaces the object's header.
///
/// # Safety
/// `oop` is an object, and the new header says the same number of slots.
#[inline]
pub unsafe fn set_header(oop: Oop, header: Header) {
    // SAFETY: the object's header lies at this address (this function's contract).
    unsafe { words(oop).write(header.0) };
}

/// Class index of an object or immediate value.
///
/// # Safety
/// `oop` is an object or an immediate value.
#[must_use]
#[inline]
pub unsafe fn class_index(oop: Oop) -> u32 {
    if oop.is_pointer() {
        // SAFETY: a pointer, not an immediate value; therefore an object.
        unsafe { header(oop) }.class_index()
    } else {
        oop.tag()
    }
}

/// Number of the object's slots.
///
/// # Safety
/// `oop` is an object.
#[must_use]
#[inline]
pub unsafe fn num_slots(oop: Oop) -> usize {
    // SAFETY: `oop` is an object.
    let slots = unsafe { header(oop) }.slots();
    if slots < MANY_SLOTS {
        slots
    } else {
        // SAFETY: this header implies an overflow word before the header.
        unsafe { overflow_count(oop) }
    }
}

/// Slot count in the overflow word.
///
/// # Safety
/// `oop` is an object with [`MANY_SLOTS`] in its header.
#[cold]
unsafe fn overflow_count(oop: Oop) -> usize {
    // SAFETY: the overflow word precedes the header in the same space.
    let word = unsafe { words(oop).sub(1) };
    // SAFETY: object creation wrote the overflow word.
    let word = unsafe { word.read() };
    usize::try_from(word & COUNT_MASK).unwrap_or(usize::MAX)
}

/// The object's slots. The next collection invalidates this pointer.
///
/// # Safety
/// `oop` is an object.
#[must_use]
#[inline]
pub unsafe fn slots(oop: Oop) -> *mut Oop {
    // SAFETY: every object has memory for one slot after the header.
    unsafe { words(oop).add(1) }.cast()
}

/// The slot at `index` (0-based).
///
/// # Safety
/// `oop` is an object with more than `index` slots.
#[must_use]
#[inline]
pub unsafe fn slot(oop: Oop, index: usize) -> Oop {
    // SAFETY: `oop` is an object.
    let slots = unsafe { slots(oop) };
    // SAFETY: the object has this slot.
    let slot = unsafe { slots.add(index) };
    // SAFETY: object creation writes all slots.
    unsafe { slot.read() }
}

/// Replaces a slot without the write barrier. Use only if the value is not a new object, or if the
/// target object is new ([`Heap::store`](super::Heap::store) has the barrier).
///
/// # Safety
/// `oop` is an object with more than `index` slots.
#[inline]
pub unsafe fn set_slot(oop: Oop, index: usize, value: Oop) {
    // SAFETY: `oop` is an object.
    let slots = unsafe { slots(oop) };
    // SAFETY: the object has this slot.
    let slot = unsafe { slots.add(index) };
    // SAFETY: the slot belongs to the object's memory.
    unsafe { slot.write(value) };
}

/// Byte count of the slots, minus unused bytes of the last slot. A method's count includes header
/// and literals.
///
/// # Safety
/// `oop` is an object.
#[must_use]
#[inline]
pub unsafe fn byte_len(oop: Oop) -> usize {
    // SAFETY: `oop` is an object.
    let format = unsafe { header(oop) }.format();
    // SAFETY: `oop` is an object.
    let bytes = unsafe { num_slots(oop) } * WORD;
    if format.0 >= Format::BYTES.0 {
        bytes - format.unused_bytes()
    } else {
        bytes
    }
}

/// The bytes in the object's slots.
///
/// # Safety
/// `oop` is an object. During the slice's lifetime no collection happens, and nobody writes into
/// the object.
#[must_use]
#[inline]
pub unsafe fn bytes<'a>(oop: Oop) -> &'a [u8] {
    // SAFETY: `oop` is an object.
    let start = unsafe { slots(oop) }.cast::<u8>();
    // SAFETY: `oop` is an object.
    let len = unsafe { byte_len(oop) };
    // SAFETY: object creation wrote `len` bytes; they do not change during the slice's lifetime
    // (this function's contract).
    unsafe { std::slice::from_raw_parts(start, len) }
}

/// The bytes in the object's slots, mutable.
///
/// # Safety
/// `oop` is an object. During the slice's lifetime no collection happens, and nobody else reads or
/// writes the object's slots.
#[must_use]
#[inline]
pub unsafe fn bytes_mut<'a>(oop: Oop) -> &'a mut [u8] {
    // SAFETY: `oop` is an object.
    let start = unsafe { slots(oop) }.cast::<u8>();
    // SAFETY: `oop` is an object.
    let len = unsafe { byte_len(oop) };
    // SAFETY: object creation wrote `len` bytes; the caller has exclusive access during the slice's
    // lifetime (this function's contract).
    unsafe { std::slice::from_raw_parts_mut(start, len) }
}

/// Object size in bytes, including header and overflow word.
///
/// # Safety
/// `oop` is an object.
#[must_use]
#[inline]
pub unsafe fn size_in_bytes(oop: Oop) -> usize {
    // SAFETY: `oop` is an object.
    size_for(unsafe { num_slots(oop) })
}

/// Size in bytes of an object with `slots` slots: headers plus at least one slot.
#[must_use]
#[inline]
pub const fn size_for(slots: usize) -> usize {
    if slots == 0 {
        2 * WORD
    } else if slots < MANY_SLOTS {
        (slots + 1) * WORD
    } else {
        (slots + 2) * WORD
    }
}

/// Creates an object at `address`: writes the header words, and stores `filler` in all slots.
///
/// # Safety
/// [`size_for`] `(slots)` bytes at `address` are memory of a space, outside any object.
#[must_use]
#[inline]
pub(super) unsafe fn initialize(address: usize, header: Header, slots: usize, filler: Oop) -> Oop {
    let mut oop = Oop::from_address(address);
    if slots >= MANY_SLOTS {
        let overflow = (MANY_SLOTS as u64) << 56 | slots as u64;
        // SAFETY: the first word of the memory (this function's contract).
        unsafe { words(oop).write(overflow) };
        oop = Oop::from_address(address + WORD);
    }
    // SAFETY: the object's first word but the overflow word.
    unsafe { set_header(oop, header) };
    for index in 0..slots.max(1) {
        // SAFETY: the memory contains all `slots` slots, at least one.
        unsafe { set_slot(oop, index, filler) };
    }
    oop
}

/// The object whose first word, header or overflow word, is at `address`.
///
/// # Safety
/// An object begins at `address`.
#[must_use]
#[inline]
pub(super) unsafe fn first_at(address: usize) -> Oop {
    let oop = Oop::from_address(address);
    // SAFETY: the first word of an object.
    if unsafe { header(oop) }.slots() < MANY_SLOTS {
        oop
    } else {
        Oop::from_address(address + WORD)
    }
}

/// Copies words that do not overlap. Most objects are small: a loop beats a call.
///
/// # Safety
/// `bytes` bytes, a multiple of eight, are objects at `from` and free memory of a space at `to`.
#[inline]
pub(super) unsafe fn copy(from: usize, to: usize, bytes: usize) {
    let from = words(Oop::from_address(from));
    let to = words(Oop::from_address(to));
    let count = bytes / WORD;
    if count > 16 {
        // SAFETY: both ranges are space memory without overlap (this function's contract).
        unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
        return;
    }
    for index in 0..count {
        // SAFETY: inside of the source.
        let from = unsafe { from.add(index) };
        // SAFETY: inside of the destination.
        let to = unsafe { to.add(index) };
        // SAFETY: words of objects have been written.
        let word = unsafe { from.read() };
        // SAFETY: free memory of a space.
        unsafe { to.write(word) };
    }
}

/// Moves words; the ranges may overlap.
///
/// # Safety
/// `bytes` bytes, a multiple of eight, are objects at `from`, and memory of the same space at `to`.
#[inline]
pub(super) unsafe fn slide(from: usize, to: usize, bytes: usize) {
    let from = words(Oop::from_address(from));
    let to = words(Oop::from_address(to));
    // SAFETY: both ranges are space memory (this function's contract).
    unsafe { std::ptr::copy(from, to, bytes / WORD) };
}
