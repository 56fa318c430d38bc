//! Reports of VMs about themselves: collections, heap, other figures.

use super::page::Page;
use crate::present::figures::{rate, short, value_of};
use crate::present::numbers::{bytes, count, milliseconds, number, percent, some};
use crate::present::text::{fit, harmless};
use crate::queries::parts::parts_of;
use crate::queries::vm::{Collected, Collector, Figure, PhaseTime, VmOf, Vms, Words};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;
use vmscope_records::{COLLECTIONS_SECTION, CollectionScope, CounterMeaning, Pid, SpaceUse};
use vmscope_symbolizer::Region;

/// Maximum width of a figure's name.
const MAX_NAME_COLUMNS: usize = 32;

/// Maximum width of a collector's name or cause.
const MAX_WORD_COLUMNS: usize = 60;

/// Maximum number of parts of collectors.
const MAX_PARTS: usize = 16;

/// The main process's VM first.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let vms = Vms::of(page.profile, page.summary);
    let several = vms.of.len() + vms.left_out > 1;
    for (index, vm) in vms.of.iter().enumerate() {
        let heading = |name: &str| match vm.pid {
            Some(pid) if several => format!("{name} of pid {pid}"),
            _ => name.to_owned(),
        };
        if let Some(collected) = &vm.collected {
            page.heading(out, &heading(COLLECTIONS_SECTION));
            collections(page, collected, out);
            if index == 0 {
                collector_samples(page, several, out);
            }
            spaces(page, collected.spaces, out);
            figures(page, &collected.others, out);
        }
        for section in &vm.sections {
            page.heading(out, &heading(section.name));
            figures(page, &section.figures, out);
        }
        if vm.values_left_out > 0 {
            let values = some(vm.values_left_out, "value", "values");
            out.push('\n');
            page.paragraph(out, &format!("({values} of further figures omitted)"));
        }
    }
    if vms.left_out > 0 {
        let more = some(vms.left_out as u64, "more process", "more processes");
        out.push('\n');
        page.paragraph(out, &format!("(VM reports of {more} omitted)"));
    }
}

fn figures(page: &Page<'_>, figures: &[Figure], out: &mut String) {
    let width = |figure: &Figure| harmless(figure.name).width();
    let widest = figures.iter().map(width).max();
    let columns = widest.unwrap_or(0).min(MAX_NAME_COLUMNS);
    for figure in figures {
        // Longer names get half of the line; values are never cut.
        let columns = columns.max(width(figure)).min(page.width / 2);
        let name = fit(figure.name, columns);
        page.item(out, 2, &format!("{name}  {}", value_of(figure)));
    }
}

fn collections(page: &Page<'_>, collected: &Collected, out: &mut String) {
    for row in &collected.collectors {
        let mut figures = Vec::new();
        if let Some(count) = &row.count {
            let number = number(count.change());
            let unit = match row.scope {
                Some(CollectionScope::Cycle) => "cycle",
                Some(CollectionScope::CyclePause) => "pause",
                _ => "collection",
            };
            let s = if number == "1" { "" } else { "s" };
            figures.push(format!("{number} {unit}{s}{}", rate(count)));
        }
        let is_none = row.count.is_some_and(|count| count.change() == 0.0);
        let time = row.time.as_ref();
        let time = time.filter(|time| !is_none || time.change() != 0.0);
        figures.extend(time.map(|time| match row.scope {
            // The program runs meanwhile.
            Some(CollectionScope::Cycle) => milliseconds(time.change()),
            _ => value_of(time),
        }));
        let is_uncounted = figures.is_empty();
        if is_uncounted {
            figures.push(observed(row));
        }
        let label = short(&row.label, MAX_WORD_COLUMNS);
        page.item(out, 2, &format!("{label}: {}", figures.join(", ")));
        if row.seen == 0 {
            continue;
        }
        if !is_uncounted {
            page.item(out, 4, &observed(row));
        }
        for (what, words) in [("kinds", &row.kinds), ("causes", &row.causes)] {
            if !words.listed.is_empty() {
                page.item(out, 4, &format!("{what}: {}", listed(words)));
            }
        }
        if !row.phases.is_empty() {
            page.item(out, 4, &format!("phases: {}", phases(row)));
        }
    }
    if collected.left_out > 0 {
        let number = some(collected.left_out, "collection", "collections");
        page.item(out, 2, &format!("{number} of further kinds omitted"));
    }
}

