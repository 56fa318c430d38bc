//! Facts about a profile's entries, independent of filters, computed once per profile. Text ranks
//! turn sorting a hundred thousand entries into an integer sort.

use crate::present::entries::{hit_namesakes, namesakes_of};
use crate::present::names::{kind_name, region_name};
use crate::present::numbers::count;
use crate::present::text::width;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, PoisonError};
use vmscope_records::Exactness;
use vmscope_symbolizer::methods::{MethodId, Methods, code_sizes};
use vmscope_symbolizer::{EntryId, Id, IndexVec, Profile, Site, SiteId, Stop, Summary};

/// Ranks of an entry's texts among all texts of the profile. Equal texts share a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    pub name: u32,
    /// Unique rank by name, tier and entry number.
    pub place: u32,
    /// Index in [`EntryIndex::kinds`].
    pub kind: u32,
    /// Index in [`EntryIndex::tiers`].
    pub tier: u32,
    /// Index in [`EntryIndex::modules`].
    pub module: u32,
}

#[derive(Debug, Default)]
pub struct EntryIndex {
    pub methods: Methods,
    /// Name ranks.
    pub rank_of_method: IndexVec<MethodId, u32>,
    pub first_of_method: IndexVec<MethodId, EntryId>,
    pub ranks: IndexVec<EntryId, Ranks>,
    /// Sorted.
    pub kinds: Vec<Arc<str>>,
    /// Sorted.
    pub tiers: Vec<Arc<str>>,
    /// Sorted classes and modules.
    pub modules: Vec<Arc<str>>,
    /// Known bytes of machine code.
    pub sizes: IndexVec<EntryId, Option<u64>>,
    pub longest: Longest,
    ranges: IndexVec<EntryId, Ranges>,
    /// Groups of entries whose names differ only in file paths.
    namesakes: Vec<Vec<EntryId>>,
    /// Ascending.
    sites: IndexVec<EntryId, Vec<SiteId>>,
    /// Number of sites in the profile.
    site_count: usize,
}

/// Widths in columns of the longest texts of entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Longest {
    pub region: usize,
    pub tier: usize,
    pub kind: usize,
    /// Of classes and modules that are no part of their entry's name.
    pub module: usize,
    pub size: usize,
}

/// Ranges among an entry's sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ranges {
    None,
    Some,
    All,
}

impl EntryIndex {
    /// Builds the index; `None` after a stop.
    pub fn of(profile: &Profile, stop: &Stop) -> Option<Self> {
        let methods = Methods::of(profile);
        let sizes = (!stop.is_stopped()).then(|| code_sizes(profile))?;
        let entries = || profile.entries.iter();
        let (_, name) = ranked(entries().map(|entry| entry.name.as_str()));
        let (kinds, kind) = ranked(entries().map(|entry| kind_name(&entry.kind)));
        let (tiers, tier) = ranked(entries().map(|entry| entry.tier.as_str()));
        let (modules, module) = ranked(entries().map(|entry| entry.module.as_str()));
        let (_, rank_of_method) = ranked(methods.names.iter().map(|name| &**name));
        if stop.is_stopped() {
            return None;
        }
        // Methods are numbered by their first entries.
        let mut first_of_method = IndexVec::default();
        for (entry, &method) in methods.of_entry.enumerated() {
            if method.index() == first_of_method.len() {
                first_of_method.push(entry);
            }
        }
        let mut ranks = profile.entries.map(|entry, _| Ranks {
            name: name[entry.index()],
            place: 0,
            kind: kind[entry.index()],
            tier: tier[entry.index()],
            module: module[entry.index()],
        });
        let order = ranks
            .enumerated()
            .map(|(entry, one)| (one.name, one.tier, entry));
        let mut order: Vec<(u32, u32, EntryId)> = order.collect();
        order.sort_unstable();
        for ((.., entry), place) in order.into_iter().zip(0..) {
            ranks[entry].place = place;
        }
        let longest = |texts: &[Arc<str>]| texts.iter().map(|text| width(text)).max().unwrap_or(0);
        let is_native = profile.is_native();
        let regions = entries().map(|entry| region_name(entry.region, is_native).len());
        let untold = entries().filter(|entry| !entry.name.contains(&entry.module));
        let size = sizes.iter().flatten().max();
        let longest = Longest {
            region: regions.max().unwrap_or(0),
            tier: longest(&tiers),
            kind: longest(&kinds),
            module: untold.map(|entry| width(&entry.module)).max().unwrap_or(0),
            size: size.map_or(0, |size| count(*size).len()),
        };
        let mut sites = profile.entries.with_each(Vec::new());
        for (id, site) in profile.sites.enumerated() {
            sites[site.entry].push(id);
        }
        let index = EntryIndex {
            ranges: ranges_of(profile),
            ranks,
            methods,
            rank_of_method: rank_of_method.into(),
            first_of_method,
            kinds,
            tiers,
            modules,
            sizes,
            longest,
            namesakes: namesakes_of(profile),
            sites,
            site_count: profile.sites.len(),
        };
        (!stop.is_stopped()).then_some(index)
    }

