use vmscope_records::StackBytes;

use vmscope_process::CopiedStack;

use super::*;

const SP: u64 = 0x7000;

/// A stack with these words at these indices.
fn stack(words: &[(usize, u64)]) -> StackBytes {
    let mut all = [0_u64; 400];
    for (number, word) in words {
        all[*number] = *word;
    }
    StackBytes {
        sp: Avma(SP),
        bytes: all.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

fn frame<'a>(stack: &'a CopiedStack<'a>) -> Frame<'a> {
    Frame {
        registers: FrameRegisters {
            pc: 0,
            sp: SP,
            fp: 0,
        },
        sampled: None,
        stack,
        time: TimeNs(0),
    }
}

#[test]
fn an_entry_lies_behind_the_arguments() {
    let of = |words: &[(usize, u64)], sp| -> Vec<u64> {
        let stack = stack(words);
        entries(&frame(&CopiedStack::of(&stack)), sp).collect()
    };
    // Without arguments, any place with a zero could be the end, but lies elsewhere.
    assert_eq!(of(&[], SP), [SP]);
    // Three words of arguments, and one for the alignment; at first, other numbers are there.
    let three = [(4, 9 << 32), (8, 3 << 32)];
    assert_eq!(of(&three, SP), [SP + 32]);
    assert_eq!(of(&[(4, u64::MAX), (8, u64::MAX)], SP), []);
    // Behind the copied stack, and around the end of memory.
    assert_eq!(of(&[], SP + 8 * 400), []);
    assert_eq!(of(&[], u64::MAX - 15), []);
    assert_eq!(of(&[], SP + 8), []);
}

#[test]
fn a_sample_of_another_carrier_or_task_is_told_apart() {
    let words = [(4, 0x5000), (12, 0x11), (13, 0x22)];
    let carrier = |words: [u64; 2]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let found = |continuation, carrier| Found {
        entry: (SP + 16, SP + 96),
        return_pc: 0x900,
        continuation: Avma(continuation),
        tail: Chunk {
            at: Avma(0),
            sp: Avma(0),
            bottom: Avma(0),
            stack: (Avma(0), Avma(0)),
            parent: Avma(0),
        },
        queue: Queue {
            object: Avma(0),
            base: 0,
            top: 0,
        },
        carrier,
    };
    let stack = stack(&words);
    let is_on = |found: Found| found.is_on(&frame(&CopiedStack::of(&stack)));
    assert!(is_on(found(0x5000, carrier([0x11, 0x22]))));
    assert!(!is_on(found(0x5008, carrier([0x11, 0x22]))));
    assert!(!is_on(found(0x5000, carrier([0x11, 0x23]))));
    assert!(!is_on(found(0x5000, vec![0; 8 * 400])), "behind the copy");
    let elsewhere = |entry| Found {
        entry,
        ..found(0x5000, carrier([0x11, 0x22]))
    };
    assert!(!is_on(elsewhere((u64::MAX, 0))));
    assert!(!is_on(elsewhere((SP + 16, u64::MAX))));
}
