//! Export of the map.

use super::{Map, NO_ZONE};
use crate::present::document::{Document, Part, Table, Value};
use crate::queries::code_kind;
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::views::Cx;
use crate::tui::views::zone::names;
use vmscope_symbolizer::Stop;

impl Map {
    /// The map as tables: kinds, then constituents; `None` after a stop.
    pub fn tables(&self, ground: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let only_text = |text: &str| {
            Some(Document {
                title: "Code zone".to_owned(),
                parts: vec![Part::Text(vec![text.to_owned()])],
            })
        };
        let Some(zone) = self.zone(ground) else {
            return only_text(NO_ZONE);
        };
        let Some((of, cells)) = self.fitting(zone, &self.grid(zone, cx), cx) else {
            return only_text("The code zone is still being computed.");
        };
        let time = of.time;
        let heads = ["kind", ">constituents", ">bytes", ">samples"];
        let mut kinds = Table::new("", &heads);
        for one in cells.legend() {
            kinds.rows.push(vec![
                Value::Text(one.name),
                Value::Count(one.count),
                Value::Bytes(one.bytes),
                one.samples.map_or(Value::Empty, Value::Count),
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
                Value::Text(code_kind::singular(&code.kind)),
                Value::Text(code.tier.clone()),
                Value::Text(format!("{:#x}", residency.start)),
                Value::Text(format!("{:#x}", residency.end)),
                Value::Bytes(residency.size()),
                Value::Seconds(cx.seconds(residency.from)),
                Value::Count(ground.in_residency(zone, residency)),
            ]);
        }
        let name = names::of_zone(zone.process, zone.start, &ground.layout.residencies, cx);
        Some(Document {
            title: format!("The {name} at {:.3} s", cx.seconds(time)),
            parts: vec![Part::Table(kinds), Part::Table(table)],
        })
    }
}
