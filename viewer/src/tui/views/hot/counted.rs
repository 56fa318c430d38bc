//! Counting what a matrix has in its cells.

use super::facts::Facts;
use super::index::Index;
use super::matrix::{Axis, Category, Matrix, Shape, Who};
use super::side::{Name, Side};
use super::sparse::{Cell, Cells};
use crate::present::names::thread_label;
use crate::queries::parts::part_of;
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::cmp::Reverse;
use std::sync::Arc;
use vmscope_symbolizer::attribution::{Owner, owners};
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::time_buckets::{ThreadEntry, by_thread};
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

impl<'a> Builder<'a> {
    fn methods(&mut self, all: &[vmscope_symbolizer::attribution::Owned]) {
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
