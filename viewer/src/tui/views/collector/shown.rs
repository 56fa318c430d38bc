//! Document of the view, for copying and exporting.

use super::chart;
use super::page::seconds;
use super::pauses::edge;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::queries::collection::Inside;
use crate::queries::collections::{Collections, InCollector, Row};
use crate::queries::pauses::buckets;
use crate::tui::views::Cx;

/// Columns of the chart over time.
const COLUMNS: usize = 200;

/// Everything the view shows.
pub fn shown(
    cx: &Cx<'_>,
    all: &Collections,
    collections: Table,
    inside: Option<(&Row, &Inside)>,
) -> Document {
    let mut parts = vec![Part::Text(super::empty::why(cx, all).into())];
    if !all.rows.is_empty() {
        let title = "Collections".to_owned();
        let table = Table {
            title,
            ..collections
        };
        parts = vec![
            Part::Table(table),
            Part::Chart(over_time(cx, all)),
            Part::Chart(pauses(all)),
        ];
    }
    let mut table = Table::new("Pauses", &[">from", ">to", ">pauses"]);
    for (from, to, pauses) in buckets(&all.pauses, usize::MAX) {
        let row = vec![seconds(Some(from)), seconds(Some(to)), Value::Count(pauses)];
        table.rows.push(row);
    }
    parts.push(Part::Table(table));
    parts.push(counts("Causes", &["cause", ">collections"], &all.causes));
    parts.extend(samples("Samples in the collector", &all.inside));
    if let Some((row, inside)) = inside.filter(|(row, inside)| row.key == inside.key) {
        let title = format!("Inside the collection at {:.3} s", cx.seconds(row.time));
        let columns = [
            "phase",
            "thread",
            ">begin",
            ">duration",
            "stops",
            ">samples",
        ];
        let mut table = Table::new(&title, &columns);
        table.rows.extend(inside.phases.iter().map(|phase| {
            let begin = phase.begin.map(|time| Value::Seconds(cx.seconds(time)));
            vec![
                Value::Text(format!("{}{}", "  ".repeat(phase.depth), phase.name)),
                Value::Text(phase.thread.clone()),
                begin.unwrap_or(Value::Empty),
                seconds(phase.length),
                Value::Text(if phase.stops { "yes" } else { "no" }.to_owned()),
                phase.samples.map_or(Value::Empty, Value::Count),
            ]
        }));
        parts.push(Part::Table(table));
        if let Some(inside) = &inside.samples {
            parts.extend(samples("Samples by part", inside));
        }
    }
    let title = "Collector".to_owned();
    Document { title, parts }
}

fn counts(title: &str, columns: &[&str], rows: &[(String, u64)]) -> Part {
    let mut table = Table::new(title, columns);
    let rows = rows.iter();
    let rows = rows.map(|(name, count)| vec![Value::Text(name.clone()), Value::Count(*count)]);
    table.rows.extend(rows);
    Part::Table(table)
}

fn samples(title: &str, inside: &InCollector) -> [Part; 2] {
    let (part, thread) = (format!("{title}, by part"), format!("{title}, by thread"));
    [
        counts(&part, &["part", ">samples"], &inside.parts),
        counts(&thread, &["thread", ">samples"], &inside.threads),
    ]
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and bytes below 2^52"
)]
fn over_time(cx: &Cx<'_>, all: &Collections) -> Chart {
    let mut columns = vec![0.0; COLUMNS];
    let mut line = vec![0.0; COLUMNS];
    let heap = all.heap().max(1) as f64;
    let grid = chart::grid(all, COLUMNS);
    for row in &all.rows {
        let at = grid.column_of(row.time);
        if let (Some(slot), Some(length)) = (columns.get_mut(at), row.length()) {
            *slot = (length as f64 / 1e6).max(*slot);
        }
        if let Some(after) = row.after {
            let rest = line.iter_mut().skip(at);
            rest.for_each(|slot| *slot = after as f64 / heap);
        }
    }
    let (from, to) = all.window;
    Chart::Histogram {
        title: "Collections: duration in ms, and heap after the collection".to_owned(),
        axis: Axis {
            name: "seconds".to_owned(),
            labels: [from, to]
                .map(|time| format!("{:.3}", cx.seconds(time)))
                .into(),
        },
        columns,
        line,
    }
}

#[expect(clippy::cast_precision_loss, reason = "pauses")]
fn pauses(all: &Collections) -> Chart {
    let buckets = buckets(&all.pauses, usize::MAX);
    let first = buckets.first().map(|bucket| edge(bucket.0));
    let last = buckets.last().map(|bucket| edge(bucket.1));
    Chart::Histogram {
        title: "Pauses by length".to_owned(),
        axis: Axis {
            name: "length, in steps of 1, 2, 5".to_owned(),
            labels: first.into_iter().chain(last).collect(),
        },
        columns: buckets.iter().map(|bucket| bucket.2 as f64).collect(),
        line: Vec::new(),
    }
}
