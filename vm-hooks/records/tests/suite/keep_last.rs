//! Keeping only the newest: bounded for hours, and complete in what it saves.

use crate::common::{Everything, end, read, sample, thread};
use proptest::prelude::*;
use std::collections::HashSet;
use vmscope_records::recording::KeepLast;
use vmscope_records::*;

const SECOND: u64 = 1_000_000_000;
const PERIOD: u64 = 713_927;

fn mapping(time: u64, process: u32, start: u64, end: u64, module: u32) -> Record {
    Record::Mapping(Mapping {
        process: ProcessKey(process),
        time: TimeNs(time),
        start: Avma(start),
        end: Avma(end),
        offset: FileOffset(0),
        module: Some(ModuleKey(module)),
        name: String::new(),
        executable: true,
    })
}

fn module(time: u64, key: u32) -> Record {
    Record::Module(Module {
        key: ModuleKey(key),
        time: TimeNs(time),
        path: format!("/tmp/made-by-the-target-{key}.so"),
        build_id: None,
        device: 1,
        inode: u64::from(key),
        size: 4096,
        main: false,
        state: ModuleState::Opened,
    })
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

fn thread_end(time: u64, key: u32) -> Record {
    Record::ThreadEnd(ThreadEnd {
        key: ThreadKey(key),
        time: TimeNs(time),
        alive: false,
        cpu: DurationNs(PERIOD),
        cpu_measured: true,
        cpu_user: None,
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

fn constituent(time: u64, key: u64) -> [Record; 2] {
    let method = Record::Method(Box::new(Method {
        key: MethodKey(key),
        time: TimeNs(time),
        name: format!("method {key}"),
        ..Method::default()
    }));
    let constituent = Record::Constituent(Box::new(Constituent {
        key: ConstituentKey(key),
        process: ProcessKey(1),
        since: TimeNs(time),
        absent_at: None,
        start: Avma(0x1000 * key),
        end: Avma(0x1000 * key + 0x800),
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: format!("method {key}"),
        method: Some(MethodKey(key)),
        cases: Vec::new(),
        map: PcMap::None,
    }));
    [method, constituent]
}

fn gone(time: u64, key: u64) -> Record {
    Record::ConstituentGone(ConstituentGone {
        key: ConstituentKey(key),
        last_seen: TimeNs(time),
        time: TimeNs(time),
        reason: GoneReason::Recycled,
    })
}

fn counter(time: u64, name: &str) -> Record {
    Record::Counter(Counter {
        process: ProcessKey(1),
        time: TimeNs(time),
        section: "GCs".to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        meaning: CounterMeaning::Total,
        value: 1.0,
    })
}

/// What a target with everything in flux tells in its `second`: threads that live one
/// second, processes that come and go without a word of their threads' ends, modules,
/// mappings that overlap in part, code that is recompiled and moved, counters,
/// collections, lifetimes, limits that all differ.
fn busy_second(second: u32, keep: &mut KeepLast) {
    let start = u64::from(second) * SECOND;
    let key = second + 10;
    let long = u64::from(key);
    keep.put(thread(start, key));
    keep.put(process(start, key, Some(1)));
    keep.put(Record::Thread(Thread {
        key: ThreadKey(1_000_000 + key),
        process: ProcessKey(key),
        tid: Tid(5),
        time: TimeNs(start),
        name: String::new(),
        role: ThreadRole::Other,
        cpu_before: DurationNs(0),
    }));
    keep.put(Record::Fact(Fact {
        process: ProcessKey(key),
        time: TimeNs(start),
        name: "collector".to_owned(),
        value: "none".to_owned(),
    }));
    keep.put(module(start, key));
    // Each mapping covers half of the previous mapping; none is covered wholly.
    keep.put(mapping(start, 1, 0x1000 * long, 0x1000 * (long + 2), key));
    keep.put(Record::Unmapping(Unmapping {
        process: ProcessKey(1),
        time: TimeNs(start),
        start: Avma(0x1000 * long),
        end: Avma(0x1000 * (long + 1)),
    }));
    constituent(start, long)
        .into_iter()
        .for_each(|record| keep.put(record));
    keep.put(gone(start, long - 5));
    keep.put(Record::ConstituentMoved(ConstituentMoved {
        key: ConstituentKey(5),
        last_seen: TimeNs(start),
        time: TimeNs(start),
        to: Avma(long << 20),
    }));
    keep.put(Record::Collection(Box::new(Collection {
        key: CollectionKey(long),
        process: ProcessKey(1),
        time: TimeNs(start),
        ..Collection::default()
    })));
    for polls in 0..4 {
        keep.put(Record::Compilation(Box::new(Compilation {
            process: ProcessKey(1),
            thread: ThreadKey(1),
            id: long,
            first_seen: TimeNs(start),
            last_seen: TimeNs(start + polls),
            ..Compilation::default()
        })));
    }
    let site = SiteKey(u64::from(second) % 50);
    if second < 50 {
        keep.put(Record::AllocationSite(Box::new(AllocationSite {
            key: site,
            process: ProcessKey(1),
            frames: vec![(MethodKey(long), BytecodePc(3))],
        })));
    }
    let mut births = Births::new(ProcessKey(1), Some(ThreadKey(1)));
    births.push(Birth {
        object: ObjectKey(long),
        time: TimeNs(start),
        class: ClassKey(1),
        bytes: 16,
        site: Some(site),
        weight: 1.0,
        allocated_bytes: None,
    });
    keep.put(Record::Births(Box::new(births)));
    keep.put(Record::Limit(Limit {
        time: TimeNs(start),
        kind: LimitKind::NotSampled,
        text: format!("thread {key} could not be sampled"),
        remedy: String::new(),
    }));
    for tick in 0..SECOND / PERIOD {
        let time = start + tick * PERIOD;
        let thread = if tick % 2 == 0 { 1 } else { key };
        keep.put(sample(time, thread, 0x1000 * long + tick % 50));
    }
    let stop = start + SECOND - 1;
    keep.put(counter(stop, "scavenges"));
    for thread in [1, key] {
        keep.put(Record::ThreadCpu(ThreadCpu {
            key: ThreadKey(thread),
            time: TimeNs(stop),
            cpu: DurationNs(PERIOD * long),
            cpu_user: None,
        }));
    }
    keep.put(thread_end(stop, key));
    keep.put(Record::ProcessEnd(ProcessEnd {
        key: ProcessKey(key),
        time: TimeNs(stop),
        alive: false,
        cpu: None,
        cpu_user: None,
    }));
    keep.flush().unwrap();
}

/// Whatever samples and code in the file refer to is in the file.
fn assert_complete(saved: &Everything) {
    let mut threads = HashSet::new();
    let mut modules = HashSet::new();
    let mut methods = HashSet::new();
    let mut processes = HashSet::new();
    let mut sites = HashSet::new();
    for record in &saved.records {
        match record {
            Record::Thread(thread) => _ = threads.insert(thread.key),
            Record::Module(module) => _ = modules.insert(module.key),
            Record::Method(method) => _ = methods.insert(method.key),
            Record::Process(process) => _ = processes.insert(process.key),
            Record::AllocationSite(site) => _ = sites.insert(site.key),
            _ => {}
        }
    }
    for record in &saved.records {
        match record {
            Record::Sample(sample) => {
                assert!(threads.contains(&sample.thread), "{sample:?} has no thread");
            }
            Record::Mapping(mapping) => {
                assert!(
                    mapping.module.is_none_or(|key| modules.contains(&key)),
                    "{mapping:?}"
                );
            }
            Record::Constituent(code) => {
                assert!(
                    code.method.is_none_or(|key| methods.contains(&key)),
                    "{code:?}"
                );
            }
            Record::Process(process) => {
                assert!(
                    process.parent.is_none_or(|key| processes.contains(&key)),
                    "{process:?}"
                );
            }
            Record::AllocationSite(site) => {
                assert!(site.frames.iter().all(|(key, _)| methods.contains(key)));
            }
            Record::Births(births) => {
                let mut keys = births.iter().filter_map(|birth| birth.site);
                assert!(keys.all(|key| sites.contains(&key)));
            }
            _ => {}
        }
    }
}

#[test]
fn hours_take_no_more_memory_than_minutes() {
    let window = 30;
    let mut keep = KeepLast::new(DurationNs(window * SECOND), 64 << 20);
    keep.put(process(0, 1, None));
    keep.put(thread(0, 1));
    constituent(0, 5)
        .into_iter()
        .for_each(|record| keep.put(record));
    let mut after_minutes = 0;
    for second in 0..3 * 3600 {
        busy_second(second, &mut keep);
        if second == 1200 {
            after_minutes = keep.state_records();
        }
    }
    // Methods are swept in batches of up to 4096, limits kept up to 256.
    let after_hours = keep.state_records();
    assert!(after_minutes < 7_000, "{after_minutes}");
    assert!(
        after_hours < 7_000,
        "{after_minutes} after 20 minutes, {after_hours} after 3 hours"
    );

    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    assert_complete(&saved);
    let newest = 3 * 3600 * SECOND;
    let oldest = saved.samples().map(|sample| sample.time.0).min().unwrap();
    // A chunk covers a second, so the window's edge is a second wide.
    let kept = (newest - oldest) / SECOND;
    assert!((window..=window + 1).contains(&kept), "{kept} s");
    let expected = (window..=window + 1).map(|seconds| seconds * (SECOND / PERIOD));
    let count = saved.samples().count() as u64;
    assert!(
        expected.clone().min() <= Some(count) && Some(count) <= expected.max(),
        "{count}"
    );
    // The last value before the window stays, for differences in the window.
    let counters: Vec<u64> = (saved.records.iter())
        .filter_map(|record| match record {
            Record::Counter(counter) => Some(counter.time.0),
            _ => None,
        })
        .collect();
    assert!(counters.iter().any(|&time| time < oldest), "{counters:?}");
    // Permanent code lies at its last place before the window.
    let moves = |record: &&Record| matches!(record, Record::ConstituentMoved(_));
    let moves = saved.records.iter().filter(moves).count() as u64;
    assert!(moves <= window + 3, "{moves}");
    let limit = |kind| {
        let of_kind = move |r: &&Record| matches!(r, Record::Limit(limit) if limit.kind == kind);
        saved.records.iter().filter(of_kind).count()
    };
    assert_eq!(
        (
            limit(LimitKind::OnlyNewestKept),
            limit(LimitKind::NotSampled)
        ),
        (1, 256)
    );

    // It goes on: the second file is later, and complete as well.
    for second in 3 * 3600..3 * 3600 + 10 {
        busy_second(second, &mut keep);
    }
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Interrupted)).unwrap();
    let second = read(&bytes).unwrap();
    assert_complete(&second);
    let later = second.samples().map(|sample| sample.time.0).min().unwrap();
    assert_eq!(later - oldest, 10 * SECOND);
    assert_eq!(second.end().unwrap().reason, EndReason::Interrupted);
}

#[test]
fn a_child_keeps_what_its_parent_unmapped_after_the_fork() {
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 20);
    keep.put(process(0, 1, None));
    keep.put(module(0, 3));
    keep.put(mapping(0, 1, 0x1000, 0x2000, 3));
    keep.put(process(SECOND, 2, Some(1)));
    keep.put(Record::ProcessEnd(ProcessEnd {
        key: ProcessKey(1),
        time: TimeNs(2 * SECOND),
        alive: false,
        cpu: None,
        cpu_user: None,
    }));
    keep.put(thread(100 * SECOND, 1));
    keep.flush().unwrap();
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    assert_complete(&saved);
    assert!(
        saved
            .records
            .contains(&mapping(SECOND, 2, 0x1000, 0x2000, 3))
    );
    assert!(
        !saved
            .records
            .iter()
            .any(|record| matches!(record, Record::Process(p) if p.key.0 == 1))
    );
}

/// A reader gives a forked child its parent's mappings, also those that the child removed before the
/// window.
#[test]
fn a_child_lacks_what_it_removed_before_the_window() {
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 20);
    keep.put(process(0, 1, None));
    keep.put(module(0, 3));
    keep.put(mapping(0, 1, 0x1000, 0x2000, 3));
    keep.put(process(SECOND, 2, Some(1)));
    keep.put(Record::Unmapping(Unmapping {
        process: ProcessKey(2),
        time: TimeNs(2 * SECOND),
        start: Avma(0x1000),
        end: Avma(0x2000),
    }));
    keep.put(thread(100 * SECOND, 1));
    keep.flush().unwrap();
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    let of_child = saved.records.iter().filter(|record| match record {
        Record::Mapping(mapping) => mapping.process.0 == 2,
        Record::Unmapping(unmapping) => unmapping.process.0 == 2,
        _ => false,
    });
    let all_removed = Record::Unmapping(Unmapping {
        process: ProcessKey(2),
        time: TimeNs(SECOND),
        start: Avma(0),
        end: Avma(u64::MAX),
    });
    assert_eq!(of_child.collect::<Vec<_>>(), [&all_removed]);
}

