//! Counts a profile's samples under a filter.

mod cpu;
pub(crate) mod errors;
mod filter;
mod late;
mod quality;

pub use cpu::{Account, accounts, promised_by_column};
pub use filter::{EntryMask, Filter, Only};
pub use quality::{Inferred, Quality};

use crate::ids::{Id, IndexVec, ThreadId};
use crate::profile::{EntryId, Profile, Region, SiteId};
use crate::time_buckets::{Counts, Selection, Spot, Stop};
use cpu::CpuLine;
use rustc_hash::FxHashMap;
use vmscope_records::{
    DurationNs, Exactness, LossReason, Lost, ProcessEnd, ProcessKey, Stream, TimeNs,
};

/// Values of [`Exactness`] by number.
const WORTHS: [Exactness; 3] = [
    Exactness::Exact,
    Exactness::Approximate,
    Exactness::MethodOnly,
];

/// One thread's figures.
#[derive(Clone, Debug)]
pub struct ThreadSummary {
    /// The thread.
    pub thread: ThreadId,
    /// The thread's samples.
    pub samples: u64,
    /// CPU time used in the window, if known.
    pub cpu: Option<DurationNs>,
    /// Expected samples for that CPU time, plus those after its last reading. `None` if unknown,
    /// and under [`Filter::only`].
    pub promised: Option<f64>,
}

/// A profile's counts under a filter.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Overlap of the recording and the filter's window: first and last instant.
    pub window: (TimeNs, TimeNs),
    /// All samples.
    pub total: u64,
    /// Samples of the VM in VMProfiler's sense.
    pub vm: u64,
    /// Samples in the order of [`Region::ALL`].
    pub regions: [u64; Region::ALL.len()],
    /// Samples by entry.
    pub entries: IndexVec<EntryId, u64>,
    /// Samples by site.
    pub sites: IndexVec<SiteId, u64>,
    /// Samples in interpreters without a known method by site: part of `sites`.
    pub without_method: FxHashMap<SiteId, u64>,
    /// The filter's threads with samples or CPU time.
    pub threads: Vec<ThreadSummary>,
    /// Quality of the resolution.
    pub quality: Quality,
    /// Quality of JIT and interpreted code only, without native code.
    pub of_code: Quality,
    /// Expected samples for the threads' CPU time (docs/truth.md §2). `None` if unknown, and under
    /// [`Filter::only`], since CPU time has no location.
    pub promised: Option<f64>,
    /// Whether the filter has conditions on code ([`Filter::only`]).
    pub by_code: bool,
    /// The filter's threads without known CPU time.
    pub threads_without_cpu: u64,
    /// Samples after their thread's last CPU reading, in a truncated or partial recording. Their
    /// expected number is unknown, so they count as expected.
    pub after_last_cpu: u64,
    /// Known lost samples in the window.
    pub lost: u64,
    /// Sampling error: 95 % half-width of each entry's share of all filtered samples, by batch
    /// means. Filled only on request ([`Summary::errors_by_entry`]) and if samples suffice.
    pub errors: IndexVec<EntryId, f64>,
    /// By entry: samples whose method is inferred.
    pub inferred: IndexVec<EntryId, Inferred>,
}

impl Summary {
    /// Counts the filter's samples and estimates the errors of the entries' shares.
    #[must_use]
    pub fn with_errors(profile: &Profile, filter: &Filter) -> Self {
        // No other holder of this stop: both computations complete.
        let stop = Stop::new();
        let mut summary = Self::of(profile, filter, &stop).unwrap_or_default();
        let errors = Self::errors_by_entry(profile, filter, &stop);
        summary.errors = errors.unwrap_or_default();
        summary
    }

