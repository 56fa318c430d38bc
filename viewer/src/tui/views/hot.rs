//! All entries: in order, in groups, each with its ranges; and as a matrix of categories and
//! methods or threads.

mod cells;
mod drawn;
mod facts;
mod form;
mod grid;
mod grid_drawn;
mod listing;
mod nested;
mod nested_drawn;
mod nested_keys;
mod order;
mod page;
mod pressed;
mod rows;
mod sorted;
mod state;
#[cfg(test)]
mod tests;
mod way;
mod written;

use super::empty::{no_samples, say};
use super::{Act, Choice, Click, Cx, Find, View};
use crate::present::document::{Document, Part};
use crate::queries::matrix::{Matrix, Shape};
use crate::tui::jobs::{Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use facts::Facts;
use form::Form;
use grid::{Grid, GridBy};
use listing::Listing;
use nested::NestedBy;
use order::{By, Grouping};
use ratatui::Frame;
use ratatui::layout::Rect;
pub use state::Hot;
use state::{HOT, height};
use std::sync::Arc;
use vmscope_symbolizer::{Stop, Summary};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Toggle, &[ch(' ')], "expand", "expand or collapse: a group, an entry's ranges; a row of the matrix into the other side"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "sort the other way round"),
    own(Command::Group, &[ch('b')], "group", "group by the next of method, class, region, kind, thread, tier; turn the matrix round"),
    own(Command::GroupBack, &[ch('B')], "", "group by the one before"),
    own(Command::Mode, &[ch('m')], "matrix", "the list; a matrix of categories and methods, side by side or nested; of categories and threads"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "", "in the matrix: regions in their parts, by tier and phase"),
    own(Command::ZoomOut, &[ch('-')], "", "in the matrix: regions as a whole"),
    own(Command::NextHot, &[ch('}')], "", "the next hot row or cell"),
    own(Command::PreviousHot, &[ch('{')], "", "the hot row or cell before"),
];

/// The numbers of the palette's lines.
const SORT: u16 = 0;
const GROUP: u16 = 100;
const FORM: u16 = 200;
const EXPAND: u16 = 300;
const COLLAPSE: u16 = 301;

