//! Tables as comma-separated values, an empty line between two. Shares go from 0 to 1, times are in
//! seconds, sizes in bytes.

use crate::present::document::{Document, Part, Table, Value, each};
use crate::present::text::harmless;
use vmscope_symbolizer::Stop;

/// Encoded tables, or an error sentence for documents without tables; `None` after a stop.
pub fn encode(shown: &Document, stop: &Stop) -> Option<Result<Vec<u8>, String>> {
    let tables = shown.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table),
        Part::Text(_) | Part::Chart(_) => None,
    });
    let mut written: Vec<Vec<u8>> = Vec::new();
    for table in tables {
        match write(table, stop)? {
            Ok(bytes) => written.push(bytes),
            Err(error) => return Some(Err(format!("cannot write the table: {error}"))),
        }
    }
    Some(if written.is_empty() {
        Err("this view shows no table: export text or JSON".to_owned())
    } else {
        Ok(written.join(&b'\n'))
    })
}

fn write(table: &Table, stop: &Stop) -> Option<Result<Vec<u8>, csv::Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let heads = table.columns.iter();
    let mut written = writer.write_record(heads.map(|column| not_a_formula(&column.name)));
    each(table.rows.iter(), stop, |row| {
        if written.is_ok() {
            written = writer.write_record(row.iter().map(cell));
        }
    })?;
    let inner = |()| {
        writer
            .into_inner()
            .map_err(|error| error.into_error().into())
    };
    Some(written.and_then(inner))
}

fn cell(cell: &Value) -> String {
    match cell {
        Value::Empty => String::new(),
        Value::Text(text) => not_a_formula(text),
        Value::Count(number) | Value::Bytes(number) => number.to_string(),
        Value::Share(number) | Value::Seconds(number) => number.to_string(),
    }
}

/// An apostrophe precedes names that a spreadsheet would execute as formulas: the target chooses
/// its names.
fn not_a_formula(text: &str) -> String {
    let text = harmless(text);
    match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text,
    }
}
