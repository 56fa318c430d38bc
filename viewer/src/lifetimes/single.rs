//! Single objects: what is known of each.

use super::names::Names;
use crate::present::document::{Table, Value};
use vmscope_symbolizer::lifetimes::{Lifetimes, Measure, Object};

/// A table of objects.
pub fn table<'a>(
    lifetimes: &Lifetimes,
    names: &Names<'_>,
    objects: impl Iterator<Item = &'a Object>,
) -> Table {
    let columns = [
        "class",
        "site",
        ">size",
        ">stands for",
        ">birth",
        ">allocated before",
        ">death",
        ">lifetime",
        ">lifetime in bytes",
        ">scavenges",
        ">full collections",
        ">tenured",
        "held by",
        "callers",
    ];
    let mut table = Table::new(
        "Single objects, by birth (no death: alive at the end)",
        &columns,
    );
    let seconds =
        |time: vmscope_records::TimeNs| Value::Seconds(time.since(lifetimes.begin).0 as f64 / 1e9);
    for object in objects {
        let frames = object.site.map(|id| lifetimes.sites[id].frames.as_slice());
        let frames = frames.unwrap_or_default();
        let callers: Vec<String> = frames
            .iter()
            .skip(1)
            .map(|one| names.site(Some(*one)))
            .collect();
        let lifetime = |measure| lifetimes.lifetime(object, measure);
        let tenured = object.tenured.map(|id| lifetimes.collections[id].end);
        table.rows.push(vec![
            Value::Text(lifetimes.classes[object.class].name.clone()),
            Value::Text(names.site(frames.first().copied())),
            Value::Bytes(object.bytes),
            Value::Text(format!("{:.3}", object.weight)),
            seconds(object.birth),
            object.allocated_bytes().map_or(Value::Empty, Value::Bytes),
            object.death().map_or(Value::Empty, seconds),
            lifetime(Measure::Time).map_or(Value::Empty, |ns| Value::Seconds(ns / 1e9)),
            lifetime(Measure::AllocatedBytes).map_or(Value::Empty, super::sized),
            Value::Count(object.scavenges.into()),
            Value::Count(object.fulls.into()),
            tenured.map_or(Value::Empty, seconds),
            (object.holder).map_or(Value::Empty, |_| Value::Text(names.holder(object.holder))),
            Value::Text(callers.join(" < ")),
        ]);
    }
    table
}
