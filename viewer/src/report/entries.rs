//! Entries with their ranges, in groups of regions.

use super::options::{RangeDetail, SortBy};
use super::page::Page;
use crate::present::entries::{INLINED, inlined_name, labels_of, name_of, range_label, range_name};
use crate::present::names::{exactness_name, kind_name, region_key};
use crate::present::numbers::points;
use crate::present::shorten::labels;
use crate::queries::entries::{InRange, inlined};
use serde_json::{Value, json};
use std::cmp::Reverse;
use vmscope_records::BytecodePc;
use vmscope_symbolizer::profile::{EntryKind, Frame, Site};
use vmscope_symbolizer::{EntryId, IndexVec, Profile, Region, Summary};

type Group = (&'static str, &'static [Region]);

const VM: &[Region] = &[
    Region::Vm,
    Region::Interpreter,
    Region::Gc,
    Region::Compiler,
];
/// Indentation of a remark below an entry.
const BESIDE: usize = 22;

const GENERATED: Group = ("generated vm code", &[Region::Generated]);
const LIBRARY: Group = ("library code", &[Region::Library]);
const KERNEL: Group = ("kernel code", &[Region::Kernel]);
const REST: Group = ("the rest", &[Region::Idle, Region::Unknown]);

/// Groups in display order, of native programs and of VMs.
const NATIVE_GROUPS: [Group; 5] = [
    ("program code", VM),
    ("generated code", &[Region::Generated]),
    LIBRARY,
    KERNEL,
    REST,
];
const VM_GROUPS: [Group; 5] = [GENERATED, ("vanilla vm code", VM), LIBRARY, KERNEL, REST];

/// Groups of VMs whose interpreter shows the executed methods, which are then listed apart from
/// the VM's functions.
const INTERPRETED_GROUPS: [Group; 6] = [
    GENERATED,
    ("interpreted code", &[Region::Interpreter]),
    (
        "the rest of vanilla vm code",
        &[Region::Vm, Region::Gc, Region::Compiler],
    ),
    LIBRARY,
    KERNEL,
    REST,
];

/// A table for each group.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let groups: &[Group] = if page.profile.is_native() {
        &NATIVE_GROUPS
    } else if page.summary.quality.interpreted > 0 {
        &INTERPRETED_GROUPS
    } else {
        &VM_GROUPS
    };
    let sites = sites_by_entry(page.profile, page.summary);
    for &(heading, regions) in groups {
        group(page, heading, regions, &sites, out);
    }
}

type RangesByEntry = IndexVec<EntryId, Vec<InRange>>;

/// Sites with samples by entry.
fn sites_by_entry(profile: &Profile, summary: &Summary) -> RangesByEntry {
    let mut by_entry = profile.entries.with_each(Vec::new());
    for ((id, site), &samples) in profile.sites.enumerated().zip(&summary.sites) {
        if samples > 0 {
            by_entry[site.entry].push(InRange { site: id, samples });
        }
    }
    by_entry
}

fn group(
    page: &Page<'_>,
    heading: &str,
    regions: &[Region],
    sites: &RangesByEntry,
    out: &mut String,
) {
    let counted = page.profile.entries.enumerated().zip(&page.summary.entries);
    let mut entries: Vec<(EntryId, u64)> = counted
        .filter(|((_, entry), samples)| **samples > 0 && regions.contains(&entry.region))
        .map(|((id, _), &samples)| (id, samples))
        .collect();
    let total: u64 = entries.iter().map(|(_, samples)| samples).sum();
    if total == 0 {
        return;
    }
    // Names break ties: equal recordings yield equal reports.
    entries.sort_by_cached_key(|&(id, samples)| {
        let samples = match page.options.sort {
            SortBy::Samples => samples,
            SortBy::Name => 0,
        };
        (Reverse(samples), name_of(page.profile, &page.namesakes, id))
    });
    let mut table = page.table(out, heading, total);
    let (entries, others) = page.split_small(entries, total, |(_, samples)| *samples);
    let ids = entries.iter().map(|(id, _)| *id);
    let names = labels_of(page.profile, &page.namesakes, ids, page.name_columns());
    for ((id, samples), name) in entries.into_iter().zip(names) {
        table.row(out, &name, samples);
        if page.summary.is_inferred(id) {
            let error = page.summary.error(id).map_or_else(String::new, |error| {
                format!(", share ±{} points", points(error))
            });
            page.item(out, BESIDE, &format!("~ method inferred{error}"));
        }
        ranges(page, id, samples, sites, out);
    }
    table.others(out, others, ["entry", "entries"]);
}

