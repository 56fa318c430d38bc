//! One method: its bytecodes or source lines with samples in the margin, its versions,
//! its machine code, who calls it and whom it calls.
//!
//! ```text
//! OrderBook.match  OrderBook.java:31
//! 5.67% ±0.51 of all: 712 samples; ran as C2 600, C1 112
//! [all 712] | C1 0.8-3.1 s 1,204 B 112 samples (gone) | C2 3.0- s 812 B 600 samples
//!   share bar  samples    pc  line
//!  12.30% ███       74    14    33  ▾ invokevirtual ...
//!   4.10% █         25               ↳ PriceLevel.peek @3
//! ▶ callers: of 712 samples ...
//! ```

mod calls;
mod found;
mod head;
mod items;
mod keys;
mod listing;
#[cfg(test)]
mod tests;
mod versions;

use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::annotate::layout::has_bytecodes;
use crate::annotate::limits::{SKID, limits};
use crate::annotate::source::Source;
use crate::report::words::{percent, ratio, some, wrap};
use crate::tui::event::Effect;
use crate::tui::jobs::{Answer, Fetched, Question};
use crate::tui::keys::{Binding, Command};
use crate::tui::lens::Narrow;
use crate::tui::shown::{Part, Shown};
use crate::tui::theme::Role;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::Search;
use crate::tui::widgets::table;
use calls::Shows;
use found::{Found, Which};
use items::{Item, Text, Texts, What};
use listing::Listing;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use std::collections::VecDeque;
use versions::Versions;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::annotate::{Calls, Candidate, Origin, Subject, entries_of_subject};

/// The numbers of the view's questions.
const FOUND: u8 = 0;
const HOTTEST: u8 = 1;
const CALLS: u8 = 2;

/// Versions are beside the listing where there are so many columns.
const WIDE: u16 = 120;

/// So many source files are kept in mind, and so many lines of the palette.
const MAX_TEXTS: usize = 32;
const MAX_CHOICES: usize = 2000;

/// A line of the palette.
#[derive(Clone, Debug, PartialEq)]
enum Own {
    Method(Subject),
    Version(Option<Origin>),
    Fold(bool),
}

/// The view.
#[derive(Debug, Default)]
pub struct Method {
    found: Fetched<(Which, Option<Origin>), Found>,
    hottest: Fetched<(), Vec<Candidate>>,
    calls: Fetched<Subject, Calls>,
    listing: Listing,
    list: ListState,
    /// Which version is shown; `None` for all together.
    origin: Option<Origin>,
    /// What was asked for last.
    which: Option<Which>,
    /// What is shown.
    subject: Option<Subject>,
    /// A method without an entry, chosen in place of the entry that was opened.
    over: Option<(Option<EntryId>, Subject)>,
    shows: Shows,
    call_list: ListState,
    /// Whether keys move in the callers.
    in_calls: bool,
    /// Whether machine code is shown where it is not of its own accord, or the other way.
    machine: bool,
    texts: Texts,
    /// What the palette's numbers mean: they stay what they are while it is open.
    own: VecDeque<(u16, Own)>,
    /// The number of the next one.
    next_own: u16,
    search: Search,
}

/// Where everything is.
#[derive(Clone, Copy, Debug)]
struct Areas {
    head: Rect,
    strip: Option<Rect>,
    pane: Option<Rect>,
    listing: Rect,
    calls: Option<Rect>,
}

impl Method {
    fn shown_one(&self) -> Option<&Found> {
        self.found.get().filter(|found| found.subject.is_some())
    }

