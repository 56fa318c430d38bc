//! What is shown, as comma-separated values: its tables, an empty line between two.
//! Numbers are whole: shares from 0 to 1, times in seconds, sizes in bytes.

use crate::tui::shown::{Cell, Part, Shown, Table};

/// The tables.
///
/// # Errors
/// A sentence, where there is none.
pub fn encode(shown: &Shown) -> Result<Vec<u8>, String> {
    let tables = shown.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table),
        Part::Text(_) | Part::Chart(_) => None,
    });
    let written: Result<Vec<Vec<u8>>, csv::Error> = tables.map(write).collect();
    let written = written.map_err(|error| format!("the table can't be written: {error}"))?;
    if written.is_empty() {
        return Err("there is no table to be seen here: export text or JSON".to_owned());
    }
    Ok(written.join(&b'\n'))
}

fn write(table: &Table) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let heads = table.columns.iter();
    writer.write_record(heads.map(|column| not_a_formula(&column.name)))?;
    for row in &table.rows {
        writer.write_record(row.iter().map(cell))?;
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => not_a_formula(text),
        Cell::Count(number) | Cell::Bytes(number) => number.to_string(),
        Cell::Share(number) | Cell::Seconds(number) => number.to_string(),
    }
}

/// A name that a spreadsheet would take for a formula begins with an apostrophe: names are
/// whatever the target says they are.
fn not_a_formula(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}
