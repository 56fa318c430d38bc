//! Inclusive samples: those whose stack contains an entry.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use vmscope_symbolizer::calls::{CallTree, CallsOf, StackIndex};
use vmscope_symbolizer::{EntryId, Filter, IndexVec, Profile, Stop};

/// Inclusive samples under a filter.
#[derive(Debug, Default)]
pub struct Inclusive {
    /// `None` where several entries share name and tier, since stacks hold no more.
    samples: IndexVec<EntryId, Option<u64>>,
}

impl Inclusive {
    /// Counts a filter's samples; `None` after a stop.
    pub fn of(
        profile: &Profile,
        stacks: &Arc<StackIndex>,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Self> {
        let tree = CallTree::of(profile, stacks, filter, &CallsOf::default(), stop)?;
        let mut groups: FxHashMap<(&str, &str), u32> = FxHashMap::default();
        let of_entries = profile.entries.iter().map(|entry| {
            let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let name = (entry.name.as_str(), entry.tier.as_str());
            *groups.entry(name).or_insert(next)
        });
        let of_entries: Vec<u32> = of_entries.collect();
        let of_functions = tree.functions().map(|_, function| {
            let group = groups.get(&(&*function.name, &*function.tier));
            group.copied().filter(|_| function.thread.is_none())
        });
        let sums = tree.samples_by_group(&of_functions, groups.len(), stop)?;
        let mut members = vec![0u32; groups.len()];
        for &group in &of_entries {
            members[group as usize] += 1;
        }
        let samples = of_entries.iter().map(|&group| {
            let is_alone = members[group as usize] == 1;
            is_alone.then(|| sums[group as usize])
        });
        Some(Inclusive {
            samples: samples.collect(),
        })
    }

    /// Inclusive samples of an entry, if known.
    pub fn samples(&self, entry: EntryId) -> Option<u64> {
        // The profile may have grown.
        self.samples.get(entry).copied().flatten()
    }
}

/// Shared cache of the index of a finished recording's stacks, which takes long to build.
#[derive(Clone, Debug, Default)]
pub struct StackCache(Arc<Mutex<Option<Arc<StackIndex>>>>);

impl StackCache {
    /// Cached or new index of all stacks; `None` after a stop.
    pub fn get(&self, profile: &Profile, stop: &Stop) -> Option<Arc<StackIndex>> {
        // Concurrent callers wait and share the result.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = &*cached {
            return Some(Arc::clone(index));
        }
        let index = Arc::new(StackIndex::of(profile, None, None, stop)?);
        *cached = Some(Arc::clone(&index));
        Some(index)
    }
}