    fn versions(&self) -> Versions<'_> {
        Versions {
            all: self.shown_one().map_or(&[], |found| &found.versions),
            chosen: self.origin,
            are_newest: self.shown_one().is_some_and(|found| found.are_newest),
        }
    }

    fn areas(&self, cx: &Cx<'_>) -> Areas {
        let area = cx.area;
        let versions = self.versions();
        let lines = self
            .shown_one()
            .map_or(0, |found| head::lines(found, cx).len());
        let lines = u16::try_from(lines).unwrap_or(0).min(area.height);
        let (head, mut rest) = split(area, lines);
        let (mut strip, mut pane) = (None, None);
        if versions.is_several() && area.width >= WIDE {
            let width = versions::PANE.min(rest.width);
            pane = Some(Rect { width, ..rest });
            rest = Rect {
                x: rest.x + width + 1,
                width: rest.width.saturating_sub(width + 1),
                ..rest
            };
        } else if !versions.all.is_empty() {
            let (line, below) = split(rest, 1);
            (strip, rest) = (Some(line), below);
        }
        let mut calls = None;
        if self.shows != Shows::Nothing {
            let height = (rest.height / 3).clamp(5, 16).min(rest.height);
            let (listing, below) = split(rest, rest.height - height);
            (rest, calls) = (listing, Some(below));
        }
        Areas {
            head,
            strip,
            pane,
            listing: rest,
            calls,
        }
    }

    /// What is to be found.
    fn wanted(&self, cx: &Cx<'_>) -> Which {
        if let Some((base, subject)) = &self.over
            && *base == cx.subject
        {
            return Which::Subject(subject.clone());
        }
        if let Some(entry) = cx.subject {
            return Which::Entry(entry);
        }
        // What was the hottest stays while the profile grows.
        match (&self.subject, self.found.answered()) {
            (Some(subject), Some(((Which::Hottest | Which::Subject(_), _), stamp)))
                if stamp.lens == cx.stamp.lens && stamp.profile != cx.stamp.profile =>
            {
                Which::Subject(subject.clone())
            }
            (_, Some(((which @ Which::Subject(_), _), stamp))) if stamp.lens == cx.stamp.lens => {
                which.clone()
            }
            _ => Which::Hottest,
        }
    }

    fn current(&self) -> Option<usize> {
        let last = self.listing.visible.len().checked_sub(1)?;
        let at = self.list.selected().min(last);
        self.listing.visible.get(at).copied()
    }

    fn item(&self) -> Option<&Item> {
        self.listing.items.get(self.current()?)
    }

    /// Selects a line of all, wherever it is folded into.
    fn select(&mut self, number: usize, cx: &Cx<'_>) {
        self.listing.reveal(number);
        let at = self.listing.visible.binary_search(&number);
        let height = table::height(self.areas(cx).listing);
        let rows = self.listing.visible.len();
        self.list.select(at.unwrap_or_else(|at| at), rows, height);
    }

    fn lay_out(&mut self, cx: &Cx<'_>) {
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

    /// Shows another method.
    fn go(&mut self, subject: &Subject, cx: &Cx<'_>) -> Vec<Act> {
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

    fn jump(&mut self, forward: bool, cx: &Cx<'_>) -> Vec<Act> {
        let from = self.current().unwrap_or(0);
        let Some((at, number)) = self.listing.next_hot(from, forward) else {
            return vec![Act::Say("no line of it has samples".to_owned())];
        };
        self.in_calls = false;
        self.select(number, cx);
        let all = self.listing.hot.len();
        let own = self.listing.items.get(number).map_or(0, |item| item.own);
        let share = percent(ratio(own, self.listing.samples));
        let samples = some(own, "sample", "samples");
        let said = format!("hot range {} of {all}: {share}, {samples}", at + 1);
        vec![Act::Say(said)]
    }

    fn choose(&mut self, origin: Option<Origin>, cx: &Cx<'_>) -> Vec<Act> {
        self.origin = origin;
        let mut all = self.versions().all.iter();
        let chosen = all.find(|version| Some(version.origin) == origin);
        let said = match chosen {
            Some(version) => format!("only {}", versions::label(version, cx)),
            None => "all versions together".to_owned(),
        };
        vec![Act::Say(said)]
    }

    fn show_calls(&mut self, shows: Shows) {
        self.shows = shows;
        self.in_calls = shows != Shows::Nothing;
        self.call_list = ListState::default();
    }

    fn remember(&mut self, own: Own) {
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

    fn calls_shown(&self) -> Option<&Calls> {
        // Those of another method say nothing.
        let of = self.calls.answered().map(|(subject, _)| subject);
        self.calls.get().filter(|_| of == self.subject.as_ref())
    }
}

impl View for Method {
    fn bindings(&self) -> &'static [Binding] {
        keys::BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        self.command(command, cx)
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let areas = self.areas(cx);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        if let Some(strip) = areas
            .strip
            .filter(|strip| strip.contains(click.at) && is_press)
        {
            let (columns, at) = (usize::from(strip.width), usize::from(click.at.x - strip.x));
            let chosen = self.versions().in_strip(cx, columns, at);
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        if let Some(pane) = areas
            .pane
            .filter(|pane| pane.contains(click.at) && is_press)
        {
            let line = usize::from(click.at.y - pane.y).checked_sub(1);
            let height = table::height(pane);
            let chosen = line.and_then(|line| self.versions().in_pane(line, height));
            return chosen.map_or_else(Vec::new, |origin| self.choose(origin, cx));
        }
        if let Some(calls) = areas.calls.filter(|calls| calls.contains(click.at)) {
            let area = calls::list_area(calls);
            let rows = self
                .calls_shown()
                .map_or(0, |calls| self.shows.of(calls).len());
            let line = usize::from(click.at.y).checked_sub(usize::from(area.y) + 1);
            self.in_calls |= is_press;
            let height = table::height(area);
            let is_row =
                line.is_some_and(|line| self.call_list.press(click.what, line, rows, height));
            if is_row && click.what == Press::Double {
                return self.act(Command::Open, cx);
            }
            return Vec::new();
        }
        if !areas.listing.contains(click.at) {
            return Vec::new();
        }
        self.in_calls &= !is_press;
        let Some(line) = click.at.y.checked_sub(areas.listing.y + 1) else {
            return Vec::new();
        };
        let (rows, height) = (self.listing.visible.len(), table::height(areas.listing));
        let is_row = self.list.press(click.what, usize::from(line), rows, height);
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let which = self.wanted(cx);
        let is_same = match (&which, &self.which) {
            (Which::Subject(subject), Some(Which::Hottest)) => {
                Some(subject) == self.subject.as_ref()
            }
            (which, Some(before)) => which == before,
            (_, None) => true,
        };
        if !is_same {
            // Another method has other versions.
            self.origin = None;
        }
        self.which = Some(which.clone());
        let filter = cx.lens.filter().clone();
        let (asked, origin, until) = (which.clone(), self.origin, cx.end);
        let found = self
            .found
            .ask(FOUND, (which, origin), cx.stamp, move |profile, stop| {
                found::find(profile, &filter, &asked, origin, until, stop)
            });
        let filter = cx.lens.filter().clone();
        let hottest = self
            .hottest
            .ask(HOTTEST, (), cx.stamp, move |profile, stop| {
                found::hottest(profile, &filter, stop)
            });
        let calls = self
            .subject
            .clone()
            .filter(|_| self.shows != Shows::Nothing);
        let calls = calls.and_then(|subject| {
            let filter = cx.lens.filter().clone();
            let key = subject.clone();
            self.calls.ask(CALLS, key, cx.stamp, move |profile, stop| {
                vmscope_symbolizer::annotate::calls(profile, &filter, &subject, stop)
            })
        });
        found.into_iter().chain(hottest).chain(calls).collect()
    }

    fn answer(&mut self, number: u8, answer: Option<Answer>, cx: &Cx<'_>) {
        match number {
            FOUND => {
                self.found.take(answer);
                self.lay_out(cx);
                let origins = self.versions().all.iter().map(|version| version.origin);
                for origin in origins.collect::<Vec<_>>() {
                    self.remember(Own::Version(Some(origin)));
                }
                for own in [Own::Version(None), Own::Fold(true), Own::Fold(false)] {
                    self.remember(own);
                }
            }
            HOTTEST => {
                self.hottest.take(answer);
                let methods = self.hottest.get().into_iter().flatten();
                let methods = methods.map(|one| Own::Method(one.subject.clone()));
                for own in methods.collect::<Vec<_>>() {
                    self.remember(own);
                }
            }
            _ => self.calls.take(answer),
        }
    }

    fn effects(&mut self, cx: &Cx<'_>) -> Vec<Effect> {
        let Some(found) = self.shown_one() else {
            return Vec::new();
        };
        let mut names = items::wanted(&found.annotation);
        names.retain(|name| !self.texts.contains_key(name));
        if names.is_empty() {
            return Vec::new();
        }
        if self.texts.len() >= MAX_TEXTS {
            self.texts.clear();
        }
        let session = cx.profile.trace.session.as_ref();
        let recorded_ns = session.map_or(0, |session| session.wall_clock_unix_ns);
        let mut effects = Vec::new();
        for name in names {
            self.texts.insert(name.clone(), Text::Asked);
            effects.push(Effect::ReadSource { name, recorded_ns });
        }
        effects
    }

    fn source(&mut self, name: &str, source: Result<Source, String>, cx: &Cx<'_>) {
        if let Some(text) = self.texts.get_mut(name) {
            *text = match source {
                Ok(source) => Text::Read(source),
                Err(why) => Text::None(why),
            };
            self.lay_out(cx);
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let (items, now) = (&self.listing.items, self.current().unwrap_or(0));
        let found = (self.search).find(pattern, find, items.len(), now, |number, text| {
            let item = items.get(number);
            item.is_some_and(|item| text.is_in(&item.text) || item.number == pattern)
        });
        found.select(|number| self.select(number, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(found) = self.shown_one() else {
            let why = self.found.get().map(|found| found.why.as_str());
            let why = why.unwrap_or("Looking for the method with most samples ...");
            let columns = usize::from(area.width).saturating_sub(4).max(1);
            let text = wrap(why, columns, 0);
            let lines = text.lines().map(|line| Line::raw(format!("  {line}")));
            for (line, y) in lines.zip(area.y.saturating_add(1)..area.bottom()) {
                frame.render_widget(
                    line,
                    Rect {
                        y,
                        height: 1,
                        ..area
                    },
                );
            }
            return;
        };
        let areas = self.areas(cx);
        let lines = head::lines(found, cx).into_iter();
        for (line, y) in lines.zip(areas.head.y..areas.head.bottom()) {
            frame.render_widget(
                line,
                Rect {
                    y,
                    height: 1,
                    ..areas.head
                },
            );
        }
        if let Some(strip) = areas.strip {
            self.versions().draw_strip(cx, frame, strip);
        }
        if let Some(pane) = areas.pane {
            self.versions().draw_pane(cx, frame, pane);
        }
        let number = number_title(found);
        let machine = self.listing.shows_machine(self.machine, areas.listing);
        let look = (self.list, machine);
        self.listing.draw(cx, look, number, frame, areas.listing);
        if let Some(area) = areas.calls {
            let calls = (self.shows, self.calls_shown());
            calls::draw(cx, calls, (self.call_list, self.in_calls), frame, area);
        }
        if self.listing.items.is_empty() {
            let line = Line::styled("  no place in it has samples", cx.theme.style(Role::Dim));
            let (_, below) = split(areas.listing, 1);
            let (below, _) = split(below, 1);
            frame.render_widget(line, below);
        }
    }

    fn shown(&self, cx: &Cx<'_>) -> Shown {
        let Some(found) = self.shown_one() else {
            let why = self
                .found
                .get()
                .map_or_else(String::new, |found| found.why.clone());
            return Shown {
                title: "Method".to_owned(),
                parts: vec![Part::Text(vec![why])],
            };
        };
        let (name, place) = head::name(found);
        let place = place.map_or_else(String::new, |place| format!("  {place}"));
        let mut text = vec![head::figures(found)];
        let mut all = self.versions().all.iter();
        if let Some(version) = all.find(|version| Some(version.origin) == self.origin) {
            text.push(format!("only {}", versions::label(version, cx)));
        }
        if let Some(version) = found.machine_of.and_then(|at| found.versions.get(at)) {
            text.push(format!("machine code: of {}", versions::label(version, cx)));
        }
        let limits = limits(&found.annotation).into_iter();
        text.extend(limits.map(|limit| format!("! {limit}")));
        text.push(SKID.to_owned());
        let mut parts = vec![Part::Text(text)];
        if !found.versions.is_empty() {
            parts.push(Part::Table(self.versions().table(cx)));
        }
        parts.push(Part::Table(self.listing.table(number_title(found))));
        if let Some(calls) = self.calls_shown().filter(|_| self.shows != Shows::Nothing) {
            parts.push(Part::Table(calls::table(self.shows, calls)));
        }
        Shown {
            title: format!("Method {name}{place}"),
            parts,
        }
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        self.palette(cx)
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let mut all = self.versions().all.iter();
        let chosen = all.find(|version| Some(version.origin) == self.origin);
        chosen.map_or_else(String::new, |version| {
            format!("only {}", versions::label(version, cx))
        })
    }

    fn is_pending(&self) -> bool {
        let calls = self.shows != Shows::Nothing && self.calls.is_pending();
        self.found.is_pending() || calls
    }
}

impl Method {
    /// Only the method that is selected, in all views.
    fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
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
        vec![Act::Narrow(Narrow::Entries(entries))]
    }
}

/// What the lines' numbers are.
fn number_title(found: &Found) -> &'static str {
    if has_bytecodes(&found.annotation) {
        "pc"
    } else {
        "line"
    }
}

/// The first rows of an area, and the rest.
fn split(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let first = Rect {
        height: rows,
        ..area
    };
    let rest = Rect {
        y: area.y + rows,
        height: area.height - rows,
        ..area
    };
    (first, rest)
}
