//! Allocated objects: what they cost the collector, and how long they live. The documents of
//! `vmscope gc` and `vmscope lifetimes`.

use super::page::{Page, narrowed_to};
use crate::present::document::{Document, Part, Table};
use crate::present::encode::fitted_lines;

/// The documents as sections, without charts; `None` for a recording without lifetimes.
pub(super) fn text(page: &Page<'_>, documents: Option<&[Document; 2]>, out: &mut String) {
    let commands = ["vmscope gc", "vmscope lifetimes"];
    for (document, command) in documents.into_iter().flatten().zip(commands) {
        page.heading(out, &document.title);
        if narrowed_to(page.profile, page.filter, page.summary).is_some() {
            page.paragraph(out, "(of the whole recording, whatever the filter)");
        }
        for part in &document.parts {
            match part {
                Part::Text(lines) => lines.iter().for_each(|line| page.paragraph(out, line)),
                Part::Table(one) => table(page, one, command, out),
                Part::Chart(_) => {}
            }
        }
    }
}

fn table(page: &Page<'_>, table: &Table, command: &str, out: &mut String) {
    out.push('\n');
    page.paragraph(out, &table.title);
    if table.rows.is_empty() {
        return;
    }
    let (lines, left_out) = fitted_lines(table, page.width.saturating_sub(2));
    for line in lines {
        out.push_str(&format!("  {line}\n"));
    }
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        page.item(out, 2, &format!("({command} also shows: {left_out})"));
    }
}
