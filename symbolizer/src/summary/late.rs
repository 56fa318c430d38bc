//! Samples taken after their thread's CPU time was last read.

use crate::ids::{IndexVec, ThreadId};
use crate::profile::Profile;
use crate::time_buckets::Selection;
use crate::trace::TraceThread;
use vmscope_records::TimeNs;

/// Late samples of a selection by thread; none for threads without CPU readings.
///
/// Starts at the earliest last reading: CPU readings continue until the recording's end, so few
/// samples follow.
pub(super) fn by_thread(profile: &Profile, selection: &Selection) -> IndexVec<ThreadId, u64> {
    let trace = &profile.trace;
    let samples = &trace.samples;
    let last_cpu = trace.threads.map(|_, thread| last_reading(thread));
    let last_sample = profile.time_buckets.last_samples(samples);
    let ends = last_cpu.iter().zip(&last_sample);
    let with_late = ends.filter_map(|(cpu, sample)| cpu.filter(|cpu| *cpu < *sample));
    let mut late = trace.threads.with_each(0);
    let Some(first) = with_late.min() else {
        return late;
    };
    let kept = profile.time_buckets.kept(&selection.range);
    let from = samples.times.partition_point(|time| *time <= first);
    let range = kept.start.max(from)..kept.end;
    let times = samples.times.get(range.clone()).unwrap_or_default();
    let threads = samples.threads.get(range.clone()).unwrap_or_default();
    let places = samples.places.get(range).unwrap_or_default();
    for ((&time, &thread), &place) in times.iter().zip(threads).zip(places) {
        let cpu = last_cpu[thread];
        let is_taken = || {
            selection.takes_thread(thread) && selection.takes_place(&profile.time_buckets, place)
        };
        if cpu.is_some_and(|cpu| time > cpu) && is_taken() {
            late[thread] += 1;
        }
    }
    late
}

/// Time of a thread's last CPU reading.
fn last_reading(thread: &TraceThread) -> Option<TimeNs> {
    let read = thread.cpu.iter().map(|cpu| cpu.time);
    let read = read.chain(thread.end.as_ref().map(|end| end.time));
    read.max()
}
