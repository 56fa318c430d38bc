//! What is shown, as JSON (docs/views.md).

use crate::tui::document::{Axis, Cell, Chart, Document, Part, Table, each};
use serde_json::{Value, json};
use vmscope_symbolizer::Stop;

/// All of it, with names as the recording has them, or a sentence where it can't be written;
/// `None` where it was stopped.
pub fn encode(shown: &Document, stop: &Stop) -> Option<Result<Vec<u8>, String>> {
    let parts: Option<Vec<Value>> = shown.parts.iter().map(|one| part(one, stop)).collect();
    let value = json!({ "title": shown.title, "parts": parts? });
    let bytes = serde_json::to_vec_pretty(&value);
    Some(match bytes {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            Ok(bytes)
        }
        Err(error) => Err(format!("this can't be written as JSON: {error}")),
    })
}

fn part(part: &Part, stop: &Stop) -> Option<Value> {
    Some(match part {
        Part::Text(lines) => json!({ "text": lines }),
        Part::Table(table) => json!({ "table": of_table(table, stop)? }),
        Part::Chart(chart) => json!({ "chart": of_chart(chart) }),
    })
}

fn of_table(table: &Table, stop: &Stop) -> Option<Value> {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let mut rows: Vec<Vec<Value>> = Vec::with_capacity(table.rows.len());
    each(table.rows.iter(), stop, |row| {
        rows.push(row.iter().map(cell).collect());
    })?;
    Some(json!({ "title": table.title, "columns": columns, "rows": rows }))
}

fn cell(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Count(number) | Cell::Bytes(number) => json!(number),
        Cell::Share(number) | Cell::Seconds(number) => json!(number),
    }
}

fn of_chart(chart: &Chart) -> Value {
    match chart {
        Chart::Stacked {
            title,
            axis,
            series,
        } => {
            let named =
                |(name, values): &(String, Vec<f64>)| json!({ "name": name, "values": values });
            let series: Vec<Value> = series.iter().map(named).collect();
            json!({ "kind": "stacked", "title": title, "axis": of_axis(axis), "series": series })
        }
        Chart::Histogram {
            title,
            axis,
            columns,
            line,
        } => json!({
            "kind": "histogram", "title": title, "axis": of_axis(axis),
            "columns": columns, "line": line,
        }),
        Chart::Flame { title, collapsed } => {
            json!({ "kind": "flame", "title": title, "collapsed": collapsed })
        }
    }
}

fn of_axis(axis: &Axis) -> Value {
    json!({ "name": axis.name, "labels": axis.labels })
}
