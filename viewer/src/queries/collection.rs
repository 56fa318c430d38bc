//! One collection: phases, spaces, samples by part and by thread.

use super::collections::{InCollector, Key, Row};
use vmscope_records::{Collection, TimeNs};
use vmscope_symbolizer::time_buckets::{InSpan, Span};
use vmscope_symbolizer::{Filter, Profile, Region, Stop, Summary};

/// Maximum number of phases.
const MAX_PHASES: usize = 1_000;

/// Phase of a collection.
#[derive(Clone, Debug)]
pub struct PhaseRow {
    /// Number of enclosing phases.
    pub depth: usize,
    pub name: String,
    pub thread: String,
    pub begin: Option<TimeNs>,
    pub length: Option<u64>,
    pub stops: bool,
    /// Collector samples during the phase, on its thread if known.
    pub samples: Option<u64>,
}

/// Details of a collection.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    pub key: Key,
    pub phases: Vec<PhaseRow>,
    /// Number of further phases.
    pub left_out: usize,
    /// `None` for an unobserved begin or end, or dropped samples.
    pub samples: Option<InCollector>,
    /// Whether the collection began before the kept samples.
    pub is_older: bool,
    pub spaces: Vec<vmscope_records::SpaceUse>,
}

/// Details of a collection; `None` after a stop.
pub fn inside_of(profile: &Profile, filter: &Filter, key: Key, stop: &Stop) -> Option<Inside> {
    let mut found = profile.trace.collections.iter();
    let Some(one) = found.find(|one| Row::key_of(one) == key) else {
        return Some(Inside::default());
    };
    let mut inside = Inside {
        key,
        left_out: one.phases.len().saturating_sub(MAX_PHASES),
        phases: phases_of(profile, filter, one, stop)?,
        spaces: one.spaces.clone(),
        ..Inside::default()
    };
    let kept_from = profile.time_buckets.kept_from().unwrap_or_default();
    inside.is_older = one.begin.is_some_and(|begin| begin < kept_from);
    if let (Some(from), Some(to)) = (one.begin.filter(|from| *from >= kept_from), one.end) {
        let narrowed = Filter {
            from: Some(filter.from.map_or(from, |other| other.max(from))),
            to: Some(filter.to.map_or(to, |other| other.min(to))),
            ..filter.clone()
        };
        let summary = Summary::of(profile, &narrowed, stop)?;
        inside.samples = Some(InCollector::of(profile, &narrowed, &summary, stop)?);
    }
    Some(inside)
}

fn phases_of(
    profile: &Profile,
    filter: &Filter,
    one: &Collection,
    stop: &Stop,
) -> Option<Vec<PhaseRow>> {
    let phases = one.phases.get(..MAX_PHASES).unwrap_or(&one.phases);
    let thread_of =
        |phase: &vmscope_records::Phase| phase.thread.and_then(|key| profile.trace.number_of(key));
    let spans = phases.iter().map(|phase| Span {
        from: phase.begin.unwrap_or_default(),
        to: phase
            .end
            .filter(|_| phase.begin.is_some())
            .unwrap_or_default(),
        thread: thread_of(phase),
    });
    let spans: Vec<Span> = spans.collect();
    let counts = InSpan::of_spans(profile, filter, &spans, stop)?;
    // Nested phases follow their enclosing phase.
    let mut parts_of: Vec<Vec<usize>> = vec![Vec::new(); phases.len()];
    let mut waiting: Vec<(usize, usize)> = Vec::new();
    for (index, phase) in phases.iter().enumerate().rev() {
        let outer = phase.within.map(|outer| outer as usize);
        match outer.filter(|outer| *outer < index) {
            Some(outer) => parts_of
                .get_mut(outer)
                .into_iter()
                .for_each(|all| all.push(index)),
            None => waiting.push((index, 0)),
        }
    }
    let mut order = Vec::new();
    while let Some((index, depth)) = waiting.pop() {
        order.push((index, depth));
        let parts = parts_of.get(index).into_iter().flatten();
        waiting.extend(parts.map(|&part| (part, (depth + 1).min(8))));
    }
    let rows = order
        .into_iter()
        .filter_map(|(index, depth)| Some((phases.get(index)?, counts.get(index)?, depth)));
    let rows = rows.map(|(phase, inside, depth)| {
        let thread = thread_of(phase).map(|thread| &profile.trace.threads[thread]);
        let ends = phase.begin.zip(phase.end);
        PhaseRow {
            depth,
            name: phase.name.clone(),
            thread: thread.map_or_else(String::new, |thread| thread.thread.name.clone()),
            begin: phase.begin,
            length: ends.map(|(begin, end)| end.since(begin).0),
            stops: phase.stop_the_world,
            samples: ends.and(*inside).map(|inside| inside.of(Region::Gc)),
        }
    });
    Some(rows.collect())
}
