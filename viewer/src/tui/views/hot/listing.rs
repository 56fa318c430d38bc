//! The entries in groups: worked out of a summary, off the drawing thread.

use super::facts::{Facts, Known};
use super::order::{By, Grouping};
use crate::present::names::region_name;
use crate::present::names::thread_label;
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vmscope_symbolizer::time_buckets::{Counts, by_thread};
use vmscope_symbolizer::{EntryId, Filter, Only, Profile, Region, SiteId, Stop, Summary};

/// No group yet.
const NONE: u32 = u32::MAX;

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
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Which.
    pub entry: EntryId,
    /// Whose samples of it, where it is grouped by threads.
    thread: Option<u32>,
    /// Its samples in that group.
    pub samples: u64,
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
    fn look(&mut self, one: &Known, other: &Known) {
        self.region &= one.region == other.region;
        self.tier &= one.tier == other.tier;
        self.kind &= one.kind == other.kind;
        self.module &= one.module == other.module;
    }
}

/// A row of the list, with its entries.
#[derive(Clone, Debug)]
pub struct Group {
    /// What it is of.
    pub key: Key,
    /// What it is called.
    pub name: Arc<str>,
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
    /// Its entries, in any order, in [`Listing::leaves`].
    pub leaves: Range<usize>,
    /// Where they are in order: worked out when somebody asks.
    pub(super) order: OnceLock<Vec<usize>>,
}

/// What the hot list shows.
#[derive(Debug)]
pub struct Listing {
    /// What it is sorted and grouped by.
    pub order: Order,
    /// All samples that are shown.
    pub total: u64,
    /// The groups, in order.
    pub groups: Vec<Group>,
    /// All their entries, those of a group side by side.
    pub leaves: Vec<Leaf>,
    /// What does not depend on filters.
    pub facts: Arc<Facts>,
    /// What it is worked out of.
    summary: Arc<Summary>,
    /// By what that was counted.
    filter: Filter,
    /// 95 % half-widths of entries' shares, where it is sorted by them.
    pub(super) errors: Arc<Vec<f64>>,
    /// Entries that only the whole paths of their files tell apart.
    pub namesakes: FxHashSet<EntryId>,
    /// The samples of the greatest group.
    pub most: u64,
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

impl Order {
    /// Whether errors decide.
    pub fn needs_errors(self) -> bool {
        self.by == By::Error && self.has_errors()
    }

    /// Whether entries have errors: not where only a part of their samples is shown.
    pub fn has_errors(self) -> bool {
        self.grouping != Grouping::Thread
    }
}

impl Listing {
    /// Works it out; `errors` may be empty where it is not sorted by them. `None` when `stop`
    /// was wished before it was done.
    pub fn of(
        profile: &Profile,
        facts: &Arc<Facts>,
        summary: &Arc<Summary>,
        (filter, order, errors): (Filter, Order, Arc<Vec<f64>>),
        stop: &Stop,
    ) -> Option<Self> {
        let mut listing = Listing {
            order,
            total: summary.total,
            groups: Vec::new(),
            leaves: Vec::new(),
            namesakes: facts.namesakes(summary),
            facts: Arc::clone(facts),
            summary: Arc::clone(summary),
            filter,
            errors,
            most: 0,
        };
        let leaves = listing.take_leaves(profile, stop)?;
        listing.put_in_groups(profile, leaves);
        if stop.is_stopped() {
            return None;
        }
        listing.sort();
        (!stop.is_stopped()).then_some(listing)
    }

    /// The entries with samples, those of each thread by themselves where it is grouped by
    /// threads.
    fn take_leaves(&self, profile: &Profile, stop: &Stop) -> Option<Vec<Leaf>> {
        if self.order.grouping == Grouping::Thread {
            let counts = by_thread(profile, &self.filter, stop)?.into_iter();
            let leaves = counts.map(|one| Leaf {
                entry: one.entry,
                thread: Some(one.thread),
                samples: one.samples,
            });
            return Some(leaves.collect());
        }
        let counts = (0..).zip(&self.summary.entries);
        let leaves = counts.filter(|(_, samples)| **samples > 0);
        let leaves = leaves.map(|(entry, &samples)| Leaf {
            entry,
            thread: None,
            samples,
        });
        Some(leaves.collect())
    }

