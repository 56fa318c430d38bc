//! What the hot list holds, and how keys change it.

use super::facts::Facts;
use super::form::Form;
use super::grid::Grid;
use super::listing::{Key, Listing, Order};
use super::nested::Nested;
use super::rows::{Node, Row, rows};
use crate::present::numbers::ratio;
use crate::queries::entry_index::IndexCache;
use crate::queries::matrix::{Category, Matrix, Shape};
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::Fetched;
use crate::tui::keys::Command;
use crate::tui::views::{Act, Cx, Find};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::{Finder, Search, next_match};
use ratatui::layout::Rect;
use rustc_hash::FxHashSet;
use std::cell::RefCell;
use std::sync::Arc;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::matrix::Row as Counted;

use super::order::Grouping;

/// What has at least this share of all that is shown is hot.
pub const HOT: f64 = 0.01;

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Hot {
    pub(super) form: Form,
    pub(super) order: Order,
    pub(super) facts: Fetched<(), Arc<Facts>>,
    pub(super) listing: Fetched<Order, Listing>,
    /// 95 % half-widths of entries' shares.
    pub(super) errors: Fetched<(), Arc<Vec<f64>>>,
    pub(super) expanded: FxHashSet<Node>,
    pub(super) rows: Vec<Row>,
    pub(super) list: ListState,
    pub(super) search: Search<Option<Node>>,
    pub(super) index: IndexCache,
    pub(super) matrix: Fetched<Shape, Matrix>,
    /// Whether the matrix has the parts of regions.
    pub(super) in_parts: bool,
    pub(super) grid: Grid,
    pub(super) grid_search: Search,
    /// The matrix nested.
    pub(super) nested: Nested,
    /// What was selected in the matrix that an answer replaces.
    pub(super) kept_cell: Option<(Option<Counted>, Option<Category>)>,
}

/// Rows of the list on the screen: all but the heading and what is said of the selected one.
pub fn height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(2))
}

/// The row of a node; where the groups are others now, that of its entry, or of the group
/// that hides it.
fn place_of(rows: &[Row], listing: &Listing, node: &Node) -> Option<usize> {
    let same = rows.iter().position(|row| row.is_of(listing, node));
    let entry = node.entry();
    let is_entry = |leaf: usize| listing.leaves.get(leaf).map(|leaf| leaf.entry) == entry;
    let of_entry = || {
        let mut rows = rows.iter();
        rows.position(|row| row.range.is_none() && row.leaf.is_some_and(is_entry))
    };
    let hidden = || {
        rows.iter().position(|row| {
            let group = listing.groups.get(row.group);
            row.depth == 0 && group.is_some_and(|group| group.leaves.clone().any(is_entry))
        })
    };
    same.or_else(|| entry.and_then(|_| of_entry().or_else(hidden)))
}

impl Hot {
    /// The selected row.
    pub(super) fn selected(&self) -> Option<&Row> {
        let last = self.rows.len().checked_sub(1)?;
        self.rows.get(self.list.selected().min(last))
    }

    /// What it is of.
    pub(super) fn selected_node(&self) -> Option<Node> {
        self.selected()?.node(self.listing.get()?)
    }

    /// Makes the rows anew, and selects what was selected.
    pub(super) fn flatten(&mut self, node: Option<Node>, cx: &Cx<'_>) {
        let Some(listing) = self.listing.get() else {
            return;
        };
        self.rows = rows(cx.profile, listing, &self.expanded);
        let (count, height) = (self.rows.len(), height(cx.area));
        // Who looks at the top goes on to look at it.
        if self.list.selected() == 0 {
            return;
        }
        let row = node.and_then(|node| place_of(&self.rows, listing, &node));
        let row = row.unwrap_or(self.list.selected());
        self.list.select(row, count, height);
    }

    fn select_node(&mut self, node: &Node, cx: &Cx<'_>) {
        let Some(listing) = self.listing.get() else {
            return;
        };
        let is_it = |row: &Row| row.is_of(listing, node);
        if let Some(row) = self.rows.iter().position(is_it) {
            self.list.select(row, self.rows.len(), height(cx.area));
        }
    }

