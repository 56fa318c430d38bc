//! The entries in order and in groups: worked out of a summary, off the drawing thread.

use super::order::{By, Grouping};
use crate::report::json::kind_name;
use crate::report::text::names::namesakes;
use crate::report::text::thread_label;
use crate::tui::theme::region_name;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use vmscope_symbolizer::methods::{Methods, code_sizes};
use vmscope_symbolizer::profile::Entry;
use vmscope_symbolizer::slices::by_thread;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, SiteId, Stop, Summary};

/// What a group is of: the same in every listing of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// One entry, which is a group of its own.
    Alone(EntryId),
    /// The method of which that is the first entry.
    Method(EntryId),
    /// A class or module, a kind, a tier; empty where there is none.
    Text(Arc<str>),
    /// A region.
    Region(Region),
    /// A thread, by its index in the trace.
    Thread(u32),
}

/// An entry in a group.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Which.
    pub entry: EntryId,
    /// Its samples in that group.
    pub samples: u64,
    /// Those of its greatest site.
    pub most: u64,
    /// Its sites that have any, in [`Listing::sites`].
    pub sites: Range<usize>,
}

/// In what the entries of a group are all alike: there may be too many to ask each at every
/// stroke.
#[derive(Clone, Copy, Debug)]
pub struct Alike {
    /// The region.
    pub region: bool,
    /// The tier.
    pub tier: bool,
    /// What they are.
    pub kind: bool,
    /// The class or module.
    pub module: bool,
}

impl Alike {
    /// Looks at one more of them.
    fn look(&mut self, one: &Entry, other: &Entry) {
        self.region &= one.region == other.region;
        self.tier &= one.tier == other.tier;
        self.kind &= kind_name(&one.kind) == kind_name(&other.kind);
        self.module &= one.module == other.module;
    }
}

/// A row of the list, with its entries.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is of.
    pub key: Key,
    /// What it is called.
    pub name: String,
    /// All its samples.
    pub samples: u64,
    /// Those of its greatest entry.
    pub most: u64,
    /// Those of it and of all before it.
    pub cumulative: u64,
    /// Bytes of machine code, where any are known.
    pub size: Option<u64>,
    /// One of its entries, and in what all others are as it is.
    pub one: EntryId,
    /// See `one`.
    pub alike: Alike,
    /// Its entries, in order, in [`Listing::leaves`].
    pub leaves: Range<usize>,
}

/// What the hot list shows.
#[derive(Debug, Default)]
pub struct Listing {
    /// What it is sorted by, and whether the other way round.
    pub by: By,
    /// See `by`.
    pub reversed: bool,
    /// What it is grouped by.
    pub grouping: Grouping,
    /// All samples that are shown.
    pub total: u64,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// All their entries.
    pub leaves: Vec<Leaf>,
    /// The sites of all of them, with their samples.
    pub sites: Vec<(SiteId, u64)>,
    /// What does not depend on filters.
    pub facts: Option<Arc<Facts>>,
    /// 95 % half-widths of entries' shares; may be empty.
    pub errors: Vec<f64>,
    /// Entries that only the whole paths of their files tell apart.
    pub namesakes: FxHashSet<EntryId>,
    /// The samples of the greatest group.
    pub most: u64,
}

/// What of a profile does not depend on filters.
#[derive(Debug)]
pub struct Facts {
    /// Which entries are one method.
    pub methods: Methods,
    /// Bytes of machine code by entry.
    pub sizes: Vec<Option<u64>>,
}

impl Facts {
    /// Gathers them; `None` when `stop` was wished before it was done.
    pub fn of(profile: &Profile, stop: &Stop) -> Option<Self> {
        let methods = Methods::of(profile);
        let facts = (!stop.is_stopped()).then(|| Facts {
            methods,
            sizes: code_sizes(profile),
        })?;
        (!stop.is_stopped()).then_some(facts)
    }

    /// An entry's machine code in bytes.
    pub fn size(&self, entry: EntryId) -> Option<u64> {
        self.sizes.get(entry as usize).copied().flatten()
    }
}

/// How a list is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// What it is sorted by.
    pub by: By,
    /// Whether the other way round.
    pub reversed: bool,
    /// What it is grouped by.
    pub grouping: Grouping,
}

impl Listing {
    /// Works it out; `None` when `stop` was wished before it was done.
    pub fn of(
        profile: &Profile,
        facts: &Arc<Facts>,
        summary: &Summary,
        (filter, order): (&Filter, Order),
        stop: &Stop,
    ) -> Option<Self> {
        let mut listing = Listing {
            by: order.by,
            reversed: order.reversed,
            grouping: order.grouping,
            total: summary.total,
            facts: Some(Arc::clone(facts)),
            errors: match order.grouping {
                Grouping::Thread => Vec::new(),
                _ => summary.errors_by_entry(profile, filter, stop)?,
            },
            namesakes: namesakes(profile, summary),
            ..Listing::default()
        };
        let mut leaves = listing.take_sites(profile, summary, filter, stop)?;
        if stop.is_stopped() {
            return None;
        }
        listing.put_in_groups(profile, facts, &mut leaves);
        if stop.is_stopped() {
            return None;
        }
        listing.sort(profile, leaves);
        Some(listing)
    }

