//! Overview of a summary: limits, regions with parts, hottest entries, VM reports.

use super::collections::{Collections, counts};
use super::parts::parts_of;
use super::truth::{TruthLine, truth_of};
use super::vm::Vms;
use crate::present::entries::namesakes;
use crate::present::figures::value_of;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Stop, Summary};

/// Maximum number of entries; the hot list has all.
const MAX_ENTRIES: usize = 500;

/// Maximum number of figures.
const MAX_FIGURES: usize = 100;

/// Region, samples, parts with samples.
pub type RegionWithParts = (Region, u64, Vec<(String, u64)>);

/// Overview of a summary.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Samples under the filter: denominator of all shares here. The newest summary may have other
    /// filters.
    pub total: u64,
    pub truth: Vec<TruthLine>,
    /// Hottest entries with samples.
    pub entries: Vec<(EntryId, u64)>,
    /// Number of entries with samples.
    pub entries_hit: usize,
    /// Regions with samples and parts, most samples first.
    pub regions: Vec<RegionWithParts>,
    /// Entries with equal names in different files.
    pub namesakes: FxHashSet<EntryId>,
    /// VM counts of collections, without single collections.
    pub collections: Collections,
    /// Figures of the main VM: section, name, value.
    pub figures: Vec<(String, String, String)>,
}

/// Overview of a summary, which belongs to the filter; `None` after a stop.
pub fn overview(
    profile: &Profile,
    filter: &Filter,
    summary: &Summary,
    stop: &Stop,
) -> Option<Overview> {
    let entries = summary.entries.enumerated();
    let hit = entries.filter(|(_, samples)| **samples > 0);
    let mut entries: Vec<(EntryId, u64)> = hit.map(|(id, &samples)| (id, samples)).collect();
    let entries_hit = entries.len();
    let name = |id: EntryId| &profile.entries[id].name;
    let order = |a: &(EntryId, u64), b: &(EntryId, u64)| {
        (Reverse(a.1), name(a.0), a.0).cmp(&(Reverse(b.1), name(b.0), b.0))
    };
    if entries.len() > MAX_ENTRIES {
        entries.select_nth_unstable_by(MAX_ENTRIES, order);
        entries.truncate(MAX_ENTRIES);
    }
    entries.sort_by(order);
    let parts = parts_of(profile, summary);
    let regions = Region::ALL.into_iter().zip(summary.regions);
    let regions = regions.filter(|(_, samples)| *samples > 0);
    let mut regions: Vec<_> = regions
        .map(|(region, samples)| {
            let of_region = parts.iter().filter(|part| part.region == region);
            let named = of_region.map(|part| (part.name.to_owned(), part.samples));
            let mut named: Vec<(String, u64)> = named.collect();
            if let [(name, _)] = named.as_slice()
                && name.is_empty()
            {
                named.clear();
            }
            (region, samples, named)
        })
        .collect();
    regions.sort_by_key(|(_, samples, _)| Reverse(*samples));
    if stop.is_stopped() {
        return None;
    }
    let vms = Vms::of(profile, summary);
    let sections = vms.of.first().map_or(&[][..], |vm| vm.sections.as_slice());
    let figures = sections.iter().flat_map(|section| {
        let figures = section.figures.iter();
        figures.map(|figure| {
            let (name, value) = (figure.name.to_owned(), value_of(figure));
            (section.name.to_owned(), name, value)
        })
    });
    Some(Overview {
        total: summary.total,
        truth: truth_of(profile, summary),
        entries,
        entries_hit,
        regions,
        namesakes: namesakes(profile, summary),
        collections: counts(profile, filter, summary, &vms),
        figures: figures.take(MAX_FIGURES).collect(),
    })
}
