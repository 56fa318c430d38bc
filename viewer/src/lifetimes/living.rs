//! Objects that were alive at the end, by age and site: a census of the heap.

use super::Wanted;
use super::histograms::{BINS, SERIES, Scale};
use super::names::Names;
use crate::present::document::{Chart, Column, Table, Value};
use vmscope_symbolizer::lifetimes::groups::Group;
use vmscope_symbolizer::lifetimes::histogram::{Bin, Histogram, Weighting};
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure};

/// Most rows.
const ROWS: usize = 20;

/// Columns of ages: fifths of the run.
const AGES: usize = 5;

fn histogram(lifetimes: &Lifetimes, wanted: &Wanted, most: usize, width: f64) -> Histogram {
    let by = (wanted.grouping, most);
    Histogram::of(lifetimes, by, (Measure::Time, width), Weighting::Bytes)
}

/// Groups with most living bytes, with these bytes by age.
pub fn table(
    lifetimes: &Lifetimes,
    names: &Names<'_>,
    groups: &[Group],
    wanted: &Wanted,
) -> Option<Table> {
    let mut living: Vec<&Group> = groups.iter().filter(|one| one.alive.value > 0.0).collect();
    living.sort_by(|a, b| b.alive_bytes.value.total_cmp(&a.alive_bytes.value));
    let whole: f64 = living.iter().map(|one| one.alive_bytes.value).sum();
    if living.is_empty() {
        return None;
    }
    let scale = Scale::of(lifetimes, Measure::Time, AGES);
    let ages = histogram(lifetimes, wanted, groups.len(), scale.width);
    let title = format!("Living objects at the end, by {} and age", wanted.by);
    let columns = [wanted.by, ">objects", ">±", ">bytes", ">±", ">share"];
    let mut table = Table::new(&title, &columns);
    let labels = scale.axis("").labels;
    table.columns.extend(labels.windows(2).map(|ends| Column {
        name: format!("bytes aged {} to {}", ends[0], ends[1]),
        right: true,
    }));
    for group in living.into_iter().take(ROWS) {
        let mut row = vec![
            Value::Text(names.group(group.key)),
            super::rounded(group.alive.value),
            super::rounded(group.alive.error),
            super::sized(group.alive_bytes.value),
            super::sized(group.alive_bytes.error),
            Value::Share(group.alive_bytes.value / whole.max(1.0)),
        ];
        let bins = ages.groups.iter().find(|(key, _)| *key == Some(group.key));
        let bins = bins.map_or([].as_slice(), |(_, bins)| bins.as_slice());
        let bytes = scale.columns(bins, |bin: &Bin| bin.alive.value);
        row.extend(bytes.into_iter().map(super::sized));
        table.rows.push(row);
    }
    Some(table)
}

/// Living bytes by age, stacked by group.
pub fn chart(lifetimes: &Lifetimes, names: &Names<'_>, wanted: &Wanted) -> Chart {
    let scale = Scale::of(lifetimes, Measure::Time, BINS);
    let all = histogram(lifetimes, wanted, SERIES, scale.width);
    let series = all.groups.iter().map(|(key, bins)| {
        let columns = scale.columns(bins, |bin: &Bin| bin.alive.value);
        (names.series(*key), columns)
    });
    Chart::Stacked {
        title: format!("Living bytes at the end by age, by {}", wanted.by),
        axis: scale.axis("age"),
        series: series.collect(),
    }
}
