use proptest::prelude::*;
use vmscope_process::testing::FakeMemory;
use vmscope_records::{ChainEnd, StackBytes};

use super::*;

const THREAD: Tid = Tid(7);

const RULES: Rules = Rules {
    vms: 1,
    version: (1, 0),
};

/// Those of other code.
const OTHER_RULES: Rules = Rules {
    vms: 1,
    version: (1, 1),
};

/// End of the stack.
const TOP: u64 = 0x8000_0000;

/// A stack of frames of three words each, and a buffer: a caller's address, and what a rule may read, of which the upper half
/// is the number of words in the buffer. `words` are the outermost frame's first; the innermost frame's words have the lowest
/// addresses.
fn stack(words: &[[u64; 3]]) -> StackBytes {
    let frames = words.iter().rev();
    let words = frames.flat_map(|frame| {
        let buffer = std::iter::repeat_n(0xbbbb, usize::try_from(frame[2] >> 32).unwrap());
        frame.iter().copied().chain(buffer)
    });
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    StackBytes {
        sp: Avma(TOP - bytes.len() as u64),
        bytes,
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
    let (chain, values, frames, _) = walked_in(recent, stack, None);
    (chain, values, frames)
}

/// Likewise, in a process that has `now` as its stack; returns also whether callers are late.
fn walked_in(
    recent: &mut Recent,
    stack: &StackBytes,
    now: Option<&StackBytes>,
) -> (Vec<Avma>, Vec<Avma>, usize, bool) {
    let memory = now.map(|now| {
        let mut memory = FakeMemory::new();
        memory.put(now.sp, now.bytes.clone());
        memory
    });
    let copied = CopiedStack::of(stack);
    let copied = match &memory {
        Some(memory) => copied.with_memory(memory),
        None => copied,
    };
    let mut walk = recent.begin(THREAD, RULES);
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
        let (buffer, value) = (value >> 32, value & u64::from(u32::MAX));
        // A frame with another place to be shown, and with frames in between.
        if value % 3 == 0 {
            chain[met.own] = Avma(value);
            values.push(Avma(value));
        }
        if value % 5 == 0 {
            chain.push(Avma(value + 1));
        }
        next = frame(&copied, registers.sp + 24 + 8 * buffer);
    }
    let is_late = walk.is_late(&copied);
    let (found, read) = ((&*chain, &*values), copied.into_read());
    match next {
        Err(ChainEnd::Stack) if !is_whole(now.unwrap_or(stack)) => recent.give_up(THREAD, walk),
        _ => recent.end(THREAD, walk, found, (&read, stack), is_late),
    }
    (chain, values, frames, is_late)
}

fn is_whole(stack: &StackBytes) -> bool {
    stack.sp.0 + stack.bytes.len() as u64 == TOP
}

/// A copy of the innermost bytes alone.
fn cut(mut stack: StackBytes, bytes: usize) -> StackBytes {
    stack.bytes.truncate(bytes);
    stack
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
    let mut walk = recent.begin(THREAD, RULES);
    walk.needs_memory = true;
    recent.end(THREAD, walk, (&[], &[]), (&[], &many), false);
    assert_eq!(walked(&mut recent, &many).2, 50);
    // A walk without an end does not change what is known.
    let walk = recent.begin(THREAD, RULES);
    recent.give_up(THREAD, walk);
    assert_eq!(walked(&mut recent, &many).2, 0);
    // Other code or rules.
    let walk = recent.begin(THREAD, OTHER_RULES);
    recent.give_up(THREAD, walk);
    let mut walk = recent.begin(THREAD, OTHER_RULES);
    let copied = CopiedStack::of(&many);
    let registers = frame(&copied, many.sp.0).unwrap();
    let met = Met {
        registers,
        own: 0,
        values: 0,
        words: copied.words_read(),
    };
    let found = (&mut Vec::new(), &mut Vec::new());
    assert!(!walk.meets(met, found, &copied, 1000));
}