    /// Makes the groups, and puts the entries of each side by side.
    fn put_in_groups(&mut self, profile: &Profile, leaves: Vec<Leaf>) {
        let facts = Arc::clone(&self.facts);
        let empty: Arc<str> = Arc::from("");
        // By the number of a group: its place among those that have samples.
        let mut places: Vec<u32> = Vec::new();
        let mut of_leaf: Vec<u32> = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let number = match leaf.thread {
                Some(thread) => Some(thread as usize),
                None => facts.group(self.order.grouping, leaf.entry),
            };
            let known = facts.known.get(leaf.entry as usize);
            let (Some(number), Some(known)) = (number, known) else {
                of_leaf.push(NONE);
                continue;
            };
            if number >= places.len() {
                places.resize((number + 1).next_power_of_two(), NONE);
            }
            let next = u32::try_from(self.groups.len()).unwrap_or(NONE);
            let mut place = next;
            if let Some(slot) = places.get_mut(number) {
                place = if *slot == NONE { next } else { *slot };
                *slot = place;
            }
            if place == next {
                let group = self.group_of(profile, leaf, known, &empty);
                self.groups.push(group);
            }
            of_leaf.push(place);
            if let Some(group) = self.groups.get_mut(place as usize) {
                if let Some(one) = facts.known.get(group.one as usize) {
                    group.alike.look(one, known);
                }
                group.samples += leaf.samples;
                group.most = group.most.max(leaf.samples);
                group.leaves.end += 1;
                if let Some(size) = facts.size(leaf.entry) {
                    group.size = Some(group.size.unwrap_or(0).saturating_add(size));
                }
            }
        }
        // So far the ends are numbers of entries.
        let mut from = 0;
        for group in &mut self.groups {
            let count = group.leaves.end;
            group.leaves = from..from;
            from += count;
        }
        self.leaves = vec![
            Leaf {
                entry: EntryId::MAX,
                thread: None,
                samples: 0
            };
            from
        ];
        for (leaf, place) in leaves.into_iter().zip(of_leaf) {
            if let Some(group) = self.groups.get_mut(place as usize)
                && let Some(slot) = self.leaves.get_mut(group.leaves.end)
            {
                *slot = leaf;
                group.leaves.end += 1;
            }
        }
    }

    /// The group of an entry, without it.
    fn group_of(&self, profile: &Profile, leaf: &Leaf, known: &Known, empty: &Arc<str>) -> Group {
        let facts = &self.facts;
        let text = |all: &[Arc<str>], number: u32, none: &str| {
            let text = all.get(number as usize).unwrap_or(empty);
            let name = if text.is_empty() {
                none.into()
            } else {
                Arc::clone(text)
            };
            (Key::Text(Arc::clone(text)), name)
        };
        let (key, name) = match self.order.grouping {
            Grouping::None => (Key::Alone(leaf.entry), Arc::clone(empty)),
            Grouping::Method => {
                let method = facts.methods.of_entry.get(leaf.entry as usize);
                let method = method.map_or(usize::MAX, |method| *method as usize);
                let first = facts.first_of_method.get(method).copied();
                let name = facts.methods.names.get(method).unwrap_or(empty);
                (Key::Method(first.unwrap_or(leaf.entry)), Arc::clone(name))
            }
            Grouping::Class => text(&facts.modules, known.module, "(no class or module)"),
            Grouping::Kind => text(&facts.kinds, known.kind, "(no class or module)"),
            Grouping::Tier => text(&facts.tiers, known.tier, "(no tier)"),
            Grouping::Region => (Key::Region(known.region), region_name(known.region).into()),
            Grouping::Thread => {
                let number = leaf.thread.unwrap_or(NONE);
                let thread = profile.trace.threads.get(number as usize);
                let name = thread.map_or_else(String::new, |thread| thread_label(&thread.thread));
                (Key::Thread(number), name.into())
            }
        };
        Group {
            key,
            name,
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
            order: OnceLock::new(),
        }
    }

    /// An entry's machine code in bytes.
    pub fn size(&self, entry: EntryId) -> Option<u64> {
        self.facts.size(entry)
    }

    /// Whether an entry has ranges to be shown.
    pub fn has_ranges(&self, profile: &Profile, leaf: &Leaf) -> bool {
        (self.facts).has_ranges(profile, &self.summary, leaf.entry)
    }

    /// The sites of some entries of a group, with their samples in it.
    pub fn sites_of(&self, profile: &Profile, leaves: &[Leaf]) -> Vec<(SiteId, u64)> {
        let of_thread = leaves.first().and_then(|leaf| leaf.thread);
        let counted = of_thread.map(|thread| {
            let filter = Filter {
                threads: Some([thread].into_iter().collect()),
                only: Only {
                    entries: leaves.iter().map(|leaf| leaf.entry).collect(),
                    ..Only::default()
                },
                ..self.filter.clone()
            };
            Counts::of(profile, &filter, &Stop::new()).unwrap_or_default()
        });
        let samples = counted
            .as_ref()
            .map_or(&self.summary.sites, |one| &one.sites);
        let sites = leaves.iter().flat_map(|leaf| self.facts.sites(leaf.entry));
        let counts = sites.filter_map(|&site| Some((site, *samples.get(site as usize)?)));
        counts.filter(|(_, samples)| *samples > 0).collect()
    }
}
