//! Charts as SVG.

use crate::present::document::{Axis, Chart, Document, Part};
use crate::present::text::harmless;
use crate::present::text::{line, width as columns_of};
use inferno::flamegraph::{Options, from_lines};
use svg::Document as Svg;
use svg::node::element::{Group, Polyline, Rectangle, Text};

/// Pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 40.0;

/// Maximum width of a letter in most fonts of this size.
const LETTER: f64 = 8.0;
/// Columns of a name in a legend.
const LEGEND_NAME: usize = 30;
/// Width of the number of omitted names.
const LEGEND_MORE: f64 = 110.0;

/// Distinguishable with red-green blindness; reused for further series.
const COLORS: [&str; 9] = [
    "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#56b4e9", "#0072b2", "#f0e442", "#999999",
    "#555555",
];

/// The charts below each other; a flame graph alone.
///
/// # Errors
/// A sentence, without charts.
pub fn encode(shown: &Document) -> Result<Vec<u8>, String> {
    let charts = shown.parts.iter().filter_map(|part| match part {
        Part::Chart(chart) => Some(chart),
        Part::Text(_) | Part::Table(_) => None,
    });
    let charts: Vec<&Chart> = charts.collect();
    if let Some(Chart::Flame { title, collapsed }) = charts.first() {
        return flame(title, collapsed);
    }
    if charts.is_empty() {
        return Err("this view shows no chart: export text, CSV or JSON".to_owned());
    }
    let mut all = Group::new();
    let mut top = 0.0;
    for chart in charts {
        let Some(drawn) = draw(chart) else {
            continue;
        };
        all = all.add(drawn.set("transform", format!("translate(0 {top})")));
        top += HEIGHT + MARGIN;
    }
    let ground = Rectangle::new()
        .set("width", "100%")
        .set("height", "100%")
        .set("fill", "#ffffff");
    let document = Svg::new()
        .set("viewBox", (0.0, 0.0, WIDTH, top.max(HEIGHT)))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(ground)
        .add(all);
    Ok(document.to_string().into_bytes())
}

fn flame(title: &str, collapsed: &[String]) -> Result<Vec<u8>, String> {
    if collapsed.is_empty() {
        return Err("this view shows no stacks".to_owned());
    }
    let mut options = Options::default();
    options.title = harmless(title);
    let mut bytes = Vec::new();
    let lines = collapsed.iter().map(String::as_str);
    from_lines(&mut options, lines, &mut bytes)
        .map_err(|error| format!("cannot draw the flame graph: {error}"))?;
    Ok(bytes)
}

fn draw(chart: &Chart) -> Option<Group> {
    match chart {
        Chart::Stacked {
            title,
            axis,
            series,
        } => Some(stacked(title, axis, series)),
        Chart::Histogram {
            title,
            axis,
            columns,
            line,
        } => Some(histogram(title, axis, columns, line)),
        Chart::Flame { .. } => None,
    }
}

/// Inside of the plot: left, top, width, height.
const INSIDE: (f64, f64, f64, f64) = (MARGIN, MARGIN, WIDTH - 2.0 * MARGIN, HEIGHT - 2.0 * MARGIN);

#[expect(clippy::cast_precision_loss, reason = "columns and labels of a chart")]
fn frame(title: &str, axis: &Axis) -> Group {
    let (left, top, width, height) = INSIDE;
    let mut group = Group::new().add(text(title, left, top - 16.0, "start"));
    let last = axis.labels.len().saturating_sub(1).max(1);
    for (index, label) in axis.labels.iter().enumerate() {
        let x = left + width * index as f64 / last as f64;
        group = group.add(text(label, x, top + height + 16.0, "middle"));
    }
    group.add(text(&axis.name, left + width, top + height + 32.0, "end"))
}

fn text(text: &str, x: f64, y: f64, anchor: &str) -> Text {
    Text::new(harmless(text))
        .set("x", x)
        .set("y", y)
        .set("text-anchor", anchor)
}

#[expect(clippy::cast_precision_loss, reason = "columns of a chart")]
fn bar(column: usize, columns: usize, from: f64, to: f64, color: &str) -> Rectangle {
    let (left, top, width, height) = INSIDE;
    let step = width / columns.max(1) as f64;
    Rectangle::new()
        .set("x", left + step * column as f64)
        .set("y", top + height * (1.0 - to))
        .set("width", step * 0.96)
        .set("height", height * (to - from).max(0.0))
        .set("fill", color)
}

fn stacked(title: &str, axis: &Axis, series: &[(String, Vec<f64>)]) -> Group {
    let mut group = frame(title, axis);
    let columns = series.iter().map(|(_, values)| values.len()).max();
    let columns = columns.unwrap_or(0);
    let value = |values: &[f64], at: usize| values.get(at).copied().unwrap_or(0.0).max(0.0);
    let sum = |at: usize| -> f64 { series.iter().map(|(_, values)| value(values, at)).sum() };
    let most = (0..columns).map(sum).fold(0.0, f64::max);
    let mut heights = vec![0.0; columns];
    for ((_, values), color) in series.iter().zip(COLORS.iter().cycle()) {
        for (at, height) in heights.iter_mut().enumerate() {
            let value = value(values, at);
            if value > 0.0 && most > 0.0 {
                let to = *height + value / most;
                group = group.add(bar(at, columns, *height, to, color));
                *height = to;
            }
        }
    }
    let names = series.iter().map(|(name, _)| name.as_str());
    legend(names.zip(COLORS.iter().copied().cycle()), group)
}

/// Names in their colours below the axis, in at most two lines.
#[expect(clippy::cast_precision_loss, reason = "letters of a name")]
fn legend<'a>(names: impl Iterator<Item = (&'a str, &'a str)>, mut group: Group) -> Group {
    let (left, top, width, height) = INSIDE;
    let first = top + height + 48.0;
    let (mut x, mut y) = (left, first);
    let mut left_out = 0;
    for (name, color) in names {
        let name = line(name, LEGEND_NAME);
        let wide = columns_of(&name) as f64 * LETTER + 12.0;
        if x + wide > left + width - LEGEND_MORE && y <= first {
            (x, y) = (left, y + 14.0);
        }
        if left_out > 0 || x + wide > left + width - LEGEND_MORE {
            left_out += 1;
            continue;
        }
        group = group.add(text(&name, x, y, "start").set("fill", color));
        x += wide;
    }
    if left_out > 0 {
        let more = format!("and {left_out} more");
        group = group.add(text(&more, left + width, y, "end"));
    }
    group
}

#[expect(clippy::cast_precision_loss, reason = "columns of a chart")]
fn histogram(title: &str, axis: &Axis, columns: &[f64], line: &[f64]) -> Group {
    let mut group = frame(title, axis);
    let most = columns.iter().copied().fold(0.0, f64::max);
    for (at, value) in columns
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > 0.0)
    {
        group = group.add(bar(at, columns.len(), 0.0, value / most, "#56b4e9"));
    }
    let (left, top, width, height) = INSIDE;
    let last = line.len().saturating_sub(1).max(1);
    let points = line.iter().enumerate().map(|(at, value)| {
        let x = left + width * at as f64 / last as f64;
        format!("{x:.1},{:.1}", top + height * (1.0 - value.clamp(0.0, 1.0)))
    });
    let points: Vec<String> = points.collect();
    if !points.is_empty() {
        let line = Polyline::new()
            .set("points", points.join(" "))
            .set("fill", "none")
            .set("stroke", "#d55e00")
            .set("stroke-width", 1.5);
        group = group.add(line);
    }
    group
}