#[test]
fn a_copy_that_ends_too_early_goes_on_in_the_walk_before() {
    let mut recent = Recent::default();
    let mut all = words(60);
    let whole = walked(&mut recent, &stack(&all));
    assert_eq!(whole.2, 60);
    let short = |all: &[[u64; 3]], frames: usize| cut(stack(all), frames * 24);
    let (chain, values, frames) = walked(&mut recent, &short(&all, 20));
    assert_eq!((chain, values, frames), (whole.0, whole.1, 0));
    // Deeper, further and further from the thread's first frame.
    for now in 1..100 {
        all.push([1000 + now, now, 3 * now]);
        let (chain, values, frames) = walked(&mut recent, &short(&all, 20));
        let alone = walked(&mut Recent::default(), &stack(&all));
        assert_eq!((chain, values, frames), (alone.0, alone.1, 1));
    }
}

#[test]
fn equal_callers_alone_do_not_show_the_same_activation() {
    let mut recent = Recent::default();
    let mut all = words(60);
    walked(&mut recent, &stack(&all));
    // 12 frames have 288 bytes; of 10, too few are left.
    assert_eq!(walked(&mut recent, &cut(stack(&all), 12 * 24)).2, 0);
    assert_eq!(walked(&mut recent, &cut(stack(&all), 10 * 24)).2, 10);
    // A local variable of the outermost copied frame differs; its caller is the same.
    all[60 - 12][2] += 15;
    assert_eq!(walked(&mut recent, &cut(stack(&all), 12 * 24)).2, 12);
}

/// The copy ends in the buffer of a frame, whose callees are others than in the last walk.
#[test]
fn the_process_tells_callers_beyond_the_copy_that_it_still_has() {
    let mut recent = Recent::default();
    let mut all = words(60);
    all[49][2] |= 100 << 32;
    walked(&mut recent, &stack(&all));
    let call_others = |all: &mut [[u64; 3]]| {
        for frame in &mut all[50..] {
            frame[0] += 0x1000;
        }
        cut(stack(all), 11 * 24 + 400)
    };
    let short = call_others(&mut all);
    let now = stack(&all);
    assert_eq!(
        walked(&mut recent, &short).2,
        11,
        "nothing else shows the callers"
    );
    let (chain, _, frames, is_late) = walked_in(&mut recent, &short, Some(&now));
    let alone = walked(&mut Recent::default(), &now);
    assert_eq!((&chain, frames, is_late), (&alone.0, 10, false));
    // Another caller by then.
    let short = call_others(&mut all);
    all[20][0] = 0xabc;
    let mut now = stack(&all);
    let (.., frames, is_late) = walked_in(&mut recent, &short, Some(&now));
    assert_eq!((frames, is_late), (60, true));
    // The thread has returned from the copied frames.
    let last = short.bytes.len() - 1;
    now.bytes[last] += 1;
    assert_eq!(walked_in(&mut Recent::default(), &short, Some(&now)).2, 11);
}

#[test]
fn callers_stay_late_until_a_copy_has_them() {
    let mut recent = Recent::default();
    let all = words(60);
    let (short, now) = (cut(stack(&all), 20 * 24), Some(stack(&all)));
    let whole = walked(&mut Recent::default(), &stack(&all));
    for frames in [60, 0, 0] {
        let found = walked_in(&mut recent, &short, now.as_ref());
        assert_eq!(found, (whole.0.clone(), whole.1.clone(), frames, true));
    }
    assert!(!walked_in(&mut recent, &stack(&all), now.as_ref()).3);
    assert!(!walked_in(&mut recent, &short, now.as_ref()).3);
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

    /// Copies of deep stacks have the callers of whole copies, or only the first of these.
    #[test]
    fn short_copies_lead_to_the_same_callers(
        steps in prop::collection::vec((0..40_usize, 0..40_u64, 1..4_u64), 1..60),
    ) {
        let mut recent = Recent::default();
        let mut all = words(20);
        let mut activations = 0;
        for (returns, calls, callers) in steps {
            all.truncate(all.len().saturating_sub(returns));
            for call in 0..calls {
                activations += 1;
                all.push([1 + call % callers, 7, activations]);
            }
            let (chain, values, _) = walked(&mut recent, &cut(stack(&all), 30 * 24));
            let alone = walked(&mut Recent::default(), &stack(&all));
            prop_assert!(alone.0.starts_with(&chain) && alone.1.starts_with(&values));
            prop_assert!(all.len() > 30 || chain == alone.0);
        }
    }
}
