//! Position in the listing, and steps to other lines, versions and methods.

use super::items::{Item, What};
use super::{Act, Cx, MAX_CHOICES, Method, Own, calls, calls::Shows, items, listing, versions};
use crate::present::numbers::{percent, ratio, some};
use crate::tui::filter_state::FilterChange;
use crate::tui::views::Find;
use crate::tui::widgets::search::next_match;
use vmscope_symbolizer::annotate::{Origin, Subject, entries_of_subject};

impl Method {
    pub(super) fn item(&self) -> Option<&Item> {
        self.items.get(self.table.selected()?)
    }

    /// Selects a line and expands the lines around it.
    fn select(&mut self, at: usize, cx: &Cx<'_>) {
        self.with_table(cx, |table, page, height| {
            table.reveal(page, &page.path(at), height)
        });
    }

    /// Lays out the listing of a new answer or a new source file.
    pub(super) fn lay_out(&mut self, cx: &Cx<'_>) {
        let Some(found) = self.found.get() else {
            return;
        };
        // A method without samples has no lines before its calls arrive.
        let is_new = found.subject != self.subject || self.items.is_empty();
        self.subject.clone_from(&found.subject);
        let mut annotation = found.annotation.clone();
        if let Some(calls) = self.calls_of_stacks(cx) {
            annotation.put_calls(calls);
        }
        self.items = items::lay_out(found, &annotation, &self.texts);
        self.annotation = annotation;
        if !is_new {
            return self.with_table(cx, |table, page, height| table.arrange(page, height));
        }
        self.table = listing::Table::default();
        self.call_table = calls::Table::default();
        // Of equally hot lines, the first.
        let samples = |at: &usize| {
            let item = &self.items[*at];
            (item.counts.own, item.called)
        };
        let hottest = (0..self.items.len()).rev().max_by_key(samples);
        match hottest.filter(|at| samples(at) > (0, 0)) {
            Some(hottest) => self.select(hottest, cx),
            None => self.with_table(cx, |table, page, height| table.arrange(page, height)),
        }
    }

    /// Shows another method.
    pub(super) fn go(&mut self, subject: &Subject, cx: &Cx<'_>) -> Vec<Act> {
        if self.subject.as_ref() == Some(subject) {
            return vec![Act::Say("this method is already shown".to_owned())];
        }
        let entries = entries_of_subject(cx.profile, subject);
        self.in_calls = false;
        match entries.first() {
            Some(&entry) => {
                self.over = None;
                vec![Act::Annotate(entry)]
            }
            None => {
                self.over = Some((cx.subject, subject.clone()));
                Vec::new()
            }
        }
    }

    /// Goes to the next or previous hot line, round the ends.
    pub(super) fn jump(&mut self, find: Find, cx: &Cx<'_>) -> Vec<Act> {
        let from = self.table.selected().unwrap_or(0);
        let hot = self.page(cx).hot();
        let is_hot = |at: usize| hot.binary_search(&at).is_ok();
        let Some(at) = next_match(self.items.len(), from, from, find, is_hot) else {
            return vec![Act::Say("no line has samples".to_owned())];
        };
        self.in_calls = false;
        self.select(at, cx);
        let item = &self.items[at];
        let figures = |own: u64, whole: u64| {
            let samples = some(own, "sample", "samples");
            format!("{}, {samples}", percent(ratio(own, whole)))
        };
        let page = self.page(cx);
        let versions = self.versions(cx);
        let sides = page.sides.iter().map(|(_, side)| {
            let name = versions.of(side.origin).map_or("", versions::name);
            let own = side.counts(item).own;
            format!("{name} {}", figures(own, side.samples))
        });
        let mut said = sides.collect::<Vec<_>>().join("; ");
        if said.is_empty() {
            said = figures(item.counts.own, page.samples);
        }
        let (number, all) = (hot.partition_point(|&other| other <= at), hot.len());
        vec![Act::Say(format!("hot line {number} of {all}: {said}"))]
    }

    pub(super) fn choose(&mut self, origin: Option<Origin>, cx: &Cx<'_>) -> Vec<Act> {
        let said = match (self.pair(), origin) {
            (Some(_), Some(origin)) => {
                let all = self.found.get().map_or(&[][..], |found| &found.versions);
                self.beside.put(all, self.origin, origin);
                format!("second version: {}", self.versions(cx).label_of(origin))
            }
            (_, Some(origin)) => {
                self.origin = Some(origin);
                format!("only {}", self.versions(cx).label_of(origin))
            }
            (_, None) => {
                self.origin = None;
                self.beside.on = false;
                "all versions".to_owned()
            }
        };
        vec![Act::Say(said)]
    }

    pub(super) fn show_calls(&mut self, shows: Shows, cx: &Cx<'_>) {
        self.shows = shows;
        self.in_calls = shows != Shows::Nothing;
        self.call_table = calls::Table::default();
        self.with_calls(cx, |table, page, area| {
            table.arrange(page, calls::Table::height(area))
        });
    }

    /// Numbers palette lines. Beyond [`MAX_CHOICES`] the oldest lines leave.
    pub(super) fn remember_all(&mut self, all: Vec<Own>) {
        for own in all {
            if self.own.iter().any(|(_, known)| *known == own) {
                continue;
            }
            if self.own.len() >= MAX_CHOICES {
                self.own.pop_front();
            }
            self.own.push_back((self.next_own, own));
            self.next_own = self.next_own.wrapping_add(1);
        }
    }

    /// The method inlined at the selected line.
    pub(super) fn callee(&self) -> Option<Subject> {
        match &self.item()?.what {
            What::Callee(subject) => Some(subject.clone()),
            _ => None,
        }
    }

    /// Filters all views by the selected method.
    pub(super) fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let Some(subject) = self.callee().or_else(|| self.subject.clone()) else {
            return Vec::new();
        };
        let entries = entries_of_subject(cx.profile, &subject);
        if entries.is_empty() {
            let text = "no samples in the method itself: the filter would leave none";
            return vec![Act::Say(text.to_owned())];
        }
        vec![Act::FilterChange(FilterChange::Entries(entries))]
    }
}
