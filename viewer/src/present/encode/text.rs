//! Documents as plain text.

use super::{LogScale, rounded};
use crate::present::document::{Axis, Chart, Column, Document, Part, Table, Value, each};
use crate::present::numbers::{bytes_short, count, milliseconds, percent};
use crate::present::text::{fit, harmless, right, width, wrap};
use std::fmt::Write;
use std::iter::once;
use vmscope_symbolizer::Stop;

/// Least columns of long names in narrow tables.
const LEAST_NAME: usize = 24;

/// The whole document; `None` after a stop.
pub fn text_of(shown: &Document, stop: &Stop) -> Option<String> {
    let mut text = format!("{}\n", harmless(&shown.title));
    for part in &shown.parts {
        text.push('\n');
        match part {
            Part::Text(lines) => {
                for line in lines {
                    text.push_str(harmless(line).trim_end());
                    text.push('\n');
                }
            }
            Part::Table(table) => put_table(table, &mut text, stop)?,
            Part::Chart(chart) => put_chart(chart, &mut text, stop)?,
        }
    }
    Some(text)
}

/// A chart as its numbers.
fn put_chart(chart: &Chart, text: &mut String, stop: &Stop) -> Option<()> {
    let mut table = match chart {
        Chart::Stacked { title, series, .. } => {
            let mut table = Table::new(title, &["column"]);
            let names = series.iter().map(|(name, _)| name);
            table.columns.extend(names.map(|name| Column {
                name: name.clone(),
                right: true,
            }));
            let columns = series.iter().map(|(_, values)| values.len()).max();
            for at in 0..columns.unwrap_or(0) {
                let values = series.iter().map(|(_, values)| number(values.get(at)));
                table
                    .rows
                    .push(once(Value::Count(at as u64)).chain(values).collect());
            }
            table
        }
        Chart::Histogram {
            title,
            columns,
            line,
            ..
        } => {
            let mut table = Table::new(title, &["column", ">value", ">line"]);
            for (at, value) in columns.iter().enumerate() {
                let column = Value::Count(at as u64);
                table
                    .rows
                    .push(vec![column, number(Some(value)), number(line.get(at))]);
            }
            table
        }
        Chart::Heat {
            title,
            across,
            up,
            cells,
            unit,
        } => {
            if up.labels.len() != cells.first().map_or(0, Vec::len) {
                put_shades(title, [across, up], cells, unit, text);
                return Some(());
            }
            let mut table = Table::new(&format!("{title} ({unit})"), &[&up.name]);
            table
                .columns
                .extend(across.labels.iter().map(|label| Column {
                    name: label.clone(),
                    right: true,
                }));
            for (row, name) in up.labels.iter().enumerate().rev() {
                let values = cells.iter().map(|column| match column.get(row) {
                    Some(value) if *value > 0.0 => Value::Text(rounded(*value)),
                    _ => Value::Empty,
                });
                let name = Value::Text(name.clone());
                table.rows.push(once(name).chain(values).collect());
            }
            return put_table(&table, text, stop);
        }
        Chart::Lines { title, series, .. } => {
            let mut table = Table::new(title, &["series", ">across", ">up"]);
            for (name, points) in series {
                let row = |(x, y): &(f64, f64)| {
                    let name = Value::Text(name.clone());
                    vec![name, number(Some(x)), number(Some(y))]
                };
                table.rows.extend(points.iter().map(row));
            }
            return put_table(&table, text, stop);
        }
        Chart::Flame {
            title, collapsed, ..
        } => {
            let mut table = Table::new(title, &["stack"]);
            table.rows = collapsed
                .iter()
                .map(|line| vec![Value::Text(line.clone())])
                .collect();
            table
        }
    };
    if let Some(first) = table.columns.first_mut() {
        first.right = !matches!(chart, Chart::Flame { .. });
    }
    put_table(&table, text, stop)
}

/// Characters from an empty cell to the greatest value.
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// A heat map by characters, which are twice as high as wide: a line holds two rows.
fn put_shades(
    title: &str,
    [across, up]: [&Axis; 2],
    cells: &[Vec<f64>],
    unit: &str,
    text: &mut String,
) {
    let rows = cells.iter().map(Vec::len).max().unwrap_or(0).div_ceil(2);
    let value = |column: &[f64], row: usize| -> f64 { column.iter().skip(2 * row).take(2).sum() };
    let lines = (0..rows).rev().map(|row| {
        let values = cells.iter().map(|column| value(column, row));
        values.collect::<Vec<f64>>()
    });
    let lines: Vec<Vec<f64>> = lines.collect();
    let scale = LogScale::of(lines.iter().flatten().copied());
    let ends = |axis: &Axis| -> [String; 2] {
        let end = |label: Option<&String>| label.map_or_else(String::new, |one| harmless(one));
        [end(axis.labels.first()), end(axis.labels.last())]
    };
    let [bottom, top] = ends(up);
    let margin = width(&top).max(width(&bottom));
    let _ = writeln!(text, "{}", harmless(title));
    let _ = writeln!(
        text,
        "{:margin$}  {} ({} to {} {unit}: {})",
        "",
        harmless(&up.name),
        rounded(scale.least),
        rounded(scale.most),
        String::from_iter(SHADES.get(1..).unwrap_or_default()),
    );
    for (at, values) in lines.iter().enumerate() {
        let label = match at {
            0 => top.as_str(),
            _ if at + 1 == rows => bottom.as_str(),
            _ => "",
        };
        let shades: String = values
            .iter()
            .map(|value| shade(scale.place(*value)))
            .collect();
        let _ = writeln!(text, "{label:>margin$} |{}", shades.trim_end());
    }
    let [left, right] = ends(across);
    let room = cells.len().saturating_sub(width(&left));
    let line = format!(
        "{:margin$}  {left}{right:>room$}  {}",
        "",
        harmless(&across.name)
    );
    let _ = writeln!(text, "{}", line.trim_end());
}

