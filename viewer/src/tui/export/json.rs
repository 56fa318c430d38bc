//! What is shown, as JSON (docs/views.md).

use crate::tui::shown::{Axis, Cell, Chart, Part, Shown, Table};
use serde_json::{Value, json};

/// All of it, with names as the recording has them.
///
/// # Errors
/// A sentence, where it can't be written.
pub fn encode(shown: &Shown) -> Result<Vec<u8>, String> {
    let parts: Vec<Value> = shown.parts.iter().map(part).collect();
    let value = json!({ "title": shown.title, "parts": parts });
    let mut bytes = serde_json::to_vec_pretty(&value)
        .map_err(|error| format!("this can't be written as JSON: {error}"))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(lines) => json!({ "text": lines }),
        Part::Table(table) => json!({ "table": of_table(table) }),
        Part::Chart(chart) => json!({ "chart": of_chart(chart) }),
    }
}

fn of_table(table: &Table) -> Value {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let rows = table.rows.iter();
    let rows: Vec<Vec<Value>> = rows.map(|row| row.iter().map(cell).collect()).collect();
    json!({ "title": table.title, "columns": columns, "rows": rows })
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
