//! The entries with samples under a filter, in groups: by method, class, region, kind, thread
//! or tier.

use super::entry_index::{EntryIndex, Ranks, ranked};
use crate::present::names::{region_name, thread_label};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vmscope_records::BytecodePc;
use vmscope_symbolizer::time_buckets::{Counts, by_thread};
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Site, SiteId, Stop, Summary};

/// What the entries are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// No grouping: one group per entry.
    #[default]
    Entry,
    /// All entries of one method.
    Method,
    /// Class, or code file.
    Class,
    /// The region.
    Region,
    /// The kind of code.
    Kind,
    /// The thread of the samples.
    Thread,
    /// The compiler or its level.
    Tier,
}

impl GroupBy {
    /// All groupings in key order.
    pub const ALL: [GroupBy; 7] = [
        GroupBy::Entry,
        GroupBy::Method,
        GroupBy::Class,
        GroupBy::Region,
        GroupBy::Kind,
        GroupBy::Thread,
        GroupBy::Tier,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            GroupBy::Entry => "nothing",
            GroupBy::Method => "method",
            GroupBy::Class => "class or module",
            GroupBy::Region => "region",
            GroupBy::Kind => "kind",
            GroupBy::Thread => "thread",
            GroupBy::Tier => "tier",
        }
    }
}

/// A stable group key across answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroupKey {
    /// One entry.
    Entry(EntryId),
    /// A method, identified by its first entry.
    Method(EntryId),
    /// A class or module, a kind, a tier; empty where there is none.
    Text(Arc<str>),
    /// A region.
    Region(Region),
    /// Index in the trace's threads.
    Thread(u32),
}

/// An entry in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The entry.
    pub entry: EntryId,
    /// Its samples in this group.
    pub samples: u64,
}

/// Shared attributes of a group; `None` marks differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// The region.
    pub region: Option<Region>,
    /// Index in [`EntryIndex::tiers`].
    pub tier: Option<u32>,
    /// Index in [`EntryIndex::kinds`].
    pub kind: Option<u32>,
    /// Index in [`EntryIndex::modules`].
    pub module: Option<u32>,
}

impl Common {
    /// Of a single entry.
    pub fn of(profile: &Profile, index: &EntryIndex, entry: EntryId) -> Self {
        let Ranks {
            tier, kind, module, ..
        } = index.ranks[entry as usize];
        Common {
            region: Some(profile.entries[entry as usize].region),
            tier: Some(tier),
            kind: Some(kind),
            module: Some(module),
        }
    }

    fn with(self, other: Self) -> Self {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<T> {
            if one == other { one } else { None }
        }
        Common {
            region: same(self.region, other.region),
            tier: same(self.tier, other.tier),
            kind: same(self.kind, other.kind),
            module: same(self.module, other.module),
        }
    }
}

/// A group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Which group.
    pub key: GroupKey,
    /// Its name; empty for a single entry.
    pub name: Arc<str>,
    /// Alphabetical rank among groups.
    pub rank: u32,
    /// All its samples.
    pub samples: u64,
    /// Bytes of machine code, where any are known.
    pub size: Option<u64>,
    /// What its entries have in common.
    pub common: Common,
    /// Its entries: indices in [`Entries::members`].
    pub members: Range<usize>,
    /// Thread groups: samples by site, counted on first use.
    sites: OnceLock<FxHashMap<SiteId, u64>>,
}

/// A range of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRange {
    /// Its site.
    pub site: SiteId,
    /// Its samples in the group.
    pub samples: u64,
}

/// The entries with samples.
#[derive(Debug)]
pub struct Entries {
    /// What they are grouped by.
    pub by: GroupBy,
    /// All samples.
    pub total: u64,
    /// Most samples first, then by name.
    pub groups: Vec<Group>,
    /// The entries of each group side by side, most samples first, then by name.
    pub members: Vec<Member>,
    /// The entries of the profile.
    pub index: Arc<EntryIndex>,
    /// Entries that only the whole paths of their files tell apart.
    pub namesakes: FxHashSet<EntryId>,
    summary: Arc<Summary>,
    filter: Filter,
}