/// Keys of code, keys of processes and their parents, seconds of moves.
type SavedCode = (Vec<u64>, Vec<(u32, Option<u32>)>, Vec<u64>);

/// Code and processes in a saved recording.
fn saved_code(keep: &mut KeepLast) -> SavedCode {
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    assert_complete(&saved);
    let (mut code, mut processes, mut moves) = (Vec::new(), Vec::new(), Vec::new());
    for record in &saved.records {
        match record {
            Record::Constituent(constituent) => code.push(constituent.key.0),
            Record::Process(p) => processes.push((p.key.0, p.parent.map(|key| key.0))),
            Record::ConstituentMoved(moved) => moves.push(moved.time.0 / SECOND),
            _ => {}
        }
    }
    (code, processes, moves)
}

#[test]
fn what_a_living_child_inherited_stays_and_nothing_else_does() {
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 20);
    let put = |keep: &mut KeepLast, records: Vec<Record>| {
        records.into_iter().for_each(|record| keep.put(record));
    };
    keep.put(process(0, 1, None));
    // Gone before the fork; there then; there then and gone after it; come after it.
    put(&mut keep, constituent(SECOND, 1).into());
    put(&mut keep, constituent(SECOND, 2).into());
    put(&mut keep, constituent(SECOND, 3).into());
    keep.put(gone(2 * SECOND, 1));
    for time in [2, 3, 5, 6, 7] {
        keep.put(Record::ConstituentMoved(ConstituentMoved {
            key: ConstituentKey(2),
            last_seen: TimeNs(time * SECOND),
            time: TimeNs(time * SECOND),
            to: Avma(time << 20),
        }));
    }
    // A child that passes its code on to its own child, and ends like its parent.
    keep.put(process(4 * SECOND, 2, Some(1)));
    keep.put(gone(5 * SECOND, 3));
    put(&mut keep, constituent(5 * SECOND, 4).into());
    keep.put(process(6 * SECOND, 3, Some(2)));
    // A child without heirs.
    keep.put(process(6 * SECOND, 4, Some(1)));
    for (time, key) in [(8, 1), (9, 2), (9, 4)] {
        keep.put(process_end(time * SECOND, key));
    }
    keep.put(thread(100 * SECOND, 1));
    keep.flush().unwrap();
    let ancestors = vec![(1, None), (2, Some(1)), (3, Some(2))];
    // Both addresses: before the fork, and after the last move.
    assert_eq!(saved_code(&mut keep), (vec![2, 3], ancestors, vec![3, 7]));

    keep.put(process_end(101 * SECOND, 3));
    keep.put(thread(200 * SECOND, 2));
    keep.flush().unwrap();
    assert_eq!(saved_code(&mut keep), (vec![], vec![], vec![]));
}

