//! What the compilers' samples are worth to whom: which methods keep them busy.
//!
//! A compilation is seen by looks at its thread ([`Compilation`]). Samples of that thread
//! between the first and the last look that saw it are its own; what is between a look
//! that saw it and one that did not is nobody's.

use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::Stop;
use crate::trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use vmscope_records::{Compilation, ThreadRole, TimeNs};

/// So many methods are listed, those with most samples.
pub const MAX_METHODS: usize = 1000;

/// So many compilations of a method are listed, those with most samples.
pub const MAX_COMPILATIONS: usize = 100;

/// Samples between two looks at whether to go on.
const STOP_EVERY: usize = 1 << 14;

/// The samples of compilers' threads under a filter, of those that are kept one by one. The three that are nobody's and
/// [`Compilers::told`] sum up to [`Compilers::samples`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compilers {
    /// All samples of threads that compile: those for which compilations are told, and
    /// those whose role it is.
    pub samples: u64,
    /// How many such threads there are.
    pub threads: u64,
    /// Samples while a method was seen to be compiled.
    pub told: u64,
    /// Samples between two compilations: which of the two they belong to, or to a third
    /// one that was too short to be seen, is not known.
    pub between: u64,
    /// Samples where two compilations of one thread are told at the same time.
    pub doubtful: u64,
    /// Samples while no compilation was seen.
    pub unseen: u64,
    /// Compilations that were seen in that time, with samples or without.
    pub compilations: u64,
    /// What was compiled, most samples first, at most [`MAX_METHODS`]; only what has any.
    pub methods: Vec<CompiledMethod>,
    /// Methods with samples that there was no room for, and their samples.
    pub left_out: (u64, u64),
}

/// A method that kept a compiler busy, at one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledMethod {
    /// Its name, as constituents are named.
    pub name: String,
    /// The tier that was made.
    pub tier: String,
    /// The compilers' samples that it took.
    pub samples: u64,
    /// How many of its compilations have samples.
    pub compilations: u64,
    /// Those with most samples, at most [`MAX_COMPILATIONS`].
    pub listed: Vec<CompiledOnce>,
}

/// One compilation with its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompiledOnce {
    /// The VM's number of it.
    pub id: u64,
    /// The bytecode at which on-stack replacement enters, if it was for that.
    pub osr_bci: Option<u32>,
    /// Index in [`crate::Trace::threads`].
    pub thread: u32,
    /// When it was seen first.
    pub first_seen: TimeNs,
    /// When it was seen last.
    pub last_seen: TimeNs,
    /// The compiler's samples that it took.
    pub samples: u64,
}

/// What a sample of a compiler's thread was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// The compilation of that index.
    One(usize),
    /// Which of two is not known.
    Between,
    /// Two are told at that time.
    Doubtful,
    /// None was seen.
    Nothing,
}

/// The compilations of one thread, by their beginnings.
struct Timeline<'a> {
    /// With their indices in the trace.
    of_thread: Vec<(usize, &'a Compilation)>,
    /// For each, until when it or one before it was seen.
    seen_until: Vec<TimeNs>,
    /// For each, until when it or one before it may have gone on.
    over_by: Vec<TimeNs>,
    /// For each, from when on it or one after it may have been going on.
    may_begin: Vec<TimeNs>,
}

impl<'a> Timeline<'a> {
    fn of(of_thread: Vec<(usize, &'a Compilation)>) -> Self {
        let ends = |end: fn(&Compilation) -> TimeNs| {
            let running = of_thread.iter().scan(TimeNs(0), move |latest, (_, one)| {
                *latest = end(one).max(*latest);
                Some(*latest)
            });
            running.collect()
        };
        let (seen_until, over_by) = (ends(|one| one.last_seen), ends(Compilation::told_at));
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
            // One that began before and was seen after this time, too.
            let other = (last.checked_sub(1)).is_some_and(|i| until(&self.seen_until, i));
            match (is_seen, other) {
                (true, false) => return For::One(*index),
                (true, true) => return For::Doubtful,
                // The only one, or one of several: too odd to be told apart.
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

/// The compilations of all threads that compile; none where no compilation is told.
pub(crate) struct Timelines<'a>(FxHashMap<u32, Timeline<'a>>);

impl<'a> Timelines<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        if trace.compilations.is_empty() {
            return Timelines(FxHashMap::default());
        }
        let mut by_thread: FxHashMap<u32, Vec<(usize, &Compilation)>> = FxHashMap::default();
        for (index, one) in trace.compilations.iter().enumerate() {
            if let Some(thread) = trace.number_of(one.thread) {
                by_thread.entry(thread).or_default().push((index, one));
            }
        }
        let roles = trace.threads.iter().zip(0u32..);
        for (_, thread) in roles.filter(|(t, _)| t.thread.role == ThreadRole::Compiler) {
            by_thread.entry(thread).or_default();
        }
        let lines = (by_thread.into_iter()).map(|(thread, all)| (thread, Timeline::of(all)));
        Timelines(lines.collect())
    }

    /// Whether no thread does.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a thread compiles.
    pub fn has(&self, thread: u32) -> bool {
        self.0.contains_key(&thread)
    }

    /// What a sample of a thread was for; `None` of a thread that does not compile.
    pub fn at(&self, thread: u32, time: TimeNs) -> Option<For> {
        self.0.get(&thread).map(|line| line.at(time))
    }
}

impl Compilers {
    /// Counts the compilers' samples under a filter; `None` if the recording has no
    /// compilations, or `stop` was requested first.
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
        // Compilers are at work seldom: most time buckets hold nothing of theirs.
        let ranges =
            (profile.time_buckets).ranges_of(samples.times.len(), |thread| lines.has(thread));
        for (count, index) in ranges.into_iter().flatten().enumerate() {
            if count.is_multiple_of(STOP_EVERY) {
                stop.look(index, samples.times.len())?;
            }
            let (Some(&time), Some(&thread), Some(&place)) = (
                samples.times.get(index),
                samples.threads.get(index),
                samples.places.get(index),
            ) else {
                continue;
            };
            if !lines.has(thread) || !filter.takes(thread, time) || !takes_place(place) {
                continue;
            }
            threads.insert(thread);
            compilers.samples += 1;
            match lines.at(thread, time) {
                Some(For::One(index)) => {
                    compilers.told += 1;
                    if let Some(slot) = counts.get_mut(index) {
                        *slot += 1;
                    }
                }
                Some(For::Between) => compilers.between += 1,
                Some(For::Doubtful) => compilers.doubtful += 1,
                Some(For::Nothing) | None => compilers.unseen += 1,
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

    /// Sums up by method and tier.
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
