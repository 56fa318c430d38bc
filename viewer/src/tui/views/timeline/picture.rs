//! What the timeline shows, apart from how.

use super::*;
use crate::present::document::each;
use crate::queries::by_region::period_ns;

/// The chart and the tables of what is shown.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are below 2^52"
)]
pub(super) fn shown(view: &Timeline, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
    let grid = view.grid(cx, cx.area);
    let mut parts = Vec::new();
    let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
    if let Some(activity) = view.activity.get() {
        let grid = activity.grid;
        let scale = period_ns(cx.profile) as f64 / grid.column_ns() as f64;
        let series = Region::ALL.into_iter().enumerate().map(|(at, region)| {
            let of_column = |column| {
                let count = activity.columns.column(column).get(at).copied();
                count.unwrap_or(0) as f64 * scale
            };
            let values = (0..grid.columns).map(of_column).collect();
            (region_name(region).to_owned(), values)
        });
        let series: Vec<(String, Vec<f64>)> = series.collect();
        let is_any = |(_, values): &(String, Vec<f64>)| values.iter().any(|value| *value > 0.0);
        let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
        parts.push(Part::Chart(Chart::Stacked {
            title: format!(
                "{} busy, by region: samples times their period, of {} columns",
                chart::unit(cx),
                grid.columns
            ),
            axis: Axis {
                name: "seconds".to_owned(),
                labels: (0..=4u32)
                    .map(|at| format!("{:.3}", from + (to - from) * f64::from(at) / 4.0))
                    .collect(),
            },
            series: series.into_iter().filter(is_any).collect(),
        }));
    }
    if let Some(listed) = view.listed.get() {
        let columns = ["included", "thread", ">tid", "role", ">samples"];
        let mut table = Table::new("Threads, in the whole recording", &columns);
        each(
            listed.threads.iter().enumerate(),
            stop,
            |(row, &(index, samples))| {
                if let Some(thread) = cx.profile.trace.threads.get(index as usize) {
                    let word = if row < listed.included { "yes" } else { "no" };
                    table.rows.push(vec![
                        Value::Text(word.to_owned()),
                        Value::Text(thread.thread.name.clone()),
                        Value::Count(u64::from(thread.thread.tid.0)),
                        Value::Text(role_name(thread.thread.role).to_owned()),
                        Value::Count(samples),
                    ]);
                }
            },
        )?;
        parts.push(Part::Table(table));
    }
    parts.extend(happened(cx, &grid, stop)?);
    Some(Document {
        title: format!("Timeline, {from:.3} to {to:.3} s"),
        parts,
    })
}

/// Collections, marks and losses.
fn happened(cx: &Cx<'_>, grid: &Grid, stop: &Stop) -> Option<Vec<Part>> {
    let trace = &cx.profile.trace;
    let seconds = |time: TimeNs| Value::Seconds(cx.seconds(time));
    let told = |time: Option<TimeNs>| time.map_or(Value::Empty, seconds);
    let text = |text: &str| Value::Text(text.to_owned());
    let columns = [
        ">from",
        ">to",
        "collector",
        "kind",
        "cause",
        "stops the world",
    ];
    let mut collections = Table::new("Collections", &columns);
    let processes = crate::queries::collections::processes(cx.profile, cx.filters.filter());
    each(trace.collections.iter(), stop, |one| {
        let is_in = processes
            .as_ref()
            .is_none_or(|all| all.contains(&one.process));
        let is_here = times(one).is_some_and(|(from, to)| grid.columns_of(from, to).is_some());
        if is_in && is_here {
            collections.rows.push(vec![
                told(one.begin),
                told(one.end),
                text(&one.collector),
                text(&one.kind),
                text(&one.cause),
                text(if one.stop_the_world { "yes" } else { "no" }),
            ]);
        }
    })?;
    let mut marks = Table::new("Marks", &[">at", "mark"]);
    for mark in trace.marks.iter().filter(|mark| grid.has(mark.time)) {
        marks.rows.push(vec![seconds(mark.time), text(&mark.text)]);
    }
    let mut lost = Table::new("Lost", &[">from", ">to", ">records", "of", "why"]);
    for one in &trace.lost {
        if grid.columns_of(one.from, one.to).is_some() {
            lost.rows.push(vec![
                seconds(one.from),
                seconds(one.to),
                Value::Count(one.count),
                Value::Text(format!("{:?}", one.stream)),
                Value::Text(format!("{:?}", one.reason)),
            ]);
        }
    }
    let tables = [collections, marks, lost].into_iter();
    let tables = tables.filter(|table| !table.rows.is_empty());
    Some(tables.map(Part::Table).collect())
}
