//! Parts of regions: collectors by phase, compilers and generated code by tier, in the VM's words.

use crate::present::names::kind_name;
use rustc_hash::FxHashMap;
use vmscope_records::ConstituentKind;
use vmscope_symbolizer::profile::{Entry, EntryKind};
use vmscope_symbolizer::{Profile, Region, Summary};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub region: Region,
    /// VM's name; empty for an undivided region.
    pub name: &'a str,
    pub samples: u64,
}

/// Sampled parts in the order of [`Region::ALL`], most samples first.
#[must_use]
pub fn parts_of<'a>(profile: &'a Profile, summary: &Summary) -> Vec<Part<'a>> {
    let mut by_name: FxHashMap<(Region, &str), u64> = FxHashMap::default();
    for (entry, &samples) in profile.entries.iter().zip(&summary.entries) {
        if samples > 0 {
            *by_name.entry((entry.region, part_of(entry))).or_default() += samples;
        }
    }
    let mut parts: Vec<Part> = (by_name.into_iter())
        .map(|((region, name), samples)| Part {
            region,
            name,
            samples,
        })
        .collect();
    parts.sort_by(|a, b| {
        let key = |part: &Part| (part.region as usize, std::cmp::Reverse(part.samples));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(b.name))
    });
    parts
}

pub fn part_of(entry: &Entry) -> &str {
    match &entry.kind {
        _ if !entry.tier.is_empty() => &entry.tier,
        EntryKind::Unnamed if entry.region == Region::Generated => "unnamed",
        EntryKind::Doubtful => "doubtful",
        EntryKind::Code(
            ConstituentKind::Method | ConstituentKind::Block | ConstituentKind::Interpreter,
        ) => "",
        kind @ EntryKind::Code(_) => kind_name(kind),
        _ => "",
    }
}
