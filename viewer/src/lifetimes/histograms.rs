//! Distributions of lifetimes: by length, by birth, by class and site.

use super::Unit;
use super::names::Names;
use crate::present::document::{Axis, Chart, Table, Value};
use crate::present::numbers::{bytes, count};
use std::collections::BTreeMap;
use vmscope_symbolizer::lifetimes::groups::{Allocator, GroupKey, Grouping, groups};
use vmscope_symbolizer::lifetimes::histogram::{Bin, HeatMap, Histogram, Weighting, width_for};
use vmscope_symbolizer::lifetimes::life_table::life_tables;
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure};
use vmscope_symbolizer::{ClassId, Id};

/// Bins of charts: two per cent of the run each.
pub const BINS: usize = 50;

/// Groups with a series of their own in charts.
pub const SERIES: usize = 8;

/// Rows of a table of lifetimes.
const ROWS: usize = 20;

/// Sites and classes in the heat map of both.
const MOST: usize = 10;

/// Points of a curve.
const POINTS: usize = 100;

/// Powers of ten below 100 % in density charts.
const DECADES: i32 = 6;

/// Equal bins of lifetimes, from 0 on.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    pub measure: Measure,
    /// Of a bin, in the unit.
    pub width: f64,
    pub bins: usize,
}

impl Scale {
    /// At most about `most` bins, of whole numbers of collections.
    pub fn of(lifetimes: &Lifetimes, measure: Measure, most: usize) -> Self {
        let (width, bins) = match measure.is_count() {
            true => {
                let numbers = f64::from(most_survived(lifetimes, measure)) + 1.0;
                let width = (numbers / most as f64).ceil();
                (width, (numbers / width).ceil() as usize)
            }
            false => (width_for(lifetimes, measure, most), most),
        };
        // Up to ten bins have a label each, others every fifth part.
        let bins = match bins {
            ..=10 => bins,
            _ => bins.next_multiple_of(5),
        };
        Scale {
            measure,
            width,
            bins,
        }
    }

    /// The axis of all bins.
    pub fn axis(&self, name: &str) -> Axis {
        let parts = if self.bins <= 10 { self.bins } else { 5 };
        let at = |part: usize| self.width * (self.bins * part) as f64 / parts.max(1) as f64;
        Axis::new(name, (0..=parts).map(|part| label(self.measure, at(part))))
    }

    /// A value for each bin; 0 for missing bins.
    pub fn columns(&self, bins: &[Bin], of: impl Fn(&Bin) -> f64) -> Vec<f64> {
        let mut columns: Vec<f64> = bins.iter().map(of).collect();
        columns.resize(self.bins, 0.0);
        columns
    }
}

/// The greatest number of survived collections.
fn most_survived(lifetimes: &Lifetimes, measure: Measure) -> u32 {
    let is_full = measure == Measure::FullCollections;
    let single = lifetimes.objects.iter().map(|one| match is_full {
        true => one.fulls.into(),
        false => one.scavenges.into(),
    });
    let buckets = lifetimes.counts.iter().flat_map(|counts| &counts.buckets);
    let counted = buckets.map(|one| if is_full { one.fulls } else { one.scavenges });
    single.chain(counted).max().unwrap_or(0)
}

/// A lifetime with its unit.
pub fn label(measure: Measure, value: f64) -> String {
    match measure {
        _ if value == 0.0 => "0".to_owned(),
        Measure::Time => crate::present::numbers::brief(value as u64),
        Measure::Relative => format!("{:.0} %", value * 100.0),
        Measure::AllocatedBytes => bytes(value as u64),
        Measure::Scavenges | Measure::FullCollections => count(value as u64),
    }
}

/// The lifetime's name.
pub const fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::Time => "lifetime in time",
        Measure::Relative => "lifetime as a share of the run",
        Measure::AllocatedBytes => "lifetime in bytes allocated meanwhile",
        Measure::Scavenges => "survived scavenges",
        Measure::FullCollections => "survived full collections",
    }
}

