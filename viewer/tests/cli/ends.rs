//! Ends and truncations of recordings: after any kill, recordings keep all but the last second, and
//! reports state end and reason.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::targets::Target;
use crate::common::vmscope::{
    Folder, Run, Working, await_samples, await_trace, can_sample, command, report, trace_of,
    vmscope,
};
use crate::common::{await_that, programs};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use vmscope_process::ProcessView;
use vmscope_records::{EndReason, Limit, LimitKind, Pid, TimeNs};
use vmscope_symbolizer::Trace;

/// `vmscope attach` with these options, to `target` and into `output`.
fn attach(target: &Target, output: &Path, options: &[&str]) -> Working {
    let mut command = command(["attach", "--full", &target.pid().to_string()]);
    command.arg("--output").arg(output).args(options);
    Working::start(command)
}

/// Two threads at work; `None`, said, where they can't be sampled.
fn target() -> Option<Target> {
    if !can_sample() {
        return None;
    }
    Target::known_shares(2)
}

fn trace(path: &Path) -> Trace {
    trace_of(path).expect("a recording")
}

fn last_sample(trace: &Trace) -> TimeNs {
    *trace.samples.times.last().expect("samples")
}

fn reason(trace: &Trace) -> Option<EndReason> {
    trace.end.as_ref().map(|end| end.reason)
}

/// The report shows the shares of both workers.
fn shows_the_shares(run: Run) -> Run {
    run.prints("share_a")
        .prints("share_d")
        .prints("share-0")
        .prints("share-1")
}

/// Its own memory exceeds 1 MiB at once.
#[test]
fn a_recording_beyond_its_memory_ends_early_and_says_so() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let run = attach(&target, &output, &["--max-memory", "1M"]).end();
    run.code(2)
        .says("the recording ended early: vmscope reached its maximum memory (--max-memory)");
    assert_eq!(reason(&trace(&output)), Some(EndReason::MemoryFull));
    report(&output, &[])
        .code(0)
        .prints("the recording ends early")
        .prints("record with a greater --max-memory");
}

#[test]
fn killed_in_mid_recording_it_is_there_up_to_the_last_second() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let working = attach(&target, &output, &[]);
    await_samples(&output, 3000);
    let on_disk = last_sample(&trace(&output));
    working.signal(Signal::SIGKILL);
    let run = working.end();
    let by_signal = run.status.code().is_none();
    run.check(by_signal, "it was killed");

    let trace = trace(&output);
    assert_eq!(trace.end, None);
    assert!(last_sample(&trace) >= on_disk, "{on_disk:?} was on disk");
    // And nothing is missing before: samples of two busy threads are never far apart.
    let times = trace.samples.times.windows(2);
    let gap = times
        .map(|pair| pair[1].since(pair[0]).0)
        .max()
        .expect("samples");
    assert!(gap < 3_000_000_000, "a gap of {gap} ns");
    let document = report(&output, &["--json"]).code(0).json();
    let samples = &document["samples"];
    let (total, promised) = (samples["total"].as_f64(), samples["promised"].as_f64());
    let delivered = total.expect("a number") / promised.expect("a number");
    // CPU times are told about once a second; what came later counts as promised.
    assert!((0.8..1.2).contains(&delivered), "{samples}");
    assert_eq!(document["session"]["complete"], false);
    let text = report(&output, &[]).code(0);
    shows_the_shares(text.prints("Accuracy: - the recording ends abruptly"));
}

#[test]
fn a_target_that_is_killed_ends_a_complete_recording() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let working = attach(&target, &output, &[]);
    await_samples(&output, 1000);
    target.signal(Signal::SIGKILL);
    shows_the_shares(working.end().code(0));
    let trace = trace(&output);
    assert_eq!(reason(&trace), Some(EndReason::TargetExited));
    let document = report(&output, &["--json"]).code(0).json();
    assert_eq!(document["session"]["complete"], true);
}

