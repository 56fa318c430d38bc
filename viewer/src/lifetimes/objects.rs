//! The document of `vmscope lifetimes`: what was allocated, and how long it lived.

use super::names::Names;
use super::{Loaded, Wanted, counted};
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::present::numbers::{bytes, count, points, some};
use std::collections::BTreeMap;
use vmscope_symbolizer::lifetimes::classify::{Classification, Parameters, SiteLifetime};
use vmscope_symbolizer::lifetimes::estimate::Estimate;
use vmscope_symbolizer::lifetimes::groups::{Group, GroupKey, Grouping, groups};
use vmscope_symbolizer::lifetimes::histogram::{Allocations, Bin, Histogram, Weighting, width_for};
use vmscope_symbolizer::lifetimes::life_table::life_tables;
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure};

/// Bins of histograms: two per cent of the run each.
const BINS: usize = 50;

/// Groups with a series of their own in charts.
const SERIES: usize = 8;

/// Most rows of a life table.
const STEPS: usize = 20;

/// Sampled objects for shares within 5 points (95 %).
const ENOUGH: usize = 385;

/// Most sites with a decision.
const SITES: usize = 30;

pub fn document(loaded: &Loaded<'_>, wanted: &Wanted) -> Document {
    let lifetimes = loaded.lifetimes;
    let names = Names::new(loaded.trace, lifetimes);
    let groups = groups(lifetimes, wanted.grouping);
    let mut parts = vec![Part::Text(summary(lifetimes))];
    parts.push(Part::Table(allocated(&names, &groups, wanted)));
    parts.push(Part::Chart(frequencies(lifetimes)));
    parts.push(Part::Chart(allocations(lifetimes, &names, wanted.grouping)));
    parts.extend(survival(lifetimes).map(Part::Table));
    parts.extend(decisions(lifetimes, &names).map(Part::Table));
    Document {
        title: format!("Lifetimes of objects, by {}", wanted.by),
        parts,
    }
}

fn summary(lifetimes: &Lifetimes) -> Vec<String> {
    let seconds = lifetimes.run_ns() as f64 / 1e9;
    let recorded = some(lifetimes.objects.len() as u64, "object", "objects");
    let mut lines = vec![format!("{recorded} recorded singly in {seconds:.1} s")];
    let all: f64 = lifetimes.objects.iter().map(|one| one.weight).sum();
    if !lifetimes.counts.is_empty() {
        let all: u64 = lifetimes.counts.iter().map(|counts| counts.objects).sum();
        lines.push(format!("The VM counted every object: {}", count(all)));
    } else if lifetimes.objects.iter().any(|one| one.weight > 1.0) {
        lines.push(format!(
            "They stand for {} allocated objects (±: 95 % of the sampling error)",
            count(all.round() as u64)
        ));
        let sampled = lifetimes.objects.len();
        if sampled < ENOUGH {
            // Shares of one half are the least certain.
            let off = points(0.98 / (sampled as f64).sqrt());
            let sampled = some(sampled as u64, "object was", "objects were");
            lines.push(format!(
                "Only {sampled} sampled: shares may be off by {off} points. {ENOUGH} objects are \
                 needed for 5 points: record for longer, or a greater part of the objects"
            ));
        }
    }
    let alive = lifetimes.objects.iter().filter(|one| one.death().is_none());
    lines.push(format!(
        "{} alive at the end: their lifetimes are longer than known",
        some(
            alive.count() as u64,
            "recorded object was",
            "recorded objects were"
        )
    ));
    lines.extend(counted(lifetimes));
    lines
}

fn allocated(names: &Names<'_>, groups: &[Group], wanted: &Wanted) -> Table {
    let title = format!("Objects by {}", wanted.by);
    let mut table = Table::new(
        &title,
        &[
            wanted.by,
            ">objects",
            ">±",
            ">share",
            ">bytes",
            ">share of bytes",
            ">mean size",
            ">alive at the end",
            ">mean lifetime (of the run)",
            ">± of lifetime",
            ">mean if the end is death",
            ">scavenges",
            ">full collections",
            "lives",
        ],
    );
    let (most, others): (Vec<&Group>, Vec<&Group>) = groups
        .iter()
        .partition(|one| one.is_most_allocated(&wanted.thresholds));
    for group in most {
        let mean = |measure| group.mean_lifetime(measure).map(|mean| mean.restricted);
        let relative = mean(Measure::Relative);
        let to_end = group
            .mean_lifetime(Measure::Relative)
            .map(|mean| mean.to_end.value);
        let number = |measure| {
            let mean: Option<Estimate> = mean(measure);
            mean.map_or(Value::Empty, |mean| {
                Value::Text(format!("{:.2}", mean.value))
            })
        };
        let lives = match group.is_short_lived(&wanted.thresholds) {
            Some(true) => "short",
            Some(false) => "long",
            None => "?",
        };
        table.rows.push(vec![
            Value::Text(names.group(group.key)),
            rounded(group.objects.value),
            rounded(group.objects.error),
            Value::Share(group.share_of_objects.value),
            Value::Bytes(group.bytes.value.max(0.0).round() as u64),
            Value::Share(group.share_of_bytes.value),
            Value::Bytes(group.mean_bytes.value.max(0.0).round() as u64),
            rounded(group.alive.value),
            relative.map_or(Value::Empty, |mean| Value::Share(mean.value)),
            relative.map_or(Value::Empty, |mean| Value::Share(mean.error)),
            to_end.map_or(Value::Empty, Value::Share),
            number(Measure::Scavenges),
            number(Measure::FullCollections),
            Value::Text(lives.to_owned()),
        ]);
    }
    if !others.is_empty() {
        let sum = |of: &dyn Fn(&Group) -> f64| others.iter().map(|one| of(one)).sum::<f64>();
        let mut row = vec![
            Value::Text(some(others.len() as u64, "more", "more")),
            rounded(sum(&|one| one.objects.value)),
            Value::Empty,
            Value::Share(sum(&|one| one.share_of_objects.value)),
            Value::Bytes(sum(&|one| one.bytes.value).max(0.0).round() as u64),
            Value::Share(sum(&|one| one.share_of_bytes.value)),
        ];
        row.resize(table.columns.len(), Value::Empty);
        table.rows.push(row);
    }
    table
}

