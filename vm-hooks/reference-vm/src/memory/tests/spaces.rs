//! Tests of object placement and movement.

use super::*;
use std::sync::atomic::Ordering;

#[test]
fn new_objects_have_nil_or_zeros_in_their_slots() {
    let mut heap = heap(&small());
    let oop = array(&mut heap, 3);
    assert!((0..3).all(|index| slot(oop, index) == heap.nil()));
    let method = heap.allocate(54, Format::METHOD, 3).expect("memory");
    assert!((0..3).all(|index| slot(method, index) == Oop::NONE));
    let bytes = byte_array(&mut heap, b"seven b");
    assert_eq!(bytes_of(bytes), b"seven b");
    assert!(heap.is_new(oop) && heap.is_new(method) && !heap.is_new(heap.nil()));
}

#[test]
fn immediate_values_are_never_new() {
    let mut heap = heap(&small());
    let oop = array(&mut heap, 1);
    for tag in 1..8 {
        assert!(!heap.is_new(Oop(oop.0 | tag)));
    }
}

#[test]
fn survivors_move_and_stay_equal() {
    let mut heap = heap(&small());
    let list = array(&mut heap, 2);
    let text = byte_array(&mut heap, b"hello");
    heap.store(list, 0, text);
    heap.store(list, 1, list);
    let mut roots = vec![list, Oop::small(7)];
    for _ in 0..3 {
        heap.scavenge("test", &mut roots, &mut ());
        assert_eq!(slot(roots[0], 1), roots[0], "the cycle");
        assert_eq!(bytes_of(slot(roots[0], 0)), b"hello");
        assert_eq!(roots[1], Oop::small(7));
    }
    assert_ne!(roots[0], list);
    let statistics = heap.statistics();
    assert_eq!(statistics.scavenges, 3);
    assert_eq!(statistics.survivors_bytes, 24 + 16);
    assert_eq!(statistics.allocated_bytes, 24 + 16);
}

#[test]
fn a_full_eden_sets_the_alarm_and_the_rest_goes_to_old_space() {
    let alarm = Arc::new(AtomicU64::new(0));
    let mut heap = Heap::new(&small(), alarm.clone()).expect("memory");
    heap.set_nil(Oop::small(0));
    let mut in_eden = 0;
    loop {
        let oop = array(&mut heap, 10);
        if !heap.is_new(oop) {
            break;
        }
        in_eden += 88;
        if in_eden < (64 << 10) - 1024 - 88 {
            assert!(!heap.collection_wanted());
            assert_eq!(alarm.load(Ordering::Relaxed), 0);
        }
    }
    assert!(in_eden > (64 << 10) - 88);
    assert!(heap.collection_wanted());
    assert_eq!(alarm.load(Ordering::Relaxed), u64::MAX);
    assert_eq!(heap.statistics().old_used, 88);
    let mut roots = Vec::new();
    heap.collect_if_wanted(&mut roots, &mut ());
    assert!(!heap.collection_wanted());
    assert_eq!(heap.statistics().eden_used, 0);
}