    /// Computes [`Summary::errors`], which takes longer than counting. `None` if `stop` was
    /// requested first.
    #[must_use]
    pub fn errors_by_entry(
        profile: &Profile,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<IndexVec<EntryId, f64>> {
        let selection = Selection::new(profile, filter);
        let total = selection.total(profile, stop)?;
        let entry_of = |spot: &Spot| Some(spot.entry.number());
        let size = (total, profile.entries.len());
        Some(errors::batch_errors(profile, &selection, entry_of, size, stop)?.into())
    }

    /// Samples of an entry; 0 for entries newer than this summary.
    #[must_use]
    pub fn samples_of(&self, entry: EntryId) -> u64 {
        self.entries.get(entry).copied().unwrap_or(0)
    }

    /// Error of an entry's share of all filtered samples: its sampling error, by batch means, and the
    /// bound of its inference error. `None` if samples are too few.
    #[must_use]
    pub fn error(&self, entry: EntryId) -> Option<f64> {
        let sampling = self.errors.get(entry)?;
        Some(sampling + self.inference_error(entry))
    }

    /// Bound of the inference error of an entry's share of all filtered samples, 0 to 1.
    #[must_use]
    pub fn inference_error(&self, entry: EntryId) -> f64 {
        let inferred = self.inferred.get(entry).copied();
        inferred.unwrap_or_default().error(self.total)
    }

    /// Whether most samples of an entry have an inferred method.
    #[must_use]
    pub fn is_inferred(&self, entry: EntryId) -> bool {
        let inferred = self.inferred.get(entry);
        inferred.is_some_and(|inferred| inferred.is_most_of(self.entries[entry]))
    }

    /// Greatest inference error of the entries with mostly inferred samples, 0 to 1; `None` without
    /// such entries.
    #[must_use]
    pub fn worst_inference(&self) -> Option<f64> {
        let inferred = self.inferred.ids().filter(|entry| self.is_inferred(*entry));
        inferred
            .map(|entry| self.inference_error(entry))
            .reduce(f64::max)
    }

    /// CPU time used in the window by the filter's threads, and the CPUs busy with them on
    /// average; `None` if no thread's CPU time is known, or for an empty window.
    #[must_use]
    pub fn cpu_used(&self) -> Option<(DurationNs, f64)> {
        let known = self.threads.iter().filter_map(|thread| thread.cpu);
        let cpu = DurationNs(known.map(|cpu| cpu.0).sum());
        let (from, to) = self.window;
        let seconds = to.since(from).as_secs_f64();
        (cpu.0 > 0 && seconds > 0.0).then(|| (cpu, cpu.as_secs_f64() / seconds))
    }

    /// Counts the filter's samples without [`Summary::errors`] (see [`Summary::errors_by_entry`]).
    /// `None` if `stop` was requested first.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        let selection = Selection::new(profile, filter);
        let counts = Counts::of_selection(profile, &selection, stop)?;
        let late_by_thread = late::by_thread(profile, &selection);
        let total = counts.total;
        let mut entries = profile.entries.with_each(0);
        let (mut quality, mut of_code) = (Quality::default(), Quality::default());
        let mut regions = [0; Region::ALL.len()];
        let by_entry = counts.entries.iter().zip(&profile.entries);
        for ((by_worth, entry), sum) in by_entry.zip(&mut entries) {
            *sum = by_worth.iter().sum();
            if *sum == 0 {
                continue;
            }
            regions[entry.region as usize] += *sum;
            let is_code = quality::is_vm_code(entry);
            let [known @ .., without_method] = by_worth;
            for (&count, exactness) in known.iter().zip(WORTHS) {
                quality.take(entry, exactness, count);
                of_code.take(entry, exactness, if is_code { count } else { 0 });
            }
            quality.take_without_method(*without_method);
            of_code.take_without_method(if is_code { *without_method } else { 0 });
        }
        quality.interpreted = counts.interpreted;
        let vm = Region::ALL.iter().filter(|region| region.is_vm());
        let window = window(profile, filter);
        let mut summary = Summary {
            window,
            total,
            vm: vm.map(|&region| regions[region as usize]).sum(),
            regions,
            entries,
            sites: counts.sites,
            without_method: counts.without_method,
            threads: Vec::new(),
            quality,
            of_code,
            promised: None,
            by_code: !filter.only.is_everything(),
            threads_without_cpu: 0,
            after_last_cpu: 0,
            lost: lost(profile, filter, window),
            errors: IndexVec::default(),
            inferred: counts.inferred,
        };
        summary.count_threads(profile, filter, &counts.threads, &late_by_thread);
        Some(summary)
    }

