//! Bounded memory: drops old samples and everything that only they need.

use super::{Index, Live};
use crate::ids::IndexVec;
use crate::profile::Profile;
use crate::time_buckets::{BUCKET, TimeBuckets};
use crate::trace::Trace;
use crate::zone::CodeId;
use rustc_hash::FxHashSet;
use vmscope_records::{
    Counter, DurationNs, Lost, Method, MethodKey, Process, ProcessEnd, ProcessKey, TimeNs,
};

/// New places that make a cleanup worthwhile.
const MANY_PLACES: usize = 8192;

/// New pieces of code that make a cleanup worthwhile: code is large.
const MANY_CODES: usize = 2048;

/// Ended processes that make a cleanup of address spaces worthwhile.
const MANY_PROCESSES: usize = 256;

/// The key of the sum of forgotten processes.
const PROCESSES_OVER: ProcessKey = ProcessKey(u32::MAX - 1);

impl Live {
    /// Drops samples beyond the bounds of age and number, an eighth of all at a time: moving
    /// the others then costs little.
    pub(super) fn drop_oldest(&mut self, profile: &mut Profile) -> u64 {
        let Profile {
            trace,
            time_buckets,
            ..
        } = profile;
        let times = &trace.samples.times;
        let count = times.len();
        let horizon = self.placing.latest.minus(self.bounds.age);
        let old = times.partition_point(|time| *time < horizon);
        let mut excess = count.saturating_sub(self.bounds.samples).max(old);
        // Assumes that samples in dead code are spread evenly over time.
        let gone = std::mem::take(&mut self.index.gone_codes);
        if gone > self.bounds.codes {
            let many = gone - self.bounds.codes / 8 * 7;
            let samples = count as u128 * many as u128 / gone as u128;
            let samples = usize::try_from(samples).unwrap_or(count);
            excess = excess.max(samples + BUCKET).min(count);
        }
        let least = self.bounds.samples.min(count) / 8;
        let dropped = match times.get(excess) {
            _ if excess == 0 || excess < least => 0,
            Some(&time) => self.drop_before(trace, time_buckets, time),
            None => self.drop_before(trace, time_buckets, TimeNs(u64::MAX)),
        };
        self.omitted.samples += dropped;
        dropped
    }

    fn drop_before(
        &mut self,
        trace: &mut Trace,
        time_buckets: &mut TimeBuckets,
        time: TimeNs,
    ) -> u64 {
        let samples = &mut trace.samples;
        // A later name of their places counts them as misnamed.
        for &place in samples.places.iter().take(time_buckets.droppable(time)) {
            let dropped = &mut self.index.dropped_of_place[place];
            *dropped = dropped.saturating_add(1);
        }
        time_buckets.drop_before(samples, time)
    }

    /// Cleans up now and then. Returns whether places have new indices.
    pub(super) fn forget(&mut self, profile: &mut Profile) -> bool {
        self.trim(&mut profile.trace, &profile.time_buckets);
        if self.index.ended_processes.len() >= MANY_PROCESSES {
            self.forget_processes(&mut profile.trace);
        }
        let Index {
            places_then,
            codes_then,
            ..
        } = self.index;
        if profile.trace.places.len() <= 2 * places_then + MANY_PLACES
            && self.growing.len() <= codes_then + codes_then / 4 + MANY_CODES
        {
            return false;
        }
        self.forget_processes(&mut profile.trace);
        self.forget_places(profile);
        self.forget_code(&mut profile.trace);
        self.index.places_then = profile.trace.places.len();
        self.index.codes_then = self.growing.len();
        true
    }

