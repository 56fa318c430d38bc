//! Documents as JSON (docs/views.md).

use crate::present::document::{Axis, Chart, Document, Part, Table, Value, each};
use crate::present::json;
use serde_json::{Value as Json, json};
use vmscope_symbolizer::Stop;

/// The document with names as recorded, or a sentence after a failure; `None` after a stop.
pub fn encode(shown: &Document, stop: &Stop) -> Option<Result<Vec<u8>, String>> {
    let text = json::pretty(&value(shown, stop)?).map(String::into_bytes);
    Some(text.map_err(|error| format!("cannot write JSON: {error}")))
}

/// The document as a value; `None` after a stop.
pub fn value(shown: &Document, stop: &Stop) -> Option<Json> {
    let parts: Option<Vec<Json>> = shown.parts.iter().map(|one| part(one, stop)).collect();
    Some(json!({ "title": shown.title, "parts": parts? }))
}

fn part(part: &Part, stop: &Stop) -> Option<Json> {
    Some(match part {
        Part::Text(lines) => json!({ "text": lines }),
        Part::Table(table) => json!({ "table": of_table(table, stop)? }),
        Part::Chart(chart) => json!({ "chart": of_chart(chart) }),
    })
}

fn of_table(table: &Table, stop: &Stop) -> Option<Json> {
    let columns: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
    let mut rows: Vec<Vec<Json>> = Vec::with_capacity(table.rows.len());
    each(table.rows.iter(), stop, |row| {
        rows.push(row.iter().map(cell).collect());
    })?;
    Some(json!({ "title": table.title, "columns": columns, "rows": rows }))
}

fn cell(cell: &Value) -> Json {
    match cell {
        Value::Empty => Json::Null,
        Value::Text(text) => json!(text),
        Value::Count(number) | Value::Bytes(number) => json!(number),
        Value::Share(number) | Value::Seconds(number) => json!(number),
    }
}

fn of_chart(chart: &Chart) -> Json {
    match chart {
        Chart::Stacked {
            title,
            axis,
            series,
        } => {
            let named =
                |(name, values): &(String, Vec<f64>)| json!({ "name": name, "values": values });
            let series: Vec<Json> = series.iter().map(named).collect();
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
        Chart::Heat {
            title,
            across,
            up,
            cells,
            unit,
        } => json!({
            "kind": "heat", "title": title, "across": of_axis(across), "up": of_axis(up),
            "unit": unit, "cells": cells,
        }),
        Chart::Lines {
            title,
            across,
            up,
            series,
        } => {
            let named = |(name, points): &(String, Vec<(f64, f64)>)| json!({ "name": name, "points": points });
            let series: Vec<Json> = series.iter().map(named).collect();
            json!({
                "kind": "lines", "title": title, "across": of_axis(across), "up": of_axis(up),
                "series": series,
            })
        }
        Chart::Flame {
            title,
            unit,
            collapsed,
        } => json!({ "kind": "flame", "title": title, "unit": unit, "collapsed": collapsed }),
    }
}

fn of_axis(axis: &Axis) -> Json {
    json!({ "name": axis.name, "labels": axis.labels })
}
