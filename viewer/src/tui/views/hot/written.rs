//! The hot list for copying and exporting.

use super::drawn::Page;
use super::rows::Row;
use crate::present::document::{Table, Value, each};
use crate::present::names::region_name;
use crate::present::numbers::ratio;
use vmscope_symbolizer::Stop;

impl Page<'_> {
    /// All rows, for export; `None` where it was stopped.
    pub fn table(&self, rows: &[Row], stop: &Stop) -> Option<Table> {
        let mut table = Table::new(
            "",
            &[
                "of",
                "name",
                ">samples",
                ">share",
                ">share of parent",
                ">error",
                "region",
                "tier",
                "kind",
                "class or module",
                ">machine code",
            ],
        );
        each(rows.iter(), stop, |row| {
            let Some(of) = self.of(row) else {
                return;
            };
            let what = match (row.leaf, row.range) {
                (_, Some(_)) => "range",
                (Some(_), None) => "entry",
                (None, None) => self.listing.order.grouping.name(),
            };
            let text = |text: Option<&str>| match text.filter(|_| row.range.is_none()) {
                Some(text) if !text.is_empty() => Value::Text(text.to_owned()),
                _ => Value::Empty,
            };
            let parent = (row.depth > 0).then(|| Value::Share(ratio(of.samples, of.whole)));
            let region = self.region(&of).map(region_name);
            table.rows.push(vec![
                Value::Text(what.to_owned()),
                Value::Text(format!(
                    "{}{}",
                    "  ".repeat(usize::from(row.depth)),
                    self.full_name(row)
                )),
                Value::Count(of.samples),
                Value::Share(ratio(of.samples, self.listing.total)),
                parent.unwrap_or(Value::Empty),
                self.error(row, &of).map_or(Value::Empty, Value::Share),
                text(region),
                text(self.tier(&of)),
                text(self.kind(&of)),
                text(self.module(&of)),
                self.size(row, &of).map_or(Value::Empty, Value::Bytes),
            ]);
        })?;
        Some(table)
    }
}
