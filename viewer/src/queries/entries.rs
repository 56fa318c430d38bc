//! Entries with samples under a filter, grouped by method, class, region, kind, thread or tier.

use super::entry_index::{EntryIndex, Ranks, ranked};
use super::inclusive::Inclusive;
use crate::present::names::{region_name, thread_label};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use vmscope_records::BytecodePc;
use vmscope_symbolizer::time_buckets::{Counts, by_thread};
use vmscope_symbolizer::{
    EntryId, Filter, Id, Profile, Region, Site, SiteId, Stop, Summary, ThreadId,
};

/// Grouping of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// One group per entry.
    #[default]
    Entry,
    Method,
    /// Class or code file.
    Class,
    Region,
    Kind,
    Thread,
    /// Compiler or compiler level.
    Tier,
    /// The function that is executed, even if it is inlined into a native function.
    Innermost,
}

impl GroupBy {
    pub const ALL: [GroupBy; 8] = [
        GroupBy::Entry,
        GroupBy::Method,
        GroupBy::Class,
        GroupBy::Region,
        GroupBy::Kind,
        GroupBy::Thread,
        GroupBy::Tier,
        GroupBy::Innermost,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            GroupBy::Entry => "nothing",
            GroupBy::Method => "method",
            GroupBy::Innermost => "innermost function",
            GroupBy::Class => "class or module",
            GroupBy::Region => "region",
            GroupBy::Kind => "kind",
            GroupBy::Thread => "thread",
            GroupBy::Tier => "tier",
        }
    }
}

/// Identity of a group across answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroupKey {
    Entry(EntryId),
    /// First entry of a method.
    Method(EntryId),
    /// Innermost function, class, module, kind or tier; may be empty.
    Text(Arc<str>),
    Region(Region),
    Thread(ThreadId),
}

/// An entry in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub entry: EntryId,
    /// Samples within the group.
    pub samples: u64,
}

/// Attributes equal in all entries of a group; `None` where entries differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    pub region: Option<Region>,
    /// Index in [`EntryIndex::tiers`].
    pub tier: Option<u32>,
    /// Index in [`EntryIndex::kinds`].
    pub kind: Option<u32>,
    /// Index in [`EntryIndex::modules`].
    pub module: Option<u32>,
}

