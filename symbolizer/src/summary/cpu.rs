//! CPU time of threads over time, and the expected samples (docs/truth.md §2).

use super::{Filter, late, window};
use crate::ids::{IndexVec, ThreadId};
use crate::profile::Profile;
use crate::time_buckets::{Selection, Stop};
use crate::trace::TraceThread;
use vmscope_records::{DurationNs, TimeNs};

/// A thread's CPU readings (total or user time), with linear interpolation.
pub(super) struct CpuLine(Vec<(TimeNs, u64)>);

/// A thread's CPU time in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// User and kernel time, if known.
    pub cpu: Option<DurationNs>,
    /// Expected samples for the CPU time, plus the samples after its last reading. `None` if
    /// unknown, and under [`Filter::only`].
    pub promised: Option<f64>,
}

impl CpuLine {
    /// `None` without readings.
    pub fn of(thread: &TraceThread, begin: TimeNs, user: bool) -> Option<Self> {
        let end = thread
            .end
            .as_ref()
            .map(|end| (end.time, end.cpu, end.cpu_user));
        // The account starts with the recording, even for older threads.
        let points: Vec<(TimeNs, u64)> = std::iter::once((thread.thread.time.max(begin), 0))
            .chain(
                (thread
                    .cpu
                    .iter()
                    .map(|cpu| (cpu.time, cpu.cpu, cpu.cpu_user)))
                .chain(end)
                .filter_map(|(time, cpu, cpu_user)| {
                    Some((time, if user { cpu_user?.0 } else { cpu.0 }))
                }),
            )
            .collect();
        (points.len() >= 2).then_some(CpuLine(points))
    }

    /// CPU time used in a window.
    pub fn used(&self, window: (TimeNs, TimeNs)) -> DurationNs {
        DurationNs(self.at(window.1).saturating_sub(self.at(window.0)))
    }

    /// CPU time used before `time`.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an interpolation of nanoseconds between two values that fit"
    )]
    fn at(&self, time: TimeNs) -> u64 {
        let CpuLine(points) = self;
        let after = points.partition_point(|(at, _)| *at <= time);
        match (
            after.checked_sub(1).and_then(|before| points.get(before)),
            points.get(after),
        ) {
            (Some(&(t0, v0)), Some(&(t1, v1))) => {
                let part = time.since(t0).0 as f64 / (t1.since(t0).0.max(1)) as f64;
                v0.saturating_add((v1.saturating_sub(v0) as f64 * part) as u64)
            }
            (Some(&(_, value)), None) | (None, Some(&(_, value))) => value,
            (None, None) => 0,
        }
    }
}

/// Basis of expected samples: the period in ns, whether kernel time counts, and the start of the
/// accounts.
fn terms(profile: &Profile) -> (f64, bool, TimeNs) {
    let session = profile.trace.session.as_ref();
    #[expect(clippy::cast_precision_loss, reason = "a period is far below 2^52 ns")]
    let period = session.map_or(0.0, |session| session.period.0 as f64);
    let kernel = session.is_none_or(|session| session.kernel_included);
    let begin = session.map_or(TimeNs(0), |session| session.time);
    (period.max(1.0), kernel, begin)
}

/// Each thread's account in the filter's window; empty for other threads. `None` if `stop` was
/// requested first.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a recording are below 2^52"
)]
pub fn accounts(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<IndexVec<ThreadId, Account>> {
    let (period, kernel, begin) = terms(profile);
    let window = window(profile, filter);
    let late = late::by_thread(profile, &Selection::new(profile, filter));
    let is_whole = filter.only.is_everything();
    let accounts = profile.trace.threads.enumerated().map(|(index, thread)| {
        if stop.is_stopped() {
            return None;
        }
        if !filter.takes_thread(index) {
            return Some(Account::default());
        }
        let used = |user| Some(CpuLine::of(thread, begin, user)?.used(window));
        let cpu = used(false);
        let sampled = if kernel { cpu } else { used(true) };
        let promised = sampled.map(|cpu| cpu.0 as f64 / period + late[index] as f64);
        Some(Account {
            cpu,
            promised: promised.filter(|_| is_whole),
        })
    });
    accounts.collect()
}

/// Expected samples for the CPU time of the filter's threads between consecutive `edges`. Assumes
/// constant use between two readings (several per second). `None` without any known CPU time, under
/// [`Filter::only`], and if `stop` was requested first.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a recording are below 2^52"
)]
pub fn promised_by_column(
    profile: &Profile,
    filter: &Filter,
    edges: &[TimeNs],
    stop: &Stop,
) -> Option<Vec<f64>> {
    if !filter.only.is_everything() {
        return None;
    }
    let (period, kernel, begin) = terms(profile);
    let mut promised = vec![0.0; edges.len().saturating_sub(1)];
    let mut known = false;
    let threads = profile.trace.threads.enumerated();
    for (_, thread) in threads.filter(|(index, _)| filter.takes_thread(*index)) {
        if stop.is_stopped() {
            return None;
        }
        let Some(line) = CpuLine::of(thread, begin, !kernel) else {
            continue;
        };
        known = true;
        for (slot, edges) in promised.iter_mut().zip(edges.windows(2)) {
            if let &[from, to] = edges {
                *slot += line.used((from, to)).0 as f64 / period;
            }
        }
    }
    known.then_some(promised)
}
