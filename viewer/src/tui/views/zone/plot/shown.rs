//! What the plot shows, for copying and exporting.

use super::Plot;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::present::numbers::{count, percent, ratio};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::views::Cx;
use crate::tui::views::zone::names;

impl Plot {
    /// The plot as a chart, and its columns and ranges as tables.
    pub fn document(&self, ground: &ZoneSamples, cx: &Cx<'_>) -> Document {
        let mut parts = Vec::new();
        let all = &ground.addresses;
        if let Some(columns) = self.columns() {
            let share = percent(ratio(columns.samples, all.total));
            let text = format!("{share} of {} samples", count(all.total));
            parts.push(Part::Text(vec![text]));
            let bars = || columns.bars.iter().flatten();
            let integral = columns.integral().into_iter().zip(&columns.bars);
            let line = integral.filter_map(|(share, bar)| bar.as_ref().map(|_| share));
            let labels = columns.pieces.iter().filter_map(|piece| {
                let stretch = all.stretches.get(piece.stretch)?;
                Some(names::of_stretch(stretch, &ground.layout.residencies, cx))
            });
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            parts.push(Part::Chart(Chart::Histogram {
                title: "samples by address".to_owned(),
                axis: Axis {
                    name: "address".to_owned(),
                    labels: labels.collect(),
                },
                columns: bars().map(|bar| bar.samples as f64).collect(),
                line: line.collect(),
            }));
            let mut table = Table::new("", &["from", "to", ">samples", ">share", "most in"]);
            for bar in bars().filter(|bar| bar.samples > 0) {
                let top = bar.top.map_or_else(String::new, |(entry, _)| {
                    let entry = cx.profile.entries.get(entry as usize);
                    entry.map_or_else(String::new, |entry| entry.name.clone())
                });
                table.rows.push(vec![
                    Value::Text(format!("{:#x}", bar.start)),
                    Value::Text(format!("{:#x}", bar.end)),
                    Value::Count(bar.samples),
                    Value::Share(ratio(bar.samples, all.total)),
                    Value::Text(top),
                ]);
            }
            parts.push(Part::Table(table));
        }
        let heads = [
            "range", "included", "from", "to", ">bytes", ">samples", ">share",
        ];
        let mut table = Table::new("", &heads);
        for stretch in &all.stretches {
            let included = if self.includes(stretch.owner) {
                "yes"
            } else {
                "no"
            };
            table.rows.push(vec![
                Value::Text(names::of_stretch(stretch, &ground.layout.residencies, cx)),
                Value::Text(included.to_owned()),
                Value::Text(format!("{:#x}", stretch.start)),
                Value::Text(format!("{:#x}", stretch.end)),
                Value::Bytes(stretch.size()),
                Value::Count(stretch.samples()),
                Value::Share(ratio(stretch.samples(), all.total)),
            ]);
        }
        parts.push(Part::Table(table));
        Document {
            title: "Samples by address".to_owned(),
            parts,
        }
    }
}