impl Common {
    pub fn of(profile: &Profile, index: &EntryIndex, entry: EntryId) -> Self {
        let Ranks {
            tier, kind, module, ..
        } = index.ranks[entry];
        Common {
            region: Some(profile.entries[entry].region),
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

#[derive(Clone, Debug)]
pub struct Group {
    pub key: GroupKey,
    /// Empty for a single entry.
    pub name: Arc<str>,
    /// Alphabetical rank among groups.
    pub rank: u32,
    pub samples: u64,
    /// Known bytes of machine code.
    pub size: Option<u64>,
    pub common: Common,
    /// Indices in [`Entries::members`].
    pub members: Range<usize>,
    /// Samples of a thread's group by site, counted on first use.
    sites: OnceLock<FxHashMap<SiteId, u64>>,
}

/// Sampled range of an entry, or a function inlined into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InRange {
    /// The range; for an inlined function, its range with most samples.
    pub site: SiteId,
    /// Samples within the group.
    pub samples: u64,
}

/// Functions inlined into native functions, each with its samples at all of `ranges`, most samples
/// first.
pub fn inlined(profile: &Profile, ranges: impl IntoIterator<Item = InRange>) -> Vec<InRange> {
    // Hottest site, its samples, all samples.
    let mut sums: FxHashMap<&str, (SiteId, u64, u64)> = FxHashMap::default();
    for InRange { site, samples } in ranges {
        if let Some(frame) = profile.inlined_at(&profile.sites[site]) {
            let sum = sums.entry(&frame.name).or_insert((site, samples, 0));
            sum.2 += samples;
            if samples > sum.1 {
                (sum.0, sum.1) = (site, samples);
            }
        }
    }
    let mut sums: Vec<(&str, (SiteId, u64, u64))> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(name, (.., samples))| (Reverse(*samples), *name));
    let ranges = sums.into_iter();
    let ranges = ranges.map(|(_, (site, _, samples))| InRange { site, samples });
    ranges.collect()
}

/// Name of the function executing at a site.
fn innermost<'a>(profile: &'a Profile, site: &'a Site) -> &'a str {
    let entry = &profile.entries[site.entry];
    profile
        .inlined_at(site)
        .map_or(&entry.name, |frame| &frame.name)
}

/// Innermost functions, and samples by their indices and entries.
fn by_innermost(profile: &Profile, summary: &Summary) -> (Vec<Arc<str>>, Vec<(u32, Member)>) {
    let mut index: FxHashMap<&str, u32> = FxHashMap::default();
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut sums: FxHashMap<(u32, EntryId), u64> = FxHashMap::default();
    let counted = profile.sites.iter().zip(&summary.sites);
    for (site, &samples) in counted.filter(|(_, samples)| **samples > 0) {
        let name = innermost(profile, site);
        let number = *index.entry(name).or_insert_with(|| {
            names.push(name.into());
            // Sites number fewer than 2^32.
            u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
        });
        *sums.entry((number, site.entry)).or_default() += samples;
    }
    let counted = sums.into_iter();
    let counted = counted.map(|((number, entry), samples)| (number, Member { entry, samples }));
    (names, counted.collect())
}

/// Grouped entries.
#[derive(Debug)]
pub struct Entries {
    pub by: GroupBy,
    /// All samples under the filter.
    pub total: u64,
    /// Most samples first, then by name.
    pub groups: Vec<Group>,
    /// Group by group; within a group most samples first, then by name.
    pub members: Vec<Member>,
    pub index: Arc<EntryIndex>,
    /// Entries whose names differ only in file paths.
    pub namesakes: FxHashSet<EntryId>,
    /// Inclusive samples, if stacks were recorded and counted.
    pub inclusive: Option<Arc<Inclusive>>,
    summary: Arc<Summary>,
    filter: Filter,
}

impl Entries {
    /// Counts of the same filter.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Groups the entries of `summary`, counted under `filter`; `None` after a stop. With
    /// `inclusive` samples of that filter, lists of entries and methods include callers without
    /// samples of their own.
    pub fn of(
        profile: &Profile,
        index: &Arc<EntryIndex>,
        (summary, filter): (&Arc<Summary>, &Filter),
        by: GroupBy,
        inclusive: Option<Arc<Inclusive>>,
        stop: &Stop,
    ) -> Option<Self> {
        // Group numbers with members.
        let mut counted: Vec<(u32, Member)> = Vec::new();
        let mut names: Vec<Arc<str>> = Vec::new();
        if by == GroupBy::Innermost {
            (names, counted) = by_innermost(profile, summary);
        } else if by == GroupBy::Thread {
            let counts = by_thread(profile, filter, stop)?.into_iter();
            counted.extend(counts.map(|one| {
                let (entry, samples) = (one.entry, one.samples);
                (one.thread.number(), Member { entry, samples })
            }));
        } else {
            let counts = summary.entries.enumerated();
            let has_callers = matches!(by, GroupBy::Entry | GroupBy::Method);
            let is_caller = |entry: EntryId| {
                let inclusive = inclusive.as_ref().filter(|_| has_callers);
                inclusive.and_then(|all| all.samples(entry)) > Some(0)
            };
            let counts = counts.filter(|(entry, samples)| **samples > 0 || is_caller(*entry));
            counted.extend(counts.map(|(entry, &samples)| {
                let number = number_of(profile, index, by, entry);
                (number, Member { entry, samples })
            }));
        }
        let place = |member: &Member| index.ranks[member.entry].place;
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
            let (key, name) = match by {
                GroupBy::Innermost => {
                    let name = &names[of_group[0].0 as usize];
                    (GroupKey::Text(Arc::clone(name)), Arc::clone(name))
                }
                _ => key_and_name(profile, index, by, of_group[0]),
            };
            let members = of_group.iter().map(|(_, member)| member);
            let sizes = members.clone();
            let sizes = sizes.filter_map(|member| index.sizes[member.entry]);
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
            inclusive,
            summary: Arc::clone(summary),
            filter: filter.clone(),
        };
        (!stop.is_stopped()).then_some(entries)
    }

    /// Samples of stacks with an entry, over all threads; `None` if unknown.
    pub fn inclusive_of(&self, entry: EntryId) -> Option<u64> {
        self.inclusive.as_ref()?.samples(entry)
    }

    pub fn members_of(&self, group: &Group) -> &[Member] {
        &self.members[group.members.clone()]
    }