    pub(super) fn act_in_list(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let (count, height) = (self.rows.len(), height(cx.area));
        if self.list.act(command, count, height) {
            self.search.forget_origin();
            return Vec::new();
        }
        let open = self.selected().and_then(|row| row.open);
        match command {
            Command::Toggle => self.toggle(cx),
            Command::Right if open == Some(false) => self.toggle(cx),
            Command::Right if open == Some(true) => {
                self.list.act(Command::Down, count, height);
            }
            Command::Left if open == Some(true) => self.toggle(cx),
            Command::Left => self.select_parent(cx),
            Command::Sort => self.order.by = self.order.by.next(),
            Command::Reverse => self.order.reversed = !self.order.reversed,
            Command::Group => self.order.grouping = self.order.grouping.next(false),
            Command::GroupBack => self.order.grouping = self.order.grouping.next(true),
            Command::NextHot => self.select_hot(Find::Next, cx),
            Command::PreviousHot => self.select_hot(Find::Previous, cx),
            Command::Open => return self.open(cx),
            Command::Only => return self.only(cx),
            _ => {}
        }
        Vec::new()
    }

    fn toggle(&mut self, cx: &Cx<'_>) {
        if self.selected().and_then(|row| row.open).is_none() {
            return;
        }
        if let Some(node) = self.selected_node() {
            if !self.expanded.remove(&node) {
                self.expanded.insert(node.clone());
            }
            self.flatten(Some(node), cx);
        }
    }

    fn select_parent(&mut self, cx: &Cx<'_>) {
        let at = self.list.selected().min(self.rows.len().saturating_sub(1));
        let Some(depth) = self.rows.get(at).map(|row| row.depth) else {
            return;
        };
        let before = self.rows.get(..at).unwrap_or_default();
        if let Some(parent) = before.iter().rposition(|row| row.depth < depth) {
            self.list.select(parent, self.rows.len(), height(cx.area));
        }
    }

    /// Whether a row is hot, by its share of all that is shown.
    fn is_hot(&self, row: usize) -> bool {
        let (Some(listing), Some(row)) = (self.listing.get(), self.rows.get(row)) else {
            return false;
        };
        let of_leaf = |leaf: usize| listing.leaves.get(leaf).map(|leaf| leaf.samples);
        let of_group = || listing.groups.get(row.group).map(|group| group.samples);
        let samples = match row.range {
            Some(range) => Some(range.samples),
            None => row.leaf.map_or_else(of_group, of_leaf),
        };
        ratio(samples.unwrap_or(0), listing.total) >= HOT
    }

    fn select_hot(&mut self, find: Find, cx: &Cx<'_>) {
        let count = self.rows.len();
        let now = self.list.selected().min(count.saturating_sub(1));
        let found = next_match(count, now, now, find, |row| self.is_hot(row));
        if let Some(found) = found {
            self.list.select(found, count, height(cx.area));
        }
    }

    /// Expands what is hot: groups, then the entries in them.
    pub(super) fn expand_hot(&mut self, cx: &Cx<'_>) {
        let node = self.selected_node();
        for _ in 0..2 {
            let Some(listing) = self.listing.get() else {
                return;
            };
            let hot = self.rows.iter().enumerate();
            let hot = hot.filter(|(at, row)| row.open == Some(false) && self.is_hot(*at));
            let nodes: Vec<Node> = hot.filter_map(|(_, row)| row.node(listing)).collect();
            self.expanded.extend(nodes);
            self.flatten(node.clone(), cx);
        }
    }

    /// The entry that a row is of; of a method's group, the hottest.
    fn entry_of(&self, row: &Row) -> Option<EntryId> {
        let listing = self.listing.get()?;
        if let Some(leaf) = row.leaf {
            return listing.leaves.get(leaf).map(|leaf| leaf.entry);
        }
        let group = listing.groups.get(row.group)?;
        let of_method = matches!(group.key, Key::Method(_)).then(|| listing.leaves_of(group));
        let hottest = of_method?.max_by_key(|leaf| leaf.samples)?;
        Some(hottest.entry)
    }

