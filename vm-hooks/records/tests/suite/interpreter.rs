//! What a sample's registers and stack show an interpreter's reader, and how long what is
//! told of interpreters is kept.

use crate::common::{end, read, sample, thread};
use proptest::collection::vec;
use proptest::prelude::*;
use vmscope_records::recording::KeepLast;
use vmscope_records::*;

const SECOND: u64 = 1_000_000_000;

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
    /// A word is known exactly if all of its bytes were copied, from any register.
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

    /// Recorded words give the same answers as the stack.
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
    let sum = |base, index| SamplePlace::Sum { base, index }.value(&carried);
    assert_eq!(sum(1, 1), Some(4));
    assert_eq!(sum(1, 2), None);
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

fn process(time: u64, key: u32, parent: Option<u32>) -> Record {
    Record::Process(Process {
        key: ProcessKey(key),
        time: TimeNs(time),
        pid: Pid(key),
        parent: parent.map(ProcessKey),
        name: "target".to_owned(),
    })
}

fn process_end(time: u64, key: u32) -> Record {
    Record::ProcessEnd(ProcessEnd {
        key: ProcessKey(key),
        time: TimeNs(time),
        alive: false,
        cpu: None,
        cpu_user: None,
    })
}

/// Code of process 1.
fn constituent(time: u64) -> Box<Constituent> {
    Box::new(Constituent {
        key: ConstituentKey(5),
        process: ProcessKey(1),
        since: TimeNs(time),
        absent_at: None,
        start: Avma(0x5000),
        end: Avma(0x5800),
        kind: ConstituentKind::Interpreter,
        tier: String::new(),
        name: "handler".to_owned(),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    })
}

fn interpreter(time: u64, process: u32, vm: &str) -> Record {
    Record::InterpreterRules(InterpreterRules {
        process: ProcessKey(process),
        time: TimeNs(time),
        vm: vm.to_owned(),
        ..InterpreterRules::default()
    })
}

/// The newest rules of each VM stay, also those of an ended process whose fork has its code. The
/// rules of other ended processes go.
#[test]
fn interpreters_are_kept_as_long_as_their_code() {
    let mut keep = KeepLast::new(DurationNs(2 * SECOND), usize::MAX);
    for key in [1, 3] {
        keep.put(process(0, key, None));
        keep.put(interpreter(1, key, "vm"));
    }
    keep.put(interpreter(2, 1, "vm"));
    keep.put(interpreter(2, 1, "other"));
    keep.put(Record::Constituent(constituent(1)));
    keep.put(process(SECOND, 2, Some(1)));
    keep.put(process_end(SECOND + 1, 1));
    keep.put(process_end(SECOND + 1, 3));
    keep.put(thread(SECOND, 2));
    for second in 2..20 {
        keep.put(sample(second * SECOND, 2, 0x5000));
        keep.flush().unwrap();
    }
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let records = read(&bytes).unwrap().records;
    let rules = records.iter().filter_map(|record| match record {
        Record::InterpreterRules(rules) => Some((rules.process.0, &*rules.vm, rules.time.0)),
        _ => None,
    });
    assert_eq!(rules.collect::<Vec<_>>(), [(1, "other", 2), (1, "vm", 2)]);
}

/// A repeated constituent record with a map describes the same code as before.
#[test]
fn what_is_told_again_was_there_before() {
    let mut keep = KeepLast::new(DurationNs(100 * SECOND), usize::MAX);
    keep.put(process(0, 1, None));
    let mut again = constituent(SECOND);
    keep.put(Record::Constituent(again.clone()));
    again.since = TimeNs(9 * SECOND);
    again.absent_at = Some(TimeNs(8 * SECOND));
    again.map = PcMap::Boundary {
        rule: BoundaryRule::AtStart,
        exactness: Exactness::Exact,
        entries: vec![(0, BytecodePc(0))],
    };
    keep.put(Record::Constituent(again.clone()));
    keep.put(thread(SECOND, 2));
    keep.put(sample(2 * SECOND, 2, 0x5000));
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let records = read(&bytes).unwrap().records;
    let told = records.iter().find_map(|record| match record {
        Record::Constituent(told) => Some(told),
        _ => None,
    });
    let told = told.unwrap();
    assert_eq!((told.since, told.absent_at), (TimeNs(SECOND), None));
    assert_eq!(told.map, again.map);
}
