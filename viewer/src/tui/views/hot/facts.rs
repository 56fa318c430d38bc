//! What of a profile does not depend on filters: made once, so that lists are made of numbers.

use super::order::Grouping;
use crate::present::entries::{hit_namesakes, namesakes_of};
use crate::present::names::kind_name;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use vmscope_records::Exactness;
use vmscope_symbolizer::methods::{MethodId, Methods, code_sizes};
use vmscope_symbolizer::{EntryId, Profile, Region, Site, SiteId, Stop, Summary};

/// What is known of an entry. Numbers of texts are in the order of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its place by name: equal names have one.
    pub name: u32,
    /// Its place by name, tier and number: its own.
    pub place: u32,
    /// Its region.
    pub region: Region,
    /// What it is, in [`Facts::kinds`].
    pub kind: u32,
    /// Its tier, in [`Facts::tiers`].
    pub tier: u32,
    /// Its class or module, in [`Facts::modules`].
    pub module: u32,
    /// Which of its sites are places that can be shown.
    ranges: Ranges,
}

/// Which of an entry's sites are places inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ranges {
    None,
    Some,
    All,
}

/// What does not depend on filters.
#[derive(Debug, Default)]
pub struct Facts {
    /// Which entries are one method.
    pub methods: Methods,
    /// Of each method its place by name; equal names have one.
    pub place_of_method: Vec<u32>,
    /// Of each method its first entry.
    pub first_of_method: Vec<EntryId>,
    /// By entry.
    pub known: Vec<Known>,
    /// What entries are, in order.
    pub kinds: Vec<Arc<str>>,
    /// Their tiers, in order.
    pub tiers: Vec<Arc<str>>,
    /// Their classes and modules, in order.
    pub modules: Vec<Arc<str>>,
    /// Bytes of machine code by entry.
    sizes: Vec<Option<u64>>,
    /// Entries that only the whole paths of their files may tell apart.
    namesakes: Vec<Vec<EntryId>>,
    /// The sites by entry, and of each entry where its own end.
    sites: Vec<SiteId>,
    site_ends: Vec<u32>,
}

impl Facts {
    /// Gathers them; `None` when `stop` was wished before it was done.
    pub fn of(profile: &Profile, stop: &Stop) -> Option<Self> {
        let methods = Methods::of(profile);
        let sizes = (!stop.is_stopped()).then(|| code_sizes(profile))?;
        let entries = || profile.entries.iter();
        let (_, names) = ranked(entries().map(|entry| entry.name.as_str()));
        let (kinds, kind) = ranked(entries().map(|entry| kind_name(&entry.kind)));
        let (tiers, tier) = ranked(entries().map(|entry| entry.tier.as_str()));
        let (modules, module) = ranked(entries().map(|entry| entry.module.as_str()));
        let (_, place_of_method) = ranked(methods.names.iter().map(|name| &**name));
        if stop.is_stopped() {
            return None;
        }
        let mut first_of_method = vec![EntryId::MAX; methods.names.len()];
        for (entry, &method) in (0..).zip(&methods.of_entry) {
            if let Some(first) = first_of_method.get_mut(method as usize) {
                *first = entry.min(*first);
            }
        }
        let (sites, site_ends) = by_entry(profile);
        let numbers = (names.iter().zip(&kind)).zip(tier.iter().zip(&module));
        let known = entries().zip(numbers);
        let known = known.map(|(entry, ((&name, &kind), (&tier, &module)))| Known {
            name,
            place: 0,
            region: entry.region,
            kind,
            tier,
            module,
            ranges: Ranges::None,
        });
        let mut facts = Facts {
            known: known.collect(),
            methods,
            place_of_method,
            first_of_method,
            kinds,
            tiers,
            modules,
            sizes,
            namesakes: namesakes_of(profile),
            sites,
            site_ends,
        };
        facts.take_places();
        facts.take_ranges(profile);
        (!stop.is_stopped()).then_some(facts)
    }

    fn take_places(&mut self) {
        let order = self.known.iter().zip(0u32..);
        let mut order: Vec<(u32, u32, EntryId)> = order
            .map(|(known, entry)| (known.name, known.tier, entry))
            .collect();
        order.sort_unstable();
        for ((.., entry), place) in order.into_iter().zip(0..) {
            if let Some(known) = self.known.get_mut(entry as usize) {
                known.place = place;
            }
        }
    }

