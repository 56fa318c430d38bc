//! Category × method, category × thread: who runs how, and what the collector, the
//! compilers and the kernel cost whom. Worked out off the drawing thread.

use super::listing::Facts;
use crate::report::parts::part_of;
use crate::report::text::thread_label;
use crate::tui::theme::region_name;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::owners::{Owner, owners};
use vmscope_symbolizer::slices::by_thread;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Stop};

/// Which matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What stands against the categories.
    pub axis: Axis,
    /// Whether the categories are the parts of regions, or whole regions.
    pub in_parts: bool,
}

/// What stands against the categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// The methods that samples are for.
    #[default]
    Methods,
    /// The threads that they are of.
    Threads,
}

/// Of whom samples are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Who {
    /// A method.
    Method(MethodId),
    /// A method that was compiled, and has no samples itself.
    Compiled(String),
    /// A thread, by its index in the trace.
    Thread(u32),
    /// Nobody's; why.
    Nobody(&'static str),
}

/// A category: a region, or a part of it in the VM's words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Category {
    /// The region.
    pub region: Region,
    /// The part, which may be empty; `None` for the whole region.
    pub part: Option<String>,
}

impl Category {
    fn of(profile: &Profile, entry: EntryId, in_parts: bool) -> Self {
        let entry = profile.entries.get(entry as usize);
        let part = entry.map_or("", part_of);
        Category {
            region: entry.map_or(Region::Unknown, |entry| entry.region),
            part: in_parts.then(|| part.to_owned()),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        let region = region_name(self.region);
        match self.part.as_deref() {
            None | Some("") => region.to_owned(),
            Some(part) if part == region => region.to_owned(),
            Some(part) => format!("{region}: {part}"),
        }
    }
}

/// One side's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<T> {
    /// What it is.
    pub what: T,
    /// What it is called.
    pub name: String,
    /// All its samples.
    pub samples: u64,
    /// Its place by name.
    pub by_name: u32,
}

/// The table, of which only what is not zero is kept.
#[derive(Debug, Default)]
pub struct Matrix {
    /// Which one it is.
    pub shape: Shape,
    /// All samples.
    pub total: u64,
    /// Most samples first.
    pub who: Vec<Item<Who>>,
    /// By region, most samples first.
    pub categories: Vec<Item<Category>>,
    /// By index in `who` and in `categories`.
    pub cells: FxHashMap<(u32, u32), u64>,
    /// The samples of the greatest cell.
    pub most: u64,
    /// The samples of the greatest sum in `who`.
    pub most_of_who: u64,
    /// The same in `categories`.
    pub most_of_category: u64,
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

impl Matrix {
    /// Counts; `None` when `stop` was wished before it was done.
    pub fn of(
        profile: &Profile,
        facts: &Facts,
        filter: &Filter,
        shape: Shape,
        stop: &Stop,
    ) -> Option<Self> {
        let mut builder = Builder {
            profile,
            facts,
            in_parts: shape.in_parts,
            who: Side::default(),
            categories: Side::default(),
            category_of_entry: FxHashMap::default(),
            cells: FxHashMap::default(),
        };
        match shape.axis {
            Axis::Methods => builder.methods(&owners(profile, filter, stop)?),
            Axis::Threads => {
                for one in by_thread(profile, filter, stop)? {
                    if let Some(site) = profile.sites.get(one.site as usize) {
                        builder.add(Who::Thread(one.thread), site.entry, one.samples);
                    }
                }
            }
        }
        (!stop.is_stopped()).then(|| builder.build(shape))
    }