    /// Whether a group stands for one entry.
    pub fn is_single(&self, group: &Group) -> bool {
        group.members.len() == 1 && matches!(self.by, GroupBy::Entry | GroupBy::Method)
    }

    pub fn has_ranges(&self, profile: &Profile, entry: EntryId) -> bool {
        self.index.has_ranges(profile, &self.summary, entry)
    }

    /// Sampled ranges of an entry in a group, in code order; then the functions inlined into it.
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
            // Summaries may be older than the newest sites.
            None => self.summary.sites.get(site).copied(),
        };
        let sites = self.index.sites(entry).iter();
        let ranges = sites.map(|&site| InRange {
            site,
            samples: samples(site).unwrap_or(0),
        });
        let mut ranges: Vec<InRange> = ranges.filter(|range| range.samples > 0).collect();
        let site = |range: &InRange| &profile.sites[range.site];
        let mut inlined = inlined(profile, ranges.iter().copied());
        match (&group.key, self.by) {
            (GroupKey::Text(name), GroupBy::Innermost) => {
                inlined.clear();
                ranges.retain(|range| innermost(profile, site(range)) == &**name);
            }
            _ => ranges.retain(|range| profile.inlined_at(site(range)).is_none()),
        }
        // Stable: ties stay in site order.
        ranges.sort_by(|a, b| by_place(site(a), site(b)));
        ranges.extend(inlined);
        ranges
    }

    fn sites_of_thread(&self, profile: &Profile, thread: ThreadId) -> FxHashMap<SiteId, u64> {
        let filter = Filter {
            threads: Some([thread].into_iter().collect()),
            ..self.filter.clone()
        };
        let counts = Counts::of(profile, &filter, &Stop::new()).unwrap_or_default();
        let sites = counts
            .sites
            .enumerated()
            .map(|(site, samples)| (site, *samples));
        sites.filter(|(_, samples)| *samples > 0).collect()
    }
}

fn number_of(profile: &Profile, index: &EntryIndex, by: GroupBy, entry: EntryId) -> u32 {
    let ranks = index.ranks[entry];
    match by {
        GroupBy::Method => index.methods.of_entry[entry].number(),
        GroupBy::Class => ranks.module,
        GroupBy::Region => profile.entries[entry].region as u32,
        GroupBy::Kind => ranks.kind,
        GroupBy::Tier => ranks.tier,
        GroupBy::Entry | GroupBy::Thread | GroupBy::Innermost => entry.number(),
    }
}

/// Key and name of a group, from its number and any member.
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
        GroupBy::Entry | GroupBy::Innermost => (GroupKey::Entry(member.entry), "".into()),
        GroupBy::Method => {
            let method = index.methods.of_entry[member.entry];
            (
                GroupKey::Method(index.first_of_method[method]),
                Arc::clone(&index.methods.names[method]),
            )
        }
        GroupBy::Class => text(&index.modules, "(no class or module)"),
        GroupBy::Kind => text(&index.kinds, "(no kind)"),
        GroupBy::Tier => text(&index.tiers, "(no tier)"),
        GroupBy::Region => {
            let region = profile.entries[member.entry].region;
            (
                GroupKey::Region(region),
                region_name(region, profile.is_native()).into(),
            )
        }
        GroupBy::Thread => {
            let thread = ThreadId::of(number as usize);
            let label = thread_label(&profile.trace.threads[thread].thread);
            (GroupKey::Thread(thread), label.into())
        }
    }
}

fn rank(groups: &mut [Group], index: &EntryIndex, by: GroupBy, members: &[Member]) {
    match by {
        // Single entries need no rank of names.
        GroupBy::Entry => {}
        GroupBy::Method => {
            for group in groups {
                let entry = members[group.members.start].entry;
                let method = index.methods.of_entry[entry];
                group.rank = index.rank_of_method[method];
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

/// Order of sites in the code.
fn by_place<'a>(a: &'a Site, b: &'a Site) -> Ordering {
    let place = |site: &'a Site| {
        let bytecodes = (site.from.map(BytecodePc::get), site.to.map(BytecodePc::get));
        (bytecodes, &*site.frame.file, site.frame.line)
    };
    let via = |site: &'a Site| site.via.iter().map(|outer| (&*outer.name, outer.line));
    (place(a).cmp(&place(b)))
        .then_with(|| via(a).cmp(via(b)))
        .then_with(|| a.caller.cmp(&b.caller))
}

#[cfg(test)]
mod tests;