#[test]
fn several_processes_are_sampled_until_the_last_has_ended() {
    let (Some(first), Some(second)) = (target(), target()) else {
        return;
    };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let pids = [first.pid(), second.pid()];
    let words = [pids[0], pids[1], pids[0]].map(|pid| pid.to_string());
    let mut command = command(["attach"]);
    command.args(&words).arg("--output").arg(&output);
    let working = Working::start(command);
    await_samples(&output, 2000);
    first.signal(Signal::SIGKILL);
    drop(first);
    let before = trace(&output).samples.times.len();
    // Two busy threads go on.
    await_samples(&output, before + 2000);
    second.signal(Signal::SIGKILL);
    let head = format!("native program, pids {}, {}, ", pids[0], pids[1]);
    let of = |pid: u32| format!("known_shares (pid {pid}) ");
    working
        .end()
        .code(0)
        .prints(&head)
        .prints(&of(pids[0]))
        .prints(&of(pids[1]));

    assert_eq!(reason(&trace(&output)), Some(EndReason::TargetExited));
    let document = report(&output, &["--json"]).code(0).json();
    assert_eq!(document["session"]["pids"], serde_json::json!(pids));
    let threads = document["threads"].as_array().expect("threads");
    let samples_of = |pid: u32| {
        let own = threads.iter().filter(|thread| thread["pid"] == pid);
        own.filter_map(|thread| thread["samples"].as_u64())
            .sum::<u64>()
    };
    let (first, second) = (samples_of(pids[0]), samples_of(pids[1]));
    assert!(first > 300 && second > first, "{first} and {second}");
    assert_eq!(Some(first + second), document["samples"]["total"].as_u64());
    let samples = &document["samples"];
    let (total, promised) = (samples["total"].as_f64(), samples["promised"].as_f64());
    let delivered = total.expect("a number") / promised.expect("a number");
    assert!((0.8..1.2).contains(&delivered), "{samples}");
}

#[test]
fn signals_end_a_complete_recording_and_the_target_goes_on() {
    let Some(mut target) = target() else { return };
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let folder = Folder::new();
        let output = folder.file("out.vmscope");
        let working = attach(&target, &output, &[]);
        await_samples(&output, 500);
        working.signal(signal);
        shows_the_shares(working.end().code(0));
        assert_eq!(
            reason(&trace(&output)),
            Some(EndReason::Interrupted),
            "{signal}"
        );
        assert!(target.is_running(), "{signal} ended the target");
    }
}

/// `timeout` signals its command, then its process group. Equal signals may arrive as one.
#[test]
fn two_signals_in_a_row_are_one() {
    let Some(mut target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let working = attach(&target, &output, &[]);
    await_samples(&output, 1000);
    working.signal(Signal::SIGINT);
    working.signal(Signal::SIGTERM);
    shows_the_shares(working.end().code(0));
    assert_eq!(reason(&trace(&output)), Some(EndReason::Interrupted));
    assert!(target.is_running());
}

/// Another signal, a second later, ends vmscope although the command ignores signals.
#[test]
fn a_later_signal_ends_it_at_once() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let started = folder.file("started");
    let mut command = command(["record", "--output"]);
    let script = "trap '' INT TERM; touch \"$0\"; exec sleep 3";
    command.arg(folder.file("out.vmscope"));
    command.args(["--", "sh", "-c", script]).arg(&started);
    let working = Working::start(command);
    await_that("the command runs", || started.exists().then_some(()));
    for _ in 0..40 {
        working.signal(Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(50));
    }
    working.end().code(130);
}

