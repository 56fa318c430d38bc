//! Distinct functions of stacks.

use super::{Function, FunctionId, id_of};
use crate::ids::IndexVec;
use crate::profile::{EntryId, Profile, SiteId};
use crate::stacks::frames_of;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Functions sorted by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    pub all: Vec<Function>,
    /// Per function: an entry of its own samples.
    pub entries: Vec<Option<EntryId>>,
}

impl Functions {
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        let found = self.all.binary_search(function);
        found.ok().map(id_of)
    }
}

/// Functions in order of first appearance.
pub(super) struct Met<'a> {
    profile: &'a Profile,
    all: Vec<Function>,
    entries: Vec<Option<EntryId>>,
    index: FxHashMap<Function, FunctionId>,
    tiers: FxHashMap<String, Arc<str>>,
    /// Per visited site: its first index in `frames`, and the number of frames.
    of_site: IndexVec<SiteId, (u32, u32)>,
    frames: Vec<FunctionId>,
}

impl<'a> Met<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        Met {
            profile,
            all: Vec::new(),
            entries: Vec::new(),
            index: FxHashMap::default(),
            tiers: FxHashMap::default(),
            of_site: profile.sites.with_each((0, 0)),
            frames: Vec::new(),
        }
    }

    /// The functions of a site, outermost first.
    pub fn of_site(&mut self, site: SiteId) -> &[FunctionId] {
        let (mut from, mut count) = self.of_site[site];
        if count == 0 {
            from = id_of(self.frames.len());
            self.meet(site);
            count = id_of(self.frames.len()) - from;
            self.of_site[site] = (from, count);
        }
        let (from, count) = (from as usize, count as usize);
        self.frames.get(from..from + count).unwrap_or_default()
    }

    fn meet(&mut self, site: SiteId) {
        for frame in frames_of(self.profile, site, true) {
            let tier = self.tier(&frame.entry.tier);
            let id = self.id(Function {
                name: Arc::clone(&frame.place.name),
                tier,
                region: Some(frame.entry.region),
                inlined: frame.is_inlined(),
                thread: None,
            });
            self.frames.push(id);
        }
    }

    fn id(&mut self, function: Function) -> FunctionId {
        let (all, entries) = (&mut self.all, &mut self.entries);
        *self.index.entry(function).or_insert_with_key(|function| {
            all.push(function.clone());
            entries.push(None);
            id_of(all.len() - 1)
        })
    }

    fn tier(&mut self, tier: &str) -> Arc<str> {
        if let Some(tier) = self.tiers.get(tier) {
            return Arc::clone(tier);
        }
        let new: Arc<str> = tier.into();
        self.tiers.insert(tier.to_owned(), Arc::clone(&new));
        new
    }

    /// The function representing a thread.
    pub fn thread(&mut self, thread: u32) -> FunctionId {
        let told = self.profile.trace.threads.get(thread as usize);
        let name = told.map_or_else(String::new, |told| {
            format!("{} ({})", told.thread.name, told.thread.tid)
        });
        self.id(Function {
            name: name.into(),
            tier: "".into(),
            region: None,
            inlined: false,
            thread: Some(thread),
        })
    }

    /// Records the entry of the function's own samples.
    pub fn note_entry(&mut self, function: FunctionId, entry: EntryId) {
        if let Some(slot) = self.entries.get_mut(function as usize) {
            *slot = slot.or(Some(entry));
        }
    }

    /// The functions in order, and the new number of each old one.
    pub fn sorted(self) -> (Functions, Vec<FunctionId>) {
        let mut order: Vec<FunctionId> = (0..).take(self.all.len()).collect();
        order.sort_unstable_by_key(|&id| self.all.get(id as usize));
        let mut numbers = vec![0; order.len()];
        for (&old, new) in order.iter().zip(0..) {
            if let Some(slot) = numbers.get_mut(old as usize) {
                *slot = new;
            }
        }
        let of = |old: &FunctionId| *old as usize;
        let functions = Functions {
            all: (order
                .iter()
                .filter_map(|old| self.all.get(of(old)).cloned()))
            .collect(),
            entries: (order
                .iter()
                .map(|old| self.entries.get(of(old)).copied().flatten()))
            .collect(),
        };
        (functions, numbers)
    }
}
