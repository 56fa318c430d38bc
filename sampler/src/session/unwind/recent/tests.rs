use proptest::prelude::*;
use vmscope_records::{ChainEnd, StackBytes};

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

/// Registers of a caller, as its callee's rule reads them.
fn frame(stack: &CopiedStack<'_>, sp: u64) -> Result<FrameRegisters, ChainEnd> {
    Ok(FrameRegisters {
        pc: stack.read(sp)?,
        sp,
        fp: stack.read(sp + 8)?,
    })
}

/// Walks a stack; returns the chain, the method objects, and the number of frames that were walked.
fn walked(recent: &mut Recent, stack: &StackBytes) -> (Vec<Avma>, Vec<Avma>, usize) {
    let copied = CopiedStack::of(stack);
    let mut walk = recent.begin(THREAD, (1, 0));
    let (mut chain, mut values, mut frames) = (Vec::new(), Vec::new(), 0);
    let mut next = frame(&copied, stack.sp.0);
    while let Ok(registers) = next {
        let met = Met {
            registers,
            own: chain.len(),
            values: values.len(),
            words: copied.words_read(),
        };
        chain.push(Avma(registers.pc));
        if walk.meets(met, (&mut chain, &mut values), &copied, 1000) {
            break;
        }
        frames += 1;
        let value = copied.read(registers.sp + 16).expect("a whole frame");
        // A frame with another place to be shown, and with frames in between.
        if value % 3 == 0 {
            chain[met.own] = Avma(value);
            values.push(Avma(value));
        }
        if value % 5 == 0 {
            chain.push(Avma(value + 1));
        }
        next = frame(&copied, registers.sp + 24);
    }
    recent.end(THREAD, walk, (&chain, &values), &copied.into_read());
    (chain, values, frames)
}

fn words(count: u64) -> Vec<[u64; 3]> {
    (0..count).map(|n| [n + 1, 100 + n, n]).collect()
}

#[test]
fn a_deep_stack_is_walked_up_to_its_unchanged_part() {
    let mut recent = Recent::default();
    let mut all = words(100);
    assert_eq!(walked(&mut recent, &stack(&all)).2, 100);
    assert_eq!(walked(&mut recent, &stack(&all)).2, 0);
    all[95][0] = 0xabc;
    assert_eq!(walked(&mut recent, &stack(&all)).2, 5);
    // The caller of the frame above has changed, and so have all its callees' callers.
    all[40][1] = 7;
    assert_eq!(walked(&mut recent, &stack(&all)).2, 60);
    assert_eq!(walked(&mut recent, &stack(&all)).2, 0);
}

#[test]
fn walks_by_other_memory_and_short_walks_are_not_remembered() {
    let mut recent = Recent::default();
    let few = stack(&words(LEAST as u64 - 1));
    assert_eq!(walked(&mut recent, &few).2, LEAST - 1);
    assert_eq!(walked(&mut recent, &few).2, LEAST - 1);
    let many = stack(&words(50));
    walked(&mut recent, &many);
    let mut walk = recent.begin(THREAD, (1, 0));
    walk.needs_memory = true;
    recent.end(THREAD, walk, (&[], &[]), &[]);
    assert_eq!(walked(&mut recent, &many).2, 50);
    // A walk without an end does not change what is known.
    let walk = recent.begin(THREAD, (1, 0));
    recent.give_up(THREAD, walk);
    assert_eq!(walked(&mut recent, &many).2, 0);
    // Other code or rules.
    let walk = recent.begin(THREAD, (1, 1));
    recent.give_up(THREAD, walk);
    assert_eq!(walked(&mut recent, &many).2, 50);
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
