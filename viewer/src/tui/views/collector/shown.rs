//! What the view shows, for copying and exporting.

use super::chart;
use super::page::seconds;
use super::pauses::edge;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::queries::collection::Inside;
use crate::queries::collections::{Collections, Row};
use crate::queries::pauses::buckets;
use crate::tui::views::Cx;

/// Columns of the chart over time.
const COLUMNS: usize = 200;

/// All of it.
pub fn shown(
    cx: &Cx<'_>,
    all: &Collections,
    collections: Table,
    row: Option<&Row>,
    inside: Option<&Inside>,
) -> Document {
    let title = "Collections".to_owned();
    let mut parts = vec![Part::Table(Table {
        title,
        ..collections
    })];
    if all.rows.is_empty() {
        let (why, help) = super::empty::why(cx, all);
        parts = vec![Part::Text(vec![why, help])];
    } else {
        parts.push(Part::Chart(over_time(cx, all)));
        parts.push(Part::Chart(pauses(all)));
    }
    let mut table = Table::new("Pauses", &[">from", ">to", ">pauses"]);
    for (from, to, pauses) in buckets(&all.pauses, usize::MAX) {
        let row = vec![seconds(Some(from)), seconds(Some(to)), Value::Count(pauses)];
        table.rows.push(row);
    }
    parts.push(Part::Table(table));
    let mut table = Table::new("Causes", &["cause", ">collections"]);
    for (cause, count) in &all.causes {
        table
            .rows
            .push(vec![Value::Text(cause.clone()), Value::Count(*count)]);
    }
    parts.push(Part::Table(table));
    parts.extend(samples(
        "Samples in the collector",
        &all.parts,
        &all.threads,
    ));
    if let Some((row, inside)) = row
        .zip(inside)
        .filter(|(row, inside)| row.key == inside.key)
    {
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
        for phase in &inside.phases {
            table.rows.push(vec![
                Value::Text(format!("{}{}", "  ".repeat(phase.depth), phase.name)),
                Value::Text(phase.thread.clone()),
                phase
                    .begin
                    .map_or(Value::Empty, |time| Value::Seconds(cx.seconds(time))),
                seconds(phase.length),
                Value::Text(if phase.stops { "yes" } else { "no" }.to_owned()),
                number(phase.samples),
            ]);
        }
        parts.push(Part::Table(table));
        if inside.samples.is_some() {
            parts.extend(samples("Samples inside it", &inside.parts, &inside.threads));
        }
    }
    Document {
        title: "Collector".to_owned(),
        parts,
    }
}

fn number(samples: Option<u64>) -> Value {
    samples.map_or(Value::Empty, Value::Count)
}

fn samples(title: &str, parts: &[(String, u64)], threads: &[(u32, String, u64)]) -> [Part; 2] {
    let mut by_part = Table::new(&format!("{title}, by part"), &["part", ">samples"]);
    for (name, samples) in parts {
        by_part
            .rows
            .push(vec![Value::Text(name.clone()), Value::Count(*samples)]);
    }
    let mut by_thread = Table::new(&format!("{title}, by thread"), &["thread", ">samples"]);
    for (_, name, samples) in threads {
        by_thread
            .rows
            .push(vec![Value::Text(name.clone()), Value::Count(*samples)]);
    }
    [Part::Table(by_part), Part::Table(by_thread)]
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds and bytes below 2^52"
)]
fn over_time(cx: &Cx<'_>, all: &Collections) -> Chart {
    let mut columns = vec![0.0; COLUMNS];
    let mut line = vec![0.0; COLUMNS];
    let heap = all.rows.iter().filter_map(|row| row.before.max(row.after));
    let heap = heap.max().unwrap_or(0).max(1) as f64;
    let mut rows: Vec<&Row> = all.rows.iter().collect();
    rows.sort_by_key(|row| row.time);
    for row in rows {
        let at = chart::column_of(row.time, all.window, COLUMNS);
        if let (Some(slot), Some(length)) = (columns.get_mut(at), row.length()) {
            *slot = (length as f64 / 1e6).max(*slot);
        }
        if let Some(after) = row.after {
            let rest = line.iter_mut().skip(at);
            rest.for_each(|slot| *slot = after as f64 / heap);
        }
    }
    let (from, to) = all.window;
    let label = |time| format!("{:.3}", cx.seconds(time));
    Chart::Histogram {
        title: "Collections: duration in ms, and the heap that was left".to_owned(),
        axis: Axis {
            name: "seconds".to_owned(),
            labels: vec![label(from), label(to)],
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
