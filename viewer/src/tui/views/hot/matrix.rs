//! Category × method, category × thread: who runs how, and what the collector, the
//! compilers and the kernel cost whom. Worked out off the drawing thread.

use super::facts::Facts;
use super::sparse::Cells;
use crate::present::names::region_name;
use crate::queries::parts::part_of;
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
    /// What it is called; `None` of a method, whose name is among the [`Facts`].
    pub name: Option<Arc<str>>,
    /// All its samples.
    pub samples: u64,
    /// Its place by name.
    pub by_name: u32,
}

/// The table, of which only what is not zero is kept.
#[derive(Debug, Default)]
pub struct Matrix {
    /// What is known of the methods.
    pub facts: Arc<Facts>,
    /// Which one it is.
    pub shape: Shape,
    /// All samples.
    pub total: u64,
    /// Most samples first.
    pub who: Vec<Item<Who>>,
    /// By region, most samples first.
    pub categories: Vec<Item<Category>>,
    /// By index in `who` and in `categories`.
    pub cells: Cells,
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
    pub cells: Vec<f64>,
}

impl Matrix {
    /// Counts; `None` when `stop` was wished before it was done.
    pub fn of(
        profile: &Profile,
        facts: &Arc<Facts>,
        filter: &Filter,
        shape: Shape,
        stop: &Stop,
    ) -> Option<Self> {
        super::counted::count(profile, facts, filter, shape, stop)
    }

    /// What somebody is called.
    pub fn name_of_who(&self, who: u32) -> &str {
        let item = self.who.get(who as usize);
        let name = item.and_then(|item| match (&item.name, &item.what) {
            (Some(name), _) => Some(name),
            (None, Who::Method(method)) => self.facts.methods.names.get(*method as usize),
            (None, _) => None,
        });
        name.map_or("", |name| name)
    }

    /// The samples of a cell.
    pub fn cell(&self, who: u32, category: u32) -> u64 {
        self.cells.get(who, category)
    }

    /// The error of a cell's share, where it is known.
    pub fn error(&self, who: u32, category: u32) -> Option<f64> {
        let errors = self.errors.as_ref()?;
        errors.cells.get(self.cells.at(who, category)?).copied()
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