#[test]
fn a_child_that_replaced_its_program_has_nothing_of_its_parent() {
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 20);
    keep.put(process(0, 1, None));
    keep.put(module(0, 3));
    keep.put(mapping(0, 1, 0x1000, 0x2000, 3));
    constituent(0, 5)
        .into_iter()
        .for_each(|record| keep.put(record));
    keep.put(process(SECOND, 2, Some(1)));
    // An exec is told without a parent.
    keep.put(process(2 * SECOND, 2, None));
    keep.put(process_end(3 * SECOND, 1));
    keep.put(thread(100 * SECOND, 1));
    keep.flush().unwrap();
    assert_eq!(saved_code(&mut keep), (vec![], vec![(2, None)], vec![]));
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    let mappings = |record: &&Record| matches!(record, Record::Mapping(_));
    assert_eq!(saved.records.iter().filter(mappings).count(), 0);
}

#[test]
fn generations_that_hand_on_code_are_bounded_and_it_is_told() {
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 20);
    keep.put(process(0, 1, None));
    constituent(0, 5)
        .into_iter()
        .for_each(|record| keep.put(record));
    for key in 2..10_000 {
        let time = SECOND + u64::from(key);
        keep.put(process(time, key, Some(key - 1)));
        keep.put(process_end(time, key - 1));
    }
    keep.put(thread(100 * SECOND, 1));
    keep.flush().unwrap();
    // At most 4096 ancestors, each with a start, an unmapping of inherited mappings, and an end.
    assert!(keep.state_records() < 13_000, "{}", keep.state_records());
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    assert_complete(&saved);
    let told = |record: &Record| matches!(record, Record::Limit(l) if l.text.contains("no names"));
    assert!(saved.records.iter().any(told));
}

