//! Compiler threads' samples by compiled method.
//!
//! Polls of compiler threads observe compilations ([`Compilation`]). Samples between the first and
//! last poll that saw a compilation belong to it; samples in the gaps around belong to none.

use crate::ids::ThreadId;
use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::Stop;
use crate::trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use vmscope_records::{Compilation, ThreadRole, TimeNs};

/// Maximum listed methods, those with most samples.
pub const MAX_METHODS: usize = 1000;

/// Maximum listed compilations of a method, those with most samples.
pub const MAX_COMPILATIONS: usize = 100;

/// Samples between two checks of [`Stop`].
const STOP_EVERY: usize = 1 << 14;

/// Samples of compiler threads under a filter, among those kept individually. [`Compilers::told`],
/// `between`, `doubtful` and `unseen` add up to [`Compilers::samples`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilers {
    /// Samples of all compiler threads, by role or because of their compilations. A thread that also
    /// runs the program counts only during its compilations.
    pub samples: u64,
    /// Number of compiler threads with samples.
    pub threads: u64,
    /// Samples during an observed compilation.
    pub told: u64,
    /// Samples between two compilations. Either compilation, or an unobserved short one, may own them.
    pub between: u64,
    /// Samples within two compilations of one thread.
    pub doubtful: u64,
    /// Samples without a compilation nearby.
    pub unseen: u64,
    /// Observed compilations in the filter's window, with or without samples.
    pub compilations: u64,
    /// Methods with samples, most samples first, at most [`MAX_METHODS`].
    pub methods: Vec<CompiledMethod>,
    /// Methods beyond the limit, and their samples.
    pub left_out: (u64, u64),
}

/// A method compiled at one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledMethod {
    /// Name, in the form of constituents' names.
    pub name: String,
    /// Tier of the compilations.
    pub tier: String,
    /// Compiler samples for the method.
    pub samples: u64,
    /// Number of its compilations with samples.
    pub compilations: u64,
    /// Compilations with most samples; at most [`MAX_COMPILATIONS`].
    pub listed: Vec<CompiledOnce>,
}

/// One compilation with its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledOnce {
    /// The VM's compilation id.
    pub id: u64,
    /// Entry bytecode of on-stack replacement, if any.
    pub osr_bci: Option<u32>,
    /// The compiler thread.
    pub thread: ThreadId,
    /// First poll that saw the compilation.
    pub first_seen: TimeNs,
    /// Last poll that saw the compilation.
    pub last_seen: TimeNs,
    /// Compiler samples for this compilation.
    pub samples: u64,
}

/// Purpose of a compiler thread's sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// The compilation at this index.
    One(usize),
    /// One of two compilations.
    Between,
    /// Two compilations overlap.
    Doubtful,
    /// No compilation nearby.
    Nothing,
}

/// One thread's compilations by first poll.
struct Timeline<'a> {
    /// With indices in the trace.
    of_thread: Vec<(usize, &'a Compilation)>,
    /// Running maximum of the last polls.
    seen_until: Vec<TimeNs>,
    /// Running maximum of the latest possible ends.
    over_by: Vec<TimeNs>,
    /// From the back: running minimum of the earliest possible starts.
    may_begin: Vec<TimeNs>,
    /// Whether the thread also runs the program.
    is_mutator: bool,
}

impl<'a> Timeline<'a> {
    fn of(of_thread: Vec<(usize, &'a Compilation)>, is_mutator: bool) -> Self {
        let ends = |end: fn(&Compilation) -> TimeNs| {
            let running = of_thread.iter().scan(TimeNs(0), move |latest, (_, one)| {
                *latest = end(one).max(*latest);
                Some(*latest)
            });
            running.collect()
        };
        let (seen_until, over_by) = (ends(|one| one.last_seen), ends(Compilation::emitted_at));
        let backwards = of_thread.iter().rev();
        let mut may_begin: Vec<TimeNs> = backwards
            .scan(TimeNs(u64::MAX), |earliest, (_, one)| {
                *earliest = one.absent_at.unwrap_or(one.first_seen).min(*earliest);
                Some(*earliest)
            })
            .collect();
        may_begin.reverse();
        Timeline {
            of_thread,
            seen_until,
            over_by,
            may_begin,
            is_mutator,
        }
    }

    fn at(&self, time: TimeNs) -> For {
        let begun = (self.of_thread).partition_point(|(_, one)| one.first_seen <= time);
        let last = begun.checked_sub(1);
        let until = |times: &[TimeNs], index: usize| times.get(index).is_some_and(|&t| time <= t);
        if let Some(last) = last
            && let Some((index, one)) = self.of_thread.get(last)
        {
            let is_seen = time <= one.last_seen;
            // An earlier compilation, seen after this time too.
            let other = (last.checked_sub(1)).is_some_and(|i| until(&self.seen_until, i));
            match (is_seen, other) {
                (true, false) => return For::One(*index),
                (true, true) => return For::Doubtful,
                // An earlier compilation only, or several: indistinguishable.
                (false, true) => return For::Doubtful,
                (false, false) => {}
            }
            if until(&self.over_by, last) {
                return For::Between;
            }
        }
        let next_may = self.may_begin.get(begun).is_some_and(|&from| time >= from);
        if next_may { For::Between } else { For::Nothing }
    }
}

/// The compilations of all compiler threads; empty if none were recorded.
pub(crate) struct Timelines<'a>(FxHashMap<ThreadId, Timeline<'a>>);

