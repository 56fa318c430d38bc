//! What the view shows, for copying and exporting.

use super::drawn::machine_text;
use super::head;
use super::items::{Item, What};
use super::listing::Listing;
use super::plan::number_title;
use super::sides::{Here, Side};
use super::{Method, calls, drawn, versions};
use crate::annotate::limits::{SKID, limits};
use crate::present::document::{Column, Document, Part, Table, Value};
use crate::present::numbers::ratio;
use crate::queries::method::Pieces;
use crate::tui::views::Cx;

impl Method {
    /// All of it.
    pub(super) fn written(&self, cx: &Cx<'_>) -> Document {
        let Some(found) = self.shown_one() else {
            let why = self.found.get().map(|found| found.why.clone());
            return Document {
                title: "Method".to_owned(),
                parts: vec![Part::Text(vec![why.unwrap_or_default()])],
            };
        };
        let (name, place) = head::name(found);
        let place = place.map_or_else(String::new, |place| format!("  {place}"));
        let mut text = vec![head::figures(found)];
        let versions = self.versions();
        let sides = self.sides_shown();
        if sides.is_empty() {
            if let Some(version) = self.origin.and_then(|origin| versions.of(origin)) {
                text.push(format!("only {}", versions::label(version, cx)));
            }
            if let Some(version) = found.machine_of.and_then(|at| found.versions.get(at)) {
                text.push(format!("machine code: of {}", versions::label(version, cx)));
            }
        } else {
            let labels = sides.iter().filter_map(|side| {
                let version = versions.of(side.origin)?;
                Some(versions::label(version, cx))
            });
            let labels: Vec<String> = labels.collect();
            text.push(format!("side by side: {}", labels.join(" | ")));
        }
        let limits = limits(&found.annotation).into_iter();
        text.extend(limits.map(|limit| format!("! {limit}")));
        text.push(SKID.to_owned());
        let mut parts = vec![Part::Text(text)];
        if !found.versions.is_empty() {
            parts.push(Part::Table(versions.table(cx)));
        }
        let numbered = sides.iter().filter_map(|side| {
            let at = versions.place_of(side.origin)?;
            let name = versions::name(versions.all.get(at)?);
            Some((format!("{} {name}", at + 1), side))
        });
        let numbered: Vec<(String, &Side)> = numbered.collect();
        let number = number_title(found);
        parts.push(Part::Table(table(&self.listing, number, &numbered)));
        if let Some(calls) = self.calls_shown() {
            parts.push(Part::Table(calls::table(self.shows, calls)));
        }
        Document {
            title: format!("Method {name}{place}"),
            parts,
        }
    }
}

/// All lines, folded or not, but for source text: what is read from this machine's files
/// is shown, and written nowhere. Behind what all versions have together, what each of
/// `sides` has.
fn table(listing: &Listing, number: &str, sides: &[(String, &Side)]) -> Table {
    let number = format!(">{number}");
    let mut table = Table::new(
        "listing",
        &[
            ">share",
            ">error",
            ">samples",
            ">own samples",
            "mark",
            "machine code",
            &number,
            ">line",
            "place",
        ],
    );
    for (name, _) in sides {
        let column = |(what, right): (&str, bool)| Column {
            name: format!("{name}: {what}"),
            right,
        };
        let columns = [
            ("share", true),
            ("error", true),
            ("samples", true),
            ("own samples", true),
            ("mark", false),
            ("machine code", false),
        ];
        table.columns.extend(columns.map(column));
    }
    for item in &listing.items {
        let Some(plain) = &item.plain else {
            continue;
        };
        let inlined = match &item.what {
            What::Callee(_) => "> ",
            _ => "",
        };
        let place = format!("{}{inlined}{plain}", "  ".repeat(item.depth.min(32)));
        let here = Here {
            own: item.own,
            all: item.all,
            mark: item.mark,
            error: item.error,
        };
        let mut row = cells(item, here, listing.samples, Some(&item.machine)).to_vec();
        row.push(item.number.parse().map_or(Value::Empty, Value::Count));
        let line = item.line.map(u64::from);
        row.push(line.map_or(Value::Empty, Value::Count));
        row.push(Value::Text(place));
        for (_, side) in sides {
            let machine = side.machine.get(&item.id);
            row.extend(cells(item, side.here(item), side.samples, machine));
        }
        table.rows.push(row);
    }
    table
}

/// Share, error, samples, own samples, mark and machine code of a line.
fn cells(item: &Item, here: Here, samples: u64, machine: Option<&Pieces>) -> [Value; 6] {
    let counted = |n: u64| if n > 0 { Value::Count(n) } else { Value::Empty };
    let share = if here.all > 0 {
        Value::Share(ratio(here.all, samples))
    } else {
        Value::Empty
    };
    let error = drawn::error_of(item, here, here.all);
    [
        share,
        error.map_or(Value::Empty, Value::Share),
        counted(here.all),
        counted(here.own),
        Value::Text(here.mark.to_owned()),
        Value::Text(machine.map_or_else(String::new, |pieces| machine_text(pieces, usize::MAX))),
    ]
}