    /// Share of `samples` in all filtered samples, 0 to 1.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn share(&self, samples: u64) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            samples as f64 / self.total as f64
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds of a recording are below 2^52"
    )]
    fn count_threads(
        &mut self,
        profile: &Profile,
        filter: &Filter,
        by_thread: &IndexVec<ThreadId, u64>,
        late_by_thread: &IndexVec<ThreadId, u64>,
    ) {
        let session = profile.trace.session.as_ref();
        let period = session.map_or(0.0, |session| session.period.0 as f64);
        let kernel = session.is_none_or(|session| session.kernel_included);
        let begin = session.map_or(TimeNs(0), |session| session.time);
        let mut promised = 0.0;
        let mut known = false;
        let counted = by_thread.iter().zip(late_by_thread);
        let threads = profile.trace.threads.enumerated().zip(counted);
        for ((index, thread), (&samples, &late)) in threads {
            if !filter.takes_thread(index) {
                continue;
            }
            let cpu_in = |user| Some(CpuLine::of(thread, begin, user)?.used(self.window));
            let cpu = cpu_in(false);
            let sampled = if kernel { cpu } else { cpu_in(true) };
            let of_thread = sampled.map(|cpu| cpu.0 as f64 / period.max(1.0) + late as f64);
            match of_thread {
                Some(of_thread) => {
                    known = true;
                    promised += of_thread;
                    self.after_last_cpu += late;
                }
                None => self.threads_without_cpu += u64::from(samples > 0),
            }
            if samples > 0 || cpu.is_some_and(|cpu| cpu.0 > 0) {
                self.threads.push(ThreadSummary {
                    thread: index,
                    samples,
                    cpu,
                    promised: of_thread.filter(|_| filter.only.is_everything()),
                });
            }
        }
        if !filter.only.is_everything() {
            // CPU time has no location.
            self.after_last_cpu = 0;
            self.threads_without_cpu = 0;
            return self.sort_threads();
        }
        self.promised = known.then_some(promised);
        if filter.takes_all_threads() && filter.from.is_none() && filter.to.is_none() {
            // Process totals include threads too short-lived for a reading.
            if let Some(cpu) = process_cpu(profile, kernel) {
                self.promised = Some(cpu / period.max(1.0));
                self.after_last_cpu = 0;
            }
        }
        self.sort_threads();
    }

    fn sort_threads(&mut self) {
        self.threads
            .sort_by_key(|thread| std::cmp::Reverse(thread.samples));
    }
}

/// CPU time of all processes in nanoseconds (user time only if the kernel is excluded). `None`
/// unless known for each process over the whole recording.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a recording are below 2^52"
)]
fn process_cpu(profile: &Profile, kernel: bool) -> Option<f64> {
    let trace = &profile.trace;
    let newest_only = trace
        .limits
        .iter()
        .any(|limit| limit.kind == vmscope_records::LimitKind::OnlyNewestKept);
    if newest_only || trace.processes.is_empty() {
        return None;
    }
    let of_one = |end: &ProcessEnd| if kernel { end.cpu } else { end.cpu_user };
    // Keep the newest: an exit may be recorded twice.
    let ends: FxHashMap<ProcessKey, &ProcessEnd> = trace
        .process_ends
        .iter()
        .map(|end| (end.key, end))
        .collect();
    trace
        .processes
        .keys()
        .map(|key| Some(of_one(ends.get(key)?)?.0 as f64))
        .sum()
}

/// Overlap of recording and filter. A window starts and ends with kept samples.
fn window(profile: &Profile, filter: &Filter) -> (TimeNs, TimeNs) {
    let trace = &profile.trace;
    let kept_from = trace
        .limits
        .iter()
        .filter(|limit| limit.kind == vmscope_records::LimitKind::OnlyNewestKept);
    let start = trace
        .session
        .as_ref()
        .map_or(TimeNs(0), |session| session.time);
    // With --keep-last the recording starts at the end of the last dropped chunk.
    let start = kept_from.map(|limit| limit.time).max().unwrap_or(start);
    let end = match &trace.end {
        Some(end) => end.time,
        None => trace.ending.last_time.max(start),
    };
    let kept_from = profile.time_buckets.kept_from().unwrap_or(start).max(start);
    let from = filter.from.map_or(start, |from| from.max(kept_from));
    let to = filter.to.map_or(end, |to| to.max(kept_from).min(end));
    (from, to.max(from))
}

/// Whether a loss concerns a window. Losses after the recording's end (of the adapters' last polls)
/// belong to its end. Code that a VM failed to report is missing at all times: perf maps name code
/// later than it ran, and code stays.
#[must_use]
pub fn is_loss_in(profile: &Profile, lost: &Lost, window: (TimeNs, TimeNs)) -> bool {
    let (_, end) = self::window(profile, &Filter::default());
    let is_in_time = lost.from.min(end) <= window.1 && lost.to >= window.0;
    is_in_time || lost.stream == Stream::Adapter
}

/// Samples lost in spans overlapping the window.
fn lost(profile: &Profile, filter: &Filter, window: (TimeNs, TimeNs)) -> u64 {
    let trace = &profile.trace;
    // A loss without a thread may affect any thread.
    let is_of_filter = |lost: &Lost| {
        let thread = lost.thread.and_then(|key| trace.number_of(key));
        thread.is_none_or(|thread| filter.takes_thread(thread))
    };
    let in_window = trace.lost.iter().filter(|lost| {
        matches!(lost.stream, Stream::Samples | Stream::Any)
            && lost.reason != LossReason::KeepLastFull
            && is_loss_in(profile, lost, window)
            && is_of_filter(lost)
    });
    // Saturating: counts in a damaged recording are arbitrary.
    in_window.fold(0, |sum, lost| lost.count.saturating_add(sum))
}