fn rounded(value: f64) -> Value {
    Value::Count(value.max(0.0).round() as u64)
}

/// Frequencies of lifetimes, as shares of the run.
fn frequencies(lifetimes: &Lifetimes) -> Chart {
    let width = width_for(lifetimes, Measure::Relative, BINS);
    let by = (Grouping::All, 1);
    let histogram = Histogram::of(
        lifetimes,
        by,
        (Measure::Relative, width),
        Weighting::Objects,
    );
    let mut columns = vec![0.0; BINS];
    for (_, bins) in &histogram.groups {
        for (column, Bin { dead, alive }) in columns.iter_mut().zip(bins) {
            *column += dead.value + alive.value;
        }
    }
    let all: f64 = columns.iter().sum();
    let mut sum = 0.0;
    let line = columns.iter().map(|column| {
        sum += column;
        if all > 0.0 { sum / all } else { 0.0 }
    });
    Chart::Histogram {
        title: "Objects by lifetime (line: share of objects that live at most as long)".to_owned(),
        axis: relative_axis("lifetime as a share of the run"),
        line: line.collect(),
        columns,
    }
}

fn relative_axis(name: &str) -> Axis {
    Axis {
        name: name.to_owned(),
        labels: ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]
            .map(str::to_owned)
            .to_vec(),
    }
}

/// Allocated bytes over time, by group.
fn allocations(lifetimes: &Lifetimes, names: &Names<'_>, grouping: Grouping) -> Chart {
    let width = width_for(lifetimes, Measure::Relative, BINS);
    let all = Allocations::of(lifetimes, (grouping, SERIES), (Measure::Relative, width));
    let series = all.groups.iter().map(|(key, bins)| {
        let name = key.map_or_else(|| "others".to_owned(), |key: GroupKey| names.group(key));
        let mut values: Vec<f64> = bins.iter().map(|bin| bin.bytes.value).collect();
        values.resize(BINS, 0.0);
        (name, values)
    });
    Chart::Stacked {
        title: "Allocated bytes over time".to_owned(),
        axis: relative_axis("share of the run"),
        series: series.collect(),
    }
}

/// The life table in scavenges.
fn survival(lifetimes: &Lifetimes) -> Option<Table> {
    let tables = life_tables(lifetimes, Grouping::All, Measure::Scavenges);
    let (_, life) = tables.into_iter().next()?;
    let mut table = Table::new(
        "Survival by scavenges (life table: objects alive at the end are censored)",
        &[
            ">scavenges",
            ">objects at risk",
            ">deaths",
            ">survive",
            ">±",
        ],
    );
    for step in life.drawn(STEPS) {
        table.rows.push(vec![
            Value::Count(step.lifetime as u64),
            rounded(step.at_risk),
            rounded(step.deaths),
            Value::Share(step.survival.value),
            Value::Share(step.survival.error),
        ]);
    }
    Some(table)
}

/// Decisions for sites (Blackburn et al., TOPLAS 2007).
fn decisions(lifetimes: &Lifetimes, names: &Names<'_>) -> Option<Table> {
    let classification = Classification::of(lifetimes, &Parameters::default())?;
    let live = bytes(classification.max_live_bytes.max(0.0) as u64);
    let title = format!(
        "Sites by lifetime (Blackburn et al. 2007; greatest size of all live objects {live})"
    );
    let mut table = Table::new(
        &title,
        &[
            "site",
            ">bytes",
            ">short-lived",
            ">long-lived",
            ">immortal",
            "the site is",
            "pretenure",
        ],
    );
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for site in &classification.sites {
        let kind = match site.lifetime {
            SiteLifetime::Short => "short-lived",
            SiteLifetime::Long => "long-lived",
            SiteLifetime::Immortal => "immortal",
        };
        *by_kind.entry(kind).or_default() += 1;
        let pretenure = match (site.is_pretenured(), site.is_certain) {
            (false, _) => "",
            (true, true) => "yes",
            (true, false) => "perhaps",
        };
        if table.rows.len() < SITES {
            table.rows.push(vec![
                Value::Text(names.site(site.site)),
                Value::Bytes(site.bytes.value.max(0.0) as u64),
                Value::Share(site.short.value),
                Value::Share(site.long.value),
                Value::Share(site.immortal.value),
                Value::Text(kind.to_owned()),
                Value::Text(pretenure.to_owned()),
            ]);
        }
    }
    let numbers = by_kind
        .iter()
        .map(|(kind, number)| format!("{} {kind}", count(*number)));
    let numbers: Vec<String> = numbers.collect();
    let (pruned, of_pruned) = classification.pruned;
    table.title = format!("{title}: {}", numbers.join(", "));
    if pruned > 0 {
        let sites = some(pruned, "small site", "small sites");
        let of_pruned = bytes(of_pruned.max(0.0) as u64);
        table.title += &format!("; {sites} ({of_pruned}) undecided");
    }
    Some(table)
}