impl<'a> Timelines<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        if trace.compilations.is_empty() {
            return Timelines(FxHashMap::default());
        }
        let mut by_thread: FxHashMap<ThreadId, Vec<(usize, &Compilation)>> = FxHashMap::default();
        for (index, one) in trace.compilations.iter().enumerate() {
            if let Some(thread) = trace.number_of(one.thread) {
                by_thread.entry(thread).or_default().push((index, one));
            }
        }
        let roles = trace.threads.enumerated();
        for (id, _) in roles.filter(|(_, one)| one.thread.role == ThreadRole::Compiler) {
            by_thread.entry(id).or_default();
        }
        let lines = by_thread.into_iter().map(|(thread, all)| {
            let role = trace.threads[thread].thread.role;
            (thread, Timeline::of(all, role == ThreadRole::Mutator))
        });
        Timelines(lines.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, thread: ThreadId) -> bool {
        self.0.contains_key(&thread)
    }

    /// The purpose of a thread's sample; `None` unless the thread compiles. A thread that also runs
    /// the program compiles only during its compilations.
    pub fn at(&self, thread: ThreadId, time: TimeNs) -> Option<For> {
        let line = self.0.get(&thread)?;
        match line.at(time) {
            For::Nothing | For::Between if line.is_mutator => None,
            purpose => Some(purpose),
        }
    }
}

impl Compilers {
    /// Counts the compilers' samples under a filter; `None` if the recording has no compilations,
    /// or `stop` was requested first.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Self> {
        let trace = &profile.trace;
        if trace.compilations.is_empty() {
            return None;
        }
        let lines = Timelines::of(trace);

        let mut compilers = Compilers::default();
        let mut counts = vec![0u64; trace.compilations.len()];
        let mut threads = FxHashSet::default();
        let takes_place = filter.takes_places(profile);
        let samples = &trace.samples;
        // Compilers rarely run: most time buckets hold none of their samples.
        let ranges =
            (profile.time_buckets).ranges_of(samples.times.len(), |thread| lines.has(thread));
        for (count, index) in ranges.into_iter().flatten().enumerate() {
            if count.is_multiple_of(STOP_EVERY) {
                stop.look(index, samples.times.len())?;
            }
            let (time, thread) = (samples.times[index], samples.threads[index]);
            let place = samples.places[index];
            if !lines.has(thread) || !filter.takes(thread, time) || !takes_place(place) {
                continue;
            }
            let Some(purpose) = lines.at(thread, time) else {
                continue;
            };
            threads.insert(thread);
            compilers.samples += 1;
            match purpose {
                For::One(index) => {
                    compilers.told += 1;
                    counts[index] += 1;
                }
                For::Between => compilers.between += 1,
                For::Doubtful => compilers.doubtful += 1,
                For::Nothing => compilers.unseen += 1,
            }
        }
        compilers.threads = threads.len() as u64;
        let in_filter = |one: &&Compilation| {
            let thread = trace.number_of(one.thread);
            let begins_in_time = filter.to.is_none_or(|to| one.first_seen < to);
            let ends_in_time = filter.from.is_none_or(|from| one.last_seen >= from);
            let takes_thread =
                thread.map_or(filter.takes_all_threads(), |t| filter.takes_thread(t));
            begins_in_time && ends_in_time && takes_thread
        };
        compilers.compilations = trace.compilations.iter().filter(in_filter).count() as u64;
        compilers.list(profile, &counts);
        Some(compilers)
    }

    /// Sums by method and tier.
    fn list(&mut self, profile: &Profile, counts: &[u64]) {
        let trace = &profile.trace;
        let mut methods: FxHashMap<(&str, &str), CompiledMethod> = FxHashMap::default();
        for (one, &samples) in trace.compilations.iter().zip(counts) {
            let Some(thread) = trace.number_of(one.thread).filter(|_| samples > 0) else {
                continue;
            };
            let key = (one.name.as_str(), one.tier.as_str());
            let method = methods.entry(key).or_insert_with(|| CompiledMethod {
                name: one.name.clone(),
                tier: one.tier.clone(),
                samples: 0,
                compilations: 0,
                listed: Vec::new(),
            });
            method.samples += samples;
            method.compilations += 1;
            method.listed.push(CompiledOnce {
                id: one.id,
                osr_bci: one.osr_bci,
                thread,
                first_seen: one.first_seen,
                last_seen: one.last_seen,
                samples,
            });
        }
        let mut methods: Vec<CompiledMethod> = methods.into_values().collect();
        methods.sort_by(|a, b| {
            let names = || (&a.name, &a.tier).cmp(&(&b.name, &b.tier));
            b.samples.cmp(&a.samples).then_with(names)
        });
        let rest = methods.get(MAX_METHODS..).unwrap_or_default();
        let left_out = rest.iter().map(|method| method.samples).sum();
        self.left_out = (rest.len() as u64, left_out);
        methods.truncate(MAX_METHODS);
        for method in &mut methods {
            let key = |one: &CompiledOnce| (Reverse(one.samples), one.first_seen, one.id);
            method.listed.sort_by_key(key);
            method.listed.truncate(MAX_COMPILATIONS);
        }
        self.methods = methods;
    }
}
