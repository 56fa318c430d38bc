//! The state of the terminal UI and how events change it: [`update`] is a pure function
//! of state, profile and event; what is to be done outside, it returns.

mod asking;
mod commands;
mod following;
mod input;
mod making;
mod open;
mod steps;

use super::event::{Effect, Event};
use super::filter_state::FilterState;
use super::history::History;
use super::jobs::{Fetched, Slot, Stamp};
use super::live::LiveState;
use super::mode::Mode;
use super::screen;
use super::theme::Theme;
use super::views::{Cx, View, ViewId};
use crate::report::Loading;
pub use asking::Slow;
use asking::{Running, Summed};
use ratatui::crossterm::event::KeyEventKind;
use ratatui::layout::Position;
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::Duration;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Profile};

/// How far opening has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It goes on; what it is at, once that is told.
    Opening(Option<Loading>),
    /// It can't be opened; why.
    Failed(String),
    /// It is open.
    Open,
}

/// The state.
pub struct App {
    /// How far opening has come.
    pub(super) stage: Stage,
    /// What is shown: a file's name, a process.
    pub(super) name: String,
    /// Columns and rows of the terminal.
    pub(super) size: (u16, u16),
    /// What the terminal can show.
    pub(super) theme: Theme,
    /// What keys mean.
    pub(super) mode: Mode,
    /// Which view is shown.
    pub(super) current: ViewId,
    /// The filters.
    pub(super) filters: FilterState,
    /// What was said last.
    pub(super) message: String,
    /// What is wrong with the recording as a whole; may be empty.
    pub(super) banner: String,
    /// Of a running process.
    pub(super) live: Option<LiveState>,
    /// Whether the picture is held.
    pub(super) paused: bool,
    /// How many seconds are shown of a running process; `None` for all.
    pub(super) span: Option<u64>,
    /// What the breadcrumb is made of, where it was drawn for the profile as it is now.
    pub(super) crumbs: Vec<screen::Crumb>,
    views: Vec<(ViewId, Box<dyn View>)>,
    subject: Option<EntryId>,
    pattern: String,
    history: History,
    summary: Fetched<(), Summed>,
    /// Counts the profile's growth, as far as it was asked about.
    generation: u64,
    /// Whether it has grown since.
    has_grown: bool,
    /// What answers have taken that is not paid off yet: see `following::PAID`.
    debt: Duration,
    bounds: (TimeNs, TimeNs),
    tickets: u64,
    running: FxHashMap<Slot, Running>,
    /// What was stopped before it was worked out anew.
    older: FxHashSet<Slot>,
    last_click: Option<(Position, u64)>,
    /// What is copied, and what is written to a file, by their numbers.
    copied: Fetched<u64, making::Made>,
    exported: Fetched<u64, making::Made>,
    /// Files that were written.
    exports: u32,
    /// Whether quitting was asked for just now, and would lose something.
    quit_asked: bool,
    /// Whether what was recorded was saved.
    is_saved: bool,
    /// Whether a button is held that was pressed in the view.
    held_button: bool,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("stage", &self.stage)
            .field("view", &self.current)
            .finish_non_exhaustive()
    }
}

impl App {
    /// Before anything is open.
    pub fn new(name: String, theme: Theme, size: (u16, u16)) -> Self {
        App {
            stage: Stage::Opening(None),
            name,
            size,
            theme,
            mode: Mode::Normal,
            current: ViewId::Overview,
            filters: FilterState::default(),
            message: String::new(),
            banner: String::new(),
            live: None,
            paused: false,
            span: None,
            crumbs: Vec::new(),
            views: ViewId::ALL.into_iter().map(|id| (id, id.make())).collect(),
            subject: None,
            pattern: String::new(),
            history: History::default(),
            summary: Fetched::default(),
            generation: 0,
            has_grown: false,
            debt: Duration::ZERO,
            bounds: (TimeNs(0), TimeNs(0)),
            tickets: 0,
            running: FxHashMap::default(),
            older: FxHashSet::default(),
            last_click: None,
            copied: Fetched::default(),
            exported: Fetched::default(),
            exports: 0,
            quit_asked: false,
            is_saved: false,
            held_button: false,
        }
    }

