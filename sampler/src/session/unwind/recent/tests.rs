use proptest::prelude::*;

use super::*;

const THREAD: Tid = Tid(7);

/// A stack of frames of three words each: a caller's address, and what a rule may read. `words` are the
/// outermost frame's first; the innermost frame's words have the lowest addresses.
fn stack(words: &[[u64; 3]]) -> StackBytes {
    let top = 0x8000_0000_u64;
    let bytes = words.iter().rev().flatten();
    StackBytes {
        sp: Avma(top - 24 * words.len() as u64),
        bytes: bytes.flat_map(|word| word.to_le_bytes()).collect(),
    }
}

fn frame(stack: &StackBytes, sp: u64) -> Option<(FrameRegisters, u64)> {
    let [pc, fp, value] = [0, 8, 16].map(|at| stack.word(Avma(sp + at)));
    let registers = FrameRegisters {
        pc: pc?,
        sp,
        fp: fp?,
    };
    Some((registers, value?))
}

/// Walks a stack; returns the chain, the method objects, and the number of frames that were read.
fn walked(recent: &mut Recent, stack: &StackBytes) -> (Vec<Avma>, Vec<Avma>, usize) {
    let mut walk = recent.begin(THREAD, (1, 0), stack);
    let (mut chain, mut values, mut read) = (Vec::new(), Vec::new(), 0);
    let mut sp = stack.sp.0;
    while let Some((registers, value)) = frame(stack, sp) {
        let own = chain.len();
        chain.push(Avma(registers.pc));
        if walk.meets(registers, own, (&mut chain, &mut values), 1000) {
            break;
        }
        read += 1;
        // A frame with another place to be shown, and with frames in between.
        if value % 3 == 0 {
            chain[own] = Avma(value);
            values.push(Avma(value));
        }
        if value % 5 == 0 {
            chain.push(Avma(value + 1));
        }
        sp += 24;
    }
    recent.end(THREAD, walk, &chain, &values);
    recent.keep(THREAD, stack.clone());
    (chain, values, read)
}

fn words(count: u64) -> Vec<[u64; 3]> {
    (0..count).map(|n| [n + 1, 100 + n, n]).collect()
}

#[test]
fn a_deep_stack_is_read_up_to_its_unchanged_part() {
    let mut recent = Recent::default();
    let mut all = words(100);
    assert_eq!(walked(&mut recent, &stack(&all)).2, 100);
    all[95][0] = 0xabc;
    let read = walked(&mut recent, &stack(&all)).2;
    assert!((5..10).contains(&read), "{read}");
    // The outermost frame has changed.
    all[0][2] = 7;
    assert_eq!(walked(&mut recent, &stack(&all)).2, 100);
}

#[test]
fn walks_by_other_memory_and_short_walks_are_not_remembered() {
    let mut recent = Recent::default();
    let few = stack(&words(10));
    assert_eq!(walked(&mut recent, &few).2, 10);
    assert_eq!(walked(&mut recent, &few).2, 10);
    let many = stack(&words(50));
    let mut walk = recent.begin(THREAD, (1, 0), &many);
    walk.needs_memory = true;
    recent.end(THREAD, walk, &[Avma(1); 50], &[]);
    assert_eq!(walked(&mut recent, &many).2, 50);
    assert!(walked(&mut recent, &many).2 < 5);
    // Other code or rules.
    let walk = recent.begin(THREAD, (1, 1), &many);
    assert_eq!(walk.equal_from, u64::MAX);
}

#[test]
fn a_copy_without_the_outermost_frame_is_of_no_use() {
    let mut recent = Recent::default();
    let all = words(60);
    walked(&mut recent, &stack(&all));
    let mut cut = stack(&all);
    cut.bytes.truncate(cut.bytes.len() - 24);
    assert_eq!(walked(&mut recent, &cut).2, 59);
}

proptest! {
    /// Walks that reuse others find what walks by themselves find.
    #[test]
    fn walks_are_what_they_are_alone(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..3_usize, 0..60_u64, 15..80_u64), 1..30),
    ) {
        let mut recent = Recent::default();
        let mut all = words(80);
        for (at, word, value, count) in changes {
            all.resize(usize::try_from(count).unwrap(), [9, 9, 9]);
            at.get_mut(&mut all)[word] = value;
            let now = stack(&all);
            let (chain, values, _) = walked(&mut recent, &now);
            let alone = walked(&mut Recent::default(), &now);
            prop_assert_eq!((chain, values), (alone.0, alone.1));
        }
    }
}
