//! The matrix, one side in the other: categories that expand into methods or threads, or
//! these into categories.

use super::way::{Thing, Way};
use crate::present::numbers::ratio;
use crate::tui::keys::Command;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::Search;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;

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
#[derive(Clone, Debug, Default)]
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
    /// What is searched for.
    pub search: Search<Option<Node>>,
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
            Some(inner) => Some(way.turned().thing(inner)),
            None => None,
        };
        Some((way.thing(row.item), inner))
    }

    /// Where a node's row is; where it is not expanded, what it is in.
    pub fn place_of(&self, way: Way<'_>, node: &Node) -> Option<usize> {
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
            let is_open = !self.expanded.is_empty() && self.expanded.contains(&way.thing(item));
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
            NestedBy::Name => items.sort_by_cached_key(|&item| (way.rank(item), item)),
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
    pub fn toggle(&mut self, way: Way<'_>, height: usize) -> bool {
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
    pub fn reveal(&mut self, way: Way<'_>, node: &Node, height: usize) {
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
            self.expanded.extend(hot.map(|item| way.thing(item)));
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
    pub fn act(&mut self, command: Command, way: Way<'_>, height: usize) -> bool {
        if self.list.act(command, self.rows.len(), height) {
            self.search.forget_origin();
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
