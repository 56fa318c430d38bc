//! Filter of samples.

use crate::ids::{IndexVec, PlaceId, ThreadId};
use crate::profile::{Entry, EntryId, Profile, Region, SiteId};
use rustc_hash::FxHashSet;
use vmscope_records::TimeNs;

/// Selects samples that meet every condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `None` for all threads.
    pub threads: Option<FxHashSet<ThreadId>>,
    /// Excluded threads; threads starting later remain included.
    pub without: FxHashSet<ThreadId>,
    /// Earliest time, inclusive.
    pub from: Option<TimeNs>,
    /// End of the window, exclusive.
    pub to: Option<TimeNs>,
    /// Condition on the sample's innermost entry.
    pub only: Only,
}

/// Condition on entries. Each non-empty list must contain a match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Accepted [`Entry::region`]s.
    pub regions: Vec<Region>,
    /// Exact [`Entry::module`]s.
    pub modules: Vec<String>,
    /// Exact [`Entry::tier`]s.
    pub tiers: Vec<String>,
    /// Substrings of [`Entry::name`], case-insensitive.
    pub names: Vec<String>,
    /// Accepted entries.
    pub entries: Vec<EntryId>,
}

/// A filter's entries in one profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMask(IndexVec<EntryId, bool>);

impl EntryMask {
    /// Whether the filter includes this entry.
    #[must_use]
    pub fn takes(&self, entry: EntryId) -> bool {
        self.0[entry]
    }

    /// By site: whether the filter includes its entry.
    #[must_use]
    pub fn of_sites(&self, profile: &Profile) -> IndexVec<SiteId, bool> {
        profile.sites.map(|_, site| self.takes(site.entry))
    }
}

impl Filter {
    /// Whether the filter includes this thread and time; [`Filter::entry_mask`] tests the entry.
    #[must_use]
    pub fn takes(&self, thread: ThreadId, time: TimeNs) -> bool {
        self.takes_thread(thread) && self.takes_time(time)
    }

    /// Whether the filter includes a thread.
    #[must_use]
    pub fn takes_thread(&self, thread: ThreadId) -> bool {
        let threads = self.threads.as_ref();
        threads.is_none_or(|threads| threads.contains(&thread)) && !self.without.contains(&thread)
    }

    /// Whether the filter includes every thread.
    #[must_use]
    pub fn takes_all_threads(&self) -> bool {
        self.threads.is_none() && self.without.is_empty()
    }

    /// The filter without its conditions on threads.
    #[must_use]
    pub fn of_all_threads(&self) -> Self {
        Filter {
            threads: None,
            without: FxHashSet::default(),
            from: self.from,
            to: self.to,
            only: self.only.clone(),
        }
    }

    fn takes_time(&self, time: TimeNs) -> bool {
        self.from.is_none_or(|from| time >= from) && self.to.is_none_or(|to| time < to)
    }

    /// Mask of [`Filter::only`]; `None` without conditions. Takes time proportional to the entries:
    /// make it once per use.
    #[must_use]
    pub fn entry_mask(&self, profile: &Profile) -> Option<EntryMask> {
        self.only.mask(&profile.entries)
    }

    /// By place: whether [`Filter::only`] includes the entry of its site.
    pub(crate) fn takes_places<'a>(
        &self,
        profile: &'a Profile,
    ) -> impl Fn(PlaceId) -> bool + use<'a> {
        let mask = self.entry_mask(profile).map(|mask| mask.of_sites(profile));
        move |place| {
            mask.as_ref()
                .is_none_or(|mask| mask[profile.site_of_place[place]])
        }
    }

    /// Whether the filter has no conditions.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Filter::default()
    }
}

impl Only {
    /// Whether there are no conditions.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Only::default()
    }

    /// The accepted regions by [`Region::ALL`], if no other list has conditions.
    pub(crate) fn of_regions(&self) -> Option<[bool; Region::ALL.len()]> {
        let is_alone = self.modules.is_empty()
            && self.tiers.is_empty()
            && self.names.is_empty()
            && self.entries.is_empty();
        let is_taken = |region| self.regions.is_empty() || self.regions.contains(&region);
        is_alone.then(|| Region::ALL.map(is_taken))
    }

    fn mask(&self, entries: &IndexVec<EntryId, Entry>) -> Option<EntryMask> {
        if self.is_everything() {
            return None;
        }
        let wanted: FxHashSet<EntryId> = self.entries.iter().copied().collect();
        let parts: Vec<String> = self.names.iter().map(|name| name.to_lowercase()).collect();
        let parts: Vec<_> = parts.iter().map(memchr::memmem::Finder::new).collect();
        let mut lower = String::new();
        let mut has_part = |name: &str| {
            if name.is_ascii() {
                lower.clear();
                lower.push_str(name);
                lower.make_ascii_lowercase();
            } else {
                lower = name.to_lowercase();
            }
            parts
                .iter()
                .any(|part| part.find(lower.as_bytes()).is_some())
        };
        let mut fits = |entry: &Entry, id: EntryId| {
            (self.regions.is_empty() || self.regions.contains(&entry.region))
                && (self.modules.is_empty() || self.modules.contains(&entry.module))
                && (self.tiers.is_empty() || self.tiers.contains(&entry.tier))
                && (wanted.is_empty() || wanted.contains(&id))
                && (parts.is_empty() || has_part(&entry.name))
        };
        Some(EntryMask(entries.map(|id, entry| fits(entry, id))))
    }
}