/// Samples in collectors, by part.
fn collector_samples(page: &Page<'_>, several: bool, out: &mut String) {
    let samples = page.summary.regions[Region::Gc as usize];
    if samples == 0 {
        return;
    }
    let parts = parts_of(page.profile, page.summary).into_iter();
    let parts = parts.filter(|part| part.region == Region::Gc && !part.name.is_empty());
    let parts = parts.take(MAX_PARTS).map(|part| (part.name, part.samples));
    let parts = counted(parts);
    let mut line = format!(
        "{} in collectors{}, {} of total",
        some(samples, "sample", "samples"),
        if several { " of all processes" } else { "" },
        percent(page.summary.share(samples)),
    );
    if !parts.is_empty() {
        line.push_str(&format!(": {parts}"));
    }
    page.item(out, 2, &line);
}

fn spaces(page: &Page<'_>, spaces: &[SpaceUse], out: &mut String) {
    if spaces.is_empty() {
        return;
    }
    let is_before = spaces.iter().any(|space| space.before.is_some());
    let when = if is_before { "around" } else { "after" };
    page.item(out, 2, &format!("{when} the last observed collection:"));
    let width = |space: &SpaceUse| harmless(&space.name).width();
    let columns = spaces.iter().map(width).max().unwrap_or(0);
    let columns = columns.min(MAX_NAME_COLUMNS);
    for space in spaces {
        let bytes = |size: Option<u64>| size.map_or_else(|| "?".to_owned(), bytes);
        let before = match is_before {
            true => format!("{} -> ", bytes(space.before)),
            false => String::new(),
        };
        let line = format!(
            "    {}  {before}{} of {}",
            fit(&space.name, columns),
            bytes(space.after),
            bytes(space.capacity),
        );
        out.push_str(fit(&line, page.width).trim_end());
        out.push('\n');
    }
}

/// Observed collections of a row.
fn observed(row: &Collector) -> String {
    if row.seen == 0 {
        return "none observed".to_owned();
    }
    let mut text = format!(
        "{} observed, {} fully timed",
        count(row.seen),
        count(row.observed)
    );
    let ms = |ns: u64| milliseconds(std::time::Duration::from_nanos(ns).as_secs_f64() * 1e9);
    let (word, more) = match (row.longest_at_most(), row.pauses.last()) {
        (Some(most), Some(&longest)) if most <= longest => ("longest", String::new()),
        (Some(most), Some(_)) => ("longest observed", format!(", none exceeded {}", ms(most))),
        _ => ("longest observed", String::new()),
    };
    match (row.median(), row.pauses.last()) {
        (Some(median), Some(&longest)) if row.pauses.len() > 1 => {
            let pauses = count(row.pauses.len() as u64);
            let (median, longest) = (ms(median), ms(longest));
            text.push_str(&format!(
                "; {pauses} pauses: median {median}, {word} {longest}{more}"
            ));
        }
        (_, Some(&only)) => text.push_str(&format!("; 1 pause: {}{more}", ms(only))),
        _ => {}
    }
    text
}

/// A row's phases with their durations and shares.
fn phases(row: &Collector) -> String {
    let all: u64 = row.phases.iter().map(|phase| phase.time).sum();
    let phases = row.phases.iter().map(|phase| {
        let name = short(phase.name, MAX_WORD_COLUMNS);
        #[expect(clippy::cast_precision_loss, reason = "times are far below 2^52 ns")]
        let (time, all) = (phase.time as f64, all.max(1) as f64);
        format!("{name} {} ({})", milliseconds(time), percent(time / all))
    });
    phases.collect::<Vec<_>>().join(", ")
}

