//! Access to objects' fields. For the invariants see `raw.rs`.
#![allow(unsafe_code, reason = "reads and writes objects by address")]

use crate::memory::header::Format;
use crate::memory::{Oop, classes, object};

/// Index of the object's class.
#[inline(always)]
pub fn class_index(oop: Oop) -> u32 {
    // SAFETY: oops of the running program are valid.
    unsafe { object::class_index(oop) }
}

/// The object's format; of an immediate value: no slots.
#[inline(always)]
pub fn format(oop: Oop) -> Format {
    if oop.is_pointer() {
        // SAFETY: as above.
        unsafe { object::header(oop) }.format()
    } else {
        Format::EMPTY
    }
}

/// Number of slots.
#[inline(always)]
pub fn num_slots(oop: Oop) -> usize {
    // SAFETY: as above; callers have a pointer.
    unsafe { object::num_slots(oop) }
}

/// A slot that exists.
#[inline(always)]
pub fn slot(oop: Oop, index: usize) -> Oop {
    debug_assert!(index < num_slots(oop), "slot {index} of {oop:?}");
    // SAFETY: as above; callers know the object's layout.
    unsafe { object::slot(oop, index) }
}

/// Sets a slot without the write barrier: for immediate and permanent values, and for objects
/// that were just allocated in new space.
#[inline(always)]
pub fn set_slot(oop: Oop, index: usize, value: Oop) {
    debug_assert!(index < num_slots(oop), "slot {index} of {oop:?}");
    // SAFETY: as above.
    unsafe { object::set_slot(oop, index, value) }
}

/// Contents of a bytes object. The next safe point or write may change them.
#[inline(always)]
pub fn bytes<'a>(oop: Oop) -> &'a [u8] {
    debug_assert!(format(oop).is_bytes() || format(oop).is_method());
    // SAFETY: as above; callers drop the slice before the program continues.
    unsafe { object::bytes(oop) }
}

/// Contents of a bytes object, mutable.
#[inline(always)]
pub fn bytes_mut<'a>(oop: Oop) -> &'a mut [u8] {
    debug_assert!(format(oop).is_bytes() || format(oop).is_method());
    // SAFETY: as above; callers hold no other slice of this object.
    unsafe { object::bytes_mut(oop) }
}

/// Address of the first slot.
pub fn body(oop: Oop) -> *const u8 {
    // SAFETY: as above.
    unsafe { object::slots(oop) }.cast_const().cast()
}

/// Value of a Float, immediate or boxed.
#[inline(always)]
pub fn float(oop: Oop) -> Option<f64> {
    if let Some(value) = oop.as_float() {
        return Some(value);
    }
    if class_index(oop) == classes::BOXED_FLOAT {
        return Some(f64::from_bits(slot(oop, 0).0));
    }
    None
}
