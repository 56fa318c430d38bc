//! Weak objects, ephemerons, and the remembered set.

use super::*;

/// Scavenges, or collects everything.
fn collect(heap: &mut Heap, roots: &mut Vec<Oop>, full: bool) {
    if full {
        heap.collect_full("test", roots, &mut ());
    } else {
        heap.scavenge("test", roots, &mut ());
    }
}

#[test]
fn weak_slots_become_nil_and_fixed_fields_stay() {
    for full in [false, true] {
        let mut heap = heap(&small());
        heap.set_fixed_fields(WEAK_ARRAY, 1);
        let weak = weak_array(&mut heap, 3);
        let kept = array(&mut heap, 1);
        for index in 0..2 {
            let target = array(&mut heap, 1);
            heap.store(weak, index, target);
        }
        heap.store(weak, 2, kept);
        let mut roots = vec![weak, kept];
        collect(&mut heap, &mut roots, full);
        assert_ne!(slot(roots[0], 0), heap.nil());
        assert_eq!(slot(roots[0], 1), heap.nil());
        assert_eq!(slot(roots[0], 2), roots[1]);
    }
}

#[test]
fn an_old_weak_object_does_not_keep_a_new_one() {
    let mut heap = heap(&small());
    let weak = heap
        .allocate_old(WEAK_ARRAY, Format::WEAK, 2)
        .expect("memory");
    let (kept, dead) = (array(&mut heap, 1), array(&mut heap, 1));
    heap.store(weak, 0, kept);
    heap.store(weak, 1, dead);
    let mut roots = vec![weak, kept];
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!([slot(weak, 0), slot(weak, 1)], [roots[1], heap.nil()]);
    assert_eq!(
        heap.statistics().remembered,
        1,
        "it still refers to a new object"
    );
    roots.pop();
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!(slot(weak, 0), heap.nil());
    assert_eq!(heap.statistics().remembered, 0);
}

#[test]
fn objects_leave_the_remembered_set_when_they_refer_to_no_new_object() {
    let mut heap = heap(&small());
    let old = heap
        .allocate_old(ARRAY, Format::INDEXED, 1)
        .expect("memory");
    let permanent = heap
        .allocate_permanent(ARRAY, Format::INDEXED, 1)
        .expect("memory");
    let new = array(&mut heap, 1);
    for object in [old, permanent, old] {
        heap.store(object, 0, new);
    }
    assert_eq!(heap.statistics().remembered, 2, "once each");
    heap.store(old, 0, Oop::small(1));
    let mut roots = vec![old];
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!(heap.statistics().remembered, 1);
    assert_eq!(heap.statistics().survivors_bytes, 16);
    heap.store(permanent, 0, Oop::small(1));
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!(heap.statistics().remembered, 0);
    assert_eq!(heap.statistics().survivors_bytes, 0);
}

#[test]
fn the_remembered_set_grows() {
    let mut heap = heap(&small());
    let new = array(&mut heap, 1);
    for _ in 0..2000 {
        let old = heap
            .allocate_old(ARRAY, Format::INDEXED, 1)
            .expect("memory");
        heap.store(old, 0, new);
    }
    let statistics = heap.statistics();
    assert_eq!(
        (statistics.remembered, statistics.remembered_overflows),
        (2000, 1)
    );
}

#[test]
fn an_ephemeron_whose_key_dies_mourns_once_and_keeps_its_key() {
    for full in [false, true] {
        let mut heap = heap(&small());
        let (key, value) = (
            byte_array(&mut heap, b"key"),
            byte_array(&mut heap, b"value"),
        );
        let watcher = ephemeron(&mut heap, key, value);
        let mut roots = vec![watcher, key];
        collect(&mut heap, &mut roots, full);
        assert!(!heap.has_mourners());
        assert_eq!(slot(roots[0], 0), roots[1]);
        roots.pop();
        for _ in 0..2 {
            collect(&mut heap, &mut roots, full);
            assert!(heap.has_mourners());
            assert_eq!(bytes_of(slot(roots[0], 0)), b"key");
            assert_eq!(bytes_of(slot(roots[0], 1)), b"value");
        }
        assert_eq!(heap.next_mourner(), Some(roots[0]));
        assert_eq!(heap.next_mourner(), None);
    }
}

#[test]
fn an_old_ephemeron_does_not_keep_its_new_key() {
    let mut heap = heap(&small());
    let watcher = heap
        .allocate_old(EPHEMERON, Format::EPHEMERON, 2)
        .expect("memory");
    let key = array(&mut heap, 1);
    let value = array(&mut heap, 1);
    heap.store(watcher, 0, key);
    heap.store(value, 0, key);
    heap.store(watcher, 1, value);
    let mut roots = vec![watcher, key];
    heap.scavenge("test", &mut roots, &mut ());
    assert!(!heap.has_mourners());
    assert_eq!(heap.statistics().remembered, 1);
    roots.pop();
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!(heap.next_mourner(), Some(watcher));
    assert_eq!(slot(slot(watcher, 1), 0), slot(watcher, 0));
}

/// Each ephemeron's value leads to the next one's key, not directly.
#[test]
fn chains_of_ephemerons_live_and_die_as_one() {
    for (full, backwards) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut heap = heap(&small());
        let first_key = array(&mut heap, 1);
        let mut key = first_key;
        let mut watchers = Vec::new();
        for _ in 0..10 {
            let next_key = array(&mut heap, 1);
            let between = array(&mut heap, 1);
            let value = array(&mut heap, 1);
            heap.store(between, 0, next_key);
            heap.store(value, 0, between);
            watchers.push(ephemeron(&mut heap, key, value));
            key = next_key;
        }
        if backwards {
            watchers.reverse();
        }
        watchers.push(first_key);
        let mut roots = watchers;
        for _ in 0..3 {
            collect(&mut heap, &mut roots, full);
            assert!(!heap.has_mourners(), "full: {full}, backwards: {backwards}");
        }
        roots.pop();
        collect(&mut heap, &mut roots, full);
        let mourners = std::iter::from_fn(|| heap.next_mourner()).count();
        assert_eq!(mourners, 10);
    }
}

/// All keys are dead before the first ephemeron mourns, though it keeps the next one's key.
#[test]
fn an_ephemeron_only_reachable_from_a_mourner_mourns_too() {
    for full in [false, true] {
        let mut heap = heap(&small());
        let (key, other_key) = (array(&mut heap, 1), array(&mut heap, 1));
        let inner = ephemeron(&mut heap, other_key, Oop::small(1));
        let outer = ephemeron(&mut heap, key, inner);
        let mut roots = vec![outer];
        collect(&mut heap, &mut roots, full);
        assert_eq!(heap.next_mourner(), Some(roots[0]));
        assert_eq!(heap.next_mourner(), Some(slot(roots[0], 1)));
        assert_eq!(heap.next_mourner(), None);
    }
}

#[test]
fn literals_of_methods_are_references() {
    let mut heap = heap(&small());
    let method = heap.allocate_permanent(54, Format::with_bytes(Format::METHOD, 29), 4);
    let method = method.expect("memory");
    heap.store(method, 0, Oop::small(2));
    for index in 1..3 {
        let literal = byte_array(&mut heap, &[7; 5]);
        heap.store(method, index, literal);
    }
    let mut roots = Vec::new();
    heap.collect_full("test", &mut roots, &mut ());
    for index in 1..3 {
        assert_eq!(bytes_of(slot(method, index)), [7; 5]);
    }
    assert_eq!(bytes_of(method).len(), 29);
}