    fn open(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        match self.selected().map(|row| self.entry_of(row)) {
            Some(Some(entry)) => vec![Act::Annotate(entry)],
            Some(None) => {
                self.toggle(cx);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Filters all views to what is selected.
    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(listing), Some(row)) = (self.listing.get(), self.selected()) else {
            return Vec::new();
        };
        let Some(group) = listing.groups.get(row.group) else {
            return Vec::new();
        };
        let of_thread = match group.key {
            Key::Thread(thread) => {
                Some(FilterChange::Threads(Some([thread].into_iter().collect())))
            }
            _ => None,
        };
        if let Some(leaf) = row.leaf.and_then(|leaf| listing.leaves.get(leaf)) {
            let entry = FilterChange::Entries(vec![leaf.entry]);
            let both = of_thread.into_iter().chain([entry]);
            return both.map(Act::FilterChange).collect();
        }
        let all = || {
            let leaves = listing.leaves_of(group);
            FilterChange::Entries(leaves.map(|leaf| leaf.entry).collect())
        };
        let narrow = match (&group.key, listing.order.grouping) {
            (Key::Region(region), _) => FilterChange::Regions(vec![*region]),
            (Key::Text(text), Grouping::Class) if !text.is_empty() => {
                FilterChange::Modules(vec![text.to_string()])
            }
            (Key::Text(text), Grouping::Tier) if !text.is_empty() => {
                FilterChange::Tiers(vec![text.to_string()])
            }
            (Key::Method(_), _) => self.whole_method(cx, row).unwrap_or_else(all),
            _ => of_thread.unwrap_or_else(all),
        };
        vec![Act::FilterChange(narrow)]
    }

    /// All entries of a row's method, those without samples at present as well.
    fn whole_method(&self, _cx: &Cx<'_>, row: &Row) -> Option<FilterChange> {
        let of_entry = &self.facts.get()?.methods.of_entry;
        let method = of_entry.get(self.entry_of(row)? as usize)?;
        let all = (0..).zip(of_entry).filter(|(_, of)| *of == method);
        Some(FilterChange::Entries(all.map(|(entry, _)| entry).collect()))
    }

    /// Searches in rows, and in what collapsed groups hide: those are expanded.
    pub(super) fn find_in_list(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let Some(listing) = self.listing.get() else {
            return false;
        };
        let count = self.rows.len();
        let now = self.list.selected().min(count.saturating_sub(1));
        let here = self.rows.get(now).and_then(|row| row.node(listing));
        let Some((origin, finder)) = self.search.begin(pattern, here) else {
            return true;
        };
        let origin = origin.and_then(|node| {
            let is_origin = |row: &Row| row.is_of(listing, &node);
            self.rows.iter().position(is_origin)
        });
        let origin = origin.unwrap_or(now);
        let entry_fits = |text: &mut Finder, entry: EntryId| {
            let entry = cx.profile.entries.get(entry as usize);
            entry.is_some_and(|entry| text.is_in(&entry.name))
        };
        let finder = RefCell::new(finder);
        let hidden = |row: &Row| {
            let group = listing.groups.get(row.group)?;
            let mut text = finder.borrow_mut();
            let mut leaves = listing.leaves_of(group).map(|leaf| leaf.entry);
            leaves.find(|&entry| entry_fits(&mut text, entry))
        };
        let is_named = |row: &Row| {
            let mut text = finder.borrow_mut();
            match (
                row.leaf.and_then(|leaf| listing.leaves.get(leaf)),
                row.range,
            ) {
                (Some(_), Some(range)) => {
                    let site = cx.profile.sites.get(range.site as usize);
                    let name = site.and_then(crate::present::entries::range_name);
                    name.is_some_and(|name| text.is_in(&name))
                }
                (Some(leaf), None) => entry_fits(&mut text, leaf.entry),
                (None, _) => {
                    let group = listing.groups.get(row.group);
                    group.is_some_and(|group| text.is_in(&group.name))
                }
            }
        };
        let found = next_match(count, origin, now, find, |at| {
            let row = self.rows.get(at);
            let is_closed = |row: &Row| row.leaf.is_none() && row.open == Some(false);
            row.is_some_and(|row| is_named(row) || (is_closed(row) && hidden(row).is_some()))
        });
        let found = found.and_then(|at| Some((at, *self.rows.get(at)?)));
        let inside = found.as_ref().and_then(|(_, row)| {
            let is_hidden = row.leaf.is_none() && !is_named(row);
            let entry = is_hidden.then(|| hidden(row)).flatten()?;
            let group = listing.groups.get(row.group)?;
            Some((
                Node::Group(group.key.clone()),
                Node::Entry(group.key.clone(), entry),
            ))
        });
        let Some((at, _)) = found else {
            return false;
        };
        self.list.select(at, count, height(cx.area));
        if let Some((group, entry)) = inside {
            self.expanded.insert(group.clone());
            self.flatten(Some(group), cx);
            self.select_node(&entry, cx);
        }
        true
    }
}
