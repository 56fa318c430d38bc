//! The collections of a window: a row of each, the VMs' own counts, and the samples in
//! collectors by part and by thread.

use crate::queries::parts::parts_of;
use crate::queries::vm::Vms;
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Collection, ProcessKey, TimeNs};
use vmscope_symbolizer::time_buckets::{Counts, InSpan, Span};
use vmscope_symbolizer::{Filter, Only, Profile, Region, Stop, Summary};

/// What a collection is known by while the profile grows: its process and its key.
pub type Key = (u32, u64);

/// A collection.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub key: Key,
    pub collector: String,
    pub kind: String,
    pub cause: String,
    /// When it began, or what is known next best.
    pub time: TimeNs,
    pub begin: Option<TimeNs>,
    pub end: Option<TimeNs>,
    /// Whether the world stood still for all of it.
    pub stops: bool,
    /// Bytes used in all spaces that tell.
    pub before: Option<u64>,
    pub after: Option<u64>,
    /// The samples between its begin and its end, where both are known and samples are kept.
    pub inside: Option<InSpan>,
}

impl Row {
    /// The key of a collection.
    pub fn key_of(one: &Collection) -> Key {
        (one.process.0, one.key.0)
    }

    /// How long it took, where that was observed, in ns.
    pub fn length(&self) -> Option<u64> {
        Some(self.end?.since(self.begin?).0)
    }

    /// Its first instant and the one behind its last.
    pub fn span(&self) -> Option<(TimeNs, TimeNs)> {
        let (from, to) = (self.begin?, self.end?);
        (from < to).then_some((from, to))
    }

    /// Samples inside it, where it was observed from begin to end and samples are kept.
    pub fn samples(&self) -> Option<u64> {
        self.inside.map(|inside| inside.total())
    }

    /// Those that are in the collector.
    pub fn in_collector(&self) -> Option<u64> {
        self.inside.map(|inside| inside.of(Region::Gc))
    }

    /// What of it was observed.
    pub fn seen(&self) -> &'static str {
        match (self.begin, self.end) {
            (Some(_), Some(_)) => "whole",
            (Some(_), None) => "no end",
            (None, Some(_)) => "no begin",
            (None, None) => "neither",
        }
    }
}

/// The collections, and what is known of all of them together.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    /// Samples in all that it is of, and those in collectors.
    pub total: u64,
    /// See `total`.
    pub in_collector: u64,
    /// Whether the samples are of some threads or some code only: the collections are of
    /// whole processes.
    pub narrowed: bool,
    /// The time that it is of.
    pub window: (TimeNs, TimeNs),
    pub rows: Vec<Row>,
    /// How many of each kind, with the letter it is drawn with; most first.
    pub kinds: Vec<(String, char, u64)>,
    /// Whether a VM tells of collections at all.
    pub tells: bool,
    /// How many the VMs count; `None` where none does.
    pub counted: Option<f64>,
    /// How long these took by the VMs' own count, in ns.
    pub took: Option<f64>,
    /// How many were observed from begin to end.
    pub observed: u64,
    /// The pauses that were observed, in ns, ascending.
    pub pauses: Vec<u64>,
    /// Causes of those that were seen, most frequent first.
    pub causes: Vec<(String, u64)>,
    /// Samples in collectors by part.
    pub parts: Vec<(String, u64)>,
    /// The same by thread: its index in the trace, its name.
    pub threads: Vec<(u32, String, u64)>,
}

impl Collections {
    /// The letter of a kind.
    pub fn letter(&self, kind: &str) -> char {
        let known = self.kinds.iter().find(|(name, ..)| name == kind);
        known.map_or('*', |(_, letter, _)| *letter)
    }
}

/// The collections that a filter's window meets, in time order, of the processes whose threads
/// it includes; `None` where it was stopped. `summary` is of the same filter.
pub fn collections(
    profile: &Profile,
    filter: &Filter,
    summary: &Summary,
    stop: &Stop,
) -> Option<Collections> {
    let mut all = counts(profile, filter, summary, &Vms::of(profile, summary));
    let mut rows = rows_of(profile, filter, stop)?;
    let mut kinds: FxHashMap<&str, u64> = FxHashMap::default();
    for row in &rows {
        *kinds.entry(&row.kind).or_default() += 1;
    }
    all.kinds = lettered(kinds);
    rows.sort_by_key(|row| row.time);
    all.rows = rows;
    all.parts = parts_in_collector(profile, summary);
    all.threads = threads_in_collector(profile, filter, stop)?;
    Some(all)
}

/// The filter's samples in collectors by part, most first.
pub fn parts_in_collector(profile: &Profile, summary: &Summary) -> Vec<(String, u64)> {
    let parts = parts_of(profile, summary).into_iter();
    let parts = parts.filter(|part| part.region == Region::Gc);
    let named = parts.map(|part| match part.name {
        "" => ("(not divided)".to_owned(), part.samples),
        name => (name.to_owned(), part.samples),
    });
    named.collect()
}

