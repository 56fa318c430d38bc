//! Collections over time, their pauses, and how late they observe deaths.

use super::Wanted;
use super::histograms::{BINS, Scale};
use crate::present::document::{Axis, Chart, Part, Table, Value};
use crate::present::numbers::{brief, bytes};
use crate::queries::pauses::percentile;
use std::collections::BTreeMap;
use vmscope_records::{Collection, TimeNs};
use vmscope_symbolizer::lifetimes::collections::{CollectionKind, ObservedCollection};
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure, Object};

/// Most single collections.
const ROWS: usize = 10;

/// Kinds of collections with their names, in the order of series.
const KINDS: [(CollectionKind, &str); 2] = [
    (CollectionKind::Scavenge, "scavenge"),
    (CollectionKind::Full, "full"),
];

/// All tables and charts.
pub fn parts(lifetimes: &Lifetimes, wanted: &Wanted) -> Vec<Part> {
    vec![
        Part::Table(pauses(lifetimes)),
        Part::Chart(over_time(lifetimes)),
        Part::Chart(by_duration(lifetimes)),
        Part::Table(causes(lifetimes)),
        Part::Table(longest(lifetimes, wanted.objects.max(ROWS))),
        Part::Table(late(lifetimes)),
    ]
}

/// How fast the program allocates, if that is known.
pub fn rate(lifetimes: &Lifetimes) -> Option<String> {
    let at = |time| lifetimes.allocated_at(time);
    let allocated = (at(lifetimes.end)? - at(lifetimes.begin)?).max(0.0);
    let seconds = lifetimes.run_ns() as f64 / 1e9;
    (seconds > 0.0).then(|| {
        let a_second = bytes((allocated / seconds) as u64);
        format!(
            "Allocated: {} ({a_second} a second)",
            bytes(allocated as u64)
        )
    })
}

/// Collections with both times.
fn timed(lifetimes: &Lifetimes) -> impl Iterator<Item = (&ObservedCollection, TimeNs, TimeNs)> {
    let all = lifetimes.collections.iter();
    all.filter_map(|one| Some((one, one.record.begin?, one.record.end?)))
}

/// The distribution of durations by kind.
fn pauses(lifetimes: &Lifetimes) -> Table {
    let columns = [
        "kind", ">number", ">median", ">p90", ">p99", ">longest", ">mean",
    ];
    let mut table = Table::new("Durations of collections", &columns);
    for (kind, name) in KINDS {
        let of_kind = timed(lifetimes).filter(|(one, ..)| one.kind == kind);
        let mut all: Vec<u64> = of_kind.map(|(_, begin, end)| end.since(begin).0).collect();
        all.sort_unstable();
        let seconds = |ns: u64| Value::Seconds(ns as f64 / 1e9);
        let at = |percent| percentile(&all, percent).map_or(Value::Empty, seconds);
        let sum: f64 = all.iter().map(|ns| *ns as f64).sum();
        table.rows.push(vec![
            Value::Text(name.to_owned()),
            Value::Count(all.len() as u64),
            at(50),
            at(90),
            at(99),
            all.last().copied().map_or(Value::Empty, seconds),
            match all.len() {
                0 => Value::Empty,
                number => Value::Seconds(sum / number as f64 / 1e9),
            },
        ]);
    }
    table
}

/// Series of both kinds.
fn stacked(title: String, axis: Axis, [scavenges, fulls]: [Vec<f64>; 2]) -> Chart {
    let series = vec![
        ("scavenges".to_owned(), scavenges),
        ("full collections".to_owned(), fulls),
    ];
    Chart::Stacked {
        title,
        axis,
        series,
    }
}

fn series_of(kind: CollectionKind) -> usize {
    usize::from(kind == CollectionKind::Full)
}

/// Milliseconds in collections by time.
fn over_time(lifetimes: &Lifetimes) -> Chart {
    let scale = Scale::of(lifetimes, Measure::Time, BINS);
    let mut series = [vec![0.0; scale.bins], vec![0.0; scale.bins]];
    for (one, begin, end) in timed(lifetimes) {
        let since = |time: TimeNs| time.since(lifetimes.begin).0 as f64;
        let (begin, end) = (since(begin), since(end));
        let columns = &mut series[series_of(one.kind)];
        // Casts saturate; the first and the last column hold what lies outside of the run.
        let bin = |time: f64| ((time / scale.width) as usize).min(scale.bins - 1);
        let covered = columns.iter_mut().enumerate().take(bin(end) + 1);
        for (at, column) in covered.skip(bin(begin)) {
            let from = scale.width * at as f64;
            let part = end.min(from + scale.width) - begin.max(from);
            *column += part.max(0.0) / 1e6;
        }
    }
    let title = "Milliseconds in collections over time, for each fiftieth of the run";
    stacked(title.to_owned(), scale.axis("time"), series)
}

/// Collections by duration. Each column covers twice the durations of the column before.
fn by_duration(lifetimes: &Lifetimes) -> Chart {
    let power = |ns: u64| ns.max(1).ilog2();
    let powers = timed(lifetimes).map(|(_, begin, end)| power(end.since(begin).0));
    let range = powers.fold(None, |range: Option<(u32, u32)>, power| {
        let (least, most) = range.unwrap_or((power, power));
        Some((least.min(power), most.max(power)))
    });
    let (least, most) = range.unwrap_or((10, 10));
    let columns = (most - least + 1) as usize;
    let mut series = [vec![0.0; columns], vec![0.0; columns]];
    for (one, begin, end) in timed(lifetimes) {
        let column = (power(end.since(begin).0) - least) as usize;
        series[series_of(one.kind)][column] += 1.0;
    }
    let labels =
        (least..=most + 1).map(|power| brief(1_u64.checked_shl(power).unwrap_or(u64::MAX)));
    let title = "Collections by duration (logarithmic)".to_owned();
    stacked(title, Axis::new("duration", labels), series)
}

