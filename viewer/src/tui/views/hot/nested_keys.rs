//! What keys do in the nested matrix.

use super::nested::{Nest, Nested, Node};
use super::state::height;
use super::way::{Thing, Way};
use super::{Act, Cx, Find, HOT, Hot, grid_height};
use crate::present::numbers::ratio;
use crate::tui::keys::Command;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::next_match;
use std::cmp::Reverse;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::matrix::Row as Counted;

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
        if let Some(thing) = row.map(|row| way.thing(row)) {
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
                self.grid.turn(matrix, grid_height(cx.area));
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
            ratio(samples, matrix.total) >= HOT
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
        let Thing::Who(Counted::Method(method)) = thing else {
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
        let count = self.nested.rows.len();
        let now = self.nested.list.selected().min(count.saturating_sub(1));
        let here = self.nested.rows.get(now);
        let here = here.and_then(|row| Nested::node(way, *row));
        let Some((origin, finder)) = self.nested.search.begin(pattern, here) else {
            return true;
        };
        let mut named = |way: Way<'_>| -> Vec<bool> {
            let all = (0u32..).take(way.len());
            all.map(|row| finder.is_in(way.name(row))).collect()
        };
        let (outer, inner) = (named(way), named(way.turned()));
        let is = |named: &[bool], at: u32| named.get(at as usize) == Some(&true);
        let inside: Vec<u32> = (0u32..)
            .zip(&inner)
            .filter_map(|(one, fits)| fits.then_some(one))
            .collect();
        // There may be very many rows: what is in one is put in order of that which is found.
        let hides = |row: Nest| {
            let is_closed = row.inner.is_none() && !row.open && !is(&outer, row.item);
            is_closed && inside.iter().any(|&one| way.cell(row.item, one) > 0)
        };
        let hidden = |row: Nest| {
            let inner = hides(row).then(|| way.inner(row.item));
            inner?
                .into_iter()
                .find(|one| inside.binary_search(one).is_ok())
        };
        let fits = |row: Nest| match row.inner {
            Some(one) => is(&inner, one),
            None => is(&outer, row.item) || hides(row),
        };
        let began = origin
            .as_ref()
            .and_then(|node| self.nested.place_of(way, node));
        let rows = &self.nested.rows;
        let found = next_match(count, began.unwrap_or(now), now, find, |at| {
            rows.get(at).is_some_and(|row| fits(*row))
        });
        let found = found.and_then(|at| Some((at, *rows.get(at)?)));
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
