//! Old space grows, shrinks, and ends; collections happen when they should.

use super::*;
use crate::memory::{Begin, End, Kind, Observer};

/// Miri takes its time with each word.
const PATIENCE: usize = if cfg!(miri) { 1 } else { 20 };

/// A list of `count` objects of `slots` slots, in old space.
fn old_list(heap: &mut Heap, count: usize, slots: usize) -> Oop {
    let mut list = heap.nil();
    for _ in 0..count {
        let link = heap
            .allocate_old(ARRAY, Format::INDEXED, slots)
            .expect("memory");
        heap.store(link, 0, list);
        list = link;
    }
    list
}

fn length(heap: &Heap, mut list: Oop) -> usize {
    let mut length = 0;
    while list != heap.nil() {
        list = slot(list, 0);
        length += 1;
    }
    length
}

#[test]
fn old_space_grows_and_shrinks() {
    let mut heap = heap(&small());
    let before = heap.statistics();
    assert_eq!(before.grows, 0);
    let mut roots = vec![old_list(&mut heap, 20, 1000)];
    let full = heap.statistics();
    assert!(full.grows > 0 && full.segments > before.segments);
    assert_eq!(full.old_used, 20 * 8016);
    heap.collect_full("test", &mut roots, &mut ());
    assert_eq!(length(&heap, roots[0]), 20);
    assert_eq!(heap.statistics().old_used, 20 * 8016);
    roots.clear();
    heap.collect_full("test", &mut roots, &mut ());
    let after = heap.statistics();
    assert_eq!(after.old_used, 0);
    assert!(after.shrinks > 0);
    assert_eq!(after.segments, before.segments);
    assert_eq!(
        after.grows, full.grows,
        "nothing was freed only to grow again"
    );
    // Eden's objects must find room at the next scavenge.
    assert!(after.old_free >= 64 << 10);
    let again = old_list(&mut heap, 20, 1000);
    assert_eq!(length(&heap, again), 20);
}

#[test]
fn compaction_keeps_the_order_and_the_contents() {
    let mut heap = heap(&small());
    let mut roots = Vec::new();
    for number in 0..300_u32 {
        let slots = if number % 50 == 0 { 300 } else { 3 };
        let bytes = vec![number.to_le_bytes()[0]; slots * 8 - 3];
        let format = Format::with_bytes(Format::BYTES, bytes.len());
        let oop = heap
            .allocate_old(BYTE_ARRAY, format, slots)
            .expect("memory");
        // SAFETY: just made; nobody else knows it.
        unsafe { object::bytes_mut(oop) }.copy_from_slice(&bytes);
        if number % 3 != 1 {
            roots.push(oop);
        }
    }
    let before: Vec<_> = roots.iter().map(|oop| bytes_of(*oop)).collect();
    heap.collect_full("test", &mut roots, &mut ());
    assert!(roots.is_sorted_by_key(|oop| oop.0));
    let after: Vec<_> = roots.iter().map(|oop| bytes_of(*oop)).collect();
    assert_eq!(before, after);
    // SAFETY: the roots are objects.
    let live: usize = roots
        .iter()
        .map(|oop| unsafe { object::size_in_bytes(*oop) })
        .sum();
    assert_eq!(heap.statistics().old_used, live as u64);
}

#[test]
fn large_objects_and_pretenured_classes_go_to_old_space() {
    let mut heap = heap(&small());
    let small_one = array(&mut heap, 1000);
    let large = array(&mut heap, 1030);
    assert!(heap.is_new(small_one) && !heap.is_new(large));
    // SAFETY: just made.
    assert_eq!(unsafe { object::num_slots(large) }, 1030);
    heap.pretenure_class(ARRAY, true);
    let (old, new) = (array(&mut heap, 1), byte_array(&mut heap, b"x"));
    assert!(!heap.is_new(old) && heap.is_new(new));
    heap.pretenure_class(ARRAY, false);
    let again = array(&mut heap, 1);
    assert!(heap.is_new(again));
}

#[test]
fn objects_that_survive_twice_are_tenured_when_survivor_space_is_full() {
    let mut heap = heap(&small());
    let capacity = heap.sizes().survivor_capacity;
    let third = capacity / 3 / 8;
    let mut roots = vec![array(&mut heap, third), array(&mut heap, third)];
    for _ in 0..3 {
        heap.scavenge("test", &mut roots, &mut ());
        assert!(heap.is_new(roots[0]), "it does not fill the space");
    }
    roots.push(array(&mut heap, third - 10));
    heap.scavenge("test", &mut roots, &mut ());
    roots.push(array(&mut heap, 10));
    assert!(roots.iter().all(|oop| heap.is_new(*oop)), "they still fit");
    heap.scavenge("test", &mut roots, &mut ());
    let new: Vec<bool> = roots.iter().map(|oop| heap.is_new(*oop)).collect();
    assert_eq!(new, [false, false, false, true]);
    assert_eq!(heap.statistics().tenures, 3);
    assert_eq!(heap.statistics().tenured_bytes, heap.statistics().old_used);
}