    /// Drops records of series beyond their bound.
    fn trim(&mut self, trace: &mut Trace, time_buckets: &TimeBuckets) {
        let most = self.bounds.series;
        let records = &mut self.omitted.records;
        let mut excess = |len: usize| {
            let excess = if len > most + most / 8 { len - most } else { 0 };
            *records += excess as u64;
            excess
        };
        let gone = excess(trace.counters.len());
        keep_firsts(&mut trace.counters, gone);
        let gone = excess(trace.lost.len());
        sum_up(&mut trace.lost, gone);
        trace.limits.drain(..excess(trace.limits.len()));
        trace.facts.drain(..excess(trace.facts.len()));
        trace.marks.drain(..excess(trace.marks.len()));
        let gone = excess(4 * trace.collections.len()) / 4;
        trace.collections.drain(..gone);
        self.index.collections_dropped += gone as u64;
        let dropped = self.index.collections_dropped;
        if gone > 0 {
            self.index
                .collections
                .retain(|_, number| *number >= dropped);
        }
        let gone = excess(trace.compilations.len());
        trace.compilations.drain(..gone);
        self.index.compilations_dropped += gone as u64;
        let dropped = self.index.compilations_dropped;
        if gone > 0 {
            self.index
                .compilations
                .retain(|_, number| *number >= dropped);
        }
        *records += trace.code_events.keep_newest(2 * most);
        let kept_from = trace.samples.times.first().copied();
        for thread in &mut trace.threads {
            // A thread that ended before the window keeps its total CPU time only: short
            // threads may come without end.
            let end = thread.end.as_ref().map(|end| end.time);
            let is_over = end.zip(kept_from).is_some_and(|(end, from)| end < from);
            if is_over && time_buckets.dropped() > 0 && thread.cpu.len() > 2 {
                let last = thread.cpu.len() - 1;
                thread.cpu.swap(1, last);
                thread.cpu.truncate(2);
                thread.cpu.shrink_to_fit();
            }
            if thread.cpu.len() > self.bounds.cpu_readings.max(4) {
                let half = thread.cpu.len() / 2;
                let mut at = 0;
                // Later readings refer to the first one.
                thread.cpu.retain(|_| {
                    at += 1;
                    at > half || at % 2 == 1
                });
            }
        }
    }

    /// Drops the zones of ended processes, and sums the oldest processes up.
    fn forget_processes(&mut self, trace: &mut Trace) {
        let settled = self.settled;
        let (over, later) = std::mem::take(&mut self.index.ended_processes)
            .into_iter()
            .partition(|(time, _)| *time < settled);
        self.index.ended_processes = later;
        let over: Vec<_> = over;
        for (_, process) in over {
            self.placing.world.forget(process);
        }
        let most = self.bounds.processes;
        let excess = trace.process_ends.len().saturating_sub(most);
        if excess <= most / 8 {
            return;
        }
        let ends: Vec<ProcessEnd> = trace.process_ends.drain(..excess).collect();
        let gone: FxHashSet<ProcessKey> = ends.iter().map(|end| end.key).collect();
        let first = ends.first().and_then(|end| trace.processes.get(&end.key));
        let first = first.cloned();
        trace.forget_processes(&gone);
        // Their CPU time promised samples.
        let sum = ends.into_iter().reduce(|sum, end| ProcessEnd {
            time: sum.time.max(end.time),
            cpu: add(sum.cpu, end.cpu),
            cpu_user: add(sum.cpu_user, end.cpu_user),
            ..sum
        });
        if let Some((process, end)) = first.zip(sum) {
            let key = PROCESSES_OVER;
            let (parent, name) = (None, "(ended processes)".to_owned());
            let process = Process {
                key,
                parent,
                name,
                ..process
            };
            trace.processes.insert(key, process);
            trace.process_ends.insert(0, ProcessEnd { key, ..end });
        }
        self.omitted.records += excess as u64;
    }

    /// Drops places without samples or callers in the window.
    fn forget_places(&mut self, profile: &mut Profile) {
        let trace = &mut profile.trace;
        let mut used = trace.places.with_each(false);
        for &place in &trace.samples.places {
            used[place] = true;
        }
        let mut chains = trace.chains.nodes().with_each(false);
        for &chain in &trace.samples.chains {
            let mut next = chain;
            while let Some(id) = next
                && !std::mem::replace(&mut chains[id], true)
            {
                let node = trace.chains.nodes()[id];
                used[node.label] = true;
                next = node.parent;
            }
        }
        let mut numbers = trace.places.with_each(None);
        let mut places = IndexVec::default();
        let (mut sites, mut dropped) = (IndexVec::default(), IndexVec::default());
        for (id, _) in used.enumerated().filter(|(_, used)| **used) {
            numbers[id] = Some(places.push(trace.places[id]));
            sites.push(profile.site_of_place[id]);
            dropped.push(self.index.dropped_of_place[id]);
        }
        let number = |place| numbers[place].expect("a used place is kept");
        for place in &mut trace.samples.places {
            *place = number(*place);
        }
        let renumbered = trace.chains.retain(&chains, number);
        for chain in &mut trace.samples.chains {
            *chain = chain.and_then(|id| renumbered[id]);
        }
        profile.site_of_place = sites;
        self.index.dropped_of_place = dropped;
        self.index.places_of_code.clear();
        self.index.places_of_native.clear();
        for (place, what) in places.enumerated() {
            self.index(place, *what);
        }
        self.placing.world.replace_places(places.clone());
        trace.places = places;
        let (trace, sites, time_buckets) = profile.to_sum_up();
        time_buckets.renumber(trace, sites);
        self.natives.forget_asked();
        self.names.forget();
    }

