//! Distinct functions of stacks.

use super::{Function, FunctionId};
use crate::ids::{Id, IndexVec, ThreadId};
use crate::profile::{EntryId, Profile, SiteId, last_component};
use crate::stacks::frames_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// Functions sorted by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    pub all: IndexVec<FunctionId, Function>,
    /// An entry of the function's own samples.
    pub entries: IndexVec<FunctionId, Option<EntryId>>,
    /// Functions that differ only in the folders of their files.
    pub namesakes: FxHashSet<FunctionId>,
}

impl Functions {
    pub fn find(&self, function: &Function) -> Option<FunctionId> {
        let found = self.all.binary_search(function);
        found.ok().map(FunctionId::of)
    }
}

/// Functions in order of first appearance.
pub(super) struct Met<'a> {
    profile: &'a Profile,
    found: Functions,
    index: FxHashMap<Function, FunctionId>,
    tiers: FxHashMap<String, Arc<str>>,
    /// Indices in `frames` of visited sites.
    of_site: IndexVec<SiteId, Option<Range<usize>>>,
    frames: Vec<FunctionId>,
}

impl<'a> Met<'a> {
    pub fn new(profile: &'a Profile) -> Self {
        Met {
            profile,
            found: Functions::default(),
            index: FxHashMap::default(),
            tiers: FxHashMap::default(),
            of_site: profile.sites.with_each(None),
            frames: Vec::new(),
        }
    }

    /// The functions of a site, outermost first.
    pub fn of_site(&mut self, site: SiteId) -> &[FunctionId] {
        let known = self.of_site[site].clone().unwrap_or_else(|| {
            let from = self.frames.len();
            self.meet(site);
            self.of_site[site] = Some(from..self.frames.len());
            from..self.frames.len()
        });
        &self.frames[known]
    }

    fn meet(&mut self, site: SiteId) {
        for frame in frames_of(self.profile, site, true) {
            let tier = self.tier(&frame.entry.tier);
            let id = self.id(Function {
                name: Arc::clone(&frame.place.name),
                begin: self.profile.begin_of(frame.place),
                tier,
                region: Some(frame.entry.region),
                inlined: frame.is_inlined(),
                thread: None,
            });
            self.frames.push(id);
        }
    }

    fn id(&mut self, function: Function) -> FunctionId {
        let found = &mut self.found;
        *self.index.entry(function).or_insert_with_key(|function| {
            found.entries.push(None);
            found.all.push(function.clone())
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
    pub fn thread(&mut self, id: ThreadId) -> FunctionId {
        let thread = &self.profile.trace.threads[id].thread;
        self.id(Function {
            name: format!("{} ({})", thread.name, thread.tid).into(),
            begin: None,
            tier: "".into(),
            region: None,
            inlined: false,
            thread: Some(id),
        })
    }

    /// Records the entry of the function's own samples.
    pub fn note_entry(&mut self, function: FunctionId, entry: EntryId) {
        self.found.entries[function].get_or_insert(entry);
    }

    /// The functions in order, and the new number of each old one.
    pub fn sorted(self) -> (Functions, IndexVec<FunctionId, FunctionId>) {
        let Functions { all, entries, .. } = self.found;
        let mut order: Vec<FunctionId> = all.ids().collect();
        order.sort_unstable_by_key(|&id| &all[id]);
        let mut numbers = all.map(|id, _| id);
        for (new, &old) in all.ids().zip(&order) {
            numbers[old] = new;
        }
        let all: IndexVec<FunctionId, Function> =
            order.iter().map(|&old| all[old].clone()).collect();
        let functions = Functions {
            namesakes: namesakes(&all),
            all,
            entries: order.iter().map(|&old| entries[old]).collect(),
        };
        (functions, numbers)
    }
}

/// Functions with equal names, tiers and places but for the folders of their files.
fn namesakes(all: &IndexVec<FunctionId, Function>) -> FxHashSet<FunctionId> {
    let mut by_name: FxHashMap<_, Vec<FunctionId>> = FxHashMap::default();
    for (id, function) in all.enumerated() {
        if let Some(begin) = &function.begin {
            let place = (last_component(&begin.file), begin.line);
            let name = (&function.name, place, &function.tier, function.inlined);
            by_name.entry(name).or_default().push(id);
        }
    }
    let groups = by_name.into_values().filter(|group| group.len() > 1);
    groups.flatten().collect()
}
