//! Where in the method one is, and going elsewhere.

use super::items::{Item, What};
use super::listing::Listing;
use super::{Act, Cx, MAX_CHOICES, Method, Own, calls::Shows, items, versions};
use crate::present::numbers::{percent, ratio, some};
use crate::tui::filter_state::FilterChange;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table;
use vmscope_symbolizer::annotate::{Origin, Subject, entries_of_subject};

impl Method {
    pub(super) fn current(&self) -> Option<usize> {
        let last = self.listing.visible.len().checked_sub(1)?;
        let at = self.list.selected().min(last);
        self.listing.visible.get(at).copied()
    }

    pub(super) fn item(&self) -> Option<&Item> {
        self.listing.items.get(self.current()?)
    }

    /// Selects a line of all, wherever it is folded into.
    pub(super) fn select(&mut self, number: usize, cx: &Cx<'_>) {
        self.listing.reveal(number);
        let at = self.listing.visible.binary_search(&number);
        let height = table::height(self.areas(cx).listing);
        let rows = self.listing.visible.len();
        self.list.select(at.unwrap_or_else(|at| at), rows, height);
    }

    pub(super) fn lay_out(&mut self, cx: &Cx<'_>) {
        let Some(found) = self.found.get() else {
            return;
        };
        let (samples, subject) = (found.annotation.all.samples(), found.subject.clone());
        let items = items::lay_out(found, &self.texts);
        let is_new = subject != self.subject;
        let before = self.item().map(|item| item.id);
        if is_new {
            self.listing = Listing::default();
            self.list = ListState::default();
            self.call_list = ListState::default();
            self.subject = subject;
        }
        self.listing.take(items, samples);
        self.find_hot();
        let same = |item: &Item| Some(item.id) == before;
        let same = self.listing.items.iter().position(same).filter(|_| !is_new);
        if let Some(number) = same {
            self.select(number, cx);
        } else if is_new {
            let own = |&number: &usize| self.listing.items.get(number).map(|item| item.own);
            // Of equals, the first.
            let hot = self.listing.hot.iter().copied().rev();
            if let Some(hottest) = hot.max_by_key(own) {
                self.select(hottest, cx);
            }
        }
    }

    /// Finds the hot lines of what is shown.
    pub(super) fn find_hot(&mut self) {
        let are_beside = !self.sides_shown().is_empty();
        let sides = self.sides.get().filter(|_| are_beside);
        self.listing.find_hot(sides.map_or(&[], |sides| &sides.all));
    }

    /// Shows another method.
    pub(super) fn go(&mut self, subject: &Subject, cx: &Cx<'_>) -> Vec<Act> {
        if self.subject.as_ref() == Some(subject) {
            return vec![Act::Say("this is the method that is shown".to_owned())];
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

    pub(super) fn jump(&mut self, forward: bool, cx: &Cx<'_>) -> Vec<Act> {
        let from = self.current().unwrap_or(0);
        let Some((at, number)) = self.listing.next_hot(from, forward) else {
            return vec![Act::Say("no line of it has samples".to_owned())];
        };
        self.in_calls = false;
        self.select(number, cx);
        let all = self.listing.hot.len();
        let Some(item) = self.listing.items.get(number) else {
            return Vec::new();
        };
        let told = |own: u64, whole: u64| {
            let samples = some(own, "sample", "samples");
            format!("{}, {samples}", percent(ratio(own, whole)))
        };
        let versions = self.versions();
        let sides = self.sides_shown().iter().map(|side| {
            let name = versions.of(side.origin).map_or("", versions::name);
            format!("{name} {}", told(side.here(item).own, side.samples))
        });
        let mut figures = sides.collect::<Vec<_>>().join("; ");
        if figures.is_empty() {
            figures = told(item.own, self.listing.samples);
        }
        vec![Act::Say(format!(
            "hot range {} of {all}: {figures}",
            at + 1
        ))]
    }

    pub(super) fn choose(&mut self, origin: Option<Origin>, cx: &Cx<'_>) -> Vec<Act> {
        let label = |method: &Self, origin: Origin| {
            let version = method.versions().of(origin);
            version.map_or_else(String::new, |version| versions::label(version, cx))
        };
        let said = match (self.pair(), origin) {
            (Some(_), Some(origin)) => {
                let all = self.found.get().map_or(&[][..], |found| &found.versions);
                self.beside.put(all, self.origin, origin);
                format!("beside it {}", label(self, origin))
            }
            (_, Some(origin)) => {
                self.origin = Some(origin);
                format!("only {}", label(self, origin))
            }
            (_, None) => {
                self.origin = None;
                self.beside.on = false;
                "all versions together".to_owned()
            }
        };
        vec![Act::Say(said)]
    }

    pub(super) fn show_calls(&mut self, shows: Shows) {
        self.shows = shows;
        self.in_calls = shows != Shows::Nothing;
        self.call_list = ListState::default();
    }

    pub(super) fn remember(&mut self, own: Own) {
        if self.own.iter().any(|(_, known)| *known == own) {
            return;
        }
        // What is current and was forgotten here is known again with the next answer.
        if self.own.len() >= MAX_CHOICES {
            self.own.pop_front();
        }
        self.own.push_back((self.next_own, own));
        self.next_own = self.next_own.wrapping_add(1);
    }

    /// Only the method that is selected, in all views.
    pub(super) fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let callee = self.item().and_then(|item| match &item.what {
            What::Callee(subject) => Some(subject.clone()),
            _ => None,
        });
        let Some(subject) = callee.or_else(|| self.subject.clone()) else {
            return Vec::new();
        };
        let entries = entries_of_subject(cx.profile, &subject);
        if entries.is_empty() {
            let text = "no sample is in the method itself: a filter would leave none";
            return vec![Act::Say(text.to_owned())];
        }
        vec![Act::FilterChange(FilterChange::Entries(entries))]
    }
}
