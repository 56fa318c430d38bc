//! Export of the plot.

use super::Plot;
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::present::numbers::{count, percent, ratio};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::views::Cx;
use crate::tui::views::zone::names;
use crate::tui::views::zone::ranges::{Ranges, Table as Ranged};
use vmscope_symbolizer::Stop;

impl Plot {
    /// The plot as a chart, and its columns and ranges as tables; `None` after a stop.
    pub fn document(&self, ground: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
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
                let top = bar
                    .top
                    .map(|(entry, _)| cx.profile.entries[entry].name.clone());
                table.rows.push(vec![
                    Value::Text(format!("{:#x}", bar.start)),
                    Value::Text(format!("{:#x}", bar.end)),
                    Value::Count(bar.samples),
                    Value::Share(ratio(bar.samples, all.total)),
                    Value::Text(top.unwrap_or_default()),
                ]);
            }
            parts.push(Part::Table(table));
        }
        let ranges = Ranges {
            plot: self,
            samples: ground,
            cx,
        };
        let table = Ranged::export(&ranges, self.table(&ranges, 1).visible(), stop)?;
        parts.push(Part::Table(table));
        Some(Document {
            title: "Samples by address".to_owned(),
            parts,
        })
    }
}