/// Objects and bytes by lifetime in a unit.
pub fn table(lifetimes: &Lifetimes, unit: Unit) -> Table {
    let measure = unit.measure();
    let scale = Scale::of(lifetimes, measure, ROWS);
    let of = |weighting| {
        let all = (Grouping::All, 1);
        let all = Histogram::of(lifetimes, all, (measure, scale.width), weighting);
        let all = all.groups.into_iter().next();
        let mut bins = all.map(|(_, bins)| bins).unwrap_or_default();
        bins.resize(scale.bins, Bin::default());
        bins
    };
    let (objects, sizes) = (of(Weighting::Objects), of(Weighting::Bytes));
    let both = |bin: &Bin| bin.dead.plus(bin.alive);
    let sum = |bins: &[Bin]| bins.iter().map(|bin| both(bin).value).sum::<f64>();
    let whole = [sum(&objects), sum(&sizes)].map(|sum| if sum > 0.0 { sum } else { 1.0 });
    let title = format!("Objects by {}", name(measure));
    let columns = [
        ">at least",
        ">objects",
        ">±",
        ">share",
        ">live at most as long",
        ">bytes",
        ">share of bytes",
        ">alive at the end",
    ];
    let mut table = Table::new(&title, &columns);
    let mut as_long = 0.0;
    for (at, (number, size)) in objects.iter().zip(&sizes).enumerate() {
        let [number_all, size_all] = [both(number), both(size)];
        as_long += number_all.value;
        if number_all.value <= 0.0 {
            continue;
        }
        let least = scale.width * at as f64;
        table.rows.push(vec![
            match measure {
                Measure::Time => Value::Seconds(least / 1e9),
                Measure::Relative => Value::Share(least),
                Measure::AllocatedBytes => Value::Bytes(least as u64),
                Measure::Scavenges | Measure::FullCollections => Value::Count(least as u64),
            },
            super::rounded(number_all.value),
            super::rounded(number_all.error),
            Value::Share(number_all.value / whole[0]),
            Value::Share(as_long / whole[0]),
            super::sized(size_all.value),
            Value::Share(size_all.value / whole[1]),
            super::rounded(number.alive.value),
        ]);
    }
    table
}

/// Objects by lifetime and class.
pub fn frequencies(lifetimes: &Lifetimes, names: &Names<'_>, measure: Measure) -> Chart {
    let scale = Scale::of(lifetimes, measure, BINS);
    let by = (Grouping::Class, SERIES);
    let all = Histogram::of(lifetimes, by, (measure, scale.width), Weighting::Objects);
    let series = all.groups.iter().map(|(key, bins)| {
        let columns = scale.columns(bins, |bin| bin.dead.value + bin.alive.value);
        (names.series(*key), columns)
    });
    Chart::Stacked {
        title: format!("Objects by {}, by class", name(measure)),
        axis: scale.axis(name(measure)),
        series: series.collect(),
    }
}

/// Densities of lifetimes by objects and by memory: Figures 5 and 4 of the DataFrame study (IWST 2023).
pub fn densities(lifetimes: &Lifetimes) -> Chart {
    let scale = Scale::of(lifetimes, Measure::Time, BINS);
    let of = |(name, weighting): (&str, Weighting)| {
        let all = (Grouping::All, 1);
        let all = Histogram::of(lifetimes, all, (Measure::Time, scale.width), weighting);
        let first = all.groups.first();
        let bins = first.map_or([].as_slice(), |(_, bins)| bins.as_slice());
        let columns = scale.columns(bins, |bin| bin.dead.value + bin.alive.value);
        let whole: f64 = columns.iter().sum();
        let points = columns.iter().enumerate().map(|(at, value)| {
            let decades = (value / whole).log10().max(f64::from(-DECADES));
            let height = 1.0 + decades / f64::from(DECADES);
            // An empty bin has no logarithm.
            let height = if height.is_finite() { height } else { 0.0 };
            ((at as f64 + 0.5) / scale.bins as f64, height)
        });
        (name.to_owned(), points.collect())
    };
    let labels = (0..=DECADES).map(|at| format!("{} %", 10_f64.powi(at - DECADES + 2)));
    Chart::Lines {
        title: "Density of lifetimes, by number and by memory (logarithmic)".to_owned(),
        across: scale.axis(name(Measure::Time)),
        up: Axis::new("share", labels),
        series: vec![
            of(("by number of objects", Weighting::Objects)),
            of(("by memory", Weighting::Bytes)),
        ],
    }
}

