//! Counting what a matrix has in its cells, and the errors of that.

use super::facts::Facts;
use super::matrix::{Axis, Category, Errors, Item, Matrix, Shape, Who};
use crate::report::text::thread_label;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::owners::{Owner, owner_errors, owners};
use vmscope_symbolizer::slices::by_thread;
use vmscope_symbolizer::{EntryId, Filter, Profile, Stop};

/// No category yet.
const NONE: u32 = u32::MAX;

/// Counts; `None` when `stop` was wished before it was done.
pub fn count(
    profile: &Profile,
    facts: &Facts,
    filter: &Filter,
    shape: Shape,
    stop: &Stop,
) -> Option<Matrix> {
    let mut builder = Builder {
        profile,
        facts,
        in_parts: shape.in_parts,
        who: Side::default(),
        categories: Side::default(),
        category_of_entry: vec![NONE; profile.entries.len()],
        who_of_owner: FxHashMap::default(),
        who_of_thread: FxHashMap::default(),
        cells: FxHashMap::default(),
    };
    match shape.axis {
        Axis::Methods => builder.methods(&owners(profile, filter, stop)?),
        Axis::Threads => {
            for one in by_thread(profile, filter, stop)? {
                let who = builder.add(Who::Thread(one.thread), one.entry, one.samples);
                builder.who_of_thread.insert(one.thread, who);
            }
        }
    }
    let errors = match shape.has_errors {
        true => builder.errors(filter, shape.axis, stop)?,
        false => RawErrors::default(),
    };
    (!stop.is_stopped()).then(|| builder.build(shape, &errors))
}

/// Says why samples are nobody's.
const fn why(owner: Owner) -> &'static str {
    match owner {
        Owner::Collector => "(nobody's: collectors' threads)",
        Owner::Compiler => "(compilers, not seen for whom)",
        Owner::Vm => "(nobody's: the VM's own threads)",
        Owner::NoMethod => "(no method among the callers)",
        Owner::Forgotten => "(too long ago: callers not kept)",
        _ => "(not known whose: no callers)",
    }
}

struct Side<T> {
    index: FxHashMap<T, u32>,
    items: Vec<(T, u64)>,
}