impl View for Hot {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        match command {
            Command::Mode => self.become_form(self.form.next(), cx),
            Command::Own(number) => self.own(number, cx),
            _ if self.form == Form::List => return self.act_in_list(command, cx),
            _ if self.form.is_nested() => return self.act_in_nested(command, cx),
            _ => return self.act_in_matrix(command, cx),
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        match self.form {
            Form::List => self.pressed_in_list(click, cx),
            form if form.is_nested() => self.pressed_in_nested(click, cx),
            _ => self.pressed_in_matrix(click, cx),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let of_profile = Stamp {
            filters: 0,
            profile: cx.stamp.profile,
        };
        let facts = self.facts.ask((), of_profile, |profile, stop| {
            Some(Arc::new(Facts::of(profile, stop)?))
        });
        questions.extend(facts);
        if self.form == Form::List && self.order.has_errors() {
            // They take longest, and need nothing else.
            let filter = cx.filters.filter().clone();
            questions.extend(self.errors.ask((), cx.stamp, move |profile, stop| {
                Some(Arc::new(Summary::errors_by_entry(profile, &filter, stop)?))
            }));
        }
        // What is made of a summary waits for the newest.
        let is_known = self.facts.answered() == Some(&((), of_profile));
        let Some((facts, summary)) = (self.facts.get().filter(|_| is_known)).zip(cx.summary) else {
            return questions;
        };
        let facts = Arc::clone(facts);
        let filter = cx.filters.filter().clone();
        if self.form == Form::List {
            if cx.summed == cx.stamp {
                let summary = Arc::clone(summary);
                questions.extend(self.ask_list(&facts, &summary, cx));
            }
            return questions;
        }
        let shape = self.shape_to_ask(cx.stamp);
        let (cache, version) = (self.index.clone(), cx.stamp.profile);
        let asked = self.matrix.ask(shape, cx.stamp, move |profile, stop| {
            let index = cache.get(profile, version, stop)?;
            Matrix::of(profile, &index, &filter, shape, stop)
        });
        questions.extend(asked);
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.facts.take(ended);
        self.errors.take(ended);
        let node = self.selected_node();
        if self.listing.take(ended) {
            self.flatten(node, cx);
        }
        let before = self.matrix.get().map(|matrix| matrix.shape);
        let node = self.nested_node();
        self.keep_cell();
        if !self.matrix.take(ended) {
            return;
        }
        if let Some(matrix) = self.matrix.get() {
            if before.map(|shape| shape.axis) != Some(matrix.shape.axis) {
                self.grid = Grid::standing(self.grid.turned);
                self.kept_cell = None;
            }
            if before.map(Shape::without_errors) != Some(matrix.shape.without_errors()) {
                self.grid_search.forget_origin();
            }
            self.grid.arrange(matrix, grid_height(cx.area));
        }
        self.restore_cell(cx);
        let is_same = before.map(|shape| shape.axis) == Some(self.form.axis());
        self.flatten_nested(node.filter(|_| is_same).as_ref(), cx);
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if self.form == Form::List || pattern.is_empty() {
            self.grid_search.forget_origin();
            self.nested.search.forget_origin();
            return self.find_in_list(pattern, find, cx);
        }
        if self.form.is_nested() {
            return self.find_in_nested(pattern, find, cx);
        }
        let Some(matrix) = self.matrix.get() else {
            return false;
        };
        let (grid, rows) = (&self.grid, self.grid.rows());
        let now = grid.list.selected().min(rows.saturating_sub(1));
        let found = (self.grid_search).find(pattern, find, rows, now, |row, text| {
            let item = grid.item_of(row);
            item.is_some_and(|item| text.is_in(grid.row(matrix, item).0))
        });
        found.select(|row| self.grid.list.select(row, rows, grid_height(cx.area)))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let samples = match self.form {
            Form::List => self.listing.get().map(|listing| listing.total),
            _ => self.fitting_matrix().map(|matrix| matrix.total),
        };
        match samples {
            None => say("counting ...", cx, frame, area),
            Some(0) => say(&no_samples(cx), cx, frame, area),
            Some(_) if self.form == Form::List => self.draw_list(cx, frame, area),
            Some(_) => {
                if let Some(matrix) = self.fitting_matrix() {
                    if self.form.is_nested() {
                        let way = self.grid.way(matrix);
                        return self.nested.draw(way, cx.theme, frame, area);
                    }
                    self.grid.draw(matrix, cx.theme, frame, area);
                }
            }
        }
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let crumb = self.crumb(cx);
        let comma = if crumb.is_empty() { "" } else { ", " };
        let table = match self.form {
            Form::List => self.page(cx).map(|page| page.table(&self.rows, stop)),
            form => self.fitting_matrix().map(|matrix| match form.is_nested() {
                true => self.nested.table(self.grid.way(matrix), stop),
                false => self.grid.table(matrix, stop),
            }),
        };
        let table = match table {
            // It was stopped.
            Some(None) => return None,
            made => made.flatten(),
        };
        Some(Document {
            title: format!("Hot list{comma}{crumb}"),
            parts: table.map(Part::Table).into_iter().collect(),
        })
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let line = |text: String, number: u16| Choice { text, number };
        let mut choices = Vec::new();
        if self.form == Form::List {
            let sorts = By::ALL.into_iter().zip(SORT..);
            choices.extend(sorts.map(|(by, n)| line(format!("sort by {}", by.name()), n)));
            let groups = Grouping::ALL.into_iter().zip(GROUP..);
            choices.extend(groups.map(|(by, n)| line(format!("group by {}", by.name()), n)));
        } else if self.form.is_nested() {
            let sorts = NestedBy::ALL.into_iter().zip(SORT..);
            choices.extend(sorts.map(|(by, n)| line(format!("sort by {}", by.name()), n)));
        } else {
            let sorts = ["sum", "the selected column", "name"]
                .into_iter()
                .zip(SORT..);
            choices.extend(sorts.map(|(by, n)| line(format!("sort the matrix by {by}"), n)));
        }
        if self.form == Form::List || self.form.is_nested() {
            let hot = format!("expand all hot ones (from {:.0} % on)", HOT * 100.0);
            choices.push(line(hot, EXPAND));
            choices.push(line("collapse all".to_owned(), COLLAPSE));
        }
        let forms = Form::ALL.into_iter().zip(FORM..);
        let forms = forms.filter(|(form, _)| *form != self.form);
        choices.extend(forms.map(|(form, n)| line(format!("show {}", form.name()), n)));
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        match self.form {
            Form::List => {
                let mut parts = Vec::new();
                if self.order.grouping != Grouping::None {
                    parts.push(format!("by {}", self.order.grouping.name()));
                }
                if self.order.by != By::Share || self.order.reversed {
                    let way = if self.order.reversed {
                        ", reversed"
                    } else {
                        ""
                    };
                    parts.push(format!("sorted by {}{way}", self.order.by.name()));
                }
                parts.join(", ")
            }
            form => {
                let parts = if self.in_parts { ", in parts" } else { "" };
                if !form.is_nested() {
                    let turned = if self.grid.turned { ", turned" } else { "" };
                    return format!("{}{parts}{turned}", form.name());
                }
                let sorted = match (self.nested.by, self.nested.reversed) {
                    (NestedBy::Share, false) => String::new(),
                    (by, false) => format!(", by {}", by.name()),
                    (by, true) => format!(", by {}, reversed", by.name()),
                };
                let title = nested_drawn::title(self.grid.turned, form.axis());
                format!("{title}{parts}{sorted}")
            }
        }
    }

