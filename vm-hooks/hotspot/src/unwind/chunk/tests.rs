use std::collections::BTreeMap;

use proptest::prelude::*;
use vmscope_process::testing::FakeMemory;

use super::*;

const STACK: u64 = 0x1030;
const WORDS: u64 = 40;

/// Return addresses: into a method with frames of four words, into the interpreter.
const METHOD: u64 = 0x7000;
const INTERPRETER: u64 = 0x8000;

fn code_at(pc: u64) -> Option<Code> {
    match pc {
        METHOD => Some((BlobKind::Nmethod, 32)),
        INTERPRETER => Some((BlobKind::Interpreter, 0)),
        _ => None,
    }
}

/// A chunk whose frames begin at word 2 and end at word `bottom`.
fn chunk(at: u64, bottom: u64, parent: u64) -> Chunk {
    Chunk {
        at: Avma(at),
        sp: Avma(STACK + 16),
        bottom: Avma(STACK + 8 * bottom),
        stack: (Avma(STACK), Avma(STACK + 8 * WORDS)),
        parent: Avma(parent),
    }
}

/// Two compiled frames, an interpreted frame, and a compiled one as the outermost.
fn sound() -> BTreeMap<u64, u64> {
    let relative = |words: i64| words.cast_unsigned();
    BTreeMap::from([
        (1, METHOD),
        (5, METHOD),
        // The interpreted frame's pointer is saved at word 8; the frame itself lies at word 20.
        (8, relative(12)),
        (9, INTERPRETER),
        // Bytecode, locals, method, sender; its own caller's frame pointer and return address.
        (12, 0x500),
        (13, relative(3)),
        (17, 0x400),
        (19, relative(4)),
        (20, 0x1234),
        (21, METHOD),
    ])
}

fn memory(words: &BTreeMap<u64, u64>) -> FakeMemory {
    let mut memory = FakeMemory::new();
    let word = |number| words.get(&number).copied().unwrap_or(0);
    let bytes = (0..WORDS).flat_map(|number| word(number).to_le_bytes());
    memory.put(Avma(STACK), bytes.collect());
    memory
}

fn frames(words: &BTreeMap<u64, u64>, tail: Chunk) -> Option<Vec<OtherFrame>> {
    let none = |_| None;
    frames_in(&memory(words), tail, &none, &mut code_at)
}

#[test]
fn frames_are_followed_to_the_bottom() {
    let compiled = OtherFrame {
        shown: Avma(METHOD),
        method: None,
    };
    let interpreted = OtherFrame {
        shown: Avma(0x501),
        method: Some(Avma(0x400)),
    };
    let all = [compiled, compiled, interpreted, compiled];
    // The last frame begins at word 24, behind the arguments.
    assert_eq!(frames(&sound(), chunk(8, 28, 0)), Some(all.to_vec()));
    // A bottom within the interpreted frame's locals: it is the outermost.
    assert_eq!(frames(&sound(), chunk(8, 23, 0)), Some(all[..3].to_vec()));
}

#[test]
fn frames_that_make_no_sense_end_all() {
    let tail = chunk(8, 28, 0);
    for (word, value) in [
        (1, 0x9999),
        (5, 0),
        (8, 0),
        (8, (-3_i64).cast_unsigned()),
        (8, 1000),
        (8, u64::MAX / 2),
        (13, (-1_i64).cast_unsigned()),
        (19, 0),
        (19, 1000),
        (21, 0x9999),
    ] {
        let mut words = sound();
        words.insert(word, value);
        assert_eq!(frames(&words, tail), None, "{word} {value:#x}");
    }
    // A frame that leads beyond the bottom.
    assert_eq!(frames(&sound(), chunk(8, 27, 0)), None);
    // No room for the link; more words than memory has; impossible sizes.
    let odd = |sp: u64, end: u64| Chunk {
        sp: Avma(sp),
        stack: (Avma(STACK), Avma(end)),
        ..tail
    };
    for odd in [
        odd(STACK + 8, STACK + 8 * WORDS),
        odd(STACK + 16, STACK + 8 * WORDS + 8),
        odd(STACK + 16, u64::MAX),
        odd(0, u64::MAX),
    ] {
        assert_eq!(frames(&sound(), odd), None);
    }
}

#[test]
fn a_code_without_frames_ends_all() {
    let mut no_frame = |_| Some((BlobKind::Other, 8));
    let none = |_| None;
    let found = frames_in(&memory(&sound()), chunk(8, 28, 0), &none, &mut no_frame);
    assert_eq!(found, None);
}

#[test]
fn parents_follow_and_a_cycle_ends_all() {
    let chunks = |parents: &[(u64, u64)]| {
        let parents: BTreeMap<u64, u64> = parents.iter().copied().collect();
        let chunk_at = move |at: Avma| Some(chunk(at.0, 28, *parents.get(&at.0)?));
        let tail = chunk_at(Avma(8))?;
        frames_in(&memory(&sound()), tail, &chunk_at, &mut code_at)
    };
    assert_eq!(chunks(&[(8, 16), (16, 0)]).map(|all| all.len()), Some(8));
    assert_eq!(chunks(&[(8, 8)]), None);
    assert_eq!(chunks(&[(8, 16), (16, 24), (24, 8)]), None);
    assert_eq!(chunks(&[(8, 16)]), None, "no chunk there");
    let endless: Vec<_> = (1..1000).map(|at| (8 * at, 8 * at + 8)).collect();
    assert_eq!(chunks(&endless), None);
}

#[test]
fn an_empty_chunk_has_only_its_parents_frames() {
    let empty = Chunk {
        sp: Avma(STACK + 8 * 28),
        ..chunk(8, 28, 16)
    };
    let chunk_at = |at: Avma| Some(chunk(at.0, 28, 0));
    let found = frames_in(&memory(&sound()), empty, &chunk_at, &mut code_at);
    assert_eq!(found.map(|all| all.len()), Some(4));
}

proptest! {
    #[test]
    fn any_memory_is_survived(
        words in prop::collection::btree_map(0..WORDS, prop_oneof![
            Just(METHOD), Just(INTERPRETER), 0..64_u64, any::<u64>(), (-64..0_i64).prop_map(i64::cast_unsigned),
        ], 0..40),
        (sp, bottom) in (any::<u64>(), any::<u64>()),
        is_near in any::<bool>(),
    ) {
        let near = |at: u64| if is_near { STACK + 8 * (at % (WORDS + 1)) } else { at };
        let tail = Chunk { sp: Avma(near(sp)), bottom: Avma(near(bottom)), ..chunk(8, 28, 0) };
        if let Some(found) = frames(&words, tail) {
            prop_assert!(found.len() as u64 <= WORDS);
        }
    }
}