    fn take_ranges(&mut self, profile: &Profile) {
        let mut counts = vec![(0u32, 0u32); self.known.len()];
        for site in &profile.sites {
            if let Some((all, placed)) = counts.get_mut(site.entry as usize) {
                *all += 1;
                *placed += u32::from(is_placed(site));
            }
        }
        for (known, (all, placed)) in self.known.iter_mut().zip(counts) {
            known.ranges = match placed {
                0 => Ranges::None,
                placed if placed == all => Ranges::All,
                _ => Ranges::Some,
            };
        }
    }

    /// An entry's machine code in bytes.
    pub fn size(&self, entry: EntryId) -> Option<u64> {
        self.sizes.get(entry as usize).copied().flatten()
    }

    /// An entry's sites, ascending.
    pub fn sites(&self, entry: EntryId) -> &[SiteId] {
        let end = |entry: usize| self.site_ends.get(entry).map(|&end| end as usize);
        let before = (entry as usize).checked_sub(1).and_then(end);
        let range = before.unwrap_or(0)..end(entry as usize).unwrap_or(0);
        self.sites.get(range).unwrap_or_default()
    }

    /// Whether an entry has samples at a place in it that can be shown.
    pub fn has_ranges(&self, profile: &Profile, summary: &Summary, entry: EntryId) -> bool {
        let known = self.known.get(entry as usize);
        match known.map_or(Ranges::None, |known| known.ranges) {
            Ranges::None => false,
            Ranges::All => true,
            Ranges::Some => self.sites(entry).iter().any(|&site| {
                let samples = summary.sites.get(site as usize);
                let site = profile.sites.get(site as usize);
                samples.is_some_and(|samples| *samples > 0) && site.is_some_and(is_placed)
            }),
        }
    }

    /// Of the entries that a summary counts, those that only the whole paths of their files
    /// tell apart.
    pub fn namesakes(&self, summary: &Summary) -> FxHashSet<EntryId> {
        hit_namesakes(&self.namesakes, summary)
    }

    /// The number of an entry's group; by threads, and where each is its own, the entry's.
    pub fn group(&self, grouping: Grouping, entry: EntryId) -> Option<usize> {
        let known = self.known.get(entry as usize)?;
        Some(match grouping {
            Grouping::Method => {
                let method: MethodId = *self.methods.of_entry.get(entry as usize)?;
                method as usize
            }
            Grouping::Class => known.module as usize,
            Grouping::Region => known.region as usize,
            Grouping::Kind => known.kind as usize,
            Grouping::Tier => known.tier as usize,
            Grouping::None | Grouping::Thread => entry as usize,
        })
    }
}

/// Whether a site is a place inside its entry that can be shown.
fn is_placed(site: &Site) -> bool {
    let frame = &site.frame;
    // What is exact and of a method is at its entry.
    let is_entry = site.exactness == Exactness::Exact && frame.method.is_some();
    let is_placed = site.bounded || site.from.is_some() || frame.line.is_some() || is_entry;
    is_placed || !site.via.is_empty()
}

/// All texts in order, each once, and of each the number of its text.
fn ranked<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> (Vec<Arc<str>>, Vec<u32>) {
    let mut order: Vec<(&str, u32)> = texts.zip(0..).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    let mut all: Vec<Arc<str>> = Vec::new();
    for (text, at) in order {
        if all.last().is_none_or(|last| **last != *text) {
            all.push(Arc::from(text));
        }
        if let Some(rank) = ranks.get_mut(at as usize) {
            *rank = u32::try_from(all.len() - 1).unwrap_or(u32::MAX);
        }
    }
    (all, ranks)
}

/// The sites by entry, and of each entry where its own end.
fn by_entry(profile: &Profile) -> (Vec<SiteId>, Vec<u32>) {
    let entries: Vec<EntryId> = profile.sites.iter().map(|site| site.entry).collect();
    let mut ends = vec![0u32; profile.entries.len()];
    for &entry in &entries {
        if let Some(end) = ends.get_mut(entry as usize) {
            *end += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        // Where an entry's sites begin; moved on to their end below.
        let count = *end;
        *end = sum;
        sum += count;
    }
    let mut sites = vec![0; entries.len()];
    for (&entry, site) in entries.iter().zip(0..) {
        if let Some(end) = ends.get_mut(entry as usize) {
            if let Some(slot) = sites.get_mut(*end as usize) {
                *slot = site;
            }
            *end += 1;
        }
    }
    (sites, ends)
}
