//! One method: its bytecodes or source lines with samples in the margin, its versions, also
//! side by side, its machine code, who calls it and whom it calls.
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

mod areas;
mod asked;
mod beside;
mod calls;
mod drawn;
mod head;
mod items;
mod keys;
mod listing;
mod plan;
mod sides;
#[cfg(test)]
mod tests;
mod versions;
mod walk;
mod written;

use super::{Act, Choice, Click, Cx, Find, View};
use crate::annotate::source::Source;
use crate::present::document::Document;
use crate::queries::method::{Found, Which};
use crate::tui::event::Effect;
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::{Binding, Command};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::Search;
use beside::Beside;
use calls::Shows;
use items::{Text, Texts};
use listing::Listing;
use ratatui::Frame;
use ratatui::layout::Rect;
use sides::{Side, Sides};
use std::collections::VecDeque;
use versions::Versions;
use vmscope_symbolizer::annotate::{Calls, Candidate, Origin, Subject};
use vmscope_symbolizer::{EntryId, Stop};

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
#[derive(Clone, Debug, Default)]
pub struct Method {
    found: Fetched<(Which, Option<Origin>), Found>,
    hottest: Fetched<(), Vec<Candidate>>,
    calls: Fetched<Subject, Calls>,
    sides: Fetched<(Subject, Vec<Origin>), Sides>,
    listing: Listing,
    list: ListState,
    /// Which version is shown; `None` for all together.
    origin: Option<Origin>,
    /// Which versions are side by side.
    beside: Beside,
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

impl Method {
    fn shown_one(&self) -> Option<&Found> {
        self.found.get().filter(|found| found.subject.is_some())
    }

    fn versions(&self) -> Versions<'_> {
        Versions {
            all: self.shown_one().map_or(&[], |found| &found.versions),
            chosen: self.origin,
            are_newest: self.shown_one().is_some_and(|found| found.are_newest),
            pair: self.pair(),
        }
    }

    /// The two versions that are side by side, and that keys choose.
    fn pair(&self) -> Option<(Origin, Origin)> {
        let all = self.shown_one().map_or(&[][..], |found| &found.versions);
        self.beside.pair(all, self.origin)
    }

    /// The versions that are shown side by side: none where they are not, or are not yet
    /// worked out.
    fn sides_shown(&self) -> &[Side] {
        let of = self.sides.answered().map(|((subject, _), _)| subject);
        let sides = self.sides.get().filter(|_| of == self.subject.as_ref());
        match (self.pair(), sides) {
            (Some(_), Some(sides)) => &sides.all,
            _ => &[],
        }
    }

    fn calls_shown(&self) -> Option<&Calls> {
        // Those of another method say nothing.
        let of = self.calls.answered().map(|(subject, _)| subject);
        let calls = self.calls.get().filter(|_| of == self.subject.as_ref());
        calls.filter(|_| self.shows != Shows::Nothing)
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
        self.draw_all(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, _stop: &Stop) -> Option<Document> {
        Some(self.written(cx))
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        self.palette(cx)
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let versions = self.versions();
        let label = |origin: Origin| versions.of(origin).map(|one| versions::label(one, cx));
        if let Some((first, second)) = self.pair() {
            let name = |origin| versions.of(origin).map_or("", versions::name);
            return format!("{} beside {}", name(first), name(second));
        }
        let chosen = self.origin.and_then(label);
        chosen.map_or_else(String::new, |label| format!("only {label}"))
    }

    fn is_pending(&self) -> bool {
        let calls = self.shows != Shows::Nothing && self.calls.is_pending();
        let sides = self.pair().is_some() && self.sides.is_pending();
        self.found.is_pending() || sides || calls
    }
}