    /// Puts the sites of each entry side by side, those of a thread by themselves where it is
    /// grouped by threads; answers the entries with their groups, which are not yet known
    /// elsewhere.
    fn take_sites(
        &mut self,
        profile: &Profile,
        summary: &Summary,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Vec<(u32, Leaf)>> {
        let entry_of = |site: SiteId| profile.sites.get(site as usize).map(|site| site.entry);
        let counted: Vec<(u32, EntryId, SiteId, u64)> = if self.grouping == Grouping::Thread {
            let counts = by_thread(profile, filter, stop)?;
            let counts = counts.into_iter();
            counts
                .filter_map(|one| Some((one.thread, entry_of(one.site)?, one.site, one.samples)))
                .collect()
        } else {
            let counts = (0u32..).zip(&summary.sites).filter(|(_, n)| **n > 0);
            counts
                .filter_map(|(site, &samples)| Some((0, entry_of(site)?, site, samples)))
                .collect()
        };
        let mut counted = counted;
        counted.sort_unstable();
        let mut leaves: Vec<(u32, Leaf)> = Vec::new();
        for (thread, entry, site, samples) in counted {
            let at = self.sites.len();
            self.sites.push((site, samples));
            match leaves.last_mut() {
                Some((of, leaf)) if *of == thread && leaf.entry == entry => {
                    leaf.samples += samples;
                    leaf.most = leaf.most.max(samples);
                    leaf.sites.end = at + 1;
                }
                _ => leaves.push((
                    thread,
                    Leaf {
                        entry,
                        samples,
                        most: samples,
                        sites: at..at + 1,
                    },
                )),
            }
        }
        Some(leaves)
    }

    /// Makes the groups, and replaces the thread of each entry by its group.
    fn put_in_groups(&mut self, profile: &Profile, facts: &Facts, leaves: &mut [(u32, Leaf)]) {
        let methods = (self.grouping == Grouping::Method).then_some(&facts.methods);
        let mut first_of_method: FxHashMap<u32, EntryId> = FxHashMap::default();
        for (entry, &method) in (0..).zip(methods.into_iter().flat_map(|all| &all.of_entry)) {
            first_of_method.entry(method).or_insert(entry);
        }
        let mut texts: FxHashMap<&str, Arc<str>> = FxHashMap::default();
        let mut index: FxHashMap<Key, u32> = FxHashMap::default();
        for (of, leaf) in leaves {
            let Some(entry) = profile.entries.get(leaf.entry as usize) else {
                continue;
            };
            let mut text = |text| {
                let text = texts.entry(text).or_insert_with(|| Arc::from(text));
                Key::Text(Arc::clone(text))
            };
            let key = match self.grouping {
                Grouping::None => Key::Alone(leaf.entry),
                Grouping::Method => {
                    let of_entry = methods.map(|all| &all.of_entry);
                    let method = of_entry.and_then(|all| all.get(leaf.entry as usize));
                    let first = method.and_then(|method| first_of_method.get(method));
                    Key::Method(first.copied().unwrap_or(leaf.entry))
                }
                Grouping::Class => text(entry.module.as_str()),
                Grouping::Kind => text(kind_name(&entry.kind)),
                Grouping::Tier => text(entry.tier.as_str()),
                Grouping::Region => Key::Region(entry.region),
                Grouping::Thread => Key::Thread(*of),
            };
            let next = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
            let at = *index.entry(key).or_insert_with_key(|key| {
                let name = match key {
                    Key::Method(_) => methods.and_then(|all| {
                        let method = *all.of_entry.get(leaf.entry as usize)?;
                        all.names.get(method as usize).cloned()
                    }),
                    Key::Alone(_) => Some(String::new()),
                    _ => Some(name_of(profile, self.grouping, key)),
                };
                self.groups.push(Group {
                    key: key.clone(),
                    name: name.unwrap_or_default(),
                    samples: 0,
                    most: 0,
                    cumulative: 0,
                    size: None,
                    one: leaf.entry,
                    alike: Alike {
                        region: true,
                        tier: true,
                        kind: true,
                        module: true,
                    },
                    leaves: 0..0,
                });
                next
            });
            *of = at;
            if let Some(group) = self.groups.get_mut(at as usize) {
                if let Some(one) = profile.entries.get(group.one as usize) {
                    group.alike.look(one, entry);
                }
                group.samples += leaf.samples;
                group.most = group.most.max(leaf.samples);
                if let Some(size) = facts.size(leaf.entry) {
                    group.size = Some(group.size.unwrap_or(0).saturating_add(size));
                }
            }
        }
    }

    /// An entry's machine code in bytes.
    pub fn size(&self, entry: EntryId) -> Option<u64> {
        self.facts.as_ref().and_then(|facts| facts.size(entry))
    }

    /// The 95 % half-width of an entry's share; none where only a part of its samples is
    /// shown.
    pub fn error(&self, entry: EntryId) -> Option<f64> {
        self.errors.get(entry as usize).copied()
    }

    /// The entries of a group.
    pub fn leaves_of(&self, group: &Group) -> &[Leaf] {
        self.leaves.get(group.leaves.clone()).unwrap_or_default()
    }

    /// The sites of an entry in a group, with their samples.
    pub fn sites_of(&self, leaf: &Leaf) -> &[(SiteId, u64)] {
        self.sites.get(leaf.sites.clone()).unwrap_or_default()
    }
}

fn name_of(profile: &Profile, grouping: Grouping, key: &Key) -> String {
    match key {
        Key::Text(text) if !text.is_empty() => text.to_string(),
        Key::Text(_) if grouping == Grouping::Tier => "(no tier)".to_owned(),
        Key::Text(_) => "(no class or module)".to_owned(),
        Key::Region(region) => region_name(*region).to_owned(),
        Key::Thread(thread) => {
            let thread = profile.trace.threads.get(*thread as usize);
            thread.map_or_else(String::new, |thread| thread_label(&thread.thread))
        }
        Key::Alone(_) | Key::Method(_) => String::new(),
    }
}