#[test]
fn what_does_not_fit_shortens_the_window_and_is_told() {
    let mut keep = KeepLast::new(DurationNs(3600 * SECOND), 10_000);
    keep.put(process(0, 1, None));
    keep.put(thread(0, 1));
    for second in 0..100 {
        busy_second(second, &mut keep);
    }
    let (bytes, written) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    assert!(written.sample_bytes < 12_000);
    let saved = read(&bytes).unwrap();
    assert_complete(&saved);
    let told =
        |record: &Record| matches!(record, Record::Limit(l) if l.text.contains("did not fit"));
    assert!(saved.records.iter().any(told));
}

proptest! {
    /// Threads come and go at random. Whenever the recording is saved, every kept sample has its
    /// thread, no sample of the window is missing, and no sample is older than the window by more
    /// than a flush.
    #[test]
    fn every_kept_sample_has_its_thread(
        lives in prop::collection::vec((0..60_000_u64, 1..20_000_u64), 1..40),
        window in 1..30_u64,
        flush_ms in 100..2_000_u64,
        until in 1..80_000_u64,
    ) {
        let ms = 1_000_000;
        let mut keep = KeepLast::new(DurationNs(window * SECOND), 1 << 30);
        let mut put = Vec::new();
        for now in 0..until {
            for (index, &(start, length)) in lives.iter().enumerate() {
                let key = u32::try_from(index).unwrap();
                if now == start {
                    keep.put(thread(now * ms, key));
                }
                if (start..start + length).contains(&now) && now % 7 == 0 {
                    keep.put(sample(now * ms, key, now));
                    put.push(now * ms);
                }
                if now == start + length {
                    keep.put(thread_end(now * ms, key));
                }
            }
            if now % flush_ms == 0 {
                keep.flush().unwrap();
            }
        }
        let newest = put.last().copied().unwrap_or(0);
        let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
        let saved = read(&bytes).unwrap();
        assert_complete(&saved);
        let kept: Vec<u64> = saved.samples().map(|sample| sample.time.0).collect();
        // An end may be newer than the newest sample.
        let horizon = (until * ms).saturating_sub(window * SECOND);
        let within = put.iter().filter(|&&time| time >= horizon).count();
        prop_assert!(kept.len() >= within, "{} of {within} kept", kept.len());
        let reach = window * SECOND + flush_ms * ms;
        prop_assert!(kept.iter().all(|&time| time + reach >= newest));
    }
}