    /// Sites of an entry, ascending.
    pub fn sites(&self, entry: EntryId) -> &[SiteId] {
        &self.sites[entry]
    }

    /// Whether an entry has displayable ranges with samples.
    pub fn has_ranges(&self, profile: &Profile, summary: &Summary, entry: EntryId) -> bool {
        match self.ranges[entry] {
            Ranges::None => false,
            Ranges::All => true,
            Ranges::Some => self.sites(entry).iter().any(|&site| {
                // Summaries may be older than the newest sites.
                let samples = summary.sites.get(site);
                samples.is_some_and(|samples| *samples > 0) && is_range(&profile.sites[site])
            }),
        }
    }

    /// Sampled entries whose names differ only in file paths.
    pub fn namesakes(&self, summary: &Summary) -> FxHashSet<EntryId> {
        hit_namesakes(&self.namesakes, summary)
    }
}

/// Shared cache of the newest index.
#[derive(Clone, Debug, Default)]
pub struct IndexCache(Arc<Mutex<Option<Versioned>>>);

/// Profile version, index.
type Versioned = (u64, Arc<EntryIndex>);

impl IndexCache {
    /// Cached or new index of this profile version; `None` after a stop.
    pub fn get(&self, profile: &Profile, version: u64, stop: &Stop) -> Option<Arc<EntryIndex>> {
        // Concurrent callers wait and share the result.
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Profiles may grow after callers read the version.
        if let Some((of, index)) = &*newest
            && *of == version
            && index.ranks.len() == profile.entries.len()
            && index.site_count == profile.sites.len()
        {
            return Some(Arc::clone(index));
        }
        let index = Arc::new(EntryIndex::of(profile, stop)?);
        *newest = Some((version, Arc::clone(&index)));
        Some(index)
    }
}

/// Whether a site is a displayable range.
fn is_range(site: &Site) -> bool {
    let frame = &site.frame;
    // Exact sites of methods lie at the method entry.
    let is_entry = site.exactness == Exactness::Exact && frame.method.is_some();
    let is_placed = site.bounded || site.from.is_some() || frame.line.is_some() || is_entry;
    is_placed || !site.via.is_empty() || site.caller.is_some()
}

fn ranges_of(profile: &Profile) -> IndexVec<EntryId, Ranges> {
    let mut counts = profile.entries.with_each((0u32, 0u32));
    for site in &profile.sites {
        let (all, ranges) = &mut counts[site.entry];
        *all += 1;
        *ranges += u32::from(is_range(site));
    }
    let ranges = counts.into_iter().map(|(all, ranges)| match ranges {
        0 => Ranges::None,
        ranges if ranges == all => Ranges::All,
        _ => Ranges::Some,
    });
    ranges.collect()
}

/// Sorted distinct texts, and each input's rank.
pub(super) fn ranked<'a>(
    texts: impl Iterator<Item = &'a str> + Clone,
) -> (Vec<Arc<str>>, Vec<u32>) {
    let mut order: Vec<(&str, u32)> = texts.zip(0..).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    let mut all: Vec<Arc<str>> = Vec::new();
    for (text, at) in order {
        if all.last().is_none_or(|last| **last != *text) {
            all.push(Arc::from(text));
        }
        ranks[at as usize] = u32::try_from(all.len() - 1).unwrap_or(u32::MAX);
    }
    (all, ranks)
}
