//! Counting what a matrix has in its cells, and the errors of that.

use super::facts::Facts;
use super::matrix::{Axis, Category, Errors, Item, Matrix, Shape, Who};
use super::sparse::{Cell, Cells};
use crate::report::parts::part_of;
use crate::report::text::thread_label;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::owners::{Owner, owner_errors, owners};
use vmscope_symbolizer::slices::{ThreadEntry, by_thread};
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Stop};

/// No category yet.
const NONE: u32 = u32::MAX;

/// Counts; `None` when `stop` was wished before it was done.
pub fn count(
    profile: &Profile,
    facts: &Arc<Facts>,
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
        category_of_part: FxHashMap::default(),
        category_of_entry: vec![NONE; profile.entries.len()],
        who_of_method: vec![NONE; facts.methods.names.len()],
        who_of_owner: FxHashMap::default(),
        who_of_thread: FxHashMap::default(),
        cells: Vec::new(),
    };
    match shape.axis {
        Axis::Methods => builder.methods(&owners(profile, filter, stop)?),
        Axis::Threads => {
            let all = by_thread(profile, filter, stop)?;
            for of_thread in all.chunk_by(|a, b| a.thread == b.thread) {
                builder.thread(of_thread);
            }
        }
    }
    let (mut matrix, index) = builder.build(shape);
    if shape.has_errors {
        matrix.errors = index.errors(profile, &matrix, filter, stop)?;
    }
    (!stop.is_stopped()).then_some(matrix)
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
        let at = self.push(what.clone());
        self.index.insert(what.clone(), at);
        at
    }

    /// Puts what was not put before, nor will be again.
    fn push(&mut self, what: T) -> u32 {
        let at = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push((what, 0));
        at
    }

    fn add(&mut self, at: u32, samples: u64) {
        if let Some((_, sum)) = self.items.get_mut(at as usize) {
            *sum += samples;
        }
    }

    /// The items in order, and of each old index the new one. `name`: what each is called, or
    /// its place by name among those that have no other.
    fn in_order<'a, K: Ord>(
        self,
        name: impl Fn(&T) -> Name<'a>,
        key: impl Fn(&T, u64) -> K,
    ) -> (Vec<Item<T>>, Vec<u32>) {
        let mut order: Vec<(K, u32, u32)> = (self.by_name(&name).into_iter().zip(0..))
            .filter_map(|(old, by_name)| {
                let (what, samples) = self.items.get(old as usize)?;
                Some((key(what, *samples), by_name, old))
            })
            .collect();
        order.sort_unstable();
        let mut new_of_old = vec![0; self.items.len()];
        for (&(.., old), new) in order.iter().zip(0..) {
            if let Some(slot) = new_of_old.get_mut(old as usize) {
                *slot = new;
            }
        }
        let mut items: Vec<Option<(T, u64)>> = self.items.into_iter().map(Some).collect();
        let items = order.into_iter().filter_map(|(_, by_name, old)| {
            let (what, samples) = items.get_mut(old as usize)?.take()?;
            Some(Item {
                name: match name(&what) {
                    Name::Text(name) => Some(name),
                    Name::Of(..) => None,
                },
                what,
                samples,
                by_name,
            })
        });
        (items.collect(), new_of_old)
    }

    /// The items by name, those of equal names as they are.
    fn by_name<'a>(&self, name: impl Fn(&T) -> Name<'a>) -> Vec<u32> {
        let mut placed: Vec<(u32, u32)> = Vec::with_capacity(self.items.len());
        let mut others: Vec<(Arc<str>, u32)> = Vec::new();
        let mut order: Vec<u32> = Vec::with_capacity(self.items.len());
        for ((what, _), at) in self.items.iter().zip(0..) {
            match name(what) {
                Name::Of(_, place) => placed.push((place, at)),
                Name::Text(name) => others.push((name, at)),
            }
        }
        placed.sort_unstable();
        others.sort_unstable();
        let name_at = |at: u32| match name(&self.items.get(at as usize)?.0) {
            Name::Of(name, _) => Some(Arc::clone(name)),
            Name::Text(name) => Some(name),
        };
        let mut placed: Vec<u32> = placed.into_iter().map(|(_, at)| at).collect();
        for (text, at) in others {
            let text = (Some(text), at);
            let before = placed.partition_point(|&other| (name_at(other), other) < text);
            order.extend(placed.drain(..before));
            order.push(at);
        }
        order.extend(placed);
        order
    }
}

/// What an item is called.
enum Name<'a> {
    /// That.
    Text(Arc<str>),
    /// The name of a method, and its place among these.
    Of(&'a Arc<str>, u32),
}

