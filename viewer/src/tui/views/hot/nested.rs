//! The matrix, one side in the other: categories that expand into methods or threads, or
//! these into categories.

use super::matrix::Who;
use super::state::{finder, height};
use super::way::{Thing, Way};
use super::{Act, Cx, Find, Hot};
use crate::report::words::ratio;
use crate::tui::keys::Command;
use crate::tui::views::next_match;
use crate::tui::widgets::list::ListState;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use vmscope_symbolizer::EntryId;

/// What it is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NestedBy {
    /// Samples, most first.
    #[default]
    Share,
    /// The name.
    Name,
    /// The error of the share, greatest first.
    Error,
}

impl NestedBy {
    /// All, in the order of the key's presses.
    pub const ALL: [NestedBy; 3] = [NestedBy::Share, NestedBy::Name, NestedBy::Error];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            NestedBy::Share => "share",
            NestedBy::Name => "name",
            NestedBy::Error => "error",
        }
    }

    /// The next one.
    fn next(self) -> Self {
        match self {
            NestedBy::Share => NestedBy::Name,
            NestedBy::Name => NestedBy::Error,
            NestedBy::Error => NestedBy::Share,
        }
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nest {
    /// The row of the [`Way`].
    pub item: u32,
    /// The column of it that this row is; `None` for the row as a whole.
    pub inner: Option<u32>,
    /// Whether its columns follow.
    pub open: bool,
}

/// What a row is of: the same in every matrix of a profile.
pub type Node = (Thing, Option<Thing>);

/// The rows, and where in them one is.
#[derive(Debug, Default)]
pub struct Nested {
    /// All rows, with what is expanded.
    pub rows: Vec<Nest>,
    /// Where one is.
    pub list: ListState,
    /// What it is sorted by, and whether the other way round.
    pub by: NestedBy,
    /// See `by`.
    pub reversed: bool,
    /// What is expanded.
    expanded: FxHashSet<Thing>,
    /// Where a search began.
    pub origin: Option<Node>,
}

impl Nested {
    /// The selected row.
    pub fn selected(&self) -> Option<Nest> {
        let last = self.rows.len().checked_sub(1)?;
        self.rows.get(self.list.selected().min(last)).copied()
    }

    /// What a row is of.
    pub fn node(way: Way<'_>, row: Nest) -> Option<Node> {
        let inner = match row.inner {
            Some(inner) => Some(way.turned().thing(inner)?),
            None => None,
        };
        Some((way.thing(row.item)?, inner))
    }

    /// Where a node's row is; where it is not expanded, what it is in.
    fn place_of(&self, way: Way<'_>, node: &Node) -> Option<usize> {
        let item = way.find(&node.0)?;
        let inner = node.1.as_ref().and_then(|inner| way.turned().find(inner));
        let of = |inner: Option<u32>| {
            let mut rows = self.rows.iter();
            rows.position(|row| row.item == item && row.inner == inner)
        };
        of(inner).or_else(|| of(None))
    }

    /// Makes the rows anew, and selects what was selected.
    pub fn flatten(&mut self, way: Way<'_>, node: Option<&Node>, height: usize) {
        let mut items: Vec<u32> = (0u32..).take(way.len()).collect();
        self.sort(&mut items, way, |item| {
            (way.samples(item), way.error(item, None))
        });
        self.rows.clear();
        for item in items {
            let is_open = !self.expanded.is_empty()
                && way
                    .thing(item)
                    .is_some_and(|thing| self.expanded.contains(&thing));
            self.rows.push(Nest {
                item,
                inner: None,
                open: is_open,
            });
            if !is_open {
                continue;
            }
            let mut inner = way.inner(item);
            let of_cell = |inner: u32| (way.cell(item, inner), way.error(item, Some(inner)));
            self.sort(&mut inner, way.turned(), of_cell);
            self.rows.extend(inner.into_iter().map(|inner| Nest {
                item,
                inner: Some(inner),
                open: false,
            }));
        }
        let row = node.and_then(|node| self.place_of(way, node));
        let row = row.unwrap_or(self.list.selected());
        self.list.select(row, self.rows.len(), height);
    }

    /// Orders what is ordered by samples; `of` gives these and the error.
    fn sort(&self, items: &mut [u32], way: Way<'_>, of: impl Fn(u32) -> (u64, Option<f64>)) {
        match self.by {
            NestedBy::Share => items.sort_by_cached_key(|&item| (Reverse(of(item).0), item)),
            NestedBy::Name => items.sort_by_cached_key(|&item| way.by_name(item)),
            NestedBy::Error => {
                // Errors are never negative: their bits are in their order.
                let bits = |item: u32| of(item).1.unwrap_or(0.0).to_bits();
                items.sort_by_cached_key(|&item| (Reverse(bits(item)), item));
            }
        }
        if self.reversed {
            items.reverse();
        }
    }

    /// Expands or collapses the selected row; whether it can be.
    fn toggle(&mut self, way: Way<'_>, height: usize) -> bool {
        let Some(row) = self.selected().filter(|row| row.inner.is_none()) else {
            return false;
        };
        let Some(node) = Self::node(way, row) else {
            return false;
        };
        if !self.expanded.remove(&node.0) {
            self.expanded.insert(node.0.clone());
        }
        self.flatten(way, Some(&node), height);
        true
    }

    /// Expands a thing, and selects a node.
    fn reveal(&mut self, way: Way<'_>, node: &Node, height: usize) {
        self.expanded.insert(node.0.clone());
        self.flatten(way, Some(node), height);
    }

    /// Expands what has at least `share` of all, or collapses everything.
    pub fn set_all(&mut self, way: Way<'_>, share: Option<f64>, height: usize) {
        let node = self.selected().and_then(|row| Self::node(way, row));
        self.expanded.clear();
        if let Some(share) = share {
            let items = (0u32..).take(way.len());
            let hot = items.filter(|&item| ratio(way.samples(item), way.matrix.total) >= share);
            self.expanded.extend(hot.filter_map(|item| way.thing(item)));
        }
        self.flatten(way, node.as_ref(), height);
    }

    /// The samples of a row.
    pub fn samples(way: Way<'_>, row: Nest) -> u64 {
        match row.inner {
            Some(inner) => way.cell(row.item, inner),
            None => way.samples(row.item),
        }
    }

    /// Moves, expands and sorts as a command says; whether it is one of these.
    fn act(&mut self, command: Command, way: Way<'_>, height: usize) -> bool {
        if self.list.act(command, self.rows.len(), height) {
            self.origin = None;
            return true;
        }
        let selected = self.selected();
        let is_open = selected.is_some_and(|row| row.open);
        match command {
            Command::Toggle => {
                self.toggle(way, height);
            }
            Command::Right if is_open => {
                self.list.act(Command::Down, self.rows.len(), height);
            }
            Command::Right => {
                self.toggle(way, height);
            }
            Command::Left if is_open => {
                self.toggle(way, height);
            }
            Command::Left => {
                let at = self.list.selected().min(self.rows.len().saturating_sub(1));
                let before = self.rows.get(..at).unwrap_or_default();
                let is_inner = selected.is_some_and(|row| row.inner.is_some());
                let outer = before.iter().rposition(|row| row.inner.is_none());
                if let Some(outer) = outer.filter(|_| is_inner) {
                    self.list.select(outer, self.rows.len(), height);
                }
            }
            Command::Sort => self.sort_by(self.by.next(), false, way, height),
            Command::Reverse => self.sort_by(self.by, !self.reversed, way, height),
            _ => return false,
        }
        true
    }

    /// Sorts it anew.
    pub fn sort_by(&mut self, by: NestedBy, reversed: bool, way: Way<'_>, height: usize) {
        let node = self.selected().and_then(|row| Self::node(way, row));
        (self.by, self.reversed) = (by, reversed);
        // Who looks at the top goes on to look at it.
        let node = node.filter(|_| self.list.selected() > 0);
        self.flatten(way, node.as_ref(), height);
    }
}

impl Hot {
    /// What is selected in the nested matrix.
    pub(super) fn nested_node(&self) -> Option<Node> {
        let way = self.grid.way(self.matrix.get()?);
        Nested::node(way, self.nested.selected()?)
    }

    /// Makes its rows anew.
    pub(super) fn flatten_nested(&mut self, node: Option<&Node>, cx: &Cx<'_>) {
        let axis = self.form.axis();
        if let Some(matrix) = self.matrix.get().filter(|one| one.shape.axis == axis) {
            let way = self.grid.way(matrix);
            self.nested.flatten(way, node, height(cx.area));
        }
    }

    /// Shows the matrix nested, with the selected row expanded.
    pub(super) fn nest(&mut self, cx: &Cx<'_>) {
        let axis = self.form.axis();
        let Some(matrix) = self.matrix.get().filter(|one| one.shape.axis == axis) else {
            return;
        };
        let way = self.grid.way(matrix);
        let row = self.grid.selected().map(|(row, _)| row);
        if let Some(thing) = row.and_then(|row| way.thing(row)) {
            self.nested.reveal(way, &(thing, None), height(cx.area));
        }
        self.form = self.form.nested();
    }

    /// Does what a command asks for in the nested matrix.
    pub(super) fn act_in_nested(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let height = height(cx.area);
        let axis = self.form.axis();
        let Some(matrix) = self.matrix.get().filter(|one| one.shape.axis == axis) else {
            return Vec::new();
        };
        let way = self.grid.way(matrix);
        if self.nested.act(command, way, height) {
            return Vec::new();
        }
        match command {
            Command::Group | Command::GroupBack => {
                // What is selected in something becomes that in which it is.
                let node = self
                    .nested
                    .selected()
                    .and_then(|row| Nested::node(way, row));
                self.grid.turn(matrix, super::grid_height(cx.area));
                let way = self.grid.way(matrix);
                match node {
                    Some((outer, Some(inner))) => {
                        self.nested.reveal(way, &(inner, Some(outer)), height);
                    }
                    _ => {
                        self.nested.list = ListState::default();
                        self.nested.flatten(way, None, height);
                    }
                }
            }
            Command::NextHot => self.select_hot_in_nested(Find::Next, cx),
            Command::PreviousHot => self.select_hot_in_nested(Find::Previous, cx),
            Command::ZoomIn => self.in_parts = true,
            Command::ZoomOut => self.in_parts = false,
            Command::Open => return self.open_in_nested(cx),
            Command::Only => {
                let row = self.nested.selected();
                return row.map_or_else(Vec::new, |row| {
                    self.narrow_to_cell((row.item, row.inner), cx)
                });
            }
            _ => {}
        }
        Vec::new()
    }

    fn select_hot_in_nested(&mut self, find: Find, cx: &Cx<'_>) {
        let Some(matrix) = self.fitting_matrix() else {
            return;
        };
        let way = self.grid.way(matrix);
        let count = self.nested.rows.len();
        let now = self.nested.list.selected().min(count.saturating_sub(1));
        let found = next_match(count, now, now, find, |at| {
            let row = self.nested.rows.get(at);
            let samples = row.map_or(0, |row| Nested::samples(way, *row));
            ratio(samples, matrix.total) >= super::HOT
        });
        if let Some(found) = found {
            self.nested.list.select(found, count, height(cx.area));
        }
    }

    /// Opens the method of a row; what is none, expands or collapses.
    fn open_in_nested(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let Some((outer, inner)) = self.nested_node() else {
            return Vec::new();
        };
        match self.hottest_entry(inner.as_ref().unwrap_or(&outer), cx) {
            Some(entry) => vec![Act::Annotate(entry)],
            None => {
                if let Some(matrix) = self.matrix.get() {
                    self.nested.toggle(self.grid.way(matrix), height(cx.area));
                }
                Vec::new()
            }
        }
    }

    /// The entry of a method that has most samples.
    fn hottest_entry(&self, thing: &Thing, cx: &Cx<'_>) -> Option<EntryId> {
        let Thing::Who(Who::Method(method)) = thing else {
            return None;
        };
        let of_entry = &self.facts.get()?.methods.of_entry;
        let samples = |entry: EntryId| {
            let summary = cx.summary?;
            summary.entries.get(entry as usize).copied()
        };
        let entries = (0u32..).zip(of_entry).filter(|(_, of)| *of == method);
        let hottest = entries.max_by_key(|&(entry, _)| (samples(entry), Reverse(entry)));
        hottest.map(|(entry, _)| entry)
    }

    /// Searches in rows, and in what closed rows hide: those are expanded.
    pub(super) fn find_in_nested(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let Some(matrix) = self.matrix.get() else {
            return false;
        };
        let way = self.grid.way(matrix);
        let mut contains = finder(pattern);
        let mut named = |way: Way<'_>| -> Vec<bool> {
            let all = (0u32..).take(way.len());
            all.map(|row| contains(way.name(row))).collect()
        };
        let (outer, inner) = (named(way), named(way.turned()));
        let is = |named: &[bool], at: u32| named.get(at as usize) == Some(&true);
        let hidden = |row: Nest| {
            let is_closed = row.inner.is_none() && !row.open && !is(&outer, row.item);
            let any = is_closed && inner.contains(&true);
            any.then(|| way.inner(row.item).into_iter().find(|&one| is(&inner, one)))?
        };
        let fits = |row: Nest| match row.inner {
            Some(one) => is(&inner, one),
            None => is(&outer, row.item) || hidden(row).is_some(),
        };
        let count = self.nested.rows.len();
        let now = self.nested.list.selected().min(count.saturating_sub(1));
        let origin = self.nested.origin.take().or_else(|| {
            let row = self.nested.rows.get(now)?;
            Nested::node(way, *row)
        });
        let began = origin
            .as_ref()
            .and_then(|node| self.nested.place_of(way, node));
        let rows = &self.nested.rows;
        let found = next_match(count, began.unwrap_or(now), now, find, |at| {
            rows.get(at).is_some_and(|row| fits(*row))
        });
        let found = found.and_then(|at| Some((at, *rows.get(at)?)));
        self.nested.origin = origin;
        let Some((at, row)) = found else {
            return false;
        };
        let node = hidden(row).and_then(|inner| {
            let row = Nest {
                inner: Some(inner),
                ..row
            };
            Nested::node(way, row)
        });
        match node {
            Some(node) => self.nested.reveal(way, &node, height(cx.area)),
            None => self.nested.list.select(at, count, height(cx.area)),
        }
        true
    }
}
