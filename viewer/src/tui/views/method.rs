//! One method: its bytecodes or source lines with samples in the margin, its versions, also
//! side by side, its machine code, who calls it and whom it calls.
//!
//! ```text
//! OrderBook.match  OrderBook.java:31
//! 5.67% ±0.51 of all: 712 samples; tiers: C2 600, C1 112
//! [all 712] | C1 0.8-3.1 s 1,204 B 112 samples (gone) | C2 3.0- s 812 B 600 samples
//!   share bar  samples    pc  line
//!  12.30% ███       74    14    33  ▾ invokevirtual ...
//!   4.10% █         25               ↳ PriceLevel.peek @3
//! ▶ callers: 712 samples ...
//! ```

mod areas;
mod asked;
mod beside;
mod calls;
mod head;
mod items;
mod keys;
mod listing;
mod moves;
mod sides;
#[cfg(test)]
mod tests;
mod versions;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::annotate::layout::has_bytecodes;
use crate::annotate::source::Source;
use crate::present::document::{Document, Part};
use crate::queries::method::{Found, Which};
use crate::tui::event::Effect;
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::{Binding, Command};
use crate::tui::widgets::data_table::DataTable;
use beside::Beside;
use calls::Shows;
use items::{Item, Text, Texts};
use listing::Page;
use ratatui::Frame;
use ratatui::layout::Rect;
use sides::Side;
use std::collections::VecDeque;
use versions::Versions;
use vmscope_symbolizer::annotate::{Annotation, Calls, Candidate, Origin, Subject};
use vmscope_symbolizer::{EntryId, Stop};

/// Maximum number of source files in memory.
const MAX_TEXTS: usize = 32;

/// Maximum number of remembered palette lines.
const MAX_CHOICES: usize = 2000;

/// A line of the palette.
#[derive(Clone, Debug, PartialEq)]
enum Own {
    Method(Subject),
    Version(Option<Origin>),
    Fold(bool),
}

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Method {
    found: Fetched<(Which, Option<Origin>), Found>,
    hottest: Fetched<(), Vec<Candidate>>,
    calls: Fetched<Subject, Calls>,
    sides: Fetched<(Subject, Vec<Origin>), Vec<Side>>,
    /// The method, with its call sites where stacks were recorded.
    annotation: Annotation,
    /// Lines of the listing, folded or not.
    items: Vec<Item>,
    table: listing::Table,
    /// The version shown alone; `None` for all together.
    origin: Option<Origin>,
    /// Versions side by side.
    beside: Beside,
    /// The last request.
    which: Option<Which>,
    /// The method on the screen.
    subject: Option<Subject>,
    /// A method without an entry, chosen in place of the opened entry.
    over: Option<(Option<EntryId>, Subject)>,
    shows: Shows,
    call_table: calls::Table,
    /// Whether keys move in the callers.
    in_calls: bool,
    /// Whether the user switched machine code on or off, against the screen's width.
    machine: bool,
    texts: Texts,
    /// Palette lines by number; numbers stay valid while the palette is open.
    own: VecDeque<(u16, Own)>,
    next_own: u16,
}

impl Method {
    fn annotated(&self) -> Option<&Found> {
        self.found.get().filter(|found| found.subject.is_some())
    }

    fn versions<'a>(&'a self, cx: &Cx<'a>) -> Versions<'a> {
        Versions {
            cx: *cx,
            all: self.annotated().map_or(&[], |found| &found.versions),
            chosen: self.origin,
            are_newest: self.annotated().is_some_and(|found| found.are_newest),
            pair: self.pair(),
        }
    }

    /// The first two versions side by side.
    fn pair(&self) -> Option<(Origin, Origin)> {
        let all = self.annotated().map_or(&[][..], |found| &found.versions);
        self.beside.pair(all, self.origin)
    }

    /// Versions side by side; empty before their answer.
    fn sides_shown(&self) -> &[Side] {
        let of = self.sides.answered().map(|((subject, _), _)| subject);
        let sides = self.sides.get().filter(|_| of == self.subject.as_ref());
        match (self.pair(), sides) {
            (Some(_), Some(sides)) => sides,
            _ => &[],
        }
    }

    /// Calls of the method on the screen.
    fn calls(&self) -> Option<&Calls> {
        let of = self.calls.answered().map(|(subject, _)| subject);
        self.calls.get().filter(|_| of == self.subject.as_ref())
    }

    /// Calls of the method on the screen, where the pane is open.
    fn calls_shown(&self) -> Option<&Calls> {
        self.calls().filter(|_| self.shows != Shows::Nothing)
    }

