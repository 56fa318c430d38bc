//! Collections of a window: single collections, VM counts, collector samples by part and by thread.

use crate::queries::parts::parts_of;
use crate::queries::vm::{Vms, overlaps};
use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Collection, CollectionScope, ProcessKey, TimeNs};
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
    /// Numbers of [`CollectionScope::ALL`] by VM counters; `None` without counters.
    pub counted: [Option<f64>; 3],
    /// Numbers of observed ones.
    pub seen: [u64; 3],
    /// Duration of all pauses by VM counters, in ns.
    pub took: Option<f64>,
    /// Number of collections with observed begin and end.
    pub observed: u64,
    /// Pauses of known duration in ns, ascending.
    pub pauses: Vec<u64>,
    /// A duration in ns that no pause exceeded; `None` if unknown.
    pub longest_at_most: Option<u64>,
    /// Causes of observed collections, most frequent first.
    pub causes: Vec<(String, u64)>,
    /// Samples in collectors.
    pub inside: InCollector,
}

impl Collections {
    /// Whether the VM counts any collection, cycle or pause.
    pub fn are_counted(&self) -> bool {
        self.counted.iter().flatten().any(|count| *count > 0.0)
    }

    /// Letter of a kind.
    pub fn letter(&self, kind: &str) -> char {
        let known = self.kinds.iter().find(|(name, ..)| name == kind);
        known.map_or('*', |(_, letter, _)| *letter)
    }

    /// Maximum heap use in bytes, before or after any collection.
    pub fn heap(&self) -> u64 {
        let used = self.rows.iter().filter_map(|row| row.before.max(row.after));
        used.max().unwrap_or(0)
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
    all.inside = InCollector::of(profile, filter, summary, stop)?;
    Some(all)
}

/// Collector samples by part and by thread, most first.
#[derive(Clone, Debug, Default)]
pub struct InCollector {
    pub parts: Vec<(String, u64)>,
    pub threads: Vec<(String, u64)>,
}

impl InCollector {
    /// Counts samples of a filter; `None` after a stop. `summary` belongs to the filter.
    pub fn of(profile: &Profile, filter: &Filter, summary: &Summary, stop: &Stop) -> Option<Self> {
        let parts = parts_of(profile, summary).into_iter();
        let parts = parts.filter(|part| part.region == Region::Gc);
        let parts = parts.map(|part| match part.name {
            "" => ("(not divided)".to_owned(), part.samples),
            name => (name.to_owned(), part.samples),
        });
        let (parts, mut threads) = (parts.collect(), Vec::new());
        let mut narrowed = filter.clone();
        let regions = &mut narrowed.only.regions;
        if regions.is_empty() || regions.contains(&Region::Gc) {
            *regions = vec![Region::Gc];
            let counts = Counts::of(profile, &narrowed, stop)?.threads;
            let hit = profile.trace.threads.iter().zip(counts);
            let hit = hit.filter(|(_, samples)| *samples > 0);
            threads.extend(hit.map(|(thread, n)| (thread.thread.name.clone(), n)));
            threads.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
        }
        Some(InCollector { parts, threads })
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.threads.iter().map(|(_, samples)| samples).sum()
    }
}

/// VM counts over the window, of processes with included threads, without single collections. VM
/// counters know neither threads nor code.
pub fn counts(profile: &Profile, filter: &Filter, summary: &Summary, vms: &Vms<'_>) -> Collections {
    let takes = takes_process(profile, filter);
    let mut all = Collections {
        total: summary.total,
        narrowed: filter.threads.is_some() || filter.only != Only::default(),
        in_collector: summary.regions[Region::Gc as usize],
        ..Collections::default()
    };
    let mut causes: FxHashMap<&str, u64> = FxHashMap::default();
    let mut longest: Vec<Option<u64>> = Vec::new();
    let vms = vms.of.iter().filter(|vm| takes(vm.process));
    for collected in vms.filter_map(|vm| vm.collected.as_ref()) {
        all.tells = true;
        let scopes = CollectionScope::ALL.into_iter().zip(&mut all.counted);
        scopes.for_each(|(scope, sum)| add(sum, collected.count(scope)));
        add(&mut all.took, collected.pause_time());
        for row in &collected.collectors {
            let mut scopes = CollectionScope::ALL.into_iter().zip(&mut all.seen);
            if let Some((_, seen)) = scopes.find(|(scope, _)| row.scope == Some(*scope)) {
                *seen += row.seen;
            }
            if row.scope != Some(CollectionScope::Cycle) || !row.pauses.is_empty() {
                longest.push(row.longest_at_most());
            }
            all.observed += row.observed;
            all.pauses.extend(&row.pauses);
            // V8 counts mark-compacts, but no marking cycles. Both have the same cause.
            let is_counted = |scope| collected.count(scope).is_some();
            if row.scope.is_some_and(|scope| !is_counted(scope))
                && CollectionScope::ALL.into_iter().any(is_counted)
            {
                continue;
            }
            for &(cause, count) in &row.causes.listed {
                *causes.entry(cause).or_default() += count;
            }
        }
    }
    all.pauses.sort_unstable();
    let longest: Option<Vec<u64>> = longest.into_iter().collect();
    all.longest_at_most = longest.and_then(|all| all.into_iter().max());
    all.causes = most(causes);
    all
}

fn add(sum: &mut Option<f64>, more: Option<f64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0.0) += more;
    }
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
    let takes = takes_process(profile, filter);
    let window = (
        filter.from.unwrap_or(TimeNs(0)),
        filter.to.unwrap_or(TimeNs(u64::MAX)),
    );
    let meets = |one: &&Collection| takes(one.process) && overlaps(one, window);
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
                stops: one.scope.is_pause(),
                before: sum(|space| space.before),
                after: sum(|space| space.after),
                inside: None,
            }
        })
        .collect();
    let spans = rows.iter().filter_map(Row::span);
    let spans = spans.map(|(from, to)| Span {
        from,
        to,
        thread: None,
    });
    let spans: Vec<Span> = spans.collect();
    let counts = InSpan::of_spans(profile, filter, &spans, stop)?;
    let timed = rows.iter_mut().filter(|row| row.span().is_some());
    for (row, inside) in timed.zip(counts) {
        row.inside = inside;
    }
    Some(rows)
}

/// Whether a process has included threads.
pub fn takes_process(profile: &Profile, filter: &Filter) -> impl Fn(ProcessKey) -> bool + use<> {
    let processes = (!filter.takes_all_threads()).then(|| {
        let threads = profile.trace.threads.ids();
        let threads = threads.filter(|thread| filter.takes_thread(*thread));
        let processes = threads.map(|thread| profile.trace.process_of(thread));
        processes.collect::<FxHashSet<ProcessKey>>()
    });
    move |process| processes.as_ref().is_none_or(|all| all.contains(&process))
}
