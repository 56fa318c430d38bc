//! Windows, threads, expected samples and errors of shares.

use crate::recordings::inferred::inferred;
use crate::recordings::{self, Draw, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD};
use vmscope_records::{
    DurationNs, Limit, LimitKind, LossReason, Lost, ProcessEnd, Record, Session, Stream, ThreadCpu,
    ThreadEnd, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::{Filter, Id, Profile, Summary, ThreadId};

const OTHER: ThreadKey = ThreadKey(2);

fn cpu(key: ThreadKey, time: u64, cpu: u64, user: Option<u64>) -> Record {
    Record::ThreadCpu(ThreadCpu {
        key,
        time: TimeNs(time),
        cpu: DurationNs(cpu),
        cpu_user: user.map(DurationNs),
    })
}

fn thread_end(key: ThreadKey, time: u64, alive: bool, cpu: u64, user: Option<u64>) -> Record {
    Record::ThreadEnd(ThreadEnd {
        key,
        time: TimeNs(time),
        alive,
        cpu: DurationNs(cpu),
        cpu_measured: true,
        cpu_user: user.map(DurationNs),
    })
}

fn process_end(time: u64, cpu: Option<u64>, user: Option<u64>) -> Record {
    Record::ProcessEnd(ProcessEnd {
        key: PROCESS,
        time: TimeNs(time),
        alive: false,
        cpu: cpu.map(DurationNs),
        cpu_user: user.map(DurationNs),
    })
}

fn window(from: u64, to: u64) -> Filter {
    Filter {
        from: Some(TimeNs(from)),
        to: Some(TimeNs(to)),
        ..Filter::default()
    }
}

fn only(thread: usize) -> Filter {
    Filter {
        threads: Some([ThreadId::of(thread)].into_iter().collect()),
        ..Filter::default()
    }
}

fn promised(profile: &Profile, filter: &Filter) -> Option<u64> {
    Summary::with_errors(profile, filter)
        .promised
        .map(|n| n.round() as u64)
}

/// Two threads: one runs for 100 µs, the other during the last 50 µs.
fn two_threads() -> Recording {
    let mut recording = Recording::of("native");
    recording
        .thread(OTHER, PROCESS, 50_000, "late", ThreadRole::Other)
        .put(cpu(THREAD, 20_000, 20_000, Some(15_000)))
        .put(thread_end(THREAD, 100_000, true, 100_000, Some(75_000)))
        .put(thread_end(OTHER, 100_000, false, 50_000, Some(50_000)))
        .end(100_000);
    recording
}

#[test]
fn a_threads_cpu_time_is_what_promises_samples() {
    let profile = two_threads().profile();
    // One sample per microsecond.
    assert_eq!(promised(&profile, &Filter::default()), Some(150));
    assert_eq!(promised(&profile, &only(0)), Some(100));
    assert_eq!(promised(&profile, &only(1)), Some(50));
    assert_eq!(promised(&profile, &window(0, 10_000)), Some(10));
    assert_eq!(promised(&profile, &window(40_000, 60_000)), Some(30));
    assert_eq!(promised(&profile, &window(90_000, 900_000)), Some(20));
    assert_eq!(promised(&profile, &window(900_000, 990_000)), Some(0));
    let threads = Summary::with_errors(&profile, &window(0, 10_000)).threads;
    assert_eq!(threads.len(), 1, "one had not begun: {threads:?}");
}

#[test]
fn where_the_kernel_is_excluded_user_time_promises() {
    let mut recording = two_threads();
    recording.put(Record::Session(Box::new(Session {
        kernel_included: false,
        ..recordings::session("native")
    })));
    let profile = recording.profile();
    assert_eq!(promised(&profile, &Filter::default()), Some(125));
    let summary = Summary::with_errors(&profile, &Filter::default());
    let shown: Vec<_> = summary.threads.iter().map(|thread| thread.cpu).collect();
    assert_eq!(
        shown[0],
        Some(DurationNs(100_000)),
        "CPU time is shown whole"
    );
}

#[test]
fn what_is_not_known_is_not_promised() {
    let mut recording = Recording::of("native");
    recording
        .thread(OTHER, PROCESS, 0, "unknown", ThreadRole::Other)
        .put(thread_end(THREAD, 100_000, true, 100_000, None))
        .sample(5, OTHER, PROGRAM_AT)
        .end(100_000);
    let summary = Summary::with_errors(&recording.profile(), &Filter::default());
    assert_eq!(summary.promised, Some(100.0));
    assert_eq!(summary.threads_without_cpu, 1);
    let nothing = Recording::of("native").profile();
    assert_eq!(promised(&nothing, &Filter::default()), None);
}

#[test]
fn the_account_of_a_process_includes_threads_too_short_to_be_asked() {
    let mut recording = two_threads();
    recording
        .put(process_end(90_000, Some(1), Some(1)))
        .put(process_end(100_000, Some(170_000), Some(140_000)));
    let profile = recording.profile();
    assert_eq!(promised(&profile, &Filter::default()), Some(170));
    // A repeated record counts once and says nothing about parts.
    assert_eq!(promised(&profile, &only(0)), Some(100));
    // A second process has no CPU total, so threads count.
    recording.process(vmscope_records::ProcessKey(7), 0, 7, None);
    let profile = recording.profile();
    assert_eq!(promised(&profile, &Filter::default()), Some(150));
}

#[test]
fn where_only_the_newest_is_kept_only_that_is_promised() {
    let mut recording = two_threads();
    recording
        .put(process_end(100_000, Some(170_000), None))
        .put(Record::Limit(Limit {
            time: TimeNs(60_000),
            kind: LimitKind::OnlyNewestKept,
            text: "only the newest 40 µs were kept".into(),
            remedy: String::new(),
        }));
    let profile = recording.profile();
    let summary = Summary::with_errors(&profile, &Filter::default());
    assert_eq!(summary.window, (TimeNs(60_000), TimeNs(100_000)));
    assert_eq!(promised(&profile, &Filter::default()), Some(80));
}

#[test]
fn a_recording_that_was_cut_off_promises_what_was_read_last() {
    let mut recording = Recording::of("native");
    recording
        .put(cpu(THREAD, 60_000, 60_000, None))
        .put(cpu(THREAD, 30_000, 30_000, None))
        .sample(40_000, THREAD, PROGRAM_AT);
    let profile = recording.profile();
    assert_eq!(promised(&profile, &Filter::default()), Some(60));
    assert_eq!(promised(&profile, &window(10_000, 30_000)), Some(20));
}

#[test]
fn a_thread_that_was_not_told_began_with_the_recording() {
    let mut recording = Recording::empty();
    recording
        .put(Record::Session(Box::new(Session {
            time: TimeNs(1_000_000),
            ..recordings::session("native")
        })))
        .put(cpu(THREAD, 1_100_000, 100_000, None))
        .end(1_100_000);
    let profile = recording.profile();
    assert_eq!(promised(&profile, &Filter::default()), Some(100));
}

#[test]
fn absurd_cpu_times_do_no_harm() {
    let mut recording = two_threads();
    recording
        .put(cpu(THREAD, 99, u64::MAX, Some(u64::MAX)))
        .put(cpu(THREAD, u64::MAX, 1, Some(0)));
    let profile = recording.profile();
    assert!(promised(&profile, &Filter::default()).is_some());
    assert!(promised(&profile, &window(50, 98)).is_some());
}

#[test]
fn losses_count_in_their_window_and_for_their_thread() {
    let lost = |from: u64, to: u64, count: u64, thread: Option<ThreadKey>, reason, stream| {
        Record::Lost(Lost {
            stream,
            reason,
            count,
            from: TimeNs(from),
            to: TimeNs(to),
            thread,
        })
    };
    let ring = LossReason::RingOverrun;
    let mut recording = two_threads();
    recording
        .put(lost(10, 20, 1, None, ring, Stream::Samples))
        .put(lost(30_000, 40_000, 10, Some(THREAD), ring, Stream::Any))
        .put(lost(50, 60, 100, None, ring, Stream::Process))
        .put(lost(
            0,
            9,
            1000,
            None,
            LossReason::KeepLastFull,
            Stream::Samples,
        ));
    let profile = recording.profile();
    let count = |filter: &Filter| Summary::with_errors(&profile, filter).lost;
    assert_eq!(count(&Filter::default()), 11);
    assert_eq!(count(&window(100, 200)), 0);
    assert_eq!(count(&window(15, 30_000)), 11);
    assert_eq!(count(&only(1)), 1, "the loss of another thread is not its");
    recording.put(lost(0, 9, u64::MAX, None, ring, Stream::Samples));
    let summary = Summary::with_errors(&recording.profile(), &Filter::default());
    assert_eq!(summary.lost, u64::MAX);
}

#[test]
fn filters_agree_with_counting_by_hand() {
    let mut draw = Draw(3);
    let mut recording = Recording::of("native");
    for key in 2..=5 {
        recording.thread(ThreadKey(key), PROCESS, 0, "t", ThreadRole::Other);
    }
    let functions: Vec<_> = (0..8)
        .map(|n| (n * 0x100, 0x100, ["a", "b"][n as usize % 2]))
        .collect();
    recording.symbols(PROGRAM, &functions);
    let mut samples: Vec<(u64, u32, u64)> = (0..3000)
        .map(|_| {
            (
                draw.below(10_000),
                1 + draw.below(5) as u32,
                draw.below(0x800),
            )
        })
        .collect();
    samples.sort_unstable();
    for &(time, thread, at) in &samples {
        recording.sample(time, ThreadKey(thread), PROGRAM_AT + at);
    }
    let profile = recording.end(10_000).profile();
    for _ in 0..200 {
        let mut bound = || (draw.below(3) != 0).then(|| TimeNs(draw.below(11_000)));
        let (from, to) = (bound(), bound());
        let threads = (draw.below(3) != 0).then(|| {
            let all = (0..5).map(ThreadId::of);
            all.filter(|_| draw.below(2) == 0).collect()
        });
        let filter = Filter {
            threads,
            from,
            to,
            ..Filter::default()
        };
        let summary = Summary::with_errors(&profile, &filter);
        let taken: Vec<_> = samples
            .iter()
            .filter(|(time, thread, _)| {
                filter
                    .threads
                    .as_ref()
                    .is_none_or(|set| set.contains(&ThreadId::of(*thread as usize - 1)))
                    && from.is_none_or(|from| *time >= from.0)
                    && to.is_none_or(|to| *time < to.0)
            })
            .collect();
        assert_eq!(summary.total, taken.len() as u64, "{filter:?}");
        let of = |name: &str| {
            let mut entries = profile.entries.iter().zip(&summary.entries);
            let found = entries.find(|(entry, _)| entry.name == name);
            found.map_or(0, |(_, samples)| *samples)
        };
        let odd = taken
            .iter()
            .filter(|(_, _, at)| at / 0x100 % 2 == 1)
            .count() as u64;
        assert_eq!((of("a"), of("b")), (summary.total - odd, odd), "{filter:?}");
        assert_eq!(summary.entries.len(), 2, "one entry for a name");
    }
}

/// Stated error and share of function `a` if samples fall according to `in_a`.
fn share_and_error(samples: usize, mut in_a: impl FnMut(usize) -> bool) -> (f64, f64) {
    let mut recording = Recording::of("native");
    recording.symbols(PROGRAM, &[(0, 0x100, "a"), (0x100, 0x100, "b")]);
    for index in 0..samples {
        let at = if in_a(index) { 0 } else { 0x100 };
        recording.sample(index as u64, THREAD, PROGRAM_AT + at);
    }
    let profile = recording.profile();
    let summary = Summary::with_errors(&profile, &Filter::default());
    let mut entries = profile.entries.enumerated();
    let (a, _) = entries.find(|(_, entry)| entry.name == "a").unwrap();
    (summary.share(summary.entries[a]), summary.errors[a])
}

#[test]
fn of_independent_samples_the_interval_holds_the_truth_19_times_of_20() {
    let mut draw = Draw(11);
    let runs = 600;
    let held = (0..runs)
        .filter(|_| {
            let (share, error) = share_and_error(1600, |_| draw.unit() < 0.3);
            (share - 0.3).abs() <= error
        })
        .count();
    // Binomial with p = 0.95: 570 ± 5.3; the bounds allow four standard deviations.
    assert!((548..=592).contains(&held), "{held} of {runs}");
}

#[test]
fn phases_make_a_share_as_unsure_as_it_is() {
    // Phases of random length with identical samples: 16,000 samples, but only about 260
    // independent phases.
    let mut draw = Draw(5);
    let runs = 300;
    let (mut held, mut held_by_binomial) = (0, 0);
    for _ in 0..runs {
        let (mut left, mut now) = (0, false);
        let (share, error) = share_and_error(16_000, |_| {
            if left == 0 {
                left = 1 + draw.below(120);
                now = draw.unit() < 0.5;
            }
            left -= 1;
            now
        });
        let binomial = 1.96 * (share * (1.0 - share) / 16_000.0).sqrt();
        held += u32::from((share - 0.5).abs() <= error);
        held_by_binomial += u32::from((share - 0.5).abs() <= binomial);
    }
    assert!(held >= 270, "batch means: {held} of {runs}");
    assert!(
        held_by_binomial < 150,
        "binomial: {held_by_binomial} of {runs}"
    );
}

#[test]
fn a_program_that_cycles_evenly_is_surer_than_chance() {
    let (share, error) = share_and_error(16_000, |index| index % 10 < 3);
    assert!((share - 0.3).abs() < 1e-9);
    assert!(error < 1e-6, "{error}: every batch has the same share");
}

#[test]
fn too_few_samples_have_no_error() {
    let mut recording = Recording::of("native");
    for time in 0..319 {
        recording.sample(time, THREAD, PROGRAM_AT);
    }
    let summary = Summary::with_errors(&recording.profile(), &Filter::default());
    assert!(summary.errors.is_empty());
}

#[test]
fn errors_of_shares_contain_the_inference_of_the_method() {
    let profile = inferred().profile();
    let summary = Summary::with_errors(&profile, &Filter::default());
    let entry = |name: &str| {
        let mut ids = profile.entries.ids();
        ids.find(|&id| profile.entries[id].name == name).unwrap()
    };
    let (inner, outer) = (entry("C.inner"), entry("C.outer"));
    assert!(summary.is_inferred(inner) && !summary.is_inferred(outer));
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(summary.inference_error(inner), 0.5 * 0.4);
    close(summary.inference_error(outer), 0.125);
    close(summary.worst_inference().unwrap(), 0.2);
    for entry in [inner, outer] {
        let sampling = summary.errors[entry];
        close(
            summary.error(entry).unwrap(),
            sampling + summary.inference_error(entry),
        );
    }
}
