use super::*;
use vmscope_records::{Avma, CpuMode, Mark, Sample, ThreadKey};

fn sample(time: u64) -> Record {
    Record::Sample(Sample {
        time: TimeNs(time),
        thread: ThreadKey(1),
        pc: Avma(1),
        mode: CpuMode::User,
        detail: None,
    })
}

fn mark(time: u64) -> Record {
    Record::Mark(Mark {
        time: TimeNs(time),
        text: time.to_string(),
    })
}

fn all(tap: &Tap) -> Vec<Tapped> {
    std::iter::from_fn(|| tap.try_take().ok().flatten()).collect()
}

#[test]
fn what_does_not_fit_is_held_back_but_for_samples_which_are_counted() {
    let (mut source, tap) = tap(2);
    let modules = Modules::new();
    for round in 0..10 {
        source.record(&[sample(round), mark(round), sample(round)], &modules);
        source.adapters_complete(TimeNs(round));
        source.send();
    }
    assert_eq!(all(&tap).len(), 2, "as many as there was room for");
    source.record(&[sample(10)], &modules);
    source.send();
    source.end();
    let batches = all(&tap);
    let records: Vec<&Record> = batches.iter().flat_map(|b| &b.records).collect();
    let marks = records.iter().filter(|r| matches!(r, Record::Mark(_)));
    assert_eq!(marks.count(), 8, "none is lost, each comes once");
    let samples = records.iter().filter(|r| matches!(r, Record::Sample(_)));
    assert_eq!(samples.count(), 1);
    let lost: Vec<&Lost> = (records.iter())
        .filter_map(|record| match record {
            Record::Lost(lost) => Some(lost),
            _ => None,
        })
        .collect();
    let [lost] = lost.as_slice() else {
        panic!("{lost:?}")
    };
    assert_eq!((lost.count, lost.from, lost.to), (16, TimeNs(2), TimeNs(9)));
    assert_eq!(batches.last().unwrap().complete_until, TimeNs(u64::MAX));
}

#[test]
fn what_is_held_back_has_a_bound_in_bytes() {
    let (mut source, tap) = tap(1);
    let modules = Modules::new();
    source.record(&[mark(0)], &modules);
    source.send();
    let large = Record::Symbols(vmscope_records::Symbols {
        owner: vmscope_records::SymbolOwner::Kernel,
        functions: Vec::new(),
        note: "x".repeat(MAX_HELD_BACK / 2),
    });
    for _ in 0..3 {
        source.record(std::slice::from_ref(&large), &modules);
        source.send();
        source.send();
    }
    assert_eq!((source.records.len(), source.dropped), (1, 2));
    source.record(&[mark(1), sample(2)], &modules);
    source.send();
    assert_eq!(
        (source.records.len(), source.lost),
        (2, 1),
        "small ones still fit"
    );
    assert_eq!(all(&tap).len(), 1);
    source.send();
    assert_eq!((source.held, source.held_bytes), (0, 0));
    assert_eq!(all(&tap)[0].records.len(), 3, "with what was lost");
}

#[test]
fn a_look_holds_up_the_story_and_one_that_hangs_does_so_for_a_while_only() {
    let (mut source, tap) = tap(100);
    let modules = Modules::new();
    let second = 1_000_000_000;
    let told = |source: &mut TapSource| {
        source.send();
        all(&tap).last().map(|tapped| tapped.complete_until.0)
    };
    source.record(&[sample(second)], &modules);
    assert_eq!(told(&mut source), Some(0), "nobody has looked");
    source.adapters_complete(TimeNs(second / 2));
    assert_eq!(told(&mut source), Some(second / 2));
    assert_eq!(told(&mut source), None, "nothing new");
    source.adapters_complete(TimeNs(5 * second));
    assert_eq!(told(&mut source), Some(second), "no further than samples");
    source.record(&[sample(20 * second)], &modules);
    assert_eq!(told(&mut source), Some(20 * second - MAX_BEHIND.0));
}

#[test]
fn an_adapter_that_begins_later_holds_up_what_comes_then() {
    let (mut source, tap) = tap(100);
    let modules = Modules::new();
    let told = |source: &mut TapSource| {
        source.send();
        all(&tap).last().map(|tapped| tapped.complete_until.0)
    };
    // Nobody reads anything.
    source.adapters_complete(TimeNs(u64::MAX));
    source.record(&[sample(100)], &modules);
    assert_eq!(told(&mut source), Some(100));
    source.adapters_complete(TimeNs(50));
    source.record(&[sample(200)], &modules);
    assert_eq!(told(&mut source), Some(100), "it does not fall");
    source.adapters_complete(TimeNs(150));
    assert_eq!(told(&mut source), Some(150));
}

#[test]
fn without_a_view_nothing_is_kept() {
    let (mut source, tap) = tap(4);
    drop(tap);
    let modules = Modules::new();
    source.record(&[mark(1)], &modules);
    source.send();
    source.record(&[mark(2)], &modules);
    assert!(source.records.is_empty());
    source.end();
}