    fn is_pending(&self) -> bool {
        let shown = match self.form {
            Form::List => {
                let errors = self.order.has_errors() && self.errors.is_pending();
                self.listing.is_pending() || errors
            }
            _ => self.matrix.is_pending(),
        };
        shown || self.facts.is_pending()
    }
}

impl Hot {
    /// What the list is made of. Only where it is sorted by the errors of shares, it waits for
    /// these.
    fn ask_list(
        &mut self,
        facts: &Arc<Facts>,
        summary: &Arc<Summary>,
        cx: &Cx<'_>,
    ) -> Option<Question> {
        let (order, filter) = (self.order, cx.filters.filter().clone());
        let are_known = self.errors.answered() == Some(&((), cx.stamp));
        let errors = self
            .errors
            .get()
            .filter(|_| are_known && order.needs_errors());
        let errors = errors.cloned().unwrap_or_default();
        if !are_known && order.needs_errors() {
            return None;
        }
        let (facts, summary) = (Arc::clone(facts), Arc::clone(summary));
        self.listing.ask(order, cx.stamp, move |profile, stop| {
            Listing::of(profile, &facts, &summary, (filter, order, errors), stop)
        })
    }

    fn become_form(&mut self, form: Form, cx: &Cx<'_>) {
        self.form = form;
        let node = self.nested_node();
        self.flatten_nested(node.as_ref(), cx);
    }

    fn own(&mut self, number: u16, cx: &Cx<'_>) {
        let at = |first: u16| usize::from(number.saturating_sub(first));
        match number {
            EXPAND | COLLAPSE if self.form.is_nested() => {
                if let Some(matrix) = self.matrix.get() {
                    let share = (number == EXPAND).then_some(HOT);
                    let way = self.grid.way(matrix);
                    self.nested.set_all(way, share, height(cx.area));
                }
            }
            EXPAND => self.expand_hot(cx),
            COLLAPSE => {
                let node = self.selected_node();
                self.expanded.clear();
                self.flatten(node, cx);
            }
            FORM.. => {
                let form = Form::ALL.get(at(FORM)).copied();
                self.become_form(form.unwrap_or(self.form), cx);
            }
            GROUP.. => {
                let grouping = Grouping::ALL.get(at(GROUP)).copied();
                self.order.grouping = grouping.unwrap_or_default();
            }
            _ if self.form == Form::List => {
                self.order.by = By::ALL.get(at(SORT)).copied().unwrap_or_default();
                self.order.reversed = false;
            }
            _ if self.form.is_nested() => {
                let by = NestedBy::ALL.get(at(SORT)).copied().unwrap_or_default();
                if let Some(matrix) = self.matrix.get() {
                    let way = self.grid.way(matrix);
                    self.nested.sort_by(by, false, way, height(cx.area));
                }
            }
            _ => {
                let all = [GridBy::Sum, GridBy::Column, GridBy::Name];
                self.grid.by = all.get(at(SORT)).copied().unwrap_or_default();
                self.grid.reversed = false;
                self.arrange(cx);
            }
        }
    }
}

/// Rows of the matrix on the screen.
fn grid_height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(grid::HEAD + 1))
}
