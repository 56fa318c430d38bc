use super::*;
use crate::debug::Debug;
use crate::versions::Layout;
use vmscope_process::testing::FakeMemory;

const ISOLATE: Isolate = Isolate(Avma(0x10_0000));
const TRACER: u64 = 0x20_0000;

/// Heap and tracer of an isolate whose heap is `shift` bytes behind the usual place.
fn found(shift: u64) -> Result<(Avma, Avma), AdapterError> {
    let fields = Layout::new((14, 6), &Debug::default())
        .unwrap()
        .collector
        .unwrap();
    let heap = (ISOLATE.0.0 + fields.heap).wrapping_add(shift);
    let mut memory = FakeMemory::new();
    memory.put(ISOLATE.0, vec![0; 0x2_0000]);
    memory.put(Avma(TRACER), vec![0; 0x1000]);
    // Other members' first word is the heap's address, too.
    for (index, member) in [0, 8, 16, 0x40].into_iter().enumerate() {
        let object = TRACER + index as u64 * 0x100;
        let at = Avma(heap + fields.tracer + member);
        memory.write(at, &object.to_le_bytes());
        memory.write(Avma(object), &heap.to_le_bytes());
    }
    let found = super::heap(ISOLATE, fields, &memory);
    found.inspect(|(at, _)| assert_eq!(at.0, heap))
}

#[test]
fn a_heap_near_its_place_is_found_by_its_tracer() {
    for shift in [
        0,
        8,
        0x30,
        MAX_SHIFT,
        8_u64.wrapping_neg(),
        0x30_u64.wrapping_neg(),
    ] {
        assert_eq!(found(shift).unwrap().1, Avma(TRACER), "{shift:#x}");
    }
    let error = found(MAX_SHIFT + 8).unwrap_err();
    assert!(matches!(error, AdapterError::NotReady { .. }), "{error}");
}

#[test]
fn a_look_does_not_take_a_later_isolate_at_the_same_address_for_the_first() {
    let heap = Avma(ISOLATE.0.0 + 0x1000);
    let word_at = Avma(heap.0 + 0x800);
    for (mark, own, later) in [
        (Mark::Number(word_at), 3, 4),
        (Mark::Tracer(word_at, Avma(TRACER)), TRACER, TRACER + 0x100),
    ] {
        let tracer = Avma(TRACER);
        let collector = Collector {
            isolate: ISOLATE,
            number: 3,
            heap,
            mark,
            newest_move: TimeNs(0),
            pieces: [
                ISOLATE.0, heap, heap, heap, heap, heap, heap, tracer, tracer, tracer, heap, tracer,
            ],
            begin: 0,
            has_milliseconds: false,
            has_state: true,
            has_counts: true,
            figures: None,
        };
        let mut memory = FakeMemory::new();
        memory.put(ISOLATE.0, vec![0; 0x2000]);
        memory.put(tracer, vec![0; 0x1000]);
        memory.write(Avma(ISOLATE.0.0 + SELF as u64), &ISOLATE.0.0.to_le_bytes());
        memory.write(tracer, &heap.0.to_le_bytes());
        for (word, is_same) in [(own, true), (later, false)] {
            memory.write(word_at, &word.to_le_bytes());
            let looks = Collector::look(&[&collector], &memory).unwrap();
            assert_eq!(looks[0].is_some(), is_same, "{mark:?}");
            assert_eq!(collector.is_same(&memory), is_same, "{mark:?}");
        }
    }
}
