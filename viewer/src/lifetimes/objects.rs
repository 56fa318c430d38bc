//! The document of `vmscope lifetimes`: what was allocated, and how long it lived.

use super::histograms::{self, BINS, SERIES, Scale};
use super::names::Names;
use super::{
    Loaded, Wanted, callers, counted, dependent_samples, holders, living, rounded, single, sized,
    unfinalized,
};
use crate::present::document::{Chart, Document, Part, Table, Value};
use crate::present::numbers::{bytes, count, points, some};
use std::collections::BTreeMap;
use vmscope_symbolizer::lifetimes::classify::{Classification, Parameters, SiteLifetime};
use vmscope_symbolizer::lifetimes::estimate::Estimate;
use vmscope_symbolizer::lifetimes::groups::{Group, Grouping, groups};
use vmscope_symbolizer::lifetimes::histogram::Allocations;
use vmscope_symbolizer::lifetimes::holders::holders as held_by;
use vmscope_symbolizer::lifetimes::life_table::life_tables;
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure};

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
    let mut lines = summary(lifetimes);
    lines.extend(unfinalized(loaded.trace));
    let mut parts = vec![Part::Text(lines)];
    parts.push(Part::Table(allocated(&names, &groups, wanted)));
    parts.push(Part::Chart(allocations(lifetimes, &names, wanted.grouping)));
    parts.extend(histograms::births(lifetimes).map(Part::Chart));
    parts.push(Part::Chart(histograms::sites_by_classes(lifetimes, &names)));
    parts.push(Part::Table(histograms::table(lifetimes, wanted.unit)));
    for measure in [
        Measure::Time,
        Measure::AllocatedBytes,
        Measure::Scavenges,
        Measure::FullCollections,
    ] {
        let frequencies = histograms::frequencies(lifetimes, &names, measure);
        parts.push(Part::Chart(frequencies));
    }
    parts.push(Part::Chart(histograms::densities(lifetimes)));
    parts.extend(survival(lifetimes).map(Part::Table));
    let curves = histograms::survival(lifetimes, &names, wanted.unit.measure());
    parts.push(Part::Chart(curves));
    let living = living::table(lifetimes, &names, &groups, wanted);
    if let Some(living) = living {
        parts.push(Part::Table(living));
        parts.push(Part::Chart(living::chart(lifetimes, &names, wanted)));
    }
    let held = held_by(lifetimes, wanted.grouping);
    parts.extend(holders::table(&held, &names, wanted).map(Part::Table));
    parts.extend(decisions(lifetimes, &names).map(Part::Table));
    parts.extend(callers::parts(lifetimes, &names, wanted.graph));
    if wanted.objects > 0 {
        let objects = wanted.objects_of(lifetimes).take(wanted.objects);
        parts.push(Part::Table(single::table(lifetimes, &names, objects)));
    }
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
        lines.extend(dependent_samples(lifetimes));
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
            ">mean lifetime",
            ">mean lifetime in bytes",
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
            sized(group.bytes.value),
            Value::Share(group.share_of_bytes.value),
            sized(group.mean_bytes.value),
            rounded(group.alive.value),
            mean(Measure::Time).map_or(Value::Empty, |mean| Value::Seconds(mean.value / 1e9)),
            mean(Measure::AllocatedBytes).map_or(Value::Empty, |mean| sized(mean.value)),
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

/// Allocated bytes over time, by group.
fn allocations(lifetimes: &Lifetimes, names: &Names<'_>, grouping: Grouping) -> Chart {
    let scale = Scale::of(lifetimes, Measure::Time, BINS);
    let by = (grouping, SERIES);
    let all = Allocations::of(lifetimes, by, (Measure::Time, scale.width));
    let series = all.groups.iter().map(|(key, bins)| {
        let mut values: Vec<f64> = bins.iter().map(|bin| bin.bytes.value).collect();
        values.resize(BINS, 0.0);
        (names.series(*key), values)
    });
    Chart::Stacked {
        title: "Allocated bytes over time".to_owned(),
        axis: scale.axis("time"),
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
                sized(site.bytes.value),
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
