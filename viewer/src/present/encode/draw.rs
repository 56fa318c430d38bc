//! Charts as shapes, for pictures in any format.

mod grid;

use crate::present::document::{Axis, Chart};
use crate::present::numbers::number;
use crate::present::text::{harmless, line, width as columns_of};

/// Width of a picture in pixels.
pub const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 40.0;

/// Maximum width of a letter in most fonts of this size.
const LETTER: f64 = 8.0;
/// Columns of a name in a legend.
const LEGEND_NAME: usize = 30;
/// Width of the number of omitted names.
const LEGEND_MORE: f64 = 110.0;

/// Red, green and blue.
pub type Color = [u8; 3];

const BLACK: Color = [0, 0, 0];

/// Distinguishable with red-green blindness; reused for further series.
const COLORS: [Color; 9] = [
    [0x00, 0x9e, 0x73],
    [0xe6, 0x9f, 0x00],
    [0xd5, 0x5e, 0x00],
    [0xcc, 0x79, 0xa7],
    [0x56, 0xb4, 0xe9],
    [0x00, 0x72, 0xb2],
    [0xf0, 0xe4, 0x42],
    [0x99, 0x99, 0x99],
    [0x55, 0x55, 0x55],
];

/// Left, top, width, height, in pixels.
pub type Place = (f64, f64, f64, f64);

/// What lies at a text's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A part of a picture. Positions are in pixels from the left upper corner.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Rectangle {
        place: Place,
        color: Color,
        /// Hover text; may be empty. PNG has none.
        hint: String,
    },
    /// Text without control characters.
    Text {
        text: String,
        /// Of the base line.
        at: (f64, f64),
        anchor: Anchor,
        color: Color,
    },
    Curve {
        points: Vec<(f64, f64)>,
        width: f64,
        color: Color,
    },
}

/// The charts below each other, and the picture's height; flame graphs are left out.
pub fn draw(charts: &[&Chart]) -> (Vec<Shape>, f64) {
    let mut all = Vec::new();
    let mut top = 0.0;
    for chart in charts {
        let Some(shapes) = shapes_of(chart) else {
            continue;
        };
        all.extend(shapes.into_iter().map(|shape| lowered(shape, top)));
        top += HEIGHT + MARGIN;
    }
    (all, top.max(HEIGHT))
}

fn lowered(mut shape: Shape, by: f64) -> Shape {
    match &mut shape {
        Shape::Rectangle { place, .. } => place.1 += by,
        Shape::Text { at, .. } => at.1 += by,
        Shape::Curve { points, .. } => points.iter_mut().for_each(|point| point.1 += by),
    }
    shape
}

fn shapes_of(chart: &Chart) -> Option<Vec<Shape>> {
    Some(match chart {
        Chart::Stacked {
            title,
            axis,
            series,
        } => stacked(title, axis, series),
        Chart::Histogram {
            title,
            axis,
            columns,
            line,
        } => histogram(title, axis, columns, line),
        Chart::Heat {
            title,
            across,
            up,
            cells,
            unit,
        } => grid::heat(title, [across, up], cells, unit),
        Chart::Lines {
            title,
            across,
            up,
            series,
        } => grid::lines(title, [across, up], series),
        Chart::Flame { .. } => return None,
    })
}

/// Inside of the plot.
const INSIDE: Place = (MARGIN, MARGIN, WIDTH - 2.0 * MARGIN, HEIGHT - 2.0 * MARGIN);

#[expect(clippy::cast_precision_loss, reason = "columns and labels of a chart")]
fn frame(title: &str, axis: &Axis) -> Vec<Shape> {
    let (left, top, width, height) = INSIDE;
    let mut shapes = vec![text(title, (left, top - 16.0), Anchor::Start)];
    let last = axis.labels.len().saturating_sub(1).max(1);
    for (index, label) in axis.labels.iter().enumerate() {
        let x = left + width * index as f64 / last as f64;
        shapes.push(text(label, (x, top + height + 16.0), Anchor::Middle));
    }
    let end = (left + width, top + height + 32.0);
    shapes.push(text(&axis.name, end, Anchor::End));
    shapes
}