#[test]
fn the_tenuring_threshold_decides_when_survivors_are_tenured() {
    // Each object takes a third of the survivor space. Result: is the object old after scavenge 1, 2, 3?
    let run = |threshold| {
        let mut heap = heap(&small());
        heap.change_parameters(|all| all.tenuring_threshold = threshold);
        let third = heap.sizes().survivor_capacity / 3 / 8;
        let mut roots = vec![array(&mut heap, third - 2), array(&mut heap, third - 2)];
        [(); 3].map(|()| {
            heap.scavenge("test", &mut roots, &mut ());
            roots.push(array(&mut heap, 1));
            (!heap.is_new(roots[0]), heap.statistics().tenures)
        })
    };
    assert_eq!(run(0), [(true, 2), (true, 3), (true, 4)], "at once");
    // At the second scavenge, 66 % are in use.
    assert_eq!(run(50), [(false, 0), (true, 2), (true, 2)]);
    assert_eq!(run(70), [(false, 0), (false, 0), (false, 0)]);
}

#[test]
fn at_a_tenuring_threshold_of_100_survivors_stay_until_they_do_not_fit() {
    let mut heap = heap(&small());
    heap.change_parameters(|all| all.tenuring_threshold = 100);
    let mut roots = vec![array(&mut heap, 1000), array(&mut heap, 1000)];
    for _ in 0..4 {
        heap.scavenge("test", &mut roots, &mut ());
        let sizes = heap.sizes();
        assert_eq!(
            (sizes.survivor_used, sizes.survivor_capacity),
            (16_032, 16_384)
        );
    }
    assert_eq!(heap.statistics().tenures, 0);
    roots.push(array(&mut heap, 100));
    heap.scavenge("test", &mut roots, &mut ());
    assert_eq!(heap.statistics().tenures, 1);
}

#[test]
fn parameters_change_while_the_heap_is_in_use() {
    let mut heap = heap(&small());
    // 200,000 bytes of old objects.
    let mut roots = vec![old_list(&mut heap, 25, 998)];
    heap.collect_full("test", &mut roots, &mut ());
    // Whether the next full collection is due when old space has grown by 100,000 bytes.
    let mut is_due = |ratio, headroom| {
        let used = heap.statistics().old_used;
        heap.change_parameters(|all| {
            (all.full_gc_ratio, all.growth_headroom) = (ratio, headroom);
            (all.eden_bytes, all.max_old_bytes) = (1, 1);
        });
        let more = old_list(&mut heap, 12, 998);
        assert!(heap.statistics().old_used == used + 12 * 8000 && more != heap.nil());
        let is_due = heap.collection_wanted();
        heap.collect_full("test", &mut roots, &mut ());
        is_due
    };
    assert!(is_due(0.33, 4096));
    assert!(!is_due(0.6, 4096));
    assert!(!is_due(0.33, 128 << 10));
    let parameters = heap.parameters();
    let kept = (parameters.eden_bytes, parameters.max_old_bytes);
    assert_eq!(kept, (64 << 10, 1 << 20));
}

#[test]
fn survivors_that_do_not_fit_are_tenured() {
    let mut heap = heap(&small());
    let mut roots: Vec<Oop> = (0..700).map(|_| array(&mut heap, 10)).collect();
    assert!(roots.iter().all(|oop| heap.is_new(*oop)));
    heap.scavenge("test", &mut roots, &mut ());
    let statistics = heap.statistics();
    assert!(statistics.tenures > 0);
    assert_eq!(
        statistics.survivors_bytes + statistics.tenured_bytes,
        700 * 88
    );
}

#[test]
fn a_full_collection_follows_when_old_space_has_grown() {
    let parameters = Parameters {
        growth_headroom: 128 << 10,
        ..small()
    };
    let mut heap = heap(&parameters);
    let mut roots = vec![heap.nil()];
    let fulls = if cfg!(miri) { 1 } else { 3 };
    let mut length_now = 0;
    while heap.statistics().full_gcs < fulls {
        let link = array(&mut heap, 50);
        heap.store(link, 0, roots[0]);
        roots[0] = link;
        length_now += 1;
        heap.collect_if_wanted(&mut roots, &mut ());
    }
    assert_eq!(length(&heap, roots[0]), length_now);
    assert!(heap.statistics().scavenges > fulls);
    assert!(heap.statistics().mark_ns <= heap.statistics().full_gc_ns);
}