struct Builder<'a> {
    profile: &'a Profile,
    facts: &'a Arc<Facts>,
    in_parts: bool,
    who: Side<Who>,
    categories: Side<Category>,
    /// By region, and by part if these are told apart.
    category_of_part: FxHashMap<(Region, &'a str), u32>,
    /// What was not asked for yet, has none.
    category_of_entry: Vec<u32>,
    /// The same of methods.
    who_of_method: Vec<u32>,
    /// Owners that are not methods.
    who_of_owner: FxHashMap<Owner, u32>,
    who_of_thread: FxHashMap<u32, u32>,
    cells: Vec<Cell>,
}

/// Where in a matrix a sample counts: by the indices of [`Matrix::who`] and
/// [`Matrix::categories`].
struct Index<'a> {
    facts: &'a Facts,
    axis: Axis,
    category_of_entry: Vec<u32>,
    who_of_method: Vec<u32>,
    who_of_owner: FxHashMap<Owner, u32>,
    who_of_thread: FxHashMap<u32, u32>,
}

impl<'a> Builder<'a> {
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
                Owner::Method(entry) => match methods.of_entry.get(entry as usize) {
                    Some(&method) => {
                        self.add_of_method(method, one.entry, one.samples);
                        continue;
                    }
                    None => Who::Nobody(why(Owner::NoCallers)),
                },
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
            let who = match who {
                Who::Method(method) => self.add_of_method(method, one.entry, one.samples),
                who => self.add(&who, one.entry, one.samples),
            };
            self.who_of_owner.insert(one.owner, who);
        }
    }

    /// Adds the samples of one thread.
    fn thread(&mut self, all: &[ThreadEntry]) {
        let Some(thread) = all.first().map(|one| one.thread) else {
            return;
        };
        let who = self.who.push(Who::Thread(thread));
        self.who_of_thread.insert(thread, who);
        let mut sums: Vec<u64> = Vec::new();
        for one in all {
            let category = self.category_of(one.entry) as usize;
            sums.resize(sums.len().max(category + 1), 0);
            if let Some(sum) = sums.get_mut(category) {
                *sum += one.samples;
            }
        }
        for (category, samples) in (0..).zip(sums).filter(|(_, samples)| *samples > 0) {
            self.add_cell(who, category, samples);
        }
    }

    /// Adds samples of a method, of which there are many.
    fn add_of_method(&mut self, method: MethodId, entry: EntryId, samples: u64) -> u32 {
        let known = self.who_of_method.get(method as usize).copied();
        let who = match known.filter(|who| *who != NONE) {
            Some(who) => who,
            None => self.who.push(Who::Method(method)),
        };
        if let Some(slot) = self.who_of_method.get_mut(method as usize) {
            *slot = who;
        }
        self.add_of(who, entry, samples);
        who
    }

    /// Adds samples; answers the index of whose they are.
    fn add(&mut self, who: &Who, entry: EntryId, samples: u64) -> u32 {
        let who = self.who.put(who);
        self.add_of(who, entry, samples);
        who
    }

    fn add_of(&mut self, who: u32, entry: EntryId, samples: u64) {
        let category = self.category_of(entry);
        self.add_cell(who, category, samples);
    }

    fn add_cell(&mut self, who: u32, category: u32, samples: u64) {
        self.who.add(who, samples);
        self.categories.add(category, samples);
        self.cells.push(Cell {
            row: who,
            column: category,
            samples,
        });
    }

    fn category_of(&mut self, entry: EntryId) -> u32 {
        let known = self.category_of_entry.get(entry as usize).copied();
        if let Some(known) = known.filter(|known| *known != NONE) {
            return known;
        }
        let (profile, in_parts) = (self.profile, self.in_parts);
        let known = profile.entries.get(entry as usize);
        let region = known.map_or(Region::Unknown, |entry| entry.region);
        let part = known.filter(|_| in_parts).map_or("", part_of);
        let categories = &mut self.categories;
        let category = self.category_of_part.entry((region, part));
        let category = *category.or_insert_with(|| {
            let part = in_parts.then(|| part.to_owned());
            categories.push(Category { region, part })
        });
        if let Some(slot) = self.category_of_entry.get_mut(entry as usize) {
            *slot = category;
        }
        category
    }

    fn build(self, shape: Shape) -> (Matrix, Index<'a>) {
        let facts = self.facts;
        let name = |who: &Who| match who {
            Who::Method(method) => {
                let method = *method as usize;
                let name = facts.methods.names.get(method);
                match name.zip(facts.place_of_method.get(method)) {
                    Some((name, &place)) => Name::Of(name, place),
                    None => Name::Text("".into()),
                }
            }
            Who::Compiled(name) => Name::Text(name.as_str().into()),
            Who::Nobody(why) => Name::Text((*why).into()),
            Who::Thread(thread) => {
                let thread = self.profile.trace.threads.get(*thread as usize);
                let label = thread.map(|thread| thread_label(&thread.thread));
                Name::Text(label.unwrap_or_default().into())
            }
        };
        let (who, new_who) = self.who.in_order(name, |_, samples| Reverse(samples));
        let (categories, new_category) = (self.categories).in_order(
            |what| Name::Text(what.name().into()),
            |what, n| (what.region as usize, Reverse(n)),
        );
        let new = |new_of_old: &[u32], old: u32| new_of_old.get(old as usize).copied();
        let cells = self.cells.into_iter().filter_map(|cell| {
            Some(Cell {
                row: new(&new_who, cell.row)?,
                column: new(&new_category, cell.column)?,
                ..cell
            })
        });
        let cells = Cells::of(&cells.collect::<Vec<_>>(), who.len());
        let mut who_of_category: Vec<Vec<(Reverse<u64>, u32)>> = vec![Vec::new(); categories.len()];
        for cell in cells.all() {
            if let Some(list) = who_of_category.get_mut(cell.column as usize) {
                list.push((Reverse(cell.samples), cell.row));
            }
        }
        let who_of_category = who_of_category.into_iter().map(|mut list| {
            list.sort_unstable();
            list.into_iter().map(|(_, who)| who).collect()
        });
        let renumbered = |mut list: Vec<u32>, new_of_old: &[u32]| {
            for slot in &mut list {
                *slot = new(new_of_old, *slot).unwrap_or(NONE);
            }
            list
        };
        let renamed = |all: FxHashMap<Owner, u32>| {
            let all = all.into_iter();
            all.filter_map(|(owner, who)| Some((owner, new(&new_who, who)?)))
                .collect()
        };
        let threads = self.who_of_thread.into_iter();
        let index = Index {
            facts: self.facts,
            axis: shape.axis,
            category_of_entry: renumbered(self.category_of_entry, &new_category),
            who_of_method: renumbered(self.who_of_method, &new_who),
            who_of_owner: renamed(self.who_of_owner),
            who_of_thread: threads
                .filter_map(|(thread, who)| Some((thread, new(&new_who, who)?)))
                .collect(),
        };
        let matrix = Matrix {
            facts: Arc::clone(facts),
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
            most: cells
                .all()
                .iter()
                .map(|cell| cell.samples)
                .max()
                .unwrap_or(0),
            cells,
            who_of_category: who_of_category.collect(),
            errors: None,
        };
        (matrix, index)
    }
}

