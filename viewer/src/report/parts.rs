//! Parts of regions: collectors by phase, compilers by tier.

use super::page::Page;
use crate::present::names::{region_key, region_part};
use crate::queries::parts::{Part, parts_of};
use serde_json::{Value, json};
use vmscope_symbolizer::Region;

/// Regions of a VM with their parts, if its adapter names any.
pub(super) fn text(page: &Page<'_>, out: &mut String) {
    let mut hit = page.profile.entries.iter().zip(&page.summary.entries);
    let has_parts =
        hit.any(|(entry, &samples)| samples > 0 && entry.region.is_vm() && !entry.tier.is_empty());
    if page.profile.is_native() || !has_parts {
        return;
    }
    let parts = parts_of(page.profile, page.summary);
    let mut table = page.table(out, "entire vm", page.summary.vm);
    for region in Region::ALL.into_iter().filter(|region| region.is_vm()) {
        let samples = page.summary.regions[region as usize];
        if samples == 0 {
            continue;
        }
        table.row(out, region_part(region), samples);
        let of_region = parts.iter().filter(|part| part.region == region);
        let of_region: Vec<&Part> = of_region.collect();
        if let [Part { name: "", .. }] = of_region[..] {
            continue;
        }
        let mut inner = page.inner_rows(samples);
        let (shown, others) = page.split_small(of_region, samples, |part| part.samples);
        for part in shown {
            let name = match part.name {
                "" => "(not divided)",
                name => name,
            };
            inner.row(out, name, part.samples);
        }
        inner.others(out, others, ["part", "parts"]);
    }
}

pub(super) fn json(page: &Page<'_>) -> Value {
    let parts = parts_of(page.profile, page.summary).into_iter();
    let is_native = page.profile.is_native();
    let part = |part: Part| json!({ "region": region_key(part.region, is_native), "part": part.name, "samples": part.samples });
    parts.map(part).collect()
}