/// Character of a place between 0 and 1; `None` for an empty cell.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place from 0 to 1"
)]
fn shade(place: Option<f64>) -> char {
    let last = SHADES.len() - 1;
    let index = place.map_or(0, |place| 1 + (place * (last - 1) as f64).round() as usize);
    SHADES.get(index.min(last)).copied().unwrap_or(' ')
}

fn number(value: Option<&f64>) -> Value {
    value.map_or(Value::Empty, |value| Value::Text(format!("{value}")))
}

fn put_table(table: &Table, text: &mut String, stop: &Stop) -> Option<()> {
    if !table.title.is_empty() {
        text.push_str(&harmless(&table.title));
        text.push('\n');
    }
    for line in table_lines(table, stop)? {
        text.push_str(&line);
        text.push('\n');
    }
    Some(())
}

/// Lines of headings and rows; `None` after a stop.
pub fn table_lines(table: &Table, stop: &Stop) -> Option<Vec<String>> {
    let heads = table.columns.iter().map(|column| harmless(&column.name));
    let mut rows: Vec<Vec<String>> = vec![heads.collect()];
    each(table.rows.iter(), stop, |row| {
        rows.push(row.iter().map(cell).collect());
    })?;
    let widest = |at: usize| {
        let widths = rows.iter().filter_map(|row| row.get(at));
        widths.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(widest).collect();
    let mut lines = Vec::with_capacity(rows.len());
    each(rows.iter(), stop, |row| {
        let mut line = String::new();
        for ((cell, column), &columns) in row.iter().zip(&table.columns).zip(&widths) {
            let blanks = " ".repeat(columns.saturating_sub(width(cell)));
            if column.right {
                line.push_str(&blanks);
            }
            line.push_str(cell);
            if !column.right {
                line.push_str(&blanks);
            }
            line.push_str("  ");
        }
        line.truncate(line.trim_end().len());
        lines.push(line);
    })?;
    Some(lines)
}

/// The table in at most `room` columns: wraps headings, shortens names in the first column. Returns
/// also the names of omitted last columns.
pub fn fitted_lines(table: &Table, room: usize) -> (Vec<String>, Vec<&str>) {
    let rows = table.rows.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|row| row.iter().map(short_cell).collect())
        .collect();
    let widest = |(at, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let words = column.name.split_whitespace().map(width);
        cells
            .map(|cell| width(cell))
            .chain(words)
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = table.columns.iter().enumerate().map(widest).collect();
    let Some(name) = widths.first().copied() else {
        return (Vec::new(), Vec::new());
    };
    let mut used = name.min(LEAST_NAME);
    let fitting = widths.iter().skip(1).take_while(|width| {
        used += 2 + **width;
        used <= room
    });
    let fitting = 1 + fitting.count();
    widths.truncate(fitting);
    let others: usize = widths.iter().skip(1).map(|width| 2 + width).sum();
    widths[0] = name.min(room.saturating_sub(others));
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let columns = table.columns.iter().zip(&widths);
        let cells = columns
            .zip(cells)
            .map(|((column, &width), cell)| match column.right {
                true => right(cell, width),
                false => fit(cell, width),
            });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heads = table.columns.iter().zip(&widths);
    let heads = heads.map(|(column, &width)| wrap(&column.name, width.max(1), 0));
    let heads: Vec<String> = heads.collect();
    let height = heads.iter().map(|head| head.lines().count()).max();
    let heading = (0..height.unwrap_or(0)).rev().map(|from_below| {
        line(
            &mut heads
                .iter()
                .map(|head| head.lines().rev().nth(from_below).unwrap_or("")),
        )
    });
    let rows = rows
        .iter()
        .map(|row| line(&mut row.iter().map(String::as_str)));
    let left_out = table.columns.iter().skip(fitting);
    (
        heading.chain(rows).collect(),
        left_out.map(|column| column.name.as_str()).collect(),
    )
}

/// A value with its unit, in few columns.
pub fn short_cell(value: &Value) -> String {
    match value {
        Value::Seconds(seconds) => milliseconds(seconds * 1e9),
        Value::Bytes(bytes) => bytes_short(*bytes),
        Value::Share(_) | Value::Empty | Value::Text(_) | Value::Count(_) => cell(value),
    }
}

pub fn cell(cell: &Value) -> String {
    match cell {
        Value::Empty => String::new(),
        Value::Text(text) => harmless(text),
        Value::Count(number) | Value::Bytes(number) => count(*number),
        Value::Share(share) => percent(*share),
        Value::Seconds(seconds) => format!("{seconds:.6}"),
    }
}