    /// The samples of a cell.
    pub fn cell(&self, who: u32, category: u32) -> u64 {
        self.cells.get(&(who, category)).copied().unwrap_or(0)
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

    /// The items in order, and of each old index the new one.
    fn in_order<K: Ord>(
        self,
        name: impl Fn(&T) -> String,
        key: impl Fn(&T, u64) -> K,
    ) -> (Vec<Item<T>>, Vec<u32>) {
        let mut items: Vec<(usize, Item<T>)> = (self.items.into_iter().enumerate())
            .map(|(old, (what, samples))| {
                let item = Item {
                    name: name(&what),
                    what,
                    samples,
                    by_name: 0,
                };
                (old, item)
            })
            .collect();
        items.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        for ((_, item), place) in items.iter_mut().zip(0..) {
            item.by_name = place;
        }
        items.sort_by_key(|(_, item)| (key(&item.what, item.samples), item.by_name));
        let mut new_of_old = vec![0; items.len()];
        for ((old, _), new) in items.iter().zip(0..) {
            if let Some(slot) = new_of_old.get_mut(*old) {
                *slot = new;
            }
        }
        let items = items.into_iter().map(|(_, item)| item).collect();
        (items, new_of_old)
    }
}

struct Builder<'a> {
    profile: &'a Profile,
    facts: &'a Facts,
    in_parts: bool,
    who: Side<Who>,
    categories: Side<Category>,
    category_of_entry: FxHashMap<EntryId, u32>,
    cells: FxHashMap<(u32, u32), u64>,
}

impl Builder<'_> {
    fn methods(&mut self, all: &[vmscope_symbolizer::owners::Owned]) {
        let methods = &self.facts.methods;
        let mut by_name: FxHashMap<&str, MethodId> = FxHashMap::default();
        for (name, id) in methods.names.iter().zip(0..) {
            by_name.entry(name).or_insert(id);
        }
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
            self.add(who, one.entry, one.samples);
        }
    }

    fn add(&mut self, who: Who, entry: EntryId, samples: u64) {
        let (profile, in_parts) = (self.profile, self.in_parts);
        let categories = &mut self.categories;
        let category = *(self.category_of_entry.entry(entry))
            .or_insert_with(|| categories.put(&Category::of(profile, entry, in_parts)));
        let who = self.who.put(&who);
        self.who.add(who, samples);
        self.categories.add(category, samples);
        *self.cells.entry((who, category)).or_default() += samples;
    }

    fn build(self, shape: Shape) -> Matrix {
        let name = |who: &Who| match who {
            Who::Method(method) => {
                let name = self.facts.methods.names.get(*method as usize);
                name.cloned().unwrap_or_default()
            }
            Who::Compiled(name) => name.clone(),
            Who::Nobody(why) => (*why).to_owned(),
            Who::Thread(thread) => {
                let thread = self.profile.trace.threads.get(*thread as usize);
                thread.map_or_else(String::new, |thread| thread_label(&thread.thread))
            }
        };
        let (who, new_who) = self.who.in_order(name, |_, samples| Reverse(samples));
        let (categories, new_category) = (self.categories)
            .in_order(Category::name, |what, n| (what.region as usize, Reverse(n)));
        let cells: FxHashMap<(u32, u32), u64> = (self.cells.into_iter())
            .filter_map(|((who, category), samples)| {
                let who = new_who.get(who as usize)?;
                Some(((*who, *new_category.get(category as usize)?), samples))
            })
            .collect();
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
        }
    }
}

/// The entries that have samples in a category and are that method's own.
pub fn entries_of(
    profile: &Profile,
    facts: &Facts,
    category: Option<&Category>,
    method: Option<MethodId>,
) -> Vec<EntryId> {
    let entries = (0u32..).zip(&profile.entries).zip(&facts.methods.of_entry);
    let fits = entries.filter(|((_, entry), of)| {
        let is_of = |wanted: &Category| {
            let of_part = |part: &String| part_of(entry) == part.as_str();
            entry.region == wanted.region && wanted.part.as_ref().is_none_or(of_part)
        };
        method.is_none_or(|method| method == **of) && category.is_none_or(is_of)
    });
    fits.map(|((id, _), _)| id).collect()
}
