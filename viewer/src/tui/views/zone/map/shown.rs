//! What the map shows, for copying and exporting.

use super::Map;
use crate::present::document::{Document, Part, Table, Value};
use crate::queries::code_kind;
use crate::tui::views::Cx;
use crate::tui::views::zone::map_drawn;
use crate::tui::views::zone::{ZoneSamples, names};
use vmscope_symbolizer::Stop;

impl Map {
    /// What it shows; `None` where it was stopped.
    pub fn shown(&self, ground: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let only_text = |text: &str| {
            Some(Document {
                title: "Code zone".to_owned(),
                parts: vec![Part::Text(vec![text.to_owned()])],
            })
        };
        let Some(zone) = self.zone(ground) else {
            return only_text(map_drawn::NO_ZONE);
        };
        let Some((of, cells)) = self.fitting(zone, &self.grid(zone, cx), cx) else {
            return only_text("What is in the code zone is not yet worked out.");
        };
        let time = of.time;
        let heads = ["kind", ">constituents", ">bytes", ">samples"];
        let mut kinds = Table::new("", &heads);
        for total in &cells.totals {
            kinds.rows.push(vec![
                Value::Text(code_kind::name_of(&total.kind)),
                Value::Count(total.count),
                Value::Bytes(total.bytes),
                Value::Count(total.samples),
            ]);
        }
        for (_, name, gaps) in map_drawn::gaps_of(cells) {
            kinds.rows.push(vec![
                Value::Text(name.to_owned()),
                Value::Count(gaps.count),
                Value::Bytes(gaps.bytes),
                Value::Empty,
            ]);
        }
        let heads = [
            "name", "kind", "tier", "from", "to", ">bytes", ">since", ">samples",
        ];
        let mut table = Table::new("", &heads);
        for (residency, _) in ground.layout.residencies.at(zone, time) {
            if stop.is_stopped() {
                return None;
            }
            let Some(code) = residency.constituent(&cx.profile.trace) else {
                continue;
            };
            table.rows.push(vec![
                Value::Text(code.name.clone()),
                Value::Text(map_drawn::kind_of(&code.kind)),
                Value::Text(code.tier.clone()),
                Value::Text(format!("{:#x}", residency.start)),
                Value::Text(format!("{:#x}", residency.end)),
                Value::Bytes(residency.size()),
                Value::Seconds(cx.seconds(residency.from)),
                Value::Count(map_drawn::samples_in(zone, residency, ground)),
            ]);
        }
        let name = names::of_zone(zone.process, zone.start, &ground.layout.residencies, cx);
        Some(Document {
            title: format!("The {name} at {:.3} s", cx.seconds(time)),
            parts: vec![Part::Table(kinds), Part::Table(table)],
        })
    }
}
