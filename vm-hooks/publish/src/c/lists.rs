//! Lists from C.

use std::slice;

use super::structs::{CCase, CSpace, known};
use crate::event::{PicCase, SpaceUse};

/// Most cases of a PIC (`VMSCOPE_MOST_CASES`).
pub(super) const MOST_CASES: usize = 64;
/// Most spaces of a collection (`VMSCOPE_MOST_SPACES`).
pub(super) const MOST_SPACES: usize = 32;
/// Most sources of an interpreter's position.
pub(super) const MOST_SOURCES: usize = 32;
/// A list that C gave: `count` items, or none at all.
///
/// # Safety
///
/// `items` is null, or points to `count` items that stay as they are for `'a`.
pub(super) unsafe fn list<'a, T>(items: *const T, count: usize) -> &'a [T] {
    let possible = isize::MAX as usize / size_of::<T>().max(1);
    if items.is_null() || !items.is_aligned() || count > possible {
        return &[];
    }
    // SAFETY: as promised by the caller; the size is possible.
    unsafe { slice::from_raw_parts(items, count) }
}

/// Calls `then` with the cases, which lie on the stack.
///
/// # Safety
///
/// As for [`list`], including the texts of the cases.
pub(super) unsafe fn with_cases(
    cases: *const CCase,
    count: usize,
    then: impl FnOnce(&[PicCase<'_>]),
) {
    // SAFETY: as promised by the caller.
    let given = unsafe { list(cases, count) };
    let mut cases = [const { None }; MOST_CASES];
    for (place, given) in cases.iter_mut().zip(given) {
        *place = Some(PicCase {
            // SAFETY: as promised by the caller.
            class: unsafe { given.class_name.get() },
            method: given.method,
            // SAFETY: as promised by the caller.
            target: unsafe { given.target.get() },
        });
    }
    let cases = cases.map(Option::unwrap_or_default);
    then(cases.get(..given.len()).unwrap_or(&cases));
}

/// Calls `then` with the spaces, which lie on the stack.
///
/// # Safety
///
/// As for [`list`], including the names of the spaces.
pub(super) unsafe fn with_spaces(
    spaces: *const CSpace,
    count: usize,
    then: impl FnOnce(&[SpaceUse<'_>]),
) {
    // SAFETY: as promised by the caller.
    let given = unsafe { list(spaces, count) };
    let mut spaces = [const { None }; MOST_SPACES];
    for (place, given) in spaces.iter_mut().zip(given) {
        *place = Some(SpaceUse {
            // SAFETY: as promised by the caller.
            name: unsafe { given.name.get() },
            used: known(given.used),
            capacity: known(given.capacity),
        });
    }
    let spaces = spaces.map(Option::unwrap_or_default);
    then(spaces.get(..given.len()).unwrap_or(&spaces));
}
