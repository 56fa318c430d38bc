//! Groups the entries of each method: all tiers, the interpreter and on-stack replacements.

use crate::annotate::Subject;
use crate::build::code::{full_name, separator_of};
pub use crate::ids::MethodId;
use crate::ids::{Id, IndexVec};
use crate::profile::{EntryId, EntryKind, Profile, Region};
use crate::symbols::SymbolTable;
use crate::trace::Place;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use vmscope_records::{ConstituentKind, MethodKey, SymbolOwner};

/// The methods of a profile. Functions, stubs and PICs each count as a method here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Methods {
    /// The method of each of [`Profile::entries`].
    pub of_entry: IndexVec<EntryId, MethodId>,
    /// Name of each method.
    pub names: IndexVec<MethodId, Arc<str>>,
}

impl Methods {
    /// Groups the profile's entries.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut key_of_entry = profile.entries.with_each(None);
        for site in &profile.sites {
            let key: &mut Option<MethodKey> = &mut key_of_entry[site.entry];
            *key = key.or(site.frame.method);
        }
        let separator = separator_of(&profile.trace);
        let mut index: FxHashMap<Subject, MethodId> = FxHashMap::default();
        let mut methods = Methods::default();
        for (entry, key) in profile.entries.iter().zip(key_of_entry) {
            let subject = match key {
                Some(key) => Subject::Method(key),
                None => Subject::Named {
                    name: Arc::from(entry.name.as_str()),
                    module: entry.module.clone(),
                },
            };
            let id = *index.entry(subject).or_insert_with(|| {
                let method = key.and_then(|key| profile.trace.methods.get(&key));
                let name = method.map(|method| full_name(method, separator));
                let name = name.map_or_else(|| entry.name.as_str().into(), Arc::from);
                methods.names.push(name)
            });
            methods.of_entry.push(id);
        }
        methods
    }
}

/// Whether an entry belongs to a method of the profiled program: no stub, collector or library.
#[must_use]
pub fn is_method(profile: &Profile, entry: EntryId) -> bool {
    let entry = &profile.entries[entry];
    match &entry.kind {
        EntryKind::Code(kind) => {
            matches!(kind, ConstituentKind::Method | ConstituentKind::Block)
        }
        EntryKind::Function(_) => profile.is_native() && entry.region == Region::Vm,
        EntryKind::Unnamed | EntryKind::Doubtful => false,
    }
}

/// Size of each entry's machine code in bytes, if known, over all versions with samples. Entries of
/// inlined functions and interpreted entries have none.
#[must_use]
pub fn code_sizes(profile: &Profile) -> IndexVec<EntryId, Option<u64>> {
    let trace = &profile.trace;
    let table = SymbolTable::new(trace.symbols.iter().chain(&profile.resolved_now));
    let mut seen = FxHashSet::default();
    let mut sizes: IndexVec<EntryId, Option<u64>> = profile.entries.with_each(None);
    for (&place, &site) in trace.places.iter().zip(&profile.site_of_place) {
        let site = &profile.sites[site];
        if !site.via.is_empty() && profile.inlined_at(site).is_none() {
            continue;
        }
        let function = |owner, at| {
            let (function, _) = table.lookup(owner, at)?;
            let first = (1, owner_number(owner), function.start.0);
            (function.sized && function.size > 0).then_some((first, function.size))
        };
        let found = match place {
            Place::Code(code, _) => {
                let one = trace.constituent(code);
                let size = one.end.0.saturating_sub(one.start.0);
                Some(((0, u64::from(code.number()), 0), size))
            }
            Place::Native(module, offset, _) => function(SymbolOwner::Module(module), offset),
            _ => None,
        };
        if let Some((piece, size)) = found
            && seen.insert((site.entry, piece))
        {
            let all = sizes[site.entry].get_or_insert(0);
            *all = all.saturating_add(size);
        }
    }
    sizes
}

fn owner_number(owner: SymbolOwner) -> u64 {
    match owner {
        SymbolOwner::Module(key) => key.0.into(),
        _ => u64::MAX,
    }
}