/// The same by thread.
pub fn threads_in_collector(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<Vec<(u32, String, u64)>> {
    let mut narrowed = filter.clone();
    let regions = &mut narrowed.only.regions;
    if !regions.is_empty() && !regions.contains(&Region::Gc) {
        return Some(Vec::new());
    }
    *regions = vec![Region::Gc];
    let counts = Counts::of(profile, &narrowed, stop)?;
    let threads = (0u32..).zip(&profile.trace.threads).zip(counts.threads);
    let hit = threads.filter(|(_, samples)| *samples > 0);
    let mut rows: Vec<(u32, String, u64)> = hit
        .map(|((index, thread), samples)| (index, thread.thread.name.clone(), samples))
        .collect();
    rows.sort_by_key(|(_, _, samples)| std::cmp::Reverse(*samples));
    Some(rows)
}

/// What the VMs themselves count over the window, of the processes that the filter includes,
/// without a row of each collection. VMs count neither by thread nor by code.
pub fn counts(profile: &Profile, filter: &Filter, summary: &Summary, vms: &Vms<'_>) -> Collections {
    let processes = processes(profile, filter);
    let mut all = Collections {
        total: summary.total,
        narrowed: filter.threads.is_some() || filter.only != Only::default(),
        in_collector: summary.regions[Region::Gc as usize],
        ..Collections::default()
    };
    let mut causes: FxHashMap<&str, u64> = FxHashMap::default();
    let vms = vms.of.iter().filter(|vm| {
        let processes = processes.as_ref();
        processes.is_none_or(|processes| processes.contains(&vm.process))
    });
    for collected in vms.filter_map(|vm| vm.collected.as_ref()) {
        all.tells = true;
        for row in &collected.collectors {
            if let Some(count) = row.count {
                *all.counted.get_or_insert(0.0) += count.change();
            }
            if let Some(time) = row.time {
                *all.took.get_or_insert(0.0) += time.change();
            }
            all.observed += row.observed;
            all.pauses.extend(&row.pauses);
            for &(cause, count) in &row.causes.listed {
                *causes.entry(cause).or_default() += count;
            }
        }
    }
    all.pauses.sort_unstable();
    all.causes = most(causes);
    all
}

fn most(counts: FxHashMap<&str, u64>) -> Vec<(String, u64)> {
    let counts = counts
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count));
    let mut counts: Vec<(String, u64)> = counts.collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

/// Gives each kind a letter of its name that no other has, the most frequent first.
fn lettered(kinds: FxHashMap<&str, u64>) -> Vec<(String, char, u64)> {
    let mut taken: Vec<char> = Vec::new();
    let kinds = most(kinds).into_iter().map(|(kind, count)| {
        let letters = kind.chars().filter(char::is_ascii_alphanumeric);
        let letters = letters.chain('A'..='Z').chain('a'..='z');
        let letter = letters.into_iter().find(|letter| !taken.contains(letter));
        let letter = letter.unwrap_or('*');
        taken.push(letter);
        (kind, letter, count)
    });
    kinds.collect()
}

/// The collections of the filter's processes that its window meets, with the samples inside
/// them.
fn rows_of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<Row>> {
    let processes = processes(profile, filter);
    let meets = |one: &&Collection| {
        let processes = processes.as_ref();
        if processes.is_some_and(|processes| !processes.contains(&one.process)) {
            return false;
        }
        let (first, last) = (one.begin.or(one.end), one.end.or(one.begin));
        let (first, last) = (first.unwrap_or(one.time), last.unwrap_or(one.time));
        // What ends just where the window begins, or begins where it ends, is outside.
        filter.from.is_none_or(|from| last > from || first >= from)
            && filter.to.is_none_or(|to| first < to)
    };
    let collections = profile.trace.collections.iter().filter(meets);
    let mut rows: Vec<Row> = collections
        .map(|one| {
            let sum = |bytes: fn(&vmscope_records::SpaceUse) -> Option<u64>| {
                let told = one.spaces.iter().filter_map(bytes);
                told.fold(None, |sum: Option<u64>, bytes| {
                    Some(sum.unwrap_or(0).saturating_add(bytes))
                })
            };
            Row {
                key: Row::key_of(one),
                collector: one.collector.clone(),
                kind: one.kind.clone(),
                cause: one.cause.clone(),
                time: one.begin.or(one.end).unwrap_or(one.time),
                begin: one.begin,
                end: one.end,
                stops: one.stop_the_world,
                before: sum(|space| space.before),
                after: sum(|space| space.after),
                inside: None,
            }
        })
        .collect();
    let spans: Vec<(usize, Span)> = (rows.iter().enumerate())
        .filter_map(|(index, row)| {
            let (from, to) = row.span()?;
            let thread = None;
            Some((index, Span { from, to, thread }))
        })
        .collect();
    let only: Vec<Span> = spans.iter().map(|(_, span)| *span).collect();
    let counts = InSpan::of_spans(profile, filter, &only, stop)?;
    for ((index, _), inside) in spans.into_iter().zip(counts) {
        if let Some(row) = rows.get_mut(index) {
            row.inside = inside;
        }
    }
    Some(rows)
}

/// The processes with threads that a filter includes; `None` for all.
pub fn processes(profile: &Profile, filter: &Filter) -> Option<FxHashSet<ProcessKey>> {
    if filter.takes_all_threads() {
        return None;
    }
    let threads = (0u32..).take(profile.trace.threads.len());
    let threads = threads.filter(|thread| filter.takes_thread(*thread));
    let processes = threads.filter_map(|thread| profile.trace.process_of(thread));
    Some(processes.collect())
}