impl Entries {
    /// Groups the entries that `summary` counts under `filter`; `None` when `stop` was wished.
    pub fn of(
        profile: &Profile,
        index: &Arc<EntryIndex>,
        (summary, filter): (&Arc<Summary>, &Filter),
        by: GroupBy,
        stop: &Stop,
    ) -> Option<Self> {
        // Group number and member.
        let mut counted: Vec<(u32, Member)> = Vec::new();
        if by == GroupBy::Thread {
            let counts = by_thread(profile, filter, stop)?.into_iter();
            counted.extend(counts.map(|one| {
                let (entry, samples) = (one.entry, one.samples);
                (one.thread, Member { entry, samples })
            }));
        } else {
            let counts = (0..).zip(summary.entries.iter().copied());
            let counts = counts.filter(|(_, samples)| *samples > 0);
            counted.extend(counts.map(|(entry, samples)| {
                let number = number_of(profile, index, by, entry);
                (number, Member { entry, samples })
            }));
        }
        let place = |member: &Member| index.ranks[member.entry as usize].place;
        counted.sort_unstable_by_key(|(number, member)| {
            (*number, Reverse(member.samples), place(member))
        });
        if stop.is_stopped() {
            return None;
        }
        let mut groups = Vec::new();
        let mut end = 0;
        for of_group in counted.chunk_by(|(a, _), (b, _)| a == b) {
            let begin = end;
            end += of_group.len();
            let (key, name) = key_and_name(profile, index, by, of_group[0]);
            let members = of_group.iter().map(|(_, member)| member);
            let sizes = members.clone();
            let sizes = sizes.filter_map(|member| index.sizes[member.entry as usize]);
            let common = members
                .clone()
                .map(|member| Common::of(profile, index, member.entry));
            groups.push(Group {
                key,
                name,
                rank: 0,
                samples: members.map(|member| member.samples).sum(),
                size: sizes.reduce(u64::saturating_add),
                common: common.reduce(Common::with)?,
                members: begin..end,
                sites: OnceLock::new(),
            });
        }
        let members: Vec<Member> = counted.into_iter().map(|(_, member)| member).collect();
        rank(&mut groups, index, by, &members);
        groups.sort_by_cached_key(|group| {
            let first = place(&members[group.members.start]);
            (Reverse(group.samples), group.rank, first)
        });
        let entries = Entries {
            by,
            total: summary.total,
            groups,
            members,
            index: Arc::clone(index),
            namesakes: index.namesakes(summary),
            summary: Arc::clone(summary),
            filter: filter.clone(),
        };
        (!stop.is_stopped()).then_some(entries)
    }

    /// The entries of a group.
    pub fn members_of(&self, group: &Group) -> &[Member] {
        &self.members[group.members.clone()]
    }

    /// Whether a group merely wraps one entry.
    pub fn is_single(&self, group: &Group) -> bool {
        group.members.len() == 1 && matches!(self.by, GroupBy::Entry | GroupBy::Method)
    }

    /// Whether an entry has displayable ranges.
    pub fn has_ranges(&self, profile: &Profile, entry: EntryId) -> bool {
        self.index.has_ranges(profile, &self.summary, entry)
    }

    /// An entry's sampled ranges within a group, in code order.
    pub fn ranges(&self, profile: &Profile, group: &Group, entry: EntryId) -> Vec<InRange> {
        let of_thread = match group.key {
            GroupKey::Thread(thread) => {
                let counted = || self.sites_of_thread(profile, thread);
                Some(group.sites.get_or_init(counted))
            }
            _ => None,
        };
        let samples = |site: SiteId| match of_thread {
            Some(sites) => sites.get(&site).copied(),
            // The summary may be older than the newest sites.
            None => self.summary.sites.get(site as usize).copied(),
        };
        let sites = self.index.sites(entry).iter();
        let ranges = sites.map(|&site| InRange {
            site,
            samples: samples(site).unwrap_or(0),
        });
        let mut ranges: Vec<InRange> = ranges.filter(|range| range.samples > 0).collect();
        // Sites at the same place keep their order.
        ranges.sort_by_cached_key(|range| place_in_code(&profile.sites[range.site as usize]));
        ranges
    }