    /// Drops dead constituents without samples in the window, and methods without references.
    fn forget_code(&mut self, trace: &mut Trace) {
        self.growing.forget_expected(self.placing.world.zones());
        let departed: Vec<CodeId> = self.growing.departed(self.placing.world.zones());
        let mut kept = Vec::new();
        for code in departed {
            if self.index.places_of_code.contains_key(&code) {
                kept.push(code);
                continue;
            }
            self.growing.forget(code);
            self.stripped.remove(&code);
            trace.code_events.forget(trace.constituent(code).key);
            trace.code.forget(code);
        }
        self.index.gone_codes = kept.len();
        self.strip_code(trace, kept);
        let constituents = trace.code.constituents.iter();
        let mut used: FxHashSet<MethodKey> = constituents.flat_map(Self::methods_of).collect();
        used.extend(self.index.fresh_methods.drain());
        trace.methods.retain(|key, _| used.contains(key));
        let methods = &trace.methods;
        self.names.forget_methods(|key| !methods.contains_key(&key));
    }

    /// Drops the maps of the oldest dead code with samples, down to the bound.
    fn strip_code(&mut self, trace: &mut Trace, mut departed: Vec<CodeId>) {
        let bytes = |trace: &Trace, code: CodeId| {
            let known = trace.constituent(code);
            let method = known.method.and_then(|key| trace.methods.get(&key));
            known.map.heap_bytes() + method.map_or(0, Method::heap_bytes)
        };
        let mut all: usize = departed.iter().map(|code| bytes(trace, *code)).sum();
        if all <= self.bounds.code {
            return;
        }
        departed.sort_by_key(|code| trace.code.gone_of(*code).map(|gone| gone.time));
        let enough = self.bounds.code / 8 * 7;
        for code in departed {
            if all <= enough {
                return;
            }
            let some = bytes(trace, code);
            if some > 0 {
                all -= some;
                trace.code.strip(code);
                self.stripped.insert(code);
                self.omitted.code += 1;
            }
        }
    }
}

fn add(sum: Option<DurationNs>, one: Option<DurationNs>) -> Option<DurationNs> {
    Some(DurationNs(sum?.0.saturating_add(one?.0)))
}

/// Removes the first `count` values, except each counter's first one: totals start from it.
fn keep_firsts(counters: &mut Vec<Counter>, count: usize) {
    if count == 0 {
        return;
    }
    let mut known: FxHashSet<(ProcessKey, String, String)> = FxHashSet::default();
    let mut at = 0;
    counters.retain(|counter| {
        at += 1;
        at > count
            || known.insert((
                counter.process,
                counter.section.clone(),
                counter.name.clone(),
            ))
    });
}

/// Sums the first `count` records up by stream, reason and thread: total losses remain known.
fn sum_up(lost: &mut Vec<Lost>, count: usize) {
    let mut sums: Vec<Lost> = Vec::new();
    for one in lost.drain(..count.min(lost.len())) {
        let is_same = |sum: &&mut Lost| {
            (sum.stream, sum.reason, sum.thread) == (one.stream, one.reason, one.thread)
        };
        match sums.iter_mut().find(is_same) {
            Some(sum) => {
                sum.count = sum.count.saturating_add(one.count);
                sum.from = sum.from.min(one.from);
                sum.to = sum.to.max(one.to);
            }
            None => sums.push(one),
        }
    }
    lost.splice(0..0, sums);
}