/// Ranges of an entry, in code order.
fn ranges(page: &Page<'_>, id: EntryId, total: u64, sites: &RangesByEntry, out: &mut String) {
    let is_split = match page.options.ranges {
        RangeDetail::None => false,
        RangeDetail::All => true,
        RangeDetail::Auto => matches!(page.profile.entries[id].kind, EntryKind::Code(_)),
    };
    let sites = &sites[id];
    if !is_split {
        if page.options.ranges == RangeDetail::Auto {
            inlined_rows(
                page,
                total,
                inlined(page.profile, sites.iter().copied()),
                out,
            );
        }
        return;
    }
    let named = sites.iter().map(|range| {
        let site = &page.profile.sites[range.site];
        (site, range.samples)
    });
    let mut rows: Vec<(&Site, u64)> = named.collect();
    let name_of_range = |site: &Site| range_name(page.profile, site);
    if rows.iter().all(|(site, _)| name_of_range(site).is_none()) {
        return;
    }
    rows.sort_by_cached_key(|(site, _)| {
        let (file, line) = (site.frame.file.clone(), site.frame.line);
        (site.from, site.to, file, line, name_of_range(site))
    });
    let mut table = page.inner_rows(total);
    let (rows, others) = page.split_small(rows, total, |(_, samples)| *samples);
    for (site, samples) in rows {
        let name = range_label(page.profile, site, page.name_columns().saturating_sub(2));
        let name = name.unwrap_or_else(|| "(place unknown)".to_owned());
        table.row(out, &name, samples);
    }
    table.others(out, others, ["range", "ranges"]);
}

/// Functions inlined into a native function, most samples first, and its own code.
fn inlined_rows(page: &Page<'_>, total: u64, rows: Vec<InRange>, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let of_inlined: u64 = rows.iter().map(|row| row.samples).sum();
    let mut table = page.inner_rows(total);
    let own = total.saturating_sub(of_inlined);
    if own > 0 {
        table.row(out, "in itself", own);
    }
    let (rows, others) = page.split_small(rows, total, |row| row.samples);
    let columns = page.name_columns().saturating_sub(2 + INLINED.len());
    let names = rows.iter().filter_map(|row| {
        let frame = page.profile.inlined_at(&page.profile.sites[row.site])?;
        Some((inlined_name(frame), columns))
    });
    for (row, name) in rows.iter().zip(labels(&names.collect::<Vec<_>>())) {
        table.row(out, &format!("{INLINED}{name}"), row.samples);
    }
    table.others(out, others, ["inlined function", "inlined functions"]);
}

/// Entries with samples, with their ranges, most samples first.
pub(super) fn json(page: &Page<'_>) -> Value {
    let (profile, summary) = (page.profile, page.summary);
    let mut sites = sites_by_entry(profile, summary);
    let counted = profile.entries.enumerated().zip(&summary.entries);
    let mut entries: Vec<_> = counted.filter(|(_, samples)| **samples > 0).collect();
    entries.sort_by_key(|((_, entry), samples)| {
        let place = (&entry.file, entry.line);
        (Reverse(**samples), &entry.name, &entry.tier, place)
    });
    let entries = entries.into_iter().map(|((id, entry), samples)| {
        let mut ranges = std::mem::take(&mut sites[id]);
        ranges.sort_by_key(|range| Reverse(range.samples));
        let ranges = ranges.into_iter().map(|range| {
            let site = &profile.sites[range.site];
            range_json(profile, site, range.samples)
        });
        let ranges: Vec<Value> = ranges.collect();
        let mut json = json!({
            "name": entry.name,
            "region": region_key(entry.region, profile.is_native()),
            "kind": kind_name(&entry.kind),
            "tier": entry.tier,
            "module": entry.module,
            "file": Some(&entry.file).filter(|file| !file.is_empty()),
            "line": entry.line,
            "samples": samples,
            "share_error": summary.error(id),
            "sampling_error": summary.errors.get(id),
            "inference_error": summary.inference_error(id),
            "inferred_samples": summary.inferred.get(id).map_or(0, |inferred| inferred.samples),
            "inferred": summary.is_inferred(id),
        });
        if !entry.cases.is_empty() {
            let cases = entry.cases.iter();
            let cases = cases.map(|case| json!({ "class": case.class, "target": case.target }));
            json["cases"] = cases.collect();
        }
        json["ranges"] = ranges.into();
        json
    });
    entries.collect()
}

fn range_json(profile: &Profile, site: &Site, samples: u64) -> Value {
    let frame = &site.frame;
    let outer = |outer: &Frame| {
        let bytecode = outer.bytecode.map(BytecodePc::get);
        json!({ "method": &*outer.name, "bytecode": bytecode, "line": outer.line })
    };
    let via = site.via.iter().map(outer);
    let mut json = json!({
        "from": site.from.map(BytecodePc::get),
        "to": site.to.map(BytecodePc::get),
        "method": &*frame.name,
        "via": via.collect::<Vec<_>>(),
        "file": Some(&*frame.file).filter(|file| !file.is_empty()),
        "line": frame.line,
        "exactness": exactness_name(site.exactness),
        "samples": samples,
    });
    let callers: Vec<Value> = profile.callers_of(site).map(outer).collect();
    if !callers.is_empty() {
        json["callers"] = callers.into();
    }
    json
}
