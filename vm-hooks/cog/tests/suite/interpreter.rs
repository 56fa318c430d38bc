//! The interpreter's parts, and methods that it runs.

use std::sync::Arc;

use crate::common::snapshot;
use proptest::prelude::*;
use vmscope_cog::testing::Snapshot;
use vmscope_cog::{CogAdapter, Vm};
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView};
use vmscope_records::{
    Avma, Constituent, ConstituentKind, InterpreterValue, Method, ProcessKey, Record, TimeNs,
};

fn poll(adapter: &mut CogAdapter, process: &ProcessView, touched: Vec<Avma>) -> Vec<Record> {
    poll_at(7, adapter, process, touched)
}

/// A poll at a time in seconds. The adapter reads an unchanged zone once a second.
fn poll_at(
    seconds: u64,
    adapter: &mut CogAdapter,
    process: &ProcessView,
    touched: Vec<Avma>,
) -> Vec<Record> {
    let now = TimeNs(seconds * 1_000_000_000);
    let poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(move || now));
    let mut poll = poll.with_touched(touched);
    adapter.poll(process, &mut poll).unwrap();
    poll.finish()
}

fn constituents(records: &[Record], kind: &ConstituentKind) -> Vec<Constituent> {
    let all = records.iter().filter_map(|record| match record {
        Record::Constituent(one) if one.kind == *kind => Some((**one).clone()),
        _ => None,
    });
    all.collect()
}

fn symbol(snapshot: &Snapshot, name: &str) -> (u64, u64) {
    let mut symbols = snapshot.symbols.iter();
    let symbol = symbols.find(|symbol| symbol.name == name).unwrap();
    (symbol.address.0, symbol.size)
}

fn adapter(process: &ProcessView) -> CogAdapter {
    CogAdapter::new(Vm::open(process).unwrap().unwrap())
}

#[test]
fn labels_divide_the_interpreter() {
    let snapshot = snapshot("idle");
    let process = snapshot.process();
    let records = poll(&mut adapter(&process), &process, Vec::new());
    let mut parts = constituents(&records, &ConstituentKind::Interpreter);
    parts.sort_by_key(|part| part.start);
    let (start, size) = symbol(&snapshot, "interpret");
    // 506 different labels, and the function's beginning.
    assert_eq!(parts.len(), 507);
    assert_eq!((parts[0].start.0, &*parts[0].name), (start, "interpret"));
    assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
    assert_eq!(parts.last().unwrap().end.0, start + size);
    let at = |offset: u64| {
        let mut parts = parts.iter();
        let part = parts.find(|part| part.start.0 <= start + offset && start + offset < part.end.0);
        part.unwrap().name.clone()
    };
    assert_eq!(at(46352), "pushRcvr: (V3 0)");
    assert_eq!(at(45446 + 3), "pushRcvr: (V3 13)");
    assert_eq!(at(20100), "returnSelf (V3 120, Sista 88)");
    let rules = records.iter().find_map(|record| match record {
        Record::InterpreterRules(rules) => Some(rules),
        _ => None,
    });
    if cfg!(target_arch = "x86_64") {
        let rules = rules.unwrap();
        assert_eq!(rules.ranges, [(Avma(start), Avma(start + size))]);
        let mut sources = rules.sources.iter();
        assert!(sources.all(|source| source.holds == InterpreterValue::Bytecode));
    }
}

/// A method of the snapshot that has generated code, and its object.
fn method_object(snapshot: &Snapshot) -> (Avma, u64) {
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    // `Bench>>fib:` (`busy.expected.txt`).
    let entry = zone.methods.at(Avma(0x563e_6cf0_1c20)).unwrap();
    let header = process.memory().read_u64(entry.method).unwrap();
    (entry.method, 8 * (header >> 56))
}