#[test]
fn a_duration_ends_it() {
    let Some(mut target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let working = attach(&target, &output, &["--duration", "0.7"]);
    shows_the_shares(working.end().code(0));
    let attached = trace(&output);
    assert_eq!(reason(&attached), Some(EndReason::DurationOver));
    let begin = attached.session.as_ref().expect("a session").time;
    let last = attached.samples.times.last().expect("samples").since(begin);
    assert!(last.0 < 5_000_000_000, "{last:?}");
    assert!(target.is_running());

    // A command that was started is asked to end.
    let program = programs::build(programs::KNOWN_SHARES).expect("built before");
    let mut command = command(["record", "--duration", "0.5", "--output"]);
    command.arg(&output).arg("--").arg(program).arg("--forever");
    let run = Working::start(command).end().code(0);
    assert_eq!(reason(&trace(&output)), Some(EndReason::DurationOver));
    shows_the_shares(run.prints("process_cpu_seconds"));
}

#[test]
fn a_process_without_its_main_thread_is_sampled() {
    let Some(program) = programs::build(programs::LEFT_BY_MAIN).filter(|_| can_sample()) else {
        return;
    };
    let target = Target::ready(std::process::Command::new(program));
    let stat = format!("/proc/{}/stat", target.pid());
    let view = ProcessView::open(Pid(target.pid())).expect("it runs");
    let stamp = view.stamp().expect("a program");
    target.signal(Signal::SIGUSR1);
    await_that("its main thread has ended", || {
        let stat = std::fs::read_to_string(&stat).expect("not reaped");
        stat.contains(") Z ").then_some(())
    });
    assert_eq!(view.stamp(), Some(stamp), "the same program");
    let folder = Folder::new();
    let working = attach(&target, &folder.file("out.vmscope"), &["--duration", "0.5"]);
    working.end().code(0).prints("left_work");
    vmscope(["doctor", &target.pid().to_string()]).code(0);
}

#[test]
fn a_stopped_process_is_named_as_stopped() {
    let Some(target) = target() else { return };
    target.stop();
    let folder = Folder::new();
    let working = attach(&target, &folder.file("out.vmscope"), &["--duration", "0.2"]);
    let words = "was stopped by a signal";
    working.end().code(0).says(words).prints(words);
    let quiet = ["--duration", "0.2", "--quiet"];
    let run = attach(&target, &folder.file("quiet.vmscope"), &quiet).end();
    let is_quiet = !run.stderr.contains(words);
    run.check(is_quiet, "it is quiet");
    let doctor = vmscope(["doctor", &target.pid().to_string()]).code(0);
    doctor.prints("stopped by a signal").prints("kill -CONT");
}

/// Asks for copies until one shows that something was dropped; returns that one.
fn await_dropped(working: &mut Working, folder: &Folder) -> PathBuf {
    let output = folder.file("out.vmscope");
    await_that("signals are caught", || output.exists().then_some(()));
    let mut number = 0;
    await_that("something is dropped", || {
        number += 1;
        working.signal(Signal::SIGUSR1);
        let line = working.await_line("saved ");
        let name = format!("out.{number}.vmscope");
        assert!(line.contains(&name), "{line}");
        let copy = folder.file(&name);
        let dropped = trace(&copy).limits.iter().any(is_dropped);
        dropped.then_some(copy)
    })
}

fn is_dropped(limit: &Limit) -> bool {
    limit.kind == LimitKind::OnlyNewestKept
}

/// Contents of a --keep-last 1 file: at least the newest second, in chunks of a third of a second,
/// and data under way: a round of the drain, and time that the machine withheld. The bounds leave
/// room on both sides.
fn keeps_about_a_second(path: &Path) {
    let kept = trace(path);
    let times = &kept.samples.times;
    let (first, last) = (
        times.first().expect("samples"),
        times.last().expect("samples"),
    );
    let span = last.since(*first).as_secs_f64();
    assert!((0.5..5.0).contains(&span), "{span} s in {}", path.display());
    let document = report(path, &["--json"]).code(0).json();
    let seconds = document["session"]["seconds"].as_f64().expect("a number");
    assert!((seconds - span).abs() < 2.0, "{seconds} {span}");
    // Delivery is of that window: the CPU time before is not promised.
    let samples = &document["samples"];
    let (total, promised) = (samples["total"].as_f64(), samples["promised"].as_f64());
    let delivered = total.expect("a number") / promised.expect("a number");
    assert!((0.8..1.2).contains(&delivered), "{delivered}: {samples}");
    shows_the_shares(report(path, &[]).code(0).prints("only the newest"));
}

#[test]
fn only_the_newest_is_kept_and_saved_on_signals() {
    let Some(mut target) = target() else { return };
    let folder = Folder::new();
    let mut working = attach(&target, &folder.file("out.vmscope"), &["--keep-last", "1"]);
    let copy = await_dropped(&mut working, &folder);
    assert_eq!(reason(&trace(&copy)), Some(EndReason::Saved));
    keeps_about_a_second(&copy);
    // It goes on; Ctrl-C saves it too, and the target goes on.
    working.signal(Signal::SIGINT);
    shows_the_shares(working.end().code(0));
    assert_eq!(
        reason(&trace(&folder.file("out.vmscope"))),
        Some(EndReason::Interrupted)
    );
    keeps_about_a_second(&folder.file("out.vmscope"));
    assert!(target.is_running());
}

#[test]
fn only_the_newest_is_kept_and_saved_at_the_targets_end() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let mut working = attach(&target, &output, &["--keep-last", "1"]);
    await_dropped(&mut working, &folder);
    target.signal(Signal::SIGKILL);
    working.end().code(0);
    assert_eq!(reason(&trace(&output)), Some(EndReason::TargetExited));
    keeps_about_a_second(&output);
}