    /// Calls from recorded stacks, of all versions together.
    fn calls_of_stacks(&self, cx: &Cx<'_>) -> Option<&Calls> {
        let is_whole = self.origin.is_none() || self.beside.on;
        let has_stacks = !cx.profile.trace.chains.is_empty();
        self.calls().filter(|_| is_whole && has_stacks)
    }

    fn page<'a>(&'a self, cx: &Cx<'a>) -> Page<'a> {
        let (versions, found) = (self.versions(cx), self.annotated());
        let sides = self.sides_shown().iter().map(|side| {
            let at = versions.place_of(side.origin).unwrap_or_default();
            let name = versions.all.get(at).map_or("", versions::name);
            (format!("{} {name}", at + 1), side)
        });
        let own = self.items.iter().map(|item| item.counts.own);
        Page {
            items: &self.items,
            samples: found.map_or(0, |found| found.annotation.all.samples()),
            most: own.max().unwrap_or(0),
            number: match has_bytecodes(&self.annotation) {
                true => "pc",
                false => "line",
            },
            sides: sides.collect(),
            machine: self.machine,
        }
    }

    /// Calls the listing's table with its data and its height.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut listing::Table, &Page<'_>, usize) -> T,
    ) -> T {
        let mut table = std::mem::take(&mut self.table);
        let height = DataTable::<usize, u64>::height(self.areas(cx).listing);
        let result = call(&mut table, &self.page(cx), height);
        self.table = table;
        result
    }

    /// Calls the table of calls with its data and its height, where the pane shows calls.
    fn with_calls<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut calls::Table, &calls::Page<'_>, Rect) -> T,
    ) -> Option<T> {
        let mut table = std::mem::take(&mut self.call_table);
        let area = self.areas(cx).calls.map(areas::below_title);
        let result = area.zip(self.calls_shown()).map(|(area, calls)| {
            let page = calls::Page::of(self.shows, calls, cx.profile.is_native());
            call(&mut table, &page, area)
        });
        self.call_table = table;
        result
    }

    /// Document for copying and exporting.
    fn document(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let Some(found) = self.annotated() else {
            let why = self.found.get().map(|found| found.why.clone());
            return Some(Document {
                title: "Method".to_owned(),
                parts: vec![Part::Text(vec![why.unwrap_or_default()])],
            });
        };
        let (name, place) = head::name(found);
        let place = place.map_or_else(String::new, |place| format!("  {place}"));
        let versions = self.versions(cx);
        let mut parts = vec![Part::Text(head::exported(
            found,
            self.calls_of_stacks(cx),
            &versions,
            self.sides_shown(),
        ))];
        if !versions.all.is_empty() {
            let mut table = DataTable::export(&versions, 1..versions.all.len() + 1, stop)?;
            table.title = "versions".to_owned();
            parts.push(Part::Table(table));
        }
        let exported = (0..self.items.len()).filter(|&at| self.items[at].plain.is_some());
        let exported: Vec<usize> = exported.collect();
        let mut table = DataTable::export(&self.page(cx), exported.into_iter(), stop)?;
        table.title = "listing".to_owned();
        parts.push(Part::Table(table));
        if let Some(calls) = self.calls_shown() {
            let page = calls::Page::of(self.shows, calls, cx.profile.is_native());
            let mut table = DataTable::export(&page, 0..page.all.len(), stop)?;
            table.title = self.shows.name().to_owned();
            parts.push(Part::Table(table));
        }
        Some(Document {
            title: format!("Method {name}{place}"),
            parts,
        })
    }
}

impl View for Method {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        keys::BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        self.command(command, cx)
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        self.pressed(click, cx)
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        self.asked(cx)
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.answered(ended, cx);
    }

    fn effects(&mut self, cx: &Cx<'_>) -> Vec<Effect> {
        if self.annotated().is_none() {
            return Vec::new();
        }
        let mut names = items::wanted(&self.annotation);
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
        self.with_table(cx, |table, page, height| {
            table.find(pattern, find, page, height)
        })
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_all(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.document(cx, stop)
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        self.palette(cx)
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let versions = self.versions(cx);
        let name = |origin| versions.of(origin).map_or("", versions::name);
        match (
            self.pair(),
            self.origin.and_then(|origin| versions.of(origin)),
        ) {
            (Some((first, second)), _) => format!("{} beside {}", name(first), name(second)),
            (None, Some(version)) => format!("only {}", versions.label(version)),
            (None, None) => String::new(),
        }
    }

    fn is_pending(&self) -> bool {
        let sides = self.pair().is_some() && self.sides.is_pending();
        self.found.is_pending() || sides || self.calls.is_pending()
    }
}