/// The greatest column's value: the vertical scale.
fn scale(most: f64) -> Shape {
    let (left, top, width, _) = INSIDE;
    // Estimates have decimals, which say nothing in large numbers.
    let shown = if most < 1000.0 { most } else { most.round() };
    let greatest = format!("highest column: {}", number(shown));
    text(&greatest, (left + width, top - 16.0), Anchor::End)
}

fn text(text: &str, at: (f64, f64), anchor: Anchor) -> Shape {
    colored(text, at, anchor, BLACK)
}

fn colored(text: &str, at: (f64, f64), anchor: Anchor, color: Color) -> Shape {
    Shape::Text {
        text: harmless(text),
        at,
        anchor,
        color,
    }
}

#[expect(clippy::cast_precision_loss, reason = "columns of a chart")]
fn bar(column: usize, columns: usize, from: f64, to: f64, color: Color) -> Shape {
    let (left, top, width, height) = INSIDE;
    let step = width / columns.max(1) as f64;
    Shape::Rectangle {
        place: (
            left + step * column as f64,
            top + height * (1.0 - to),
            step * 0.96,
            height * (to - from).max(0.0),
        ),
        color,
        hint: String::new(),
    }
}

fn stacked(title: &str, axis: &Axis, series: &[(String, Vec<f64>)]) -> Vec<Shape> {
    let mut shapes = frame(title, axis);
    let columns = series.iter().map(|(_, values)| values.len()).max();
    let columns = columns.unwrap_or(0);
    let value = |values: &[f64], at: usize| values.get(at).copied().unwrap_or(0.0).max(0.0);
    let sum = |at: usize| -> f64 { series.iter().map(|(_, values)| value(values, at)).sum() };
    let most = (0..columns).map(sum).fold(0.0, f64::max);
    shapes.push(scale(most));
    let mut heights = vec![0.0; columns];
    for ((_, values), color) in series.iter().zip(COLORS.iter().cycle()) {
        for (at, height) in heights.iter_mut().enumerate() {
            let value = value(values, at);
            if value > 0.0 && most > 0.0 {
                let to = *height + value / most;
                shapes.push(bar(at, columns, *height, to, *color));
                *height = to;
            }
        }
    }
    let names = series.iter().map(|(name, _)| name.as_str());
    legend(names, &mut shapes);
    shapes
}

/// Names of series in their colours below the axis, in at most two lines.
#[expect(clippy::cast_precision_loss, reason = "letters of a name")]
fn legend<'a>(names: impl Iterator<Item = &'a str>, shapes: &mut Vec<Shape>) {
    let (left, top, width, height) = INSIDE;
    let first = top + height + 48.0;
    let (mut x, mut y) = (left, first);
    let mut left_out = 0;
    for (name, color) in names.zip(COLORS.iter().cycle()) {
        let name = line(name, LEGEND_NAME);
        let wide = columns_of(&name) as f64 * LETTER + 12.0;
        if x + wide > left + width - LEGEND_MORE && y <= first {
            (x, y) = (left, y + 14.0);
        }
        if left_out > 0 || x + wide > left + width - LEGEND_MORE {
            left_out += 1;
            continue;
        }
        shapes.push(colored(&name, (x, y), Anchor::Start, *color));
        x += wide;
    }
    if left_out > 0 {
        let more = format!("and {left_out} more");
        shapes.push(text(&more, (left + width, y), Anchor::End));
    }
}

#[expect(clippy::cast_precision_loss, reason = "columns of a chart")]
fn histogram(title: &str, axis: &Axis, columns: &[f64], line: &[f64]) -> Vec<Shape> {
    let mut shapes = frame(title, axis);
    let most = columns.iter().copied().fold(0.0, f64::max);
    shapes.push(scale(most));
    for (at, value) in columns
        .iter()
        .enumerate()
        .filter(|(_, value)| **value > 0.0)
    {
        shapes.push(bar(at, columns.len(), 0.0, value / most, COLORS[4]));
    }
    let (left, top, width, height) = INSIDE;
    let last = line.len().saturating_sub(1).max(1);
    let points = line.iter().enumerate().map(|(at, value)| {
        let x = left + width * at as f64 / last as f64;
        (x, top + height * (1.0 - value.clamp(0.0, 1.0)))
    });
    let points: Vec<(f64, f64)> = points.collect();
    if !points.is_empty() {
        shapes.push(Shape::Curve {
            points,
            width: 1.5,
            color: COLORS[2],
        });
    }
    shapes
}