/// A program that keeps everything meets the limit, gets `None`, can still make small objects, and
/// goes on when it has dropped what it kept.
#[test]
fn the_limit_of_old_space_is_an_answer_not_a_crash() {
    const LIMIT: usize = PATIENCE * (32 << 10);
    let parameters = Parameters {
        max_old_bytes: LIMIT,
        ..small()
    };
    let mut heap = heap(&parameters);
    let mut roots = vec![heap.nil()];
    let mut links = 0;
    let mut refusals = 0;
    while refusals < PATIENCE {
        heap.collect_if_wanted(&mut roots, &mut ());
        let Some(link) = heap.allocate(ARRAY, Format::INDEXED, 100) else {
            if refusals == 0 {
                let other = heap.allocate(ARRAY, Format::INDEXED, 10);
                assert!(other.is_some(), "room for the one who handles this");
            }
            refusals += 1;
            continue;
        };
        heap.store(link, 0, roots[0]);
        roots[0] = link;
        links += 1;
    }
    assert_eq!(length(&heap, roots[0]), links);
    assert!(links * 808 > LIMIT);
    let statistics = heap.statistics();
    assert!(statistics.old_used <= (LIMIT + 2 * (80 << 10)) as u64);
    roots[0] = heap.nil();
    heap.collect_if_wanted(&mut roots, &mut ());
    heap.collect_full("test", &mut roots, &mut ());
    for _ in 0..PATIENCE * 50 {
        heap.collect_if_wanted(&mut roots, &mut ());
        assert!(heap.allocate(ARRAY, Format::INDEXED, 100).is_some());
    }
}

#[test]
fn large_objects_leave_room_for_survivors() {
    let parameters = Parameters {
        max_old_bytes: 256 << 10,
        growth_headroom: 4096,
        ..small()
    };
    let mut heap = heap(&parameters);
    let mut roots = Vec::new();
    while heap.statistics().eden_used < 60 << 10 {
        roots.push(array(&mut heap, 100));
    }
    while let Some(large) = heap.allocate(ARRAY, Format::INDEXED, 1100) {
        roots.push(large);
    }
    assert!(heap.collection_wanted());
    assert!(heap.statistics().old_used > 240 << 10);
    heap.collect_if_wanted(&mut roots, &mut ());
    assert_eq!(heap.statistics().full_gcs, 1);
    assert!(
        heap.allocate(ARRAY, Format::INDEXED, usize::MAX / 8)
            .is_none()
    );
    assert!(
        heap.allocate_old(ARRAY, Format::INDEXED, usize::MAX)
            .is_none()
    );
}

#[test]
fn stress_collects_at_every_nth_allocation() {
    let stress = Stress {
        collect_every: 3,
        full_every: 2,
        verify: true,
    };
    let mut heap = heap(&Parameters {
        tenuring_threshold: 0,
        stress,
        ..small()
    });
    let mut roots = Vec::new();
    for round in 1..=12 {
        roots.push(array(&mut heap, 2));
        assert_eq!(heap.collection_wanted(), round % 3 == 0);
        heap.collect_if_wanted(&mut roots, &mut ());
        assert_eq!(heap.is_new(roots[round - 1]), round % 3 != 0);
    }
    let statistics = heap.statistics();
    assert_eq!((statistics.scavenges, statistics.full_gcs), (4, 2));
}

/// Writes down what it is told.
#[derive(Default)]
struct Diary(Vec<String>);

impl Observer for Diary {
    fn collection_begin(&mut self, begin: &Begin<'_>) {
        let Begin {
            kind, cause, sizes, ..
        } = begin;
        self.0.push(format!("{kind:?} {cause} {}", sizes.eden_used));
    }

    fn phase_begin(&mut self, name: &'static str) {
        self.0.push(name.to_owned());
    }

    fn phase_end(&mut self) {
        self.0.push(".".to_owned());
    }

    fn collection_end(&mut self, end: &End) -> u64 {
        let End {
            kind,
            survived_bytes,
            tenured_bytes,
            survived_objects,
            ..
        } = end;
        let scavenge = *kind == Kind::Scavenge;
        self.0.push(format!(
            "{scavenge} {survived_bytes} {survived_objects} {tenured_bytes}"
        ));
        0
    }
}

#[test]
fn observers_are_told_collections_and_phases() {
    let mut heap = heap(&small());
    let mut roots = vec![array(&mut heap, 3)];
    let mut diary = Diary::default();
    heap.collect_full("test", &mut roots, &mut diary);
    assert_eq!(
        diary.0.join("|"),
        "Scavenge test 32|roots|.|remembered set|.|copying|.|ephemerons|.|true 32 1 0|\
         Full test 0|mark|.|plan|.|update|.|compact|.|false 32 1 0"
    );
}

/// Makes more objects than the tests' mark stack holds, each referring to further objects.
#[test]
fn objects_that_the_mark_stack_has_no_room_for_are_marked_too() {
    let mut heap = heap(&small());
    let width = 50;
    let wide = heap
        .allocate_old(ARRAY, Format::INDEXED, width)
        .expect("memory");
    for index in 0..width {
        let list = old_list(&mut heap, 4, 1);
        heap.store(wide, index, list);
    }
    let mut roots = vec![wide];
    let before = heap.statistics().old_used;
    heap.collect_full("test", &mut roots, &mut ());
    assert_eq!(heap.statistics().old_used, before);
    assert!((0..width).all(|index| length(&heap, slot(roots[0], index)) == 4));
}
