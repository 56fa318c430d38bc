//! Document of the timeline, for copying and exporting.

use super::Timeline;
use super::drawn::unit;
use super::lanes::times;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value, each};
use crate::present::names::{region_name, role_name};
use crate::queries::by_region::period_ns;
use crate::queries::collections::takes_process;
use crate::queries::time_grid::Grid;
use crate::queries::timeline::{Activity, Listed};
use crate::tui::views::Cx;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Region, Stop};

impl Timeline {
    pub(super) fn exported(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let grid = self.grid(cx);
        let mut parts = Vec::new();
        parts.extend(self.activity.get().map(|activity| busy(cx, activity)));
        if let Some(listed) = self.listed.get() {
            parts.push(Part::Table(threads(cx, listed, stop)?));
        }
        parts.extend(events(cx, &grid, stop)?);
        let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
        let title = format!("Timeline, {from:.3} to {to:.3} s");
        Some(Document { title, parts })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are below 2^52"
)]
fn busy(cx: &Cx<'_>, activity: &Activity) -> Part {
    let grid = activity.grid;
    let scale = period_ns(cx.profile) as f64 / grid.column_ns() as f64;
    let series = Region::ALL.into_iter().enumerate().map(|(at, region)| {
        let of_column = |column| {
            let count = activity.columns.column(column).get(at).copied();
            count.unwrap_or(0) as f64 * scale
        };
        let values = (0..grid.columns).map(of_column).collect();
        (
            region_name(region, cx.profile.is_native()).to_owned(),
            values,
        )
    });
    let is_any = |(_, values): &(String, Vec<f64>)| values.iter().any(|value| *value > 0.0);
    let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
    let label = |at: u32| format!("{:.3}", from + (to - from) * f64::from(at) / 4.0);
    Part::Chart(Chart::Stacked {
        title: format!(
            "{} busy, by region (samples times period, {} columns)",
            unit(cx),
            grid.columns
        ),
        axis: Axis {
            name: "seconds".to_owned(),
            labels: (0..=4).map(label).collect(),
        },
        series: series.filter(is_any).collect(),
    })
}

fn yes(is: bool) -> Value {
    Value::Text(if is { "yes" } else { "no" }.to_owned())
}

fn threads(cx: &Cx<'_>, listed: &Listed, stop: &Stop) -> Option<Table> {
    let columns = ["included", "thread", ">tid", "role", ">samples"];
    let mut table = Table::new("Threads of the whole recording", &columns);
    let rows = listed.threads.iter().enumerate();
    each(rows, stop, |(row, &(index, samples))| {
        let thread = &cx.profile.trace.threads[index].thread;
        table.rows.push(vec![
            yes(row < listed.included),
            Value::Text(thread.name.clone()),
            Value::Count(u64::from(thread.tid.0)),
            Value::Text(role_name(thread.role).to_owned()),
            Value::Count(samples),
        ]);
    })?;
    Some(table)
}

/// Tables of collections, marks and losses.
fn events(cx: &Cx<'_>, grid: &Grid, stop: &Stop) -> Option<Vec<Part>> {
    let trace = &cx.profile.trace;
    let seconds = |time: TimeNs| Value::Seconds(cx.seconds(time));
    let maybe = |time: Option<TimeNs>| time.map_or(Value::Empty, seconds);
    let text = |text: &str| Value::Text(text.to_owned());
    let columns = [
        ">from",
        ">to",
        "collector",
        "kind",
        "cause",
        "stops the program",
    ];
    let mut collections = Table::new("Collections", &columns);
    let takes = takes_process(cx.profile, cx.filters.filter());
    each(trace.collections.iter(), stop, |one| {
        let is_here = times(one).is_some_and(|(from, to)| grid.columns_of(from, to).is_some());
        if is_here && takes(one.process) {
            collections.rows.push(vec![
                maybe(one.begin),
                maybe(one.end),
                text(&one.collector),
                text(&one.kind),
                text(&one.cause),
                yes(one.scope.is_pause()),
            ]);
        }
    })?;
    let mut marks = Table::new("Marks", &[">at", "mark"]);
    for mark in trace.marks.iter().filter(|mark| grid.has(mark.time)) {
        marks.rows.push(vec![seconds(mark.time), text(&mark.text)]);
    }
    let mut lost = Table::new("Lost", &[">from", ">to", ">records", "of", "why"]);
    let losses = trace.lost.iter();
    for one in losses.filter(|one| grid.columns_of(one.from, one.to).is_some()) {
        lost.rows.push(vec![
            seconds(one.from),
            seconds(one.to),
            Value::Count(one.count),
            Value::Text(format!("{:?}", one.stream)),
            Value::Text(format!("{:?}", one.reason)),
        ]);
    }
    let tables = [collections, marks, lost].into_iter();
    let tables = tables.filter(|table| !table.rows.is_empty());
    Some(tables.map(Part::Table).collect())
}
