//! Which samples count.

use crate::profile::{Entry, EntryId, Profile, Region};
use rustc_hash::FxHashSet;
use vmscope_records::TimeNs;

/// Which samples to count: those that all of its parts take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Threads by index in the trace; `None` for all.
    pub threads: Option<FxHashSet<u32>>,
    /// Threads that are left out, by index in the trace: of a growing trace, threads that
    /// begin later are taken.
    pub without: FxHashSet<u32>,
    /// Not before.
    pub from: Option<TimeNs>,
    /// Not at or after.
    pub to: Option<TimeNs>,
    /// Where a sample fell: what its innermost entry is.
    pub only: Only,
}

/// Which entries' samples to count. A list that is empty takes all; of one that is not,
/// an entry has to fit one item. It has to fit every list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// [`Entry::region`].
    pub regions: Vec<Region>,
    /// [`Entry::module`], whole.
    pub modules: Vec<String>,
    /// [`Entry::tier`], whole.
    pub tiers: Vec<String>,
    /// Parts of [`Entry::name`], in any letter case.
    pub names: Vec<String>,
    /// The entries themselves.
    pub entries: Vec<EntryId>,
}

/// The entries of one profile that a filter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryMask(Vec<bool>);

impl EntryMask {
    /// Whether samples of this entry are taken.
    #[must_use]
    pub fn takes(&self, entry: EntryId) -> bool {
        self.0.get(entry as usize).copied().unwrap_or(false)
    }

    /// By site: whether the entry that it is of is taken.
    #[must_use]
    pub fn of_sites(&self, profile: &Profile) -> Vec<bool> {
        let sites = profile.sites.iter();
        sites.map(|site| self.takes(site.entry)).collect()
    }
}

impl Filter {
    /// Whether a sample of that thread (its index in the trace) and time is counted, as
    /// far as these two say: [`Filter::entry_mask`] has the rest.
    #[must_use]
    pub fn takes(&self, thread: u32, time: TimeNs) -> bool {
        self.takes_thread(thread) && self.takes_time(time)
    }

    /// Whether a thread (its index in the trace) is taken.
    #[must_use]
    pub fn takes_thread(&self, thread: u32) -> bool {
        let threads = self.threads.as_ref();
        threads.is_none_or(|threads| threads.contains(&thread)) && !self.without.contains(&thread)
    }

    /// Whether every thread is taken.
    #[must_use]
    pub fn takes_all_threads(&self) -> bool {
        self.threads.is_none() && self.without.is_empty()
    }

    /// The same whichever the threads are.
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

    /// The entries that [`Filter::only`] takes; `None` for all of them. Looks at every
    /// entry: made once for each use.
    #[must_use]
    pub fn entry_mask(&self, profile: &Profile) -> Option<EntryMask> {
        self.only.mask(&profile.entries)
    }

    /// By place: whether [`Filter::only`] takes the entry of its site.
    pub(crate) fn takes_places<'a>(&self, profile: &'a Profile) -> impl Fn(u32) -> bool + use<'a> {
        let mask = self.entry_mask(profile).map(|mask| mask.of_sites(profile));
        move |place| {
            mask.as_ref().is_none_or(|mask| {
                let site = profile.site_of_place.get(place as usize);
                site.and_then(|&site| mask.get(site as usize)) == Some(&true)
            })
        }
    }

    /// Whether it takes every sample.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Filter::default()
    }
}

impl Only {
    /// Whether it takes every entry.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Only::default()
    }

    /// Which regions it takes, by [`Region::ALL`], if it is about regions alone.
    pub(crate) fn of_regions(&self) -> Option<[bool; Region::ALL.len()]> {
        let is_alone = self.modules.is_empty()
            && self.tiers.is_empty()
            && self.names.is_empty()
            && self.entries.is_empty();
        let is_taken = |region| self.regions.is_empty() || self.regions.contains(&region);
        is_alone.then(|| Region::ALL.map(is_taken))
    }

    fn mask(&self, entries: &[Entry]) -> Option<EntryMask> {
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
        let fitting = entries.iter().zip(0..).map(|(entry, id)| fits(entry, id));
        Some(EntryMask(fitting.collect()))
    }
}
