//! Category × method, category × thread: who runs how, and what the collector, the
//! compilers and the kernel cost whom. Worked out off the drawing thread.

use super::facts::Facts;
use crate::report::parts::part_of;
use crate::tui::theme::region_name;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_symbolizer::methods::MethodId;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, Stop};

/// Which matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What stands against the categories.
    pub axis: Axis,
    /// Whether the categories are the parts of regions, or whole regions.
    pub in_parts: bool,
    /// Whether it has the errors of shares, which take longer.
    pub has_errors: bool,
}

impl Shape {
    /// The same matrix without errors.
    pub fn without_errors(self) -> Self {
        Shape {
            has_errors: false,
            ..self
        }
    }
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
    /// That of an entry.
    pub fn of(profile: &Profile, entry: EntryId, in_parts: bool) -> Self {
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
    pub name: Arc<str>,
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
    /// Of each category, the indices in `who` that have samples in it, most samples first.
    pub who_of_category: Vec<Vec<u32>>,
    /// The errors of shares, where they were asked for and there are samples enough.
    pub errors: Option<Errors>,
}

/// 95 % half-widths of shares in all samples.
#[derive(Debug, Default)]
pub struct Errors {
    /// Of each of [`Matrix::who`].
    pub who: Vec<f64>,
    /// Of each of [`Matrix::categories`].
    pub categories: Vec<f64>,
    /// Of each of [`Matrix::cells`].
    pub cells: FxHashMap<(u32, u32), f64>,
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
        super::counted::count(profile, facts, filter, shape, stop)
    }

    /// The samples of a cell.
    pub fn cell(&self, who: u32, category: u32) -> u64 {
        self.cells.get(&(who, category)).copied().unwrap_or(0)
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