    /// The same for a running process.
    pub fn following(self, live: LiveState) -> Self {
        App {
            live: Some(live),
            ..self
        }
    }

    /// Whether time has to be told: something goes on that is shown.
    pub fn is_busy(&self) -> bool {
        matches!(self.stage, Stage::Opening(_)) || !self.running.is_empty()
    }

    /// Why nothing could be opened.
    pub fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            Stage::Opening(_) | Stage::Open => None,
        }
    }

    /// Whether an answer is being waited for.
    pub fn is_pending(&self) -> bool {
        self.summary.is_pending() || self.view().is_some_and(|view| view.is_pending())
    }

    /// The samples that are shown, as far as they are counted.
    pub(super) fn total(&self) -> Option<u64> {
        self.summary.get().map(|summed| summed.summary.total)
    }

    /// How many things limit the truth of them.
    pub(super) fn limits(&self) -> usize {
        self.summary.get().map_or(0, |summed| summed.limits)
    }

    pub(super) fn view(&self) -> Option<&dyn View> {
        let of_current = self.views.iter().find(|(id, _)| *id == self.current);
        of_current.map(|(_, view)| view.as_ref())
    }

    /// What views are given.
    pub(super) fn cx<'a>(&'a self, profile: &'a Profile) -> Cx<'a> {
        Cx {
            profile,
            filters: &self.filters,
            summary: self.summary.get().map(|summed| &summed.summary),
            stamp: self.stamp(),
            summed: self
                .summary
                .answered()
                .map_or(Stamp::default(), |(_, stamp)| *stamp),
            begin: self.bounds.0,
            end: self.bounds.1,
            subject: self.subject,
            theme: &self.theme,
            area: screen::body(self),
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp {
            filters: self.filters.version(),
            profile: self.generation,
        }
    }

    /// Calls the current view with what views are given.
    fn with_view<T>(
        &mut self,
        profile: &Profile,
        call: impl FnOnce(&mut dyn View, &Cx<'_>) -> T,
    ) -> Option<T> {
        self.with_view_of(self.current, profile, call)
    }

    fn with_view_of<T>(
        &mut self,
        id: ViewId,
        profile: &Profile,
        call: impl FnOnce(&mut dyn View, &Cx<'_>) -> T,
    ) -> Option<T> {
        let at = self.views.iter().position(|(other, _)| *other == id)?;
        // Taken out meanwhile: what it is given borrows the rest.
        let (id, mut view) = self.views.swap_remove(at);
        let result = call(view.as_mut(), &self.cx(profile));
        self.views.push((id, view));
        Some(result)
    }
}

/// Takes an event. `profile` is there once the recording is open.
pub fn update(app: &mut App, profile: Option<&Profile>, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Resize(columns, rows) => app.size = (columns, rows),
        Event::Opening(loading) => {
            if matches!(app.stage, Stage::Opening(_)) {
                app.stage = Stage::Opening(Some(loading));
            }
        }
        Event::Opened => {
            if let Some(profile) = profile {
                app.open(profile);
            }
        }
        Event::Failed(why) => app.stage = Stage::Failed(why),
        Event::Said(text) => app.message = text,
        Event::Tick => app.tick(),
        Event::TerminalGone => effects.push(Effect::Quit),
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            app.key(profile, &key, &mut effects);
        }
        Event::Key(_) => {}
        Event::Mouse(mouse, at_ms) => app.mouse(profile, mouse, at_ms),
        Event::Paste(text) => app.pasted(profile, &text),
        Event::Done(done) => app.done(profile, done, &mut effects),
        Event::Saved(saved) => app.saved(saved),
        Event::Live(news) => app.live_news(profile, news),
        Event::Source(name, source) => {
            if let Some(profile) = profile {
                // The method's view alone shows any.
                app.with_view_of(ViewId::Method, profile, |view, cx| {
                    view.source(&name, source, cx);
                });
            }
        }
    }
    if let Some(profile) = profile
        && app.stage == Stage::Open
    {
        app.ask(profile, &mut effects);
        if app.grow(Some(profile)) {
            app.ask(profile, &mut effects);
        }
        app.crumbs = screen::crumbs(app, profile);
    }
    effects
}
