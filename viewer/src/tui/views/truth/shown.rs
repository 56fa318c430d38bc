//! Document of the view, for copying and exporting.

use super::flow::worths;
use crate::present::document::{Document, Part, Table, Value};
use crate::present::names::region_name;
use crate::queries::accuracy::{ABOUT, Accuracy};

pub fn shown(all: &Accuracy) -> Document {
    let columns = ["about", ">samples", ">share", "what", "helps"];
    let mut lines = Table::new("Limits", &columns);
    for line in &all.lines {
        let about = ABOUT.iter().find(|(about, _)| *about == line.about);
        lines.rows.push(vec![
            Value::Text(about.map_or("", |(_, name)| name).to_owned()),
            line.samples.map_or(Value::Empty, Value::Count),
            all.share(line).map_or(Value::Empty, Value::Share),
            Value::Text(line.text.clone()),
            Value::Text(line.remedy.clone()),
        ]);
    }
    let columns = [
        "region",
        "part",
        ">samples",
        ">exact",
        ">approximate",
        ">method only",
        ">unknown",
        ">doubtful",
    ];
    let mut exact = Table::new("Exactness", &columns);
    for row in &all.exact {
        let mut cells = vec![
            Value::Text(region_name(row.region, all.is_native).to_owned()),
            Value::Text(row.part.clone()),
            Value::Count(row.quality.total()),
        ];
        cells.extend(worths(&row.quality).map(Value::Count));
        exact.rows.push(cells);
    }
    let mut threads = Table::new("Delivery", &["thread", ">received", ">expected", ">share"]);
    for row in &all.threads {
        let promised = row.promised.filter(|promised| *promised > 0.0);
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
        let arrived = promised.map(|promised| Value::Share(row.samples as f64 / promised));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of samples"
        )]
        let promised = row
            .promised
            .map(|promised| Value::Count(promised.round() as u64));
        threads.rows.push(vec![
            Value::Text(row.name.clone()),
            Value::Count(row.samples),
            promised.unwrap_or(Value::Empty),
            arrived.unwrap_or(Value::Empty),
        ]);
    }
    let columns = ["entry", "file", ">samples", "why"];
    let mut nameless = Table::new("Unknown or doubtful", &columns);
    for row in &all.nameless {
        nameless.rows.push(vec![
            Value::Text(row.name.clone()),
            Value::Text(row.place.clone()),
            Value::Count(row.samples),
            Value::Text(row.why.word().to_owned()),
        ]);
    }
    let tables = [lines, exact, threads, nameless];
    Document {
        title: "Accuracy".to_owned(),
        parts: tables.into_iter().map(Part::Table).collect(),
    }
}