    fn sites_of_thread(&self, profile: &Profile, thread: u32) -> FxHashMap<SiteId, u64> {
        let filter = Filter {
            threads: Some([thread].into_iter().collect()),
            ..self.filter.clone()
        };
        let counts = Counts::of(profile, &filter, &Stop::new()).unwrap_or_default();
        let sites = (0..).zip(counts.sites);
        sites.filter(|(_, samples)| *samples > 0).collect()
    }
}

/// The number of an entry's group.
fn number_of(profile: &Profile, index: &EntryIndex, by: GroupBy, entry: EntryId) -> u32 {
    let ranks = index.ranks[entry as usize];
    match by {
        GroupBy::Method => index.methods.of_entry[entry as usize],
        GroupBy::Class => ranks.module,
        GroupBy::Region => profile.entries[entry as usize].region as u32,
        GroupBy::Kind => ranks.kind,
        GroupBy::Tier => ranks.tier,
        GroupBy::Entry | GroupBy::Thread => entry,
    }
}

/// Derives a group's key and name from its number and any member.
fn key_and_name(
    profile: &Profile,
    index: &EntryIndex,
    by: GroupBy,
    (number, member): (u32, Member),
) -> (GroupKey, Arc<str>) {
    let text = |all: &[Arc<str>], none: &str| {
        let text = &all[number as usize];
        let name = match text.is_empty() {
            true => none.into(),
            false => Arc::clone(text),
        };
        (GroupKey::Text(Arc::clone(text)), name)
    };
    match by {
        GroupBy::Entry => (GroupKey::Entry(member.entry), "".into()),
        GroupBy::Method => (
            GroupKey::Method(index.first_of_method[number as usize]),
            Arc::clone(&index.methods.names[number as usize]),
        ),
        GroupBy::Class => text(&index.modules, "(no class or module)"),
        GroupBy::Kind => text(&index.kinds, "(no kind)"),
        GroupBy::Tier => text(&index.tiers, "(no tier)"),
        GroupBy::Region => {
            let region = profile.entries[member.entry as usize].region;
            (GroupKey::Region(region), region_name(region).into())
        }
        GroupBy::Thread => {
            let thread = &profile.trace.threads[number as usize];
            (
                GroupKey::Thread(number),
                thread_label(&thread.thread).into(),
            )
        }
    }
}

/// Gives the groups the ranks of their names.
fn rank(groups: &mut [Group], index: &EntryIndex, by: GroupBy, members: &[Member]) {
    match by {
        // Single entries are ranked by their places alone.
        GroupBy::Entry => {}
        GroupBy::Method => {
            for group in groups {
                let entry = members[group.members.start].entry;
                let method = index.methods.of_entry[entry as usize];
                group.rank = index.rank_of_method[method as usize];
            }
        }
        _ => {
            let (_, ranks) = ranked(groups.iter().map(|group| &*group.name));
            for (group, rank) in groups.iter_mut().zip(ranks) {
                group.rank = rank;
            }
        }
    }
}

type PlaceInCode = (
    Option<u32>,
    Option<u32>,
    Arc<str>,
    Option<u32>,
    Vec<(Arc<str>, Option<u32>)>,
);

fn place_in_code(site: &Site) -> PlaceInCode {
    let frame = &site.frame;
    let via = site.via.iter();
    (
        site.from.map(BytecodePc::get),
        site.to.map(BytecodePc::get),
        Arc::clone(&frame.file),
        frame.line,
        via.map(|outer| (Arc::clone(&outer.name), outer.line))
            .collect(),
    )
}

#[cfg(test)]
mod tests;
