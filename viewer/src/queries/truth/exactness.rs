//! Quality of each part of a profile (docs/truth.md §5).

use super::Concerns;
use crate::queries::parts::part_of;
use rustc_hash::FxHashMap;
use vmscope_symbolizer::profile::{Entry, EntryKind};
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::{EntryId, Profile, Region, Summary};

/// Quality of a region's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    pub region: Region,
    /// In the VM's words; empty for undivided regions.
    pub part: String,
    pub quality: Quality,
}

/// Parts with samples, in the order of [`Region::ALL`], most samples first.
#[must_use]
pub fn exactness_of(profile: &Profile, summary: &Summary) -> Vec<Exact> {
    let mut by_part: FxHashMap<(Region, &str), Quality> = FxHashMap::default();
    let counted = profile.sites.enumerated().zip(&summary.sites);
    for ((id, site), &samples) in counted.filter(|(_, samples)| **samples > 0) {
        let entry = &profile.entries[site.entry];
        let quality = by_part.entry((entry.region, part_of(entry))).or_default();
        let without_method = summary.without_method.get(&id).copied().unwrap_or_default();
        quality.take(entry, site.exactness, samples - without_method);
        quality.take_without_method(without_method);
    }
    let rows = by_part.into_iter().map(|((region, part), quality)| Exact {
        region,
        part: part.to_owned(),
        quality,
    });
    let mut rows: Vec<Exact> = rows.collect();
    rows.sort_by(|a, b| {
        let key = |row: &Exact| (row.region as usize, std::cmp::Reverse(row.quality.total()));
        key(a).cmp(&key(b)).then_with(|| a.part.cmp(&b.part))
    });
    rows
}

impl Concerns {
    /// Affected entries with samples. Entries of [`Concerns::Worth`] may have better ranges too.
    #[must_use]
    pub fn entries(self, profile: &Profile, summary: &Summary) -> Vec<EntryId> {
        let is_code = |entry: &Entry| !matches!(entry.kind, EntryKind::Function(_));
        let unnamed = |entry: &Entry| entry.kind == EntryKind::Unnamed;
        let fits = |entry: &Entry| match self {
            Concerns::UnnamedGenerated => unnamed(entry) && entry.region == Region::Generated,
            Concerns::Unnamed => unnamed(entry) && entry.region != Region::Generated,
            Concerns::Doubtful => entry.kind == EntryKind::Doubtful,
            Concerns::Worth(_, of_code) => {
                !unnamed(entry) && of_code.is_none_or(|code| code == is_code(entry))
            }
            _ => false,
        };
        let mut ids: Vec<EntryId> = match self {
            Concerns::Worth(worth, _) => {
                let sites = profile.sites.iter().zip(&summary.sites);
                let such = sites.filter(|(site, n)| **n > 0 && site.exactness == worth);
                such.map(|(site, _)| site.entry).collect()
            }
            _ => {
                let entries = summary.entries.enumerated();
                let hit = entries.filter(|(_, samples)| **samples > 0);
                hit.map(|(id, _)| id).collect()
            }
        };
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|&id| fits(&profile.entries[id]));
        ids
    }
}