/// `--keep-last` is on disk: after a kill in the middle, the file has the window, and the earlier
/// recording, protected by its owner, still exists.
#[test]
fn a_kill_leaves_the_newest_and_the_earlier_recording() {
    let Some(mut target) = target() else { return };
    // No core files of SIGQUIT.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("a lower limit");
    let kills = [
        &[Signal::SIGKILL][..],
        &[Signal::SIGQUIT],
        &[Signal::SIGINT, Signal::SIGINT],
    ];
    for signals in kills {
        let folder = Folder::new();
        let (output, old) = (folder.file("out.vmscope"), folder.file("out.vmscope.old"));
        attach(&target, &output, &["--duration", "0.3"])
            .end()
            .code(0);
        let earlier = std::fs::read(&output).expect("a recording");
        std::fs::set_permissions(&output, Permissions::from_mode(0o400)).expect("ours");
        let working = attach(&target, &output, &["--keep-last", "2"]);
        let on_disk = await_trace(&output, "old samples are dropped", |trace| {
            let dropped = trace.limits.iter().any(is_dropped);
            dropped.then(|| last_sample(&trace))
        });
        signals.iter().for_each(|signal| working.signal(*signal));
        let run = working.end();
        // Two signals in a row end it properly.
        let by_signal = matches!(run.status.code(), None | Some(0 | 130));
        run.check(by_signal, "it was killed");

        let trace = trace(&output);
        let (first, last) = (trace.samples.times[0], last_sample(&trace));
        assert!(last.since(first).as_secs_f64() > 1.0, "{first:?} {last:?}");
        assert!(last >= on_disk, "{on_disk:?} was on disk, {last:?} is");
        shows_the_shares(report(&output, &[]).code(0).prints("only the newest"));
        let mode = |path: &Path| std::fs::metadata(path).expect("a file").mode() & 0o777;
        assert_eq!((mode(&output), mode(&old)), (0o600, 0o400));
        assert!(
            std::fs::read(&old).is_ok_and(|old| old == earlier),
            "the earlier one"
        );
        assert!(target.is_running(), "{signals:?}");
    }
}

#[test]
fn a_recording_in_progress_is_not_renamed() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let working = attach(&target, &output, &[]);
    await_samples(&output, 100);
    for options in [&[][..], &["--keep-last", "2"]] {
        let second = attach(&target, &output, options).end();
        second.code(2).says("another vmscope is writing it");
    }
    working.signal(Signal::SIGINT);
    shows_the_shares(working.end().code(0));
    assert_eq!(folder.names(), ["out.vmscope"]);
}

#[test]
fn only_the_newest_is_kept_of_a_storm_of_mappings() {
    let Some(program) = programs::build(programs::MAP_STORM).filter(|_| can_sample()) else {
        return;
    };
    for kind in ["anew", "flip", "files"] {
        let mut command = std::process::Command::new(&program);
        command.args(["--seconds", "600", "--rate", "10000", "--kind", kind]);
        let mut target = Target::ready(command);
        let folder = Folder::new();
        let output = folder.file("out.vmscope");
        let mut working = attach(&target, &output, &["--keep-last", "1"]);
        await_dropped(&mut working, &folder);
        working.signal(Signal::SIGTERM);
        working.end().code(0).prints("storm_spin");
        assert_eq!(reason(&trace(&output)), Some(EndReason::Interrupted));
        report(&output, &[]).code(0).prints("only the newest");
        assert!(target.is_running(), "{kind}");
    }
}

#[test]
fn sigusr1_without_keep_last_says_what_it_is_for() {
    let Some(target) = target() else { return };
    let folder = Folder::new();
    let output = folder.file("out.vmscope");
    let mut working = attach(&target, &output, &[]);
    await_samples(&output, 100);
    working.signal(Signal::SIGUSR1);
    working.await_line("--keep-last");
    working.signal(Signal::SIGINT);
    working.end().code(0);
    assert_eq!(folder.names(), ["out.vmscope"]);
}