/// Survival curves of all objects and of the classes with most objects.
pub fn survival(lifetimes: &Lifetimes, names: &Names<'_>, measure: Measure) -> Chart {
    let scale = Scale::of(lifetimes, measure, BINS);
    let whole = scale.width * scale.bins as f64;
    let all = life_tables(lifetimes, Grouping::All, measure);
    let by_class: BTreeMap<GroupKey, _> = life_tables(lifetimes, Grouping::Class, measure)
        .into_iter()
        .collect();
    let largest = groups(lifetimes, Grouping::Class);
    let largest = largest.iter().take(SERIES).filter_map(|group| {
        let table = by_class.get(&group.key)?;
        Some((names.group(group.key), table))
    });
    let all = all.iter().map(|(key, table)| (names.group(*key), table));
    let series = all.chain(largest).map(|(name, table)| {
        let mut points = vec![(0.0, 1.0)];
        let mut height = 1.0;
        for step in table.drawn(POINTS) {
            let x = (step.lifetime / whole).clamp(0.0, 1.0);
            points.push((x, height));
            height = step.survival.value;
            points.push((x, height));
        }
        points.push(((table.horizon / whole).clamp(0.0, 1.0), height));
        (name, points)
    });
    let labels = (0..=4).map(|at| format!("{} %", 25 * at));
    Chart::Lines {
        title: "Survival: share of objects that live longer (life table)".to_owned(),
        across: scale.axis(name(measure)),
        up: Axis::new("alive", labels),
        series: series.collect(),
    }
}

/// Objects by birth and lifetime; `None` without single records.
pub fn births(lifetimes: &Lifetimes) -> Option<Chart> {
    if lifetimes.objects.is_empty() {
        return None;
    }
    let measure = Measure::Time;
    let scale = Scale::of(lifetimes, measure, BINS);
    let map = HeatMap::of(lifetimes, measure, BINS, Weighting::Objects);
    Some(Chart::Heat {
        title: "Objects by birth and lifetime".to_owned(),
        across: scale.axis("birth"),
        up: scale.axis("lifetime"),
        cells: map.cells,
        unit: "objects",
    })
}

/// Bytes of the most allocating sites and their classes.
pub fn sites_by_classes(lifetimes: &Lifetimes, names: &Names<'_>) -> Chart {
    let pairs = groups(lifetimes, Grouping::ClassAndSite);
    let mut by_site: BTreeMap<Option<Allocator>, f64> = BTreeMap::new();
    let pair = |key| match key {
        GroupKey::ClassAndSite(class, site) => Some((class, site)),
        _ => None,
    };
    for group in &pairs {
        if let Some((_, site)) = pair(group.key) {
            *by_site.entry(site).or_default() += group.bytes.value;
        }
    }
    let sites = largest(by_site);
    let mut by_class: BTreeMap<usize, f64> = BTreeMap::new();
    for group in &pairs {
        if let Some((class, site)) = pair(group.key)
            && sites.contains(&site)
        {
            *by_class.entry(class.index()).or_default() += group.bytes.value;
        }
    }
    let classes = largest(by_class);
    let mut cells = vec![vec![0.0; sites.len()]; classes.len()];
    for group in &pairs {
        let Some((class, site)) = pair(group.key) else {
            continue;
        };
        let column = classes.iter().position(|one| *one == class.index());
        let row = sites.iter().rev().position(|one| *one == site);
        if let (Some(column), Some(row)) = (column, row) {
            cells[column][row] = group.bytes.value;
        }
    }
    let class = |index: &usize| names.group(GroupKey::Class(ClassId::of(*index)));
    let title = "Bytes by site and class, of the ten most allocating sites";
    Chart::Heat {
        title: title.to_owned(),
        across: Axis::new("class", classes.iter().map(class)),
        up: Axis::new("site", sites.iter().rev().map(|site| names.site(*site))),
        cells,
        unit: "bytes",
    }
}

/// The keys of the greatest values, the greatest first.
fn largest<K: Ord>(values: BTreeMap<K, f64>) -> Vec<K> {
    let mut all: Vec<(K, f64)> = values.into_iter().collect();
    // Stable: equal values stay in the order of keys.
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(MOST);
    all.into_iter().map(|(key, _)| key).collect()
}
