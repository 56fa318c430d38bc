//! Filters of all views, with their names for the breadcrumb.

use crate::present::names::region_name;
use rustc_hash::FxHashSet;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Filter, Profile, Region, ThreadId};

/// Filters of all views.
#[derive(Clone, Debug, Default)]
pub struct FilterState {
    /// User's choice.
    chosen: Filter,
    /// End of a paused picture.
    held: Option<TimeNs>,
    /// Effective filter: choice and pause.
    filter: Filter,
    /// Kinds of filters, oldest first.
    kinds: Vec<Kind>,
    version: u64,
}

/// Kind of filter, removable by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Time window.
    Window,
    /// Threads.
    Threads,
    /// Regions.
    Regions,
    /// Modules or classes.
    Modules,
    /// Tiers.
    Tiers,
    /// Parts of entry names.
    Names,
    /// Entries.
    Entries,
}

/// Change of the filters. An empty list selects everything.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterChange {
    /// Window from the first instant up to, without, the second; `None` for all.
    Window(Option<(TimeNs, TimeNs)>),
    /// Included threads, by trace index; `None` for all.
    Threads(Option<FxHashSet<ThreadId>>),
    /// Excluded threads; later threads are included.
    WithoutThreads(FxHashSet<ThreadId>),
    /// Included regions.
    Regions(Vec<Region>),
    /// Included modules or classes.
    Modules(Vec<String>),
    /// Included tiers.
    Tiers(Vec<String>),
    /// Included parts of entry names.
    Names(Vec<String>),
    /// Included entries.
    Entries(Vec<EntryId>),
    /// Removes the newest filter.
    DropNewest,
    /// Removes one kind of filter.
    Drop(Kind),
    /// Removes all filters.
    DropAll,
}

impl FilterState {
    /// Effective filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Version, different after every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether no filter is set.
    pub fn is_open(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Kinds of filters, oldest first.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Chosen window.
    pub fn window(&self) -> Option<(TimeNs, TimeNs)> {
        Some((self.chosen.from?, self.chosen.to?))
    }

    /// Filter without window, up to a pause.
    pub fn any_time(&self) -> Filter {
        Filter {
            from: None,
            to: self.held,
            ..self.filter.clone()
        }
    }

    /// Applies a change; returns `false` for a change without effect.
    pub fn narrow(&mut self, narrow: FilterChange) -> bool {
        let mut filter = self.chosen.clone();
        let kind = match narrow {
            FilterChange::Window(window) => {
                (filter.from, filter.to) = window.filter(|(from, to)| from < to).unzip();
                Kind::Window
            }
            FilterChange::Threads(threads) => {
                filter.threads = threads;
                filter.without.clear();
                Kind::Threads
            }
            FilterChange::WithoutThreads(threads) => {
                filter.threads = None;
                filter.without = threads;
                Kind::Threads
            }
            FilterChange::Regions(regions) => {
                filter.only.regions = regions;
                Kind::Regions
            }
            FilterChange::Modules(modules) => {
                filter.only.modules = modules;
                Kind::Modules
            }
            FilterChange::Tiers(tiers) => {
                filter.only.tiers = tiers;
                Kind::Tiers
            }
            FilterChange::Names(names) => {
                filter.only.names = names;
                Kind::Names
            }
            FilterChange::Entries(entries) => {
                filter.only.entries = entries;
                Kind::Entries
            }
            FilterChange::DropNewest => {
                let newest = self.kinds.last().copied();
                return newest.is_some_and(|newest| self.narrow(FilterChange::Drop(newest)));
            }
            FilterChange::Drop(kind) => return self.narrow(kind.none()),
            FilterChange::DropAll => {
                let was_open = self.is_open();
                self.kinds.clear();
                self.set(Filter::default());
                return !was_open;
            }
        };
        if filter == self.chosen {
            return false;
        }
        self.kinds.retain(|other| *other != kind);
        if kind.is_set(&filter) {
            self.kinds.push(kind);
        }
        self.set(filter);
        true
    }

    /// Hides everything after an instant, or ends that. The user's choice stays.
    pub fn hold(&mut self, until: Option<TimeNs>) {
        self.held = until;
        self.set(self.chosen.clone());
    }

    fn set(&mut self, chosen: Filter) {
        let ends = [chosen.to, self.held];
        self.filter = Filter {
            to: ends.into_iter().flatten().min(),
            ..chosen.clone()
        };
        self.chosen = chosen;
        self.version += 1;
    }

    /// Removes threads that `is_gone` reports, by trace index; returns whether any were removed.
    pub fn drop_threads(&mut self, is_gone: impl Fn(ThreadId) -> bool) -> bool {
        let chosen = self.chosen.threads.iter().flatten();
        let mut all = chosen.chain(&self.chosen.without);
        if !all.any(|thread| is_gone(*thread)) {
            return false;
        }
        let stay = |threads: &FxHashSet<ThreadId>| {
            let there = threads.iter().copied();
            there.filter(|thread| !is_gone(*thread)).collect()
        };
        let narrow = match &self.chosen.threads {
            Some(threads) => {
                let threads: FxHashSet<ThreadId> = stay(threads);
                FilterChange::Threads((!threads.is_empty()).then_some(threads))
            }
            None => FilterChange::WithoutThreads(stay(&self.chosen.without)),
        };
        self.narrow(narrow)
    }

    /// Restores earlier filters.
    pub fn restore(&mut self, older: FilterState) {
        self.kinds = older.kinds;
        self.set(older.chosen);
    }

    /// Breadcrumb label of a filter; times count from `begin`.
    pub fn label(&self, kind: Kind, profile: &Profile, begin: TimeNs) -> String {
        let only = &self.chosen.only;
        let thread_name = |id: ThreadId| profile.trace.threads[id].thread.name.as_str();
        let entry_name = |entry: EntryId| profile.entries[entry].name.as_str();
        match kind {
            Kind::Window => {
                let (from, to) = self.window().unwrap_or((begin, begin));
                let at = |time: TimeNs| time.since(begin).as_secs_f64();
                format!("{:.3}-{:.3} s", at(from), at(to))
            }
            Kind::Threads => {
                let (what, threads) = match &self.chosen.threads {
                    Some(threads) => ("thread", threads),
                    None => ("without", &self.chosen.without),
                };
                listed(what, threads.iter().map(|&thread| thread_name(thread)))
            }
            Kind::Regions => {
                let name = |&region| region_name(region, profile.is_native());
                listed("", only.regions.iter().map(name))
            }
            Kind::Modules => listed("in", only.modules.iter().map(String::as_str)),
            Kind::Tiers => listed("tier", only.tiers.iter().map(String::as_str)),
            Kind::Names => listed("named", only.names.iter().map(String::as_str)),
            Kind::Entries => listed("only", only.entries.iter().map(|&entry| entry_name(entry))),
        }
    }
}

/// `what first`, plus the number of further names.
fn listed<'a>(what: &str, mut names: impl Iterator<Item = &'a str>) -> String {
    let first = names.next().unwrap_or("nothing");
    let more = names.count();
    let space = if what.is_empty() { "" } else { " " };
    if more == 0 {
        format!("{what}{space}{first}")
    } else {
        format!("{what}{space}{first} +{more}")
    }
}

