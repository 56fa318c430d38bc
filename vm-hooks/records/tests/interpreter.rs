//! What a sample's registers and stack show an interpreter's reader.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what failed by panicking"
)]

use proptest::collection::vec;
use proptest::prelude::*;
use vmscope_records::*;

fn detail(values: &[u64], sp: u64, bytes: Vec<u8>, words: Vec<Word>) -> SampleDetail {
    SampleDetail {
        registers: Some(Registers {
            arch: Arch::of_this_machine(),
            mask: (1 << values.len()) - 1,
            values: values.to_vec(),
        }),
        stack: Some(StackBytes {
            sp: Avma(sp),
            bytes,
        }),
        words,
        chain: None,
    }
}

proptest! {
    /// A word is had exactly where all of its bytes were copied, from any register.
    #[test]
    fn a_word_of_the_stack_is_what_was_copied(
        bytes in vec(any::<u8>(), 0..64),
        sp in prop_oneof![0..=64_u64, any::<u64>(), u64::MAX - 64..],
        base in prop_oneof![0..=128_u64, any::<u64>(), u64::MAX - 64..],
        near in -80..80_i64,
        offset in prop_oneof![any::<i32>(), -80..80_i32],
        is_near in any::<bool>(),
    ) {
        let base = if is_near { sp.wrapping_add_signed(near) } else { base };
        let carried = detail(&[base], sp, bytes.clone(), Vec::new());
        let place = SamplePlace::Stack { base: 0, offset };
        let at = i128::from(base) + i128::from(offset) - i128::from(sp);
        let expected = usize::try_from(at).ok().filter(|_| {
            u64::try_from(i128::from(base) + i128::from(offset)).is_ok()
        });
        let expected = expected.and_then(|at| bytes.get(at..at.checked_add(8)?));
        let expected = expected.map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        prop_assert_eq!(place.value(&carried), expected);
    }

    /// What is recorded instead of the stack answers the same.
    #[test]
    fn words_answer_for_the_stack_that_they_were_taken_from(
        bytes in vec(any::<u8>(), 0..64),
        offset in -80..80_i32,
    ) {
        let place = SamplePlace::Stack { base: 0, offset };
        let whole = detail(&[1000], 1000, bytes, Vec::new());
        let word = place.address(&whole).zip(place.value(&whole));
        let words = word.map(|(at, value)| Word { at, value }).into_iter().collect();
        let kept = SampleDetail { stack: None, words, ..whole.clone() };
        prop_assert_eq!(place.value(&kept), place.value(&whole));
    }
}

#[test]
fn what_was_not_taken_has_no_value() {
    let carried = detail(&[1, 2], 0, vec![0; 16], Vec::new());
    assert_eq!(SamplePlace::Register(1).value(&carried), Some(2));
    assert_eq!(SamplePlace::Register(2).value(&carried), None);
    assert_eq!(SamplePlace::Register(64).value(&carried), None);
    let below = SamplePlace::Stack {
        base: 0,
        offset: -2,
    };
    assert_eq!(below.address(&carried), None, "below address 0");
    let nothing = SampleDetail::default();
    assert_eq!(SamplePlace::Register(0).value(&nothing), None);
    assert_eq!(
        SamplePlace::Stack { base: 0, offset: 0 }.value(&nothing),
        None
    );
}

#[test]
fn ranges_have_a_first_address_and_one_after_the_last() {
    let rules = InterpreterRules {
        ranges: vec![(Avma(10), Avma(20)), (Avma(40), Avma(41))],
        ..InterpreterRules::default()
    };
    let covered: Vec<u64> = (0..50).filter(|&pc| rules.covers(Avma(pc))).collect();
    assert_eq!(covered, (10..20).chain(40..41).collect::<Vec<_>>());
}