/// Numbers and times of collections by kind and cause.
fn causes(lifetimes: &Lifetimes) -> Table {
    let mut table = Table::new("Causes", &["kind", "cause", ">number", ">time"]);
    for (kind, name) in KINDS {
        let mut by_cause: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
        for (one, begin, end) in timed(lifetimes).filter(|(one, ..)| one.kind == kind) {
            let sums = by_cause.entry(&one.record.cause).or_default();
            sums.0 += 1;
            sums.1 += end.since(begin).0 as f64 / 1e9;
        }
        for (cause, (number, seconds)) in by_cause {
            table.rows.push(vec![
                Value::Text(name.to_owned()),
                Value::Text(cause.to_owned()),
                Value::Count(number),
                Value::Seconds(seconds),
            ]);
        }
    }
    table
}

/// The longest collections.
fn longest(lifetimes: &Lifetimes, most: usize) -> Table {
    let mut all: Vec<_> = timed(lifetimes).collect();
    all.sort_by_key(|(_, begin, end)| std::cmp::Reverse(end.since(*begin)));
    let title = match all.len() > most {
        true => "Longest collections",
        false => "Collections, longest first",
    };
    let columns = [
        "kind",
        "cause",
        ">begin",
        ">time",
        ">survived",
        ">tenured",
        ">used before",
        ">used after",
    ];
    let mut table = Table::new(title, &columns);
    for (one, begin, end) in all.into_iter().take(most) {
        let record: &Collection = &one.record;
        let used = |of: fn(&vmscope_records::SpaceUse) -> Option<u64>| {
            let known = record.spaces.iter().filter_map(of);
            let sum = known.fold(None, |sum: Option<u64>, bytes| {
                Some(sum.unwrap_or(0).saturating_add(bytes))
            });
            sum.map_or(Value::Empty, Value::Bytes)
        };
        let bytes = |bytes: Option<u64>| bytes.map_or(Value::Empty, Value::Bytes);
        table.rows.push(vec![
            Value::Text(KINDS[series_of(one.kind)].1.to_owned()),
            Value::Text(record.cause.clone()),
            Value::Seconds(begin.since(lifetimes.begin).0 as f64 / 1e9),
            Value::Seconds(end.since(begin).0 as f64 / 1e9),
            bytes(record.survived_bytes),
            bytes(record.tenured_bytes),
            used(|space| space.before),
            used(|space| space.after),
        ]);
    }
    table
}

/// How late deaths are observed. A scavenge sees no death in old space, and takes what dead old objects
/// refer to for alive (nepotism); a finalization queue adds a delay after the collection.
fn late(lifetimes: &Lifetimes) -> Table {
    let columns = [
        "place of death",
        ">deaths",
        ">mean time unseen",
        ">longest",
        ">scavenges meanwhile",
        ">mean delay after the collection",
        ">longest delay",
    ];
    let title = "How late deaths are observed (unseen: since the last collection that saw the object alive, or its birth)";
    let mut table = Table::new(title, &columns);
    let ends = lifetimes.collections.iter();
    let ends = ends.filter(|one| one.kind == CollectionKind::Scavenge);
    let mut ends: Vec<TimeNs> = ends.map(|one| one.end).collect();
    ends.sort_unstable();
    let before = |time: TimeNs| ends.partition_point(|end| *end <= time);
    for (name, is_old) in [("new space", false), ("old space", true)] {
        let of_place = |one: &&Object| one.tenured.is_some() == is_old;
        let mut unseen = Mean::default();
        let mut delay = Mean::default();
        let mut scavenges = Mean::default();
        for object in lifetimes.objects.iter().filter(of_place) {
            let Some(death) = object.death() else {
                continue;
            };
            let seen = object.last_survived.map(|id| lifetimes.collections[id].end);
            let seen = seen.unwrap_or(object.birth);
            unseen.add(object.weight, death.since(seen).0 as f64 / 1e9);
            // The one that observes the death does not count.
            let missed = before(death).saturating_sub(before(seen)).saturating_sub(1);
            scavenges.add(object.weight, missed as f64);
            if let Some(id) = object.death_collection {
                let after = death.since(lifetimes.collections[id].end).0;
                delay.add(object.weight, after as f64 / 1e9);
            }
        }
        let seconds = |seconds: Option<f64>| seconds.map_or(Value::Empty, Value::Seconds);
        table.rows.push(vec![
            Value::Text(name.to_owned()),
            super::rounded(unseen.weight),
            seconds(unseen.mean()),
            seconds(unseen.most()),
            scavenges
                .mean()
                .map_or(Value::Empty, |mean| Value::Text(format!("{mean:.2}"))),
            seconds(delay.mean()),
            seconds(delay.most()),
        ]);
    }
    table
}

/// A weighted mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    weight: f64,
    sum: f64,
    most: f64,
}

impl Mean {
    fn add(&mut self, weight: f64, value: f64) {
        self.weight += weight;
        self.sum += weight * value;
        self.most = self.most.max(value);
    }

    fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    fn most(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.most)
    }
}