impl Kind {
    /// Change that removes this kind.
    fn none(self) -> FilterChange {
        match self {
            Kind::Window => FilterChange::Window(None),
            Kind::Threads => FilterChange::Threads(None),
            Kind::Regions => FilterChange::Regions(Vec::new()),
            Kind::Modules => FilterChange::Modules(Vec::new()),
            Kind::Tiers => FilterChange::Tiers(Vec::new()),
            Kind::Names => FilterChange::Names(Vec::new()),
            Kind::Entries => FilterChange::Entries(Vec::new()),
        }
    }

    fn is_set(self, filter: &Filter) -> bool {
        match self {
            Kind::Window => filter.from.is_some() || filter.to.is_some(),
            Kind::Threads => !filter.takes_all_threads(),
            Kind::Regions => !filter.only.regions.is_empty(),
            Kind::Modules => !filter.only.modules.is_empty(),
            Kind::Tiers => !filter.only.tiers.is_empty(),
            Kind::Names => !filter.only.names.is_empty(),
            Kind::Entries => !filter.only.entries.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_symbolizer::Id;

    #[test]
    fn filters_come_and_go_one_by_one() {
        let mut filters = FilterState::default();
        assert!(!filters.narrow(FilterChange::DropNewest));
        assert!(filters.narrow(FilterChange::Window(Some((TimeNs(1), TimeNs(5))))));
        assert!(filters.narrow(FilterChange::Threads(Some(
            [ThreadId::of(3)].into_iter().collect()
        ))));
        assert!(!filters.narrow(FilterChange::Window(Some((TimeNs(1), TimeNs(5))))));
        assert_eq!(filters.kinds(), [Kind::Window, Kind::Threads]);
        let version = filters.version();
        assert!(filters.narrow(FilterChange::DropNewest));
        assert!(filters.version() > version);
        assert_eq!(filters.kinds(), [Kind::Window]);
        assert_eq!(filters.window(), Some((TimeNs(1), TimeNs(5))));
        assert!(filters.narrow(FilterChange::Regions(vec![Region::Gc])));
        assert!(filters.narrow(FilterChange::Drop(Kind::Regions)));
        assert!(filters.narrow(FilterChange::DropAll));
        assert!(filters.is_open() && filters.filter().from.is_none());
    }

    #[test]
    fn threads_that_are_no_more_what_they_were_are_dropped() {
        let set = |threads: &[usize]| -> FxHashSet<ThreadId> {
            threads.iter().map(|&thread| ThreadId::of(thread)).collect()
        };
        let mut filters = FilterState::default();
        assert!(!filters.drop_threads(|_| true));
        filters.narrow(FilterChange::Threads(Some(set(&[3, 5]))));
        assert!(!filters.drop_threads(|thread| thread.index() == 4));
        assert!(filters.drop_threads(|thread| thread.index() == 3));
        assert_eq!(filters.filter().threads, Some(set(&[5])));
        assert!(filters.drop_threads(|thread| thread.index() == 5));
        assert!(filters.is_open() && filters.filter().threads.is_none());
        filters.narrow(FilterChange::WithoutThreads(set(&[7, 8])));
        assert!(filters.drop_threads(|thread| thread.index() == 8));
        assert_eq!(filters.filter().without, set(&[7]));
    }

    #[test]
    fn an_empty_window_is_none() {
        let mut filters = FilterState::default();
        assert!(!filters.narrow(FilterChange::Window(Some((TimeNs(5), TimeNs(5))))));
        assert!(filters.is_open());
    }
}