/// A VM's last readings come seconds after the last sample.
#[test]
fn what_is_told_after_the_end_of_sampling_does_not_move_the_window() {
    let mut keep = KeepLast::new(DurationNs(2 * SECOND), 1 << 30);
    keep.put(process(0, 1, None));
    keep.put(thread(0, 1));
    for tick in 0..100 {
        keep.put(sample(tick * SECOND / 10, 1, 0));
        keep.flush().unwrap();
    }
    keep.sampled_until(TimeNs(10 * SECOND));
    for second in 10..14 {
        keep.put(counter(second * SECOND, "scavenges"));
        keep.flush().unwrap();
    }
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::TargetExited)).unwrap();
    let saved = read(&bytes).unwrap();
    let first = saved.samples().map(|sample| sample.time.0).min();
    assert_eq!(first, Some(8 * SECOND));
    let last = |r: &Record| matches!(r, Record::Counter(c) if c.time.0 == 13 * SECOND);
    assert!(saved.records.iter().any(last));
}

/// A compilation is kept once, with its last report, while it reaches into the
/// window.
#[test]
fn a_compilation_is_kept_as_it_was_told_last() {
    let told = |id: u64, first: u64, last: u64| {
        Record::Compilation(Box::new(Compilation {
            process: ProcessKey(1),
            thread: ThreadKey(1),
            id,
            first_seen: TimeNs(first),
            last_seen: TimeNs(last),
            ..Compilation::default()
        }))
    };
    let mut keep = KeepLast::new(DurationNs(10 * SECOND), 1 << 30);
    keep.put(process(0, 1, None));
    keep.put(thread(0, 1));
    keep.put(told(1, SECOND, 2 * SECOND));
    for second in 3..20 {
        keep.put(told(2, 2 * SECOND, second * SECOND));
        keep.flush().unwrap();
    }
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    let kept = saved.records.iter().filter_map(|record| match record {
        Record::Compilation(compilation) => Some((compilation.id, compilation.last_seen)),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [(2, TimeNs(19 * SECOND))]);
}

/// Found by fuzzing: code repeated with another process had moved there, and ended with it.
#[test]
fn repeated_code_stays_in_its_process() {
    let mut keep = KeepLast::new(DurationNs(SECOND), 1 << 30);
    keep.put(process(0, 1, None));
    let [_, mut code] = constituent(SECOND, 1);
    keep.put(code.clone());
    let Record::Constituent(repeated) = &mut code else {
        panic!("{code:?}");
    };
    repeated.process = ProcessKey(15);
    repeated.name = "better".into();
    keep.put(code);
    for second in 2..9 {
        keep.put(counter(second * SECOND, "ticks"));
        keep.flush().unwrap();
    }
    let (bytes, _) = keep.save(Vec::new(), end(EndReason::Saved)).unwrap();
    let saved = read(&bytes).unwrap();
    let kept = saved.records.iter().filter_map(|record| match record {
        Record::Constituent(one) => Some((one.process, &*one.name)),
        _ => None,
    });
    assert_eq!(kept.collect::<Vec<_>>(), [(ProcessKey(1), "better")]);
}