impl Index<'_> {
    /// Whose a sample is.
    fn who(&self, thread: u32, owner: Owner) -> Option<u32> {
        match (self.axis, owner) {
            (Axis::Threads, _) => self.who_of_thread.get(&thread).copied(),
            (Axis::Methods, Owner::Method(entry)) => {
                match self.facts.methods.of_entry.get(entry as usize) {
                    Some(&method) => self.who_of_method.get(method as usize).copied(),
                    None => self.who_of_owner.get(&owner).copied(),
                }
            }
            (Axis::Methods, _) => self.who_of_owner.get(&owner).copied(),
        }
    }

    /// The errors of all shares, where there are samples enough; the outer `None` when `stop`
    /// was wished before it was done.
    fn errors(
        &self,
        profile: &Profile,
        matrix: &Matrix,
        filter: &Filter,
        stop: &Stop,
    ) -> Option<Option<Errors>> {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let (who, categories) = (matrix.who.len(), matrix.categories.len());
        let (of_categories, of_cells) = (number(who), number(who + categories));
        let groups_of = |thread: u32, entry: EntryId, owner: Owner| {
            let who = self.who(thread, owner)?;
            let category = *self.category_of_entry.get(entry as usize)?;
            let cell = number(matrix.cells.at(who, category)?);
            let category = of_categories.saturating_add(category);
            Some([who, category, of_cells.saturating_add(cell)])
        };
        // Most samples are their own entry's.
        let mut own: Vec<Option<[u32; 3]>> = vec![None; profile.entries.len()];
        let put = |thread: u32, entry: EntryId, owner: Owner, hand_on: &mut dyn FnMut(u32)| {
            let is_own = self.axis == Axis::Methods && owner == Owner::Method(entry);
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
        let groups = who + categories + matrix.cells.all().len();
        let mut all = owner_errors(profile, filter, (matrix.total, groups), stop, put)?;
        if all.is_empty() {
            return Some(None);
        }
        let cells = all.split_off((who + categories).min(all.len()));
        let categories = all.split_off(who.min(all.len()));
        Some(Some(Errors {
            who: all,
            categories,
            cells,
        }))
    }
}
