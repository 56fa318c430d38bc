//! What is shown, as text.

use crate::report::words::{count, harmless};
use crate::tui::shown::{Cell, Part, Shown, Table};
use crate::tui::widgets::text::width;

/// What is shown, whole, as plain text.
pub fn text_of(shown: &Shown) -> String {
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
            Part::Table(table) => put_table(table, &mut text),
            Part::Chart(_) => {}
        }
    }
    text
}

fn put_table(table: &Table, text: &mut String) {
    if !table.title.is_empty() {
        text.push_str(&harmless(&table.title));
        text.push('\n');
    }
    let heads = table.columns.iter().map(|column| column.name.clone());
    let mut rows: Vec<Vec<String>> = vec![heads.collect()];
    let cells = |row: &Vec<Cell>| row.iter().map(cell).collect();
    rows.extend(table.rows.iter().map(cells));
    let widest = |at: usize| {
        let widths = rows.iter().filter_map(|row| row.get(at));
        widths.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(widest).collect();
    for row in &rows {
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
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => harmless(text),
        Cell::Count(number) | Cell::Bytes(number) => count(*number),
        Cell::Share(share) => format!("{:.2}%", share * 100.0),
        Cell::Seconds(seconds) => format!("{seconds:.6}"),
    }
}
