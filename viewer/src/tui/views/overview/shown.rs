//! Document of the view, for copying and exporting.

use super::Strip;
use super::head::{conditions, delivery, subject, worth};
use crate::present::collections::collector_lines;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::present::entries::name_of;
use crate::present::names::region_name;
use crate::present::names::role_name;
use crate::present::numbers::ratio;
use crate::queries::overview::Overview as Digest;
use crate::tui::views::Cx;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::compilers::Compilers;

pub(super) fn shown(
    cx: &Cx<'_>,
    digest: &Digest,
    compilers: Option<&Compilers>,
    strip: &Strip,
) -> Document {
    let (what, command) = subject(cx);
    let mut text = vec![what, command, conditions(cx).join(", ")];
    text.extend(cx.summary.map(|summary| delivery(cx, summary)));
    text.push(format!(
        "collector: {}",
        collector_lines(&digest.collections).join("; ")
    ));
    let of_newest = cx.summary.map_or(0, |summary| summary.total);
    let of = |samples, total| Value::Share(ratio(samples, total));
    let share = |samples| of(samples, digest.total);
    let mut truth = Table::new("Accuracy", &[">samples", "what", "helps"]);
    for line in &digest.truth {
        truth.rows.push(vec![
            line.samples.map_or(Value::Empty, Value::Count),
            Value::Text(line.text.clone()),
            Value::Text(line.remedy.clone()),
        ]);
    }
    let mut resolved = Table::new("Resolution", &["worth", ">samples", ">share"]);
    for (name, samples) in cx.summary.into_iter().flat_map(|summary| worth(summary)) {
        let cells = vec![
            Value::Text(name.to_owned()),
            Value::Count(samples),
            of(samples, of_newest),
        ];
        resolved.rows.push(cells);
    }
    let mut regions = Table::new("Regions", &["region", "part", ">samples", ">share"]);
    for (region, samples, parts) in &digest.regions {
        let name = || Value::Text(region_name(*region, cx.profile.is_native()).to_owned());
        let cells = vec![
            name(),
            Value::Empty,
            Value::Count(*samples),
            share(*samples),
        ];
        regions.rows.push(cells);
        for (part, samples) in parts {
            let part = Value::Text(part.clone());
            let cells = vec![name(), part, Value::Count(*samples), share(*samples)];
            regions.rows.push(cells);
        }
    }
    let mut entries = Table::new("Hottest", &["name", "region", ">samples", ">share"]);
    for &(id, samples) in &digest.entries {
        let region = region_name(cx.profile.entries[id].region, cx.profile.is_native());
        entries.rows.push(vec![
            Value::Text(name_of(cx.profile, &digest.namesakes, id)),
            Value::Text(region.to_owned()),
            Value::Count(samples),
            share(samples),
        ]);
    }
    let mut threads = Table::new("Threads", &["thread", "role", ">samples", ">share"]);
    for one in cx.summary.into_iter().flat_map(|summary| &summary.threads) {
        let thread = &cx.profile.trace.threads[one.thread].thread;
        threads.rows.push(vec![
            Value::Text(thread.name.clone()),
            Value::Text(role_name(thread.role).to_owned()),
            Value::Count(one.samples),
            of(one.samples, of_newest),
        ]);
    }
    let mut methods = Table::new(
        "Compilers' methods",
        &["method", "tier", ">samples", ">share of compilers"],
    );
    // Shares of compiler samples, as on the screen.
    let of_compilers = compilers.into_iter().flat_map(|told| {
        let methods = told.methods.iter();
        methods.map(move |one| (told, one))
    });
    for (told, one) in of_compilers {
        methods.rows.push(vec![
            Value::Text(one.name.clone()),
            Value::Text(one.tier.clone()),
            Value::Count(one.samples),
            of(one.samples, told.samples),
        ]);
    }
    let mut figures = Table::new("Figures", &["section", "name", "value"]);
    for (section, name, value) in &digest.figures {
        let cells = [section, name, value].map(|text| Value::Text(text.clone()));
        figures.rows.push(cells.to_vec());
    }
    let mut parts = vec![Part::Text(text), Part::Chart(over_time(cx, strip))];
    let tables = [truth, resolved, regions, entries, threads, methods, figures];
    parts.extend(tables.into_iter().map(Part::Table));
    Document {
        title: "Overview".to_owned(),
        parts,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn over_time(cx: &Cx<'_>, strip: &Strip) -> Chart {
    let columns = strip.columns.samples.len() / strip.columns.groups.max(1);
    let of_region = |(region, at): (Region, usize)| {
        let of_column = |column| strip.columns.column(column).get(at).copied().unwrap_or(0) as f64;
        let values: Vec<f64> = (0..columns).map(of_column).collect();
        (
            region_name(region, cx.profile.is_native()).to_owned(),
            values,
        )
    };
    let series = Region::ALL.into_iter().zip(0..).map(of_region);
    let series = series.filter(|(_, values)| values.iter().any(|value| *value > 0.0));
    let (from, to) = strip.window;
    Chart::Stacked {
        title: "Samples over time by region".to_owned(),
        axis: Axis {
            name: "seconds".to_owned(),
            labels: [from, to]
                .map(|time| format!("{:.3}", cx.seconds(time)))
                .to_vec(),
        },
        series: series.collect(),
    }
}
