//! Documents as plain text.

use crate::present::document::{Chart, Column, Document, Part, Table, Value, each};
use crate::present::numbers::{count, percent};
use crate::present::text::harmless;
use crate::present::text::width;
use std::iter::once;
use vmscope_symbolizer::Stop;

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
        Chart::Flame { title, collapsed } => {
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

/// The line of the headings, and those of the rows; `None` after a stop.
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

pub fn cell(cell: &Value) -> String {
    match cell {
        Value::Empty => String::new(),
        Value::Text(text) => harmless(text),
        Value::Count(number) | Value::Bytes(number) => count(*number),
        Value::Share(share) => percent(*share),
        Value::Seconds(seconds) => format!("{seconds:.6}"),
    }
}