impl<T> Default for Side<T> {
    fn default() -> Self {
        Side {
            index: FxHashMap::default(),
            items: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Side<T> {
    fn put(&mut self, what: &T) -> u32 {
        if let Some(&at) = self.index.get(what) {
            return at;
        }
        let at = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.index.insert(what.clone(), at);
        self.items.push((what.clone(), 0));
        at
    }

    fn add(&mut self, at: u32, samples: u64) {
        if let Some((_, sum)) = self.items.get_mut(at as usize) {
            *sum += samples;
        }
    }

    /// The items in order, and of each old index the new one. `place`: by name among those
    /// that have one.
    fn in_order<K: Ord>(
        self,
        name: impl Fn(&T) -> Arc<str>,
        place: impl Fn(&T) -> Option<u32>,
        key: impl Fn(&T, u64) -> K,
    ) -> (Vec<Item<T>>, Vec<u32>) {
        let mut items: Vec<Item<T>> = (self.items.into_iter())
            .map(|(what, samples)| Item {
                name: name(&what),
                what,
                samples,
                by_name: 0,
            })
            .collect();
        for (old, by_name) in by_name(&items, place).into_iter().zip(0..) {
            if let Some(item) = items.get_mut(old) {
                item.by_name = by_name;
            }
        }
        let mut order: Vec<(K, u32, usize)> = (items.iter().enumerate())
            .map(|(old, item)| (key(&item.what, item.samples), item.by_name, old))
            .collect();
        order.sort_unstable();
        let mut new_of_old = vec![0; items.len()];
        for (&(.., old), new) in order.iter().zip(0..) {
            if let Some(slot) = new_of_old.get_mut(old) {
                *slot = new;
            }
        }
        let mut items: Vec<Option<Item<T>>> = items.into_iter().map(Some).collect();
        let items = order
            .into_iter()
            .filter_map(|(.., old)| items.get_mut(old)?.take());
        (items.collect(), new_of_old)
    }
}

/// The items by name, those of equal names as they are: most by their places, which are
/// numbers.
fn by_name<T>(items: &[Item<T>], place: impl Fn(&T) -> Option<u32>) -> Vec<usize> {
    let mut placed: Vec<(u32, usize)> = Vec::with_capacity(items.len());
    let mut others: Vec<(&str, usize)> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        match place(&item.what) {
            Some(place) => placed.push((place, at)),
            None => others.push((&item.name, at)),
        }
    }
    placed.sort_unstable();
    others.sort_unstable();
    let mut order: Vec<usize> = Vec::with_capacity(items.len());
    let name = |at: usize| items.get(at).map_or("", |item| &*item.name);
    for (text, at) in others {
        let before = placed.partition_point(|&(_, other)| (name(other), other) < (text, at));
        order.extend(placed.drain(..before).map(|(_, at)| at));
        order.push(at);
    }
    order.extend(placed.into_iter().map(|(_, at)| at));
    order
}

struct Builder<'a> {
    profile: &'a Profile,
    facts: &'a Facts,
    in_parts: bool,
    who: Side<Who>,
    categories: Side<Category>,
    /// What was not asked for yet, has none.
    category_of_entry: Vec<u32>,
    who_of_owner: FxHashMap<Owner, u32>,
    who_of_thread: FxHashMap<u32, u32>,
    cells: FxHashMap<(u32, u32), u64>,
}

/// Errors by the indices of a [`Builder`]: of those in `who`, then of the categories, then
/// of `cells`; empty where there are none.
#[derive(Default)]
struct RawErrors {
    all: Vec<f64>,
    cells: FxHashMap<(u32, u32), u32>,
}

impl Builder<'_> {
    fn methods(&mut self, all: &[vmscope_symbolizer::owners::Owned]) {
        let facts = self.facts;
        let methods = &facts.methods;
        let by_name = LazyCell::new(|| {
            let mut by_name: FxHashMap<&str, MethodId> = FxHashMap::default();
            for (name, id) in methods.names.iter().zip(0..) {
                by_name.entry(name).or_insert(id);
            }
            by_name
        });
        for one in all {
            let who = match one.owner {
                Owner::Method(entry) => {
                    let method = methods.of_entry.get(entry as usize);
                    method.map_or(Who::Nobody(why(Owner::NoCallers)), |&m| Who::Method(m))
                }
                Owner::Compiled(index) => {
                    let compiled = self.profile.trace.compilations.get(index as usize);
                    let name = compiled.map_or("", |compiled| compiled.name.as_str());
                    match by_name.get(name) {
                        Some(&method) => Who::Method(method),
                        None => Who::Compiled(name.to_owned()),
                    }
                }
                owner => Who::Nobody(why(owner)),
            };
            let who = self.add(who, one.entry, one.samples);
            self.who_of_owner.insert(one.owner, who);
        }
    }

    /// `None` when `stop` was wished before it was done.
    fn errors(&self, filter: &Filter, axis: Axis, stop: &Stop) -> Option<RawErrors> {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let before_categories = number(self.who.items.len());
        let before_cells = before_categories.saturating_add(number(self.categories.items.len()));
        let cells: FxHashMap<(u32, u32), u32> =
            (self.cells.keys().copied().zip(before_cells..)).collect();
        let total = self.who.items.iter().map(|(_, samples)| samples).sum();
        let groups = before_cells as usize + cells.len();
        let groups_of = |thread: u32, entry: EntryId, owner: Owner| {
            let who = match axis {
                Axis::Methods => *self.who_of_owner.get(&owner)?,
                Axis::Threads => *self.who_of_thread.get(&thread)?,
            };
            let category = *self.category_of_entry.get(entry as usize)?;
            let cell = *cells.get(&(who, category))?;
            Some([who, before_categories.saturating_add(category), cell])
        };
        // Most samples are their own entry's.
        let mut own: Vec<Option<[u32; 3]>> = vec![None; self.profile.entries.len()];
        let put = |thread: u32, entry: EntryId, owner: Owner, hand_on: &mut dyn FnMut(u32)| {
            let is_own = axis == Axis::Methods && owner == Owner::Method(entry);
            let groups = match own.get_mut(entry as usize).filter(|_| is_own) {
                Some(known) => {
                    if known.is_none() {
                        *known = groups_of(thread, entry, owner);
                    }
                    *known
                }
                None => groups_of(thread, entry, owner),
            };
            groups.into_iter().flatten().for_each(hand_on);
        };
        let all = owner_errors(self.profile, filter, (total, groups), stop, put)?;
        Some(RawErrors { all, cells })
    }

