//! Heat maps and curves.

use super::{Anchor, COLORS, Color, INSIDE, Place, Shape, legend, line, text};
use crate::present::document::Axis;
use crate::present::encode::{LogScale, rounded};
use crate::present::text::harmless;

/// Colours from the least to the greatest value: viridis, readable in greyscale, too.
const STOPS: [Color; 5] = [
    [0xfd, 0xe7, 0x25],
    [0x5e, 0xc9, 0x62],
    [0x21, 0x91, 0x8c],
    [0x3b, 0x52, 0x8b],
    [0x44, 0x01, 0x54],
];

const GREY: Color = [0xdd, 0xdd, 0xdd];

/// Width of the names of rows, in pixels and in columns of text.
const NAMES: (f64, usize) = (280.0, 40);

/// Width of the numbers of an axis in pixels.
const NUMBERS: f64 = 30.0;

/// Pixels of a letter in the mean.
const MEAN_LETTER: f64 = 7.0;

/// Cells of the legend.
const LEGEND: u8 = 20;

/// Colour of a place between 0 and 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place from 0 to 1, and a colour from 0 to 255"
)]
fn color(place: f64) -> Color {
    let at = place.clamp(0.0, 1.0) * 4.0;
    let below = (at as usize).min(3);
    let (from, to) = (STOPS[below], STOPS[below + 1]);
    let share = at - below as f64;
    let mix = |from: u8, to: u8| {
        (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8
    };
    std::array::from_fn(|part| mix(from[part], to[part]))
}

#[expect(clippy::cast_precision_loss, reason = "columns and rows of a chart")]
pub fn heat(title: &str, [across, up]: [&Axis; 2], cells: &[Vec<f64>], unit: &str) -> Vec<Shape> {
    let rows = cells.iter().map(Vec::len).max().unwrap_or(0);
    let has_names = up.labels.len() == rows;
    let margin = if has_names { NAMES.0 } else { NUMBERS };
    let place = (INSIDE.0 + margin, INSIDE.1, INSIDE.2 - margin, INSIDE.3);
    let (left, top, width, height) = place;
    let step = (
        width / cells.len().max(1) as f64,
        height / rows.max(1) as f64,
    );
    let mut shapes = axes(title, [across, up], place, (cells.len(), rows));
    let scale = LogScale::of(cells.iter().flatten().copied());
    let name = |axis: &Axis, at: usize, of: usize| match axis.labels.get(at) {
        Some(label) if axis.labels.len() == of => format!("{}: ", harmless(label)),
        _ => String::new(),
    };
    for (column, values) in cells.iter().enumerate() {
        for (row, value) in values.iter().enumerate() {
            let Some(value_at) = scale.place(*value) else {
                continue;
            };
            shapes.push(Shape::Rectangle {
                place: (
                    left + step.0 * column as f64,
                    top + height - step.1 * (row + 1) as f64,
                    step.0,
                    step.1,
                ),
                color: color(value_at),
                hint: format!(
                    "{}{}{} {unit}",
                    name(up, row, rows),
                    name(across, column, cells.len()),
                    rounded(*value)
                ),
            });
        }
    }
    let y = top + height + 40.0;
    let least = rounded(scale.least);
    shapes.push(text(&least, (left + 100.0, y + 10.0), Anchor::End));
    let mut x = left + 108.0;
    for cell in 0..LEGEND {
        shapes.push(Shape::Rectangle {
            place: (x, y, 10.0, 12.0),
            color: color(f64::from(cell) / f64::from(LEGEND - 1)),
            hint: String::new(),
        });
        x += 10.0;
    }
    let most = format!("{} {unit} (logarithmic)", rounded(scale.most));
    shapes.push(text(&most, (x + 8.0, y + 10.0), Anchor::Start));
    shapes
}

/// Title and axes of a chart with `cells` columns and rows.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "labels of a chart, and their letters"
)]
fn axes(title: &str, [across, up]: [&Axis; 2], place: Place, cells: (usize, usize)) -> Vec<Shape> {
    let (left, top, width, height) = place;
    let mut shapes = vec![
        text(title, (INSIDE.0, top - 24.0), Anchor::Start),
        text(&up.name, (left, top - 6.0), Anchor::Start),
        text(
            &across.name,
            (left + width, top + height + 32.0),
            Anchor::End,
        ),
    ];
    // A label's place, from 0 to 1. With a label per cell: the middle of its cell.
    let at = |index: usize, labels: usize, cells: usize| match labels == cells {
        true => (index as f64 + 0.5) / labels as f64,
        false => index as f64 / labels.saturating_sub(1).max(1) as f64,
    };
    let labels = across.labels.len();
    let letters = (width / labels.max(1) as f64 / MEAN_LETTER).max(3.0);
    for (index, label) in across.labels.iter().enumerate() {
        let x = left + width * at(index, labels, cells.0);
        let label = line(label, letters as usize);
        shapes.push(text(&label, (x, top + height + 16.0), Anchor::Middle));
    }
    for (index, label) in up.labels.iter().enumerate() {
        let y = top + height * (1.0 - at(index, up.labels.len(), cells.1));
        let label = line(label, NAMES.1);
        shapes.push(text(&label, (left - 6.0, y + 4.0), Anchor::End));
    }
    shapes
}

/// Curves over a grid at the labels of the vertical axis.
#[expect(clippy::cast_precision_loss, reason = "labels of a chart")]
pub fn lines(
    title: &str,
    [across, up]: [&Axis; 2],
    series: &[(String, Vec<(f64, f64)>)],
) -> Vec<Shape> {
    let (left, top, width, height) = INSIDE;
    let place = (left + NUMBERS, top, width - NUMBERS, height);
    let (left, top, width, height) = place;
    let mut shapes = axes(title, [across, up], place, (0, 0));
    let last = up.labels.len().saturating_sub(1).max(1);
    for at in 0..=last {
        let y = top + height * at as f64 / last as f64;
        shapes.push(Shape::Curve {
            points: vec![(left, y), (left + width, y)],
            width: 1.0,
            color: GREY,
        });
    }
    for ((_, points), color) in series.iter().zip(COLORS.iter().cycle()) {
        let known = points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite());
        let point = |(x, y): &(f64, f64)| {
            let y = top + height * (1.0 - y.clamp(0.0, 1.0));
            (left + width * x.clamp(0.0, 1.0), y)
        };
        shapes.push(Shape::Curve {
            points: known.map(point).collect(),
            width: 1.5,
            color: *color,
        });
    }
    legend(series.iter().map(|(name, _)| name.as_str()), &mut shapes);
    shapes
}
