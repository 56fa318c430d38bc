//! A live profile beside the recording of the same session: attached to a running program,
//! in steps of 200 ms.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod watched;

use std::time::Duration;

use common::targets::Target;
use vmscope_records::EndReason;
use vmscope_symbolizer::Omitted;
use vmscope_symbolizer::symbols::Hits;
use watched::{difference, profile_at, totals, watch};

#[test]
fn a_live_profile_is_that_of_the_recording() {
    let Some(target) = Target::known_shares(2) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vmscope");
    let Some(both) = watch(target.pid(), Some(&path), Duration::from_secs(2), || {}) else {
        return;
    };
    assert_eq!(both.outcome.reason, EndReason::DurationOver);
    let whole = profile_at(&path, &both.files);
    assert_eq!(
        both.live.omitted(),
        Omitted::default(),
        "nothing came too late"
    );
    let live = both.live.profile().read().unwrap();
    assert!(
        live.trace.samples.times.len() > 500,
        "{}",
        live.trace.samples.times.len()
    );
    assert_eq!(live.trace.samples.times, whole.trace.samples.times);
    assert_eq!(totals(&live), totals(&whole));
    assert_eq!(live.trace.marks, whole.trace.marks);
    assert_eq!(live.trace.marks.len(), 1);
    assert!(live.trace.end.is_some());
    // Symbols are embedded for the places collected while recording.
    let read = Hits::missing_in(&whole.trace);
    let collected = &both.outcome.hits;
    let mut modules: Vec<_> = collected.modules().collect();
    modules.sort_unstable_by_key(|(key, _)| *key);
    let of_trace = read.modules.into_iter();
    let of_trace: Vec<_> = of_trace.map(|(one, at)| (one.key, at)).collect();
    assert!(!modules.is_empty() && collected.are_all());
    assert_eq!(modules, of_trace);
    assert_eq!(collected.kernel_places(), read.kernel);
}

#[test]
fn a_recording_in_memory_is_saved_after_its_target_has_exited() {
    let Some(mut target) = Target::known_shares(1) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pid = target.pid();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        target.signal(nix::sys::signal::Signal::SIGTERM);
        target.wait();
    });
    let both = watch(pid, None, Duration::from_secs(60), || {});
    ends.join().unwrap();
    let Some(mut both) = both else {
        return;
    };
    assert_eq!(both.outcome.reason, EndReason::TargetExited);
    let mut kept = both.outcome.kept.take().unwrap();
    for name in ["a.vmscope", "b.vmscope"] {
        let path = folder.path().join(name);
        let written = kept.save(&path).unwrap();
        let whole = profile_at(&path, &both.files);
        let live = both.live.profile().read().unwrap();
        let samples = live.trace.samples.times.len() as u64;
        assert!(samples > 0);
        assert_eq!(written.samples, samples);
        // The end tells as many.
        assert_eq!(both.outcome.written.samples, samples);
        assert_eq!(difference(&live, &whole), 0);
    }
}