    /// Adds samples; answers the index of whose they are.
    fn add(&mut self, who: Who, entry: EntryId, samples: u64) -> u32 {
        let (profile, in_parts) = (self.profile, self.in_parts);
        let categories = &mut self.categories;
        let mut put = || categories.put(&Category::of(profile, entry, in_parts));
        let category = match self.category_of_entry.get_mut(entry as usize) {
            Some(known) => {
                if *known == NONE {
                    *known = put();
                }
                *known
            }
            None => put(),
        };
        let who = self.who.put(&who);
        self.who.add(who, samples);
        self.categories.add(category, samples);
        *self.cells.entry((who, category)).or_default() += samples;
        who
    }

    fn build(self, shape: Shape, errors: &RawErrors) -> Matrix {
        let methods = &self.facts.methods.names;
        let name = |who: &Who| match who {
            Who::Method(method) => {
                let name = methods.get(*method as usize).cloned();
                name.unwrap_or_else(|| "".into())
            }
            Who::Compiled(name) => name.as_str().into(),
            Who::Nobody(why) => (*why).into(),
            Who::Thread(thread) => {
                let thread = self.profile.trace.threads.get(*thread as usize);
                let label = thread.map(|thread| thread_label(&thread.thread));
                label.unwrap_or_default().into()
            }
        };
        let place = |who: &Who| match who {
            Who::Method(method) => {
                let places = &self.facts.place_of_method;
                places.get(*method as usize).copied()
            }
            _ => None,
        };
        let (who, new_who) = self
            .who
            .in_order(name, place, |_, samples| Reverse(samples));
        let (categories, new_category) = (self.categories).in_order(
            |what| what.name().into(),
            |_| None,
            |what, n| (what.region as usize, Reverse(n)),
        );
        let new_cell = |(who, category): (u32, u32)| {
            let who = *new_who.get(who as usize)?;
            Some((who, *new_category.get(category as usize)?))
        };
        let cells: FxHashMap<(u32, u32), u64> = (self.cells.into_iter())
            .filter_map(|(cell, samples)| Some((new_cell(cell)?, samples)))
            .collect();
        let mut who_of_category: Vec<Vec<u32>> = vec![Vec::new(); categories.len()];
        for &(who, category) in cells.keys() {
            if let Some(list) = who_of_category.get_mut(category as usize) {
                list.push(who);
            }
        }
        for (list, category) in who_of_category.iter_mut().zip(0u32..) {
            let samples = |who: u32| cells.get(&(who, category)).copied().unwrap_or(0);
            list.sort_by_cached_key(|&who| (Reverse(samples(who)), who));
        }
        Matrix {
            shape,
            most_of_who: who.first().map_or(0, |item| item.samples),
            most_of_category: categories
                .iter()
                .map(|item| item.samples)
                .max()
                .unwrap_or(0),
            total: who.iter().map(|item| item.samples).sum(),
            who,
            categories,
            most: cells.values().copied().max().unwrap_or(0),
            cells,
            who_of_category,
            errors: (!errors.all.is_empty())
                .then(|| errors.in_order(&new_who, &new_category, new_cell)),
        }
    }
}

impl RawErrors {
    /// The same by the indices of a [`Matrix`].
    fn in_order(
        &self,
        new_who: &[u32],
        new_category: &[u32],
        new_cell: impl Fn((u32, u32)) -> Option<(u32, u32)>,
    ) -> Errors {
        let moved = |before: usize, new_of_old: &[u32]| {
            let mut list = vec![0.0; new_of_old.len()];
            for (&new, old) in new_of_old.iter().zip(before..) {
                if let (Some(slot), Some(error)) = (list.get_mut(new as usize), self.all.get(old)) {
                    *slot = *error;
                }
            }
            list
        };
        let cells = self
            .cells
            .iter()
            .filter_map(|(&cell, &at)| Some((new_cell(cell)?, *self.all.get(at as usize)?)));
        Errors {
            who: moved(0, new_who),
            categories: moved(new_who.len(), new_category),
            cells: cells.collect(),
        }
    }
}
