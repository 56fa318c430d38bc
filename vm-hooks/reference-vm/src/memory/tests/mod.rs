//! Tests of the whole heap.

mod death;
mod graph;
mod growth;
mod lifetimes;
mod model;
mod spaces;

use super::object;
use super::{Begin, End, Format, Heap, Kind, Observer, Oop, Parameters, Roots, Stress};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Roots as a test has them.
impl Roots for Vec<Oop> {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut Oop)) {
        self.iter_mut().for_each(visit);
    }
}

const ARRAY: u32 = super::classes::ARRAY;
const WEAK_ARRAY: u32 = super::classes::WEAK_ARRAY;
const EPHEMERON: u32 = super::classes::EPHEMERON;
const BYTE_ARRAY: u32 = super::classes::BYTE_ARRAY;

/// Small spaces, to give collections more work.
fn small() -> Parameters {
    Parameters {
        eden_bytes: 64 << 10,
        growth_headroom: 16 << 10,
        shrink_threshold: 32 << 10,
        max_old_bytes: 1 << 20,
        stress: Stress {
            // Under Miri, verification is too slow except in random programs.
            verify: !cfg!(miri),
            ..Stress::default()
        },
        ..Parameters::default()
    }
}

/// A heap with nil.
fn heap(parameters: &Parameters) -> Heap {
    let mut heap = Heap::new(parameters, Arc::new(AtomicU64::new(0))).expect("memory");
    let nil = heap.allocate_permanent(super::classes::UNDEFINED_OBJECT, Format::EMPTY, 0);
    heap.set_nil(nil.expect("memory"));
    heap
}

fn array(heap: &mut Heap, slots: usize) -> Oop {
    heap.allocate(ARRAY, Format::INDEXED, slots)
        .expect("memory")
}

fn weak_array(heap: &mut Heap, slots: usize) -> Oop {
    heap.allocate(WEAK_ARRAY, Format::WEAK, slots)
        .expect("memory")
}

fn ephemeron(heap: &mut Heap, key: Oop, value: Oop) -> Oop {
    let oop = heap
        .allocate(EPHEMERON, Format::EPHEMERON, 2)
        .expect("memory");
    heap.store(oop, 0, key);
    heap.store(oop, 1, value);
    oop
}

fn byte_array(heap: &mut Heap, bytes: &[u8]) -> Oop {
    let format = Format::with_bytes(Format::BYTES, bytes.len());
    let oop = heap
        .allocate(BYTE_ARRAY, format, bytes.len().div_ceil(8))
        .expect("memory");
    // SAFETY: just made; nobody else knows it.
    unsafe { object::bytes_mut(oop) }.copy_from_slice(bytes);
    oop
}

/// Slot of a known live object.
fn slot(oop: Oop, index: usize) -> Oop {
    // SAFETY: tests have the objects' present addresses, and know their sizes.
    unsafe { object::slot(oop, index) }
}

fn bytes_of(oop: Oop) -> Vec<u8> {
    // SAFETY: as for `slot`.
    unsafe { object::bytes(oop) }.to_vec()
}
