//! Any records into a growing profile. In any order and with any steps, all samples count and all
//! bounds hold. In a session's order, the profile equals the whole recording's profile, whatever
//! the number of steps.
#![no_main]

#[path = "../../tests/recordings/mod.rs"]
mod recordings;

use libfuzzer_sys::fuzz_target;
use recordings::live::{NoFiles, live_of, records_of, rows, told_at, told_times};
use recordings::read;
use std::collections::HashSet;
use std::sync::PoisonError;
use vmscope_records::recording::{Writer, plain_recording};
use vmscope_records::{DurationNs, Record, TimeNs};
use vmscope_symbolizer::time_buckets::{BUCKET, Counts};
use vmscope_symbolizer::{Bounds, Filter, Live, Omitted, Profile, Region, Stop, profile_of};

/// Some of the bounds are reached by small inputs.
const BOUNDS: Bounds = Bounds {
    samples: 64,
    age: DurationNs(1 << 40),
    entries: 8,
    sites: 16,
    series: 8,
    threads: 4,
    processes: 4,
    codes: 8,
    code: 256,
    cpu_readings: 4,
};

fn profile<T>(live: &Live, ask: impl FnOnce(&Profile) -> T) -> T {
    ask(&live
        .profile()
        .read()
        .unwrap_or_else(PoisonError::into_inner))
}

fn count(profile: &Profile) -> u64 {
    let counts = Counts::of(profile, &Filter::default(), &Stop::new());
    counts.map_or(u64::MAX, |counts| counts.total)
}

/// Takes records as they come, with a step after every `every`, up to `back` before the
/// time of the last one.
fn in_any_order(records: &[Record], every: usize, back: u64) {
    let mut live = Live::new(true, BOUNDS);
    let (mut settled, mut until) = (0, TimeNs(0));
    for part in records.chunks(every) {
        for record in part {
            until = record.time().unwrap_or(until);
            live.take(record.clone());
        }
        settled += live
            .settle(TimeNs(until.0.saturating_sub(back)), &NoFiles)
            .samples;
        check(&live, settled, every);
    }
    settled += live.finish(&NoFiles).samples;
    let samples = records
        .iter()
        .filter(|record| matches!(record, Record::Sample(_)));
    assert_eq!(settled, samples.count() as u64);
    check(&live, settled, records.len());
}

/// Checks a profile of `settled` samples after a step of at most `step` records.
fn check(live: &Live, settled: u64, step: usize) {
    let omitted = live.omitted();
    profile(live, |profile| {
        let trace = &profile.trace;
        assert_eq!(profile.omitted, Some(omitted));
        let kept = trace.samples.times.len();
        assert_eq!(kept as u64 + omitted.samples, settled);
        assert_eq!(count(profile), settled);
        assert!(kept <= BOUNDS.samples + BOUNDS.samples / 8 + BUCKET + step);
        assert!(trace.samples.times.is_sorted());
        assert_eq!(profile.site_of_place.len(), trace.places.len());
        // Each region has two more entries for omitted ones: of code, and of other functions.
        assert!(profile.entries.len() <= BOUNDS.entries + 2 * Region::ALL.len());
        let series = BOUNDS.series + BOUNDS.series / 8;
        for (what, length) in [
            ("limits", trace.limits.len()),
            ("facts", trace.facts.len()),
            ("marks", trace.marks.len()),
            ("collections", trace.collections.len()),
            ("compilations", trace.compilations.len()),
        ] {
            assert!(length <= series, "{length} {what}");
        }
    });
}

/// Puts records in the order of a session, which tells threads and parents before their
/// samples and children, and each once.
fn as_a_session(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(told_at);
    let (mut threads, mut processes) = (HashSet::new(), HashSet::new());
    records.retain_mut(|record| match record {
        Record::Thread(one) => threads.insert(one.key),
        Record::ThreadUpdate(one) => threads.contains(&one.key),
        Record::Sample(one) => threads.contains(&one.thread),
        Record::Process(one) => {
            one.parent = one.parent.filter(|parent| processes.contains(parent));
            processes.insert(one.key)
        }
        _ => true,
    });
    records
}

/// In a session's order, with steps only up to completely known times.
fn in_order(records: Vec<Record>, steps: usize) {
    let records = as_a_session(records);

    let at_once = live_of(&records, &[], Bounds::default()).0;
    if at_once.omitted() != Omitted::default() {
        return;
    }
    let all = profile(&at_once, rows);
    let (stepped, done) = live_of(&records, &told_times(&records, steps), Bounds::default());
    assert_eq!(
        done.iter().map(|step| step.samples).sum::<u64>(),
        all.len() as u64
    );
    if stepped.omitted() == Omitted::default() {
        assert_eq!(profile(&stepped, rows), all);
    }
    let mut writer = Writer::begin(Vec::new()).expect("memory takes everything");
    for record in records {
        writer.put(record).expect("memory takes everything");
    }
    let recording = writer.close().expect("memory takes everything");
    // Samples out of order have the place of a later time.
    if let Ok(whole) = read(&recording)
        && whole.unread.is_none()
        && whole.disordered_samples == 0
    {
        assert_eq!(rows(&profile_of(whole, Vec::new(), true)), all);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[every, back, steps], payload)) = input.split_first_chunk() else {
        return;
    };
    let records = records_of(&plain_recording(payload));
    in_any_order(&records, 1 + usize::from(every), 1 << (back % 64));
    in_order(records, 1 + usize::from(steps % 16));
});