#[test]
fn sampled_bytecodes_lead_to_their_method() {
    let snapshot = snapshot("busy");
    let (method, bytes) = method_object(&snapshot);
    let (cache, size) = symbol(&snapshot, "methodCache");
    let patch = (Avma(cache + 8 * 77), method.0.to_le_bytes().to_vec());
    assert!(size > 8 * 77);
    let process = snapshot.patched(vec![patch]);
    let mut adapter = adapter(&process);
    let objects = [
        method.0 + 40,
        method.0 + 3,
        0x563e_6d8e_78e0,
        0x10,
        u64::MAX,
    ];
    let records = poll(&mut adapter, &process, objects.map(Avma).to_vec());
    let [bytecodes] = &constituents(&records, &ConstituentKind::Bytecodes)[..] else {
        panic!("{records:?}");
    };
    assert_eq!(bytecodes.name, "Bench>>fib:");
    let expected = (Avma(method.0 + 8), Avma(method.0 + 8 + bytes));
    assert_eq!((bytecodes.start, bytecodes.end), expected);
    let [object] = &constituents(&records, &ConstituentKind::MethodObject)[..] else {
        panic!("{records:?}");
    };
    assert_eq!((object.start, object.method), (method, bytecodes.method));
    let methods: Vec<&Method> = records
        .iter()
        .filter_map(|record| match record {
            Record::Method(method) if Some(method.key) == object.method => Some(&**method),
            _ => None,
        })
        .collect();
    assert_eq!((&*methods[0].class, &*methods[0].name), ("Bench", "fib:"));
    // Once.
    let again = poll_at(9, &mut adapter, &process, vec![Avma(method.0 + 44)]);
    assert_eq!(constituents(&again, &ConstituentKind::Bytecodes), []);
}

#[test]
fn a_full_collection_ends_what_was_told() {
    let snapshot = snapshot("busy");
    let (method, _) = method_object(&snapshot);
    let process = snapshot.process();
    let mut adapter = adapter(&process);
    let records = poll(&mut adapter, &process, vec![method]);
    let told = constituents(&records, &ConstituentKind::MethodObject);
    assert_eq!(told.len(), 1);
    let (at, _) = symbol(&snapshot, "statFullGCs");
    let collected = snapshot.patched(vec![(Avma(at), 50_u64.to_le_bytes().to_vec())]);
    let records = poll_at(9, &mut adapter, &collected, vec![method]);
    let gone = records.iter().filter_map(|record| match record {
        Record::ConstituentGone(gone) => Some(gone.key),
        _ => None,
    });
    let gone: Vec<_> = gone.collect();
    assert!(gone.contains(&told[0].key), "{gone:?}");
    assert_eq!(
        constituents(&records, &ConstituentKind::MethodObject).len(),
        1
    );
}

#[test]
fn a_jump_table_that_is_none_is_not_used() {
    let snapshot = snapshot("idle");
    let (table, _) = symbol(&snapshot, "jumpTable.4");
    let process = snapshot.patched(vec![(Avma(table + 16), vec![0xff; 8])]);
    let records = poll(&mut adapter(&process), &process, Vec::new());
    let parts = constituents(&records, &ConstituentKind::Interpreter);
    assert_eq!(parts.len(), 1);
    let says_so = records.iter().any(|record| match record {
        Record::Limit(limit) => limit.text.contains("parts of its interpreter"),
        _ => false,
    });
    assert!(says_so);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Samples that show anything, in damaged memory.
    #[test]
    fn wrong_values_and_wrong_words_end(
        patches in prop::collection::vec((any::<u8>(), any::<u32>(), any::<u64>()), 0..40),
        values in prop::collection::vec((any::<u8>(), any::<u32>()), 0..200),
    ) {
        let snapshot = snapshot("busy");
        let touched = values.iter().map(|(kind, number)| snapshot.place(*kind, *number));
        let mut touched: Vec<Avma> = touched.collect();
        touched.sort_unstable();
        touched.dedup();
        let patches = patches.into_iter().map(|(kind, number, value)| {
            (snapshot.place(kind, number), value.to_le_bytes().to_vec())
        });
        let process = snapshot.patched(patches.collect());
        if let Ok(Some(vm)) = Vm::open(&process) {
            let mut adapter = CogAdapter::new(vm);
            let clock = Arc::new(|| TimeNs(7));
            let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock).with_touched(touched);
            let result = adapter.poll(&process, &mut poll);
            prop_assert!(result.is_ok() || result.is_err_and(|error| !error.in_full().is_empty()));
        }
    }
}