fn listed(words: &Words) -> String {
    let others = Some(("others", words.others)).filter(|(_, others)| *others > 0);
    counted(words.listed.iter().copied().chain(others))
}

/// Words with their counts.
fn counted<'a>(words: impl Iterator<Item = (&'a str, u64)>) -> String {
    let words = words.map(|(word, n)| format!("{} {}", short(word, MAX_WORD_COLUMNS), count(n)));
    words.collect::<Vec<_>>().join(", ")
}

/// VMs with reports, the main process's first.
pub(super) fn json(page: &Page<'_>) -> Value {
    let vms = Vms::of(page.profile, page.summary);
    let vm = |vm: &VmOf| {
        let sections = vm.sections.iter();
        let sections =
            sections.map(|one| json!({ "name": one.name, "figures": figures_json(&one.figures) }));
        json!({
            "pid": vm.pid.map(Pid::get),
            "main": vm.is_main,
            "collections": vm.collected.as_ref().map(collections_json),
            "sections": sections.collect::<Vec<_>>(),
            "values_left_out": vm.values_left_out,
        })
    };
    vms.of.iter().map(vm).collect()
}

fn collections_json(collected: &Collected) -> Value {
    let words = |words: &Words| -> Value {
        let listed = words.listed.iter();
        let word = |(name, count): &(&str, u64)| json!({ "name": name, "count": count });
        listed.map(word).collect()
    };
    let phase = |phase: &PhaseTime| json!({ "name": phase.name, "count": phase.count, "time_ns": phase.time });
    let collector = |row: &Collector| {
        json!({
            "name": row.label,
            "scope": row.scope.map(|scope| match scope {
                CollectionScope::Whole => "collection",
                CollectionScope::Cycle => "cycle",
                CollectionScope::CyclePause => "cycle pause",
            }),
            "count": row.count.map(|figure| figure.change()),
            "time_ns": row.time.map(|figure| figure.change()),
            "seen": row.seen,
            "observed": row.observed,
            "pauses": row.pauses.len(),
            "median_pause_ns": row.median(),
            "longest_pause_ns": row.pauses.last(),
            "longest_pause_at_most_ns": row.longest_at_most(),
            "causes": words(&row.causes),
            "other_causes": row.causes.others,
            "kinds": words(&row.kinds),
            "other_kinds": row.kinds.others,
            "phases": row.phases.iter().map(phase).collect::<Vec<_>>(),
        })
    };
    let space = |space: &SpaceUse| {
        let SpaceUse {
            name,
            before,
            after,
            capacity,
        } = space;
        json!({ "name": name, "before": before, "after": after, "capacity": capacity })
    };
    json!({
        "count": collected.count(CollectionScope::Whole),
        "cycles": collected.count(CollectionScope::Cycle),
        "cycle_pauses": collected.count(CollectionScope::CyclePause),
        "pause_time_ns": collected.pause_time(),
        "collectors": collected.collectors.iter().map(collector).collect::<Vec<_>>(),
        "left_out": collected.left_out,
        "spaces": collected.spaces.iter().map(space).collect::<Vec<_>>(),
        "figures": figures_json(&collected.others),
    })
}

fn figures_json(figures: &[Figure]) -> Value {
    let figure = |figure: &Figure| {
        json!({
            "name": figure.name,
            "unit": figure.unit,
            "meaning": match figure.meaning {
                CounterMeaning::Gauge => "gauge",
                CounterMeaning::Total => "total",
            },
            "first": figure.first,
            "last": figure.last,
            "min": figure.min,
            "max": figure.max,
            "change": figure.change(),
            "per_second": figure.per_second(),
        })
    };
    figures.iter().map(figure).collect()
}
