//! State of the terminal UI. [`update`] is a pure function of state, profile and event; it returns
//! effects for the outside.

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
use super::view_id::ViewId;
use super::views::{Cx, View, make};
use crate::lifetimes::cache::LifetimesCache;
use crate::queries::inclusive::StackCache;
use crate::report::Loading;
pub use asking::Slow;
use asking::{Running, Summed};
use ratatui::crossterm::event::KeyEventKind;
use ratatui::layout::Position;
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::Duration;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Profile};

/// Progress of opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Under way, with the current step.
    Opening(Option<Loading>),
    /// Failed, with the reason.
    Failed(String),
    /// Open.
    Open,
}

/// State of the terminal UI.
pub struct App {
    /// Progress of opening.
    pub(super) stage: Stage,
    /// Name of the recording or process.
    pub(super) name: String,
    /// Terminal size: columns, rows.
    pub(super) size: (u16, u16),
    /// Terminal capabilities.
    pub(super) theme: Theme,
    /// Current meaning of keys.
    pub(super) mode: Mode,
    /// Current view.
    pub(super) current: ViewId,
    /// Filters.
    pub(super) filters: FilterState,
    /// Last message.
    pub(super) message: String,
    /// Warning about the recording as a whole; may be empty.
    pub(super) banner: String,
    /// State of a running process.
    pub(super) live: Option<LiveState>,
    /// Whether the picture is paused.
    pub(super) paused: bool,
    /// Seconds shown of a running process; `None` for all.
    pub(super) span: Option<u64>,
    /// Breadcrumb of the current profile.
    pub(super) crumbs: Vec<screen::Crumb>,
    views: Vec<(ViewId, Box<dyn View>)>,
    subject: Option<EntryId>,
    stacks: StackCache,
    /// Lifetimes of objects; without a source for a running process.
    pub(super) lifetimes: LifetimesCache,
    /// Whether the recording has lifetimes.
    has_lifetimes: bool,
    pattern: String,
    history: History,
    summary: Fetched<(), Summed>,
    /// Version of the profile, as asked about.
    generation: u64,
    /// Whether the profile has grown since.
    has_grown: bool,
    /// CPU time of answers still to be amortized: see `following::PAID`.
    debt: Duration,
    bounds: (TimeNs, TimeNs),
    tickets: u64,
    running: FxHashMap<Slot, Running>,
    /// Slots whose work was stopped before a new answer.
    older: FxHashSet<Slot>,
    last_click: Option<(Position, u64)>,
    /// Clipboard text and file contents under way, by number.
    copied: Fetched<u64, making::Made>,
    exported: Fetched<u64, making::Made>,
    /// Number of files written.
    exports: u32,
    /// Whether the user was warned that quitting loses samples.
    quit_asked: bool,
    /// Whether the recording is saved.
    is_saved: bool,
    /// Whether a mouse button pressed in the view is held.
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
    /// State before opening.
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
            views: ViewId::ALL.into_iter().map(|id| (id, make(id))).collect(),
            subject: None,
            stacks: StackCache::default(),
            lifetimes: LifetimesCache::default(),
            has_lifetimes: false,
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

    /// State for a running process, beginning with its last seconds.
    pub fn following(self, live: LiveState) -> Self {
        App {
            live: Some(live),
            span: Some(commands::SPANS[0]),
            ..self
        }
    }

    /// Views with tabs. Lifetime views have tabs only if the recording has lifetimes. Keys show
    /// all views.
    pub(super) fn tabs(&self) -> impl Iterator<Item = ViewId> {
        let has_lifetimes = self.has_lifetimes;
        let all = ViewId::ALL.into_iter();
        all.filter(move |id| has_lifetimes || !id.needs_lifetimes())
    }

    /// Whether the screen needs ticks: visible work is under way.
    pub fn is_busy(&self) -> bool {
        matches!(self.stage, Stage::Opening(_)) || !self.running.is_empty()
    }

    /// Reason of a failed opening.
    pub fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            Stage::Opening(_) | Stage::Open => None,
        }
    }

    /// Whether an answer is due.
    pub fn is_pending(&self) -> bool {
        self.summary.is_pending() || self.view().is_some_and(|view| view.is_pending())
    }

    /// Number of samples under the filters, once counted.
    pub(super) fn total(&self) -> Option<u64> {
        self.summary.get().map(|summed| summed.summary.total)
    }

    /// Number of limits on the accuracy.
    pub(super) fn limits(&self) -> usize {
        self.summary.get().map_or(0, |summed| summed.limits)
    }

    pub(crate) fn view(&self) -> Option<&dyn View> {
        let of_current = self.views.iter().find(|(id, _)| *id == self.current);
        of_current.map(|(_, view)| view.as_ref())
    }

    /// Context for views.
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
            stacks: &self.stacks,
            lifetimes: &self.lifetimes,
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

    /// Calls the current view with its context.
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
        // The context borrows the rest of the state, so the view leaves the list meanwhile.
        let (id, mut view) = self.views.swap_remove(at);
        let result = call(view.as_mut(), &self.cx(profile));
        self.views.push((id, view));
        Some(result)
    }
}

/// Handles an event. `profile` exists once the recording is open.
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
                // Source files belong to the method view alone.
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
