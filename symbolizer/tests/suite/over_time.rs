//! Chart data: rows of threads, CPU time and code changes by column.

use crate::recordings::{self, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, screens};
use vmscope_records::{DurationNs, Record, ThreadCpu, ThreadEnd, ThreadKey, ThreadRole, TimeNs};
use vmscope_symbolizer::summary::{accounts, promised_by_column};
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::trace::CodeStep;
use vmscope_symbolizer::{Filter, Id, Profile, Region, Stop, Summary, ThreadId, profile_of};

fn java() -> Profile {
    let trace = recordings::read(&screens::java()).unwrap();
    profile_of(trace, Vec::new(), true)
}

#[test]
fn rows_of_threads_add_up() {
    let profile = java();
    let (from, to) = (screens::ms(0), screens::ms(20_001));
    let groups = Region::ALL.len();
    // The first three threads form a row, the fourth has none, the others share another.
    let rows = profile.trace.threads.map(|thread, _| match thread.index() {
        0..3 => 0,
        3 => u32::MAX,
        _ => 1,
    });
    let what = ColumnsOf {
        window: (TimeNs(from), TimeNs(to)),
        columns: 37,
        by: By::Rows {
            of_thread: &rows,
            rows: 2,
        },
    };
    let filter = Filter::default();
    let columns = Columns::of(&profile, &what, &filter, &Stop::new()).unwrap();
    assert_eq!(columns.groups, 2 * groups);
    for (row, threads) in [(0, vec![0, 1, 2]), (1, vec![4, 5, 6, 7, 8])] {
        let filter = Filter {
            threads: Some(threads.into_iter().map(ThreadId::of).collect()),
            ..Filter::default()
        };
        let expected = Summary::with_errors(&profile, &filter);
        let mut regions = [0; Region::ALL.len()];
        for column in 0..what.columns {
            let of_row = &columns.column(column)[row * groups..(row + 1) * groups];
            for (sum, count) in regions.iter_mut().zip(of_row) {
                *sum += count;
            }
        }
        assert_eq!(regions, expected.regions, "row {row}");
    }
}

#[test]
fn cpu_time_promises_by_thread_and_column() {
    let other = ThreadKey(2);
    let mut recording = Recording::of("native");
    recording.symbols(PROGRAM, &[(0, 0x1000, "f")]);
    recording.thread(other, PROCESS, 50_000, "late", ThreadRole::Other);
    recording.sample(10, THREAD, PROGRAM_AT);
    recording.put(Record::ThreadCpu(ThreadCpu {
        key: THREAD,
        time: TimeNs(20_000),
        cpu: DurationNs(20_000),
        cpu_user: None,
    }));
    for (key, cpu) in [(THREAD, 20_000), (other, 50_000)] {
        recording.put(Record::ThreadEnd(ThreadEnd {
            key,
            time: TimeNs(100_000),
            alive: true,
            cpu: DurationNs(cpu),
            cpu_measured: true,
            cpu_user: None,
        }));
    }
    let profile = recording.end(100_000).profile();
    let edges = [0, 10_000, 50_000, 60_000, 100_000].map(TimeNs);
    let all = Filter::default();
    let promised = promised_by_column(&profile, &all, &edges, &Stop::new());
    assert_eq!(promised, Some(vec![10.0, 10.0, 10.0, 40.0]));
    let window = Filter {
        from: Some(TimeNs(10_000)),
        to: Some(TimeNs(60_000)),
        ..Filter::default()
    };
    let accounts = accounts(&profile, &window, &Stop::new()).unwrap();
    let both: Vec<_> = accounts
        .iter()
        .map(|one| (one.cpu.unwrap().0, one.promised.unwrap()))
        .collect();
    assert_eq!(both, [(10_000, 10.0), (10_000, 10.0)]);
    let stopped = Stop::new();
    stopped.stop();
    assert_eq!(promised_by_column(&profile, &all, &edges, &stopped), None);
}

#[test]
fn changes_of_the_code_are_told_by_tier() {
    let profile = java();
    let events = &profile.trace.code_events;
    let count = |step: fn(&CodeStep) -> bool, label: &str| {
        let all = events.all().iter();
        all.filter(|e| step(&e.step) && e.earliest.0 >= screens::BEGIN && events.label(e) == label)
            .count()
    };
    let came = |step: &CodeStep| *step == CodeStep::Came;
    // Number of compilations in the recording.
    let tiers = ["C1", "C1 profiling", "C2"];
    assert_eq!(
        tiers.map(|tier| count(came, tier)).iter().sum::<usize>(),
        68
    );
    assert!(count(|step| matches!(step, CodeStep::Gone(_)), "C2") >= 1);
    assert_eq!(events.forgotten(), 0);
}
