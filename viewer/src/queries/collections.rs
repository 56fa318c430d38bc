//! Collections of a window: single collections, VM counts, collector samples by part and by thread.

use crate::queries::parts::parts_of;
use crate::queries::vm::Vms;
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Collection, ProcessKey, TimeNs};
use vmscope_symbolizer::time_buckets::{Counts, InSpan, Span};
use vmscope_symbolizer::{Filter, Only, Profile, Region, Stop, Summary};

/// Identity of a collection across answers: process, collection key.
pub type Key = (u32, u64);

/// A collection.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub key: Key,
    pub collector: String,
    pub kind: String,
    pub cause: String,
    /// Begin; else end; else the time of the record.
    pub time: TimeNs,
    pub begin: Option<TimeNs>,
    pub end: Option<TimeNs>,
    /// Stop-the-world from begin to end.
    pub stops: bool,
    /// Bytes used, summed over all spaces with a known size.
    pub before: Option<u64>,
    pub after: Option<u64>,
    /// Samples between begin and end; `None` for an unknown begin or end, or dropped samples.
    pub inside: Option<InSpan>,
}

impl Row {
    /// Key of a collection record.
    pub fn key_of(one: &Collection) -> Key {
        (one.process.0, one.key.0)
    }

    /// Duration in ns; `None` for an unobserved begin or end.
    pub fn length(&self) -> Option<u64> {
        Some(self.end?.since(self.begin?).0)
    }

    /// First instant, and first instant after the end.
    pub fn span(&self) -> Option<(TimeNs, TimeNs)> {
        let (from, to) = (self.begin?, self.end?);
        (from < to).then_some((from, to))
    }

    /// Samples inside; `None` for an unobserved begin or end, or dropped samples.
    pub fn samples(&self) -> Option<u64> {
        self.inside.map(|inside| inside.total())
    }

    /// Samples inside, in the collector.
    pub fn in_collector(&self) -> Option<u64> {
        self.inside.map(|inside| inside.of(Region::Gc))
    }

    /// Observed part, in words.
    pub fn seen(&self) -> &'static str {
        match (self.begin, self.end) {
            (Some(_), Some(_)) => "whole",
            (Some(_), None) => "no end",
            (None, Some(_)) => "no begin",
            (None, None) => "neither",
        }
    }
}

/// Collections of a window, with totals.
#[derive(Clone, Debug, Default)]
pub struct Collections {
    /// Samples under the filter.
    pub total: u64,
    /// Samples in collectors.
    pub in_collector: u64,
    /// Whether the filter selects threads or code; collections belong to whole processes.
    pub narrowed: bool,
    /// Window.
    pub window: (TimeNs, TimeNs),
    pub rows: Vec<Row>,
    /// Kind, letter on charts, number of collections; most frequent first.
    pub kinds: Vec<(String, char, u64)>,
    /// Whether any VM reports collections.
    pub tells: bool,
    /// Number of collections by VM counters; `None` without counters.
    pub counted: Option<f64>,
    /// Collection time by VM counters, in ns.
    pub took: Option<f64>,
    /// Number of collections with observed begin and end.
    pub observed: u64,
    /// Observed pauses in ns, ascending.
    pub pauses: Vec<u64>,
    /// Causes of observed collections, most frequent first.
    pub causes: Vec<(String, u64)>,
    /// Collector samples by part.
    pub parts: Vec<(String, u64)>,
    /// Collector samples by thread: index in the trace, name, samples.
    pub threads: Vec<(u32, String, u64)>,
}

impl Collections {
    /// Letter of a kind.
    pub fn letter(&self, kind: &str) -> char {
        let known = self.kinds.iter().find(|(name, ..)| name == kind);
        known.map_or('*', |(_, letter, _)| *letter)
    }
}

/// Collections that overlap a filter's window, by time, of processes with included threads; `None`
/// after a stop. `summary` belongs to the same filter.
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

/// Collector samples by part, most first.
pub fn parts_in_collector(profile: &Profile, summary: &Summary) -> Vec<(String, u64)> {
    let parts = parts_of(profile, summary).into_iter();
    let parts = parts.filter(|part| part.region == Region::Gc);
    let named = parts.map(|part| match part.name {
        "" => ("(not divided)".to_owned(), part.samples),
        name => (name.to_owned(), part.samples),
    });
    named.collect()
}

/// Collector samples by thread, most first.
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

/// VM counts over the window, of processes with included threads, without single collections. VM
/// counters know neither threads nor code.
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

/// Assigns each kind an unused letter of its name, most frequent kind first.
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

/// Collections that overlap the window, of included processes, with their samples.
fn rows_of(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<Row>> {
    let processes = processes(profile, filter);
    let meets = |one: &&Collection| {
        let processes = processes.as_ref();
        if processes.is_some_and(|processes| !processes.contains(&one.process)) {
            return false;
        }
        let (first, last) = (one.begin.or(one.end), one.end.or(one.begin));
        let (first, last) = (first.unwrap_or(one.time), last.unwrap_or(one.time));
        // Touching intervals do not overlap.
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

/// Processes with included threads; `None` for all processes.
pub fn processes(profile: &Profile, filter: &Filter) -> Option<FxHashSet<ProcessKey>> {
    if filter.takes_all_threads() {
        return None;
    }
    let threads = (0u32..).take(profile.trace.threads.len());
    let threads = threads.filter(|thread| filter.takes_thread(*thread));
    let processes = threads.filter_map(|thread| profile.trace.process_of(thread));
    Some(processes.collect())
}
