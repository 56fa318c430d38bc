//! The state of the terminal UI and how events change it: [`update`] is a pure function
//! of state, profile and event; what is to be done outside, it returns.

mod commands;
mod open;

use super::event::{Effect, Event};
use super::history::{History, Spot};
use super::jobs::{Fetched, Job, Question, Slot, Stamp, Stop};
use super::lens::{Lens, Narrow};
use super::live::{LiveNews, LiveState};
use super::mode::{Ask, Edited, Mode, edit, paste};
use super::screen::{self, Spots};
use super::theme::Theme;
use super::views::{Act, Click, Cx, Press, View, ViewId};
use ratatui::crossterm::event::{KeyEvent, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Profile, Summary};

/// Two clicks at one place within so many milliseconds are a double one.
const DOUBLE_CLICK_MS: u64 = 400;

/// A running process's picture grows each second, and is asked about anew when the answers
/// before were paid off with so much a second: they take a hundredth of a processor, however
/// much there is to be gone through.
const PAID: Duration = Duration::from_millis(10);

/// No answer is paid off for longer than this takes: ten seconds.
const MOST_DEBT: Duration = Duration::from_millis(100);

/// How far opening has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// So many bytes are read, of so many.
    Opening(u64, u64),
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
    pub(super) lens: Lens,
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
    /// How many things limit the truth of what is shown.
    pub(super) limits: usize,
    views: Vec<(ViewId, Box<dyn View>)>,
    subject: Option<EntryId>,
    pattern: String,
    history: History,
    summary: Fetched<(), Arc<Summary>>,
    /// Counts the profile's growth, as far as it was asked about.
    generation: u64,
    /// Whether it has grown since.
    has_grown: bool,
    /// What answers have taken that is not paid off yet: see [`PAID`].
    debt: Duration,
    bounds: (TimeNs, TimeNs),
    tickets: u64,
    running: FxHashMap<Slot, (u64, Stop)>,
    last_click: Option<(Position, u64)>,
    /// Files that were written.
    exports: u32,
    /// Whether quitting was asked for, and would lose something.
    quit_asked: bool,
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
            stage: Stage::Opening(0, 0),
            name,
            size,
            theme,
            mode: Mode::Normal,
            current: ViewId::Overview,
            lens: Lens::default(),
            message: String::new(),
            banner: String::new(),
            live: None,
            paused: false,
            span: None,
            crumbs: Vec::new(),
            limits: 0,
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
            last_click: None,
            exports: 0,
            quit_asked: false,
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
        matches!(self.stage, Stage::Opening(..)) || !self.running.is_empty()
    }

    /// Why nothing could be opened.
    pub fn failure(&self) -> Option<&str> {
        match &self.stage {
            Stage::Failed(why) => Some(why),
            Stage::Opening(..) | Stage::Open => None,
        }
    }

    /// Whether an answer is being waited for.
    pub fn is_pending(&self) -> bool {
        self.summary.is_pending() || self.view().is_some_and(|view| view.is_pending())
    }

    /// The samples that are shown, as far as they are counted.
    pub(super) fn total(&self) -> Option<u64> {
        self.summary.get().map(|summary| summary.total)
    }

    pub(super) fn view(&self) -> Option<&dyn View> {
        let of_current = self.views.iter().find(|(id, _)| *id == self.current);
        of_current.map(|(_, view)| view.as_ref())
    }

    /// What views are given.
    pub(super) fn cx<'a>(&'a self, profile: &'a Profile) -> Cx<'a> {
        Cx {
            profile,
            lens: &self.lens,
            summary: self.summary.get(),
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
            lens: self.lens.version(),
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

    fn spot(&self) -> Spot {
        Spot {
            view: self.current,
            lens: self.lens.clone(),
            subject: self.subject,
            span: self.span,
        }
    }
}

/// Takes an event. `profile` is there once the recording is open.
pub fn update(app: &mut App, profile: Option<&Profile>, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Resize(columns, rows) => app.size = (columns, rows),
        Event::Opening(read, all) => {
            if matches!(app.stage, Stage::Opening(..)) {
                app.stage = Stage::Opening(read, all);
            }
        }
        Event::Opened => {
            if let Some(profile) = profile {
                app.open(profile);
            }
        }
        Event::Failed(why) => app.stage = Stage::Failed(why),
        Event::Said(text) => app.message = text,
        Event::Tick => {}
        Event::TerminalGone => effects.push(Effect::Quit),
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            app.key(profile, &key, &mut effects);
        }
        Event::Key(_) => {}
        Event::Mouse(mouse, at_ms) => app.mouse(profile, mouse, at_ms),
        Event::Paste(text) => app.pasted(profile, &text),
        Event::Done(done) => {
            app.debt = (app.debt + done.took).min(MOST_DEBT);
            let newest = app
                .running
                .get(&done.slot)
                .is_some_and(|(t, _)| *t == done.ticket);
            if newest {
                app.running.remove(&done.slot);
                let is_answered = done.answer.is_some();
                app.answered(profile, done.slot, done.answer);
                if !is_answered {
                    // Asked again, there may be no answer either: it must not hold up others.
                    app.grow(profile);
                }
            }
        }
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

impl App {
    /// Asks what is not known yet.
    fn ask(&mut self, profile: &Profile, effects: &mut Vec<Effect>) {
        let (stamp, filter) = (self.stamp(), self.lens.filter().clone());
        let summary = self.summary.ask(0, (), stamp, move |profile, stop| {
            Some(Arc::new(Summary::of_stoppable(profile, &filter, stop)?))
        });
        if let Some(question) = summary {
            self.start(Slot::Summary, question, effects);
        }
        let current = self.current;
        let questions = self.with_view(profile, |view, cx| view.questions(cx));
        for question in questions.into_iter().flatten() {
            self.start(Slot::View(current, question.number), question, effects);
        }
        let wanted = self.with_view(profile, |view, cx| view.effects(cx));
        effects.extend(wanted.into_iter().flatten());
    }

    fn start(&mut self, slot: Slot, question: Question, effects: &mut Vec<Effect>) {
        self.tickets += 1;
        let stop = Stop::default();
        let ticket = self.tickets;
        if let Some((_, older)) = self.running.insert(slot, (ticket, stop.clone())) {
            older.stop();
        }
        effects.push(Effect::Work(Job {
            slot,
            ticket,
            stop,
            work: question.work,
        }));
    }

    fn answered(
        &mut self,
        profile: Option<&Profile>,
        slot: Slot,
        answer: Option<super::jobs::Answer>,
    ) {
        match slot {
            Slot::Summary => {
                self.summary.take(answer);
                if let (Some(profile), Some(summary)) = (profile, self.summary.get()) {
                    self.limits = crate::report::truth::truth_of(profile, summary).len();
                }
            }
            Slot::View(id, number) => {
                if let Some(profile) = profile {
                    self.with_view_of(id, profile, |view, cx| view.answer(number, answer, cx));
                }
            }
        }
    }

    fn key(&mut self, profile: Option<&Profile>, key: &KeyEvent, effects: &mut Vec<Effect>) {
        match std::mem::take(&mut self.mode) {
            Mode::Normal => {
                self.message.clear();
                let own = self.view().map_or(&[][..], |view| view.bindings());
                let live = self.live.is_some();
                if let Some(command) = super::keys::command_of(key, own, live) {
                    self.command(profile, command, effects);
                }
            }
            Mode::Help(line) => self.mode = self.help_key(line, key),
            Mode::Search(mut input) => {
                let edited = edit(&mut input, key);
                match edited {
                    Edited::Cancelled => self.search(profile, ""),
                    Edited::Entered => {}
                    Edited::Changed | Edited::Ignored => {
                        let pattern = input.value().to_owned();
                        self.mode = Mode::Search(input);
                        if edited == Edited::Changed {
                            self.search(profile, &pattern);
                        }
                    }
                }
            }
            Mode::Palette(palette) => self.palette_key(profile, palette, key, effects),
            Mode::Ask(ask, mut input) => match edit(&mut input, key) {
                Edited::Cancelled => {}
                Edited::Entered => self.told(profile, ask, input.value(), effects),
                Edited::Changed | Edited::Ignored => self.mode = Mode::Ask(ask, input),
            },
        }
    }

    fn pasted(&mut self, profile: Option<&Profile>, text: &str) {
        match &mut self.mode {
            Mode::Search(input) => {
                paste(input, text);
                let pattern = input.value().to_owned();
                self.search(profile, &pattern);
            }
            Mode::Palette(palette) => {
                paste(&mut palette.input, text);
                palette.refresh();
            }
            Mode::Ask(_, input) => paste(input, text),
            Mode::Normal | Mode::Help(_) => {}
        }
    }

    /// Searches in the view for what is typed so far.
    fn search(&mut self, profile: Option<&Profile>, pattern: &str) {
        self.pattern = pattern.to_owned();
        self.find(profile, super::views::Find::Here);
    }

    fn find(&mut self, profile: Option<&Profile>, find: super::views::Find) {
        let pattern = self.pattern.clone();
        let Some(profile) = profile else {
            return;
        };
        let found = self.with_view(profile, |view, cx| view.find(&pattern, find, cx));
        self.message = if found == Some(true) || pattern.is_empty() {
            String::new()
        } else {
            format!("nothing here is called `{pattern}`")
        };
    }

    fn mouse(&mut self, profile: Option<&Profile>, mouse: MouseEvent, at_ms: u64) {
        let at = Position::new(mouse.column, mouse.row);
        let what = match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => {
                let again = self.last_click.take().is_some_and(|(place, then)| {
                    place == at && at_ms.saturating_sub(then) < DOUBLE_CLICK_MS
                });
                if again {
                    Press::Double
                } else {
                    self.last_click = Some((at, at_ms));
                    Press::Down
                }
            }
            MouseEventKind::Drag(MouseButton::Left) => Press::Drag,
            MouseEventKind::Up(MouseButton::Left) => Press::Up,
            MouseEventKind::ScrollUp => Press::WheelUp,
            MouseEventKind::ScrollDown => Press::WheelDown,
            _ => return,
        };
        let was_held = std::mem::take(&mut self.held_button);
        let Some(profile) = profile.filter(|_| matches!(self.mode, Mode::Normal)) else {
            return;
        };
        if what == Press::Down {
            match screen::spot_at(self, at) {
                Some(Spots::Tab(id)) => return self.show(id),
                Some(Spots::Crumb(kind)) => return self.narrow(Narrow::Drop(kind)),
                Some(Spots::Limits) => return self.show(ViewId::Truth),
                None => {}
            }
        }
        let body: Rect = screen::body(self);
        let is_inside = body.contains(at);
        // What began in the view ends there, wherever the mouse has gone.
        let goes_on = was_held && matches!(what, Press::Drag | Press::Up) && !body.is_empty();
        self.held_button = match what {
            Press::Down | Press::Double => is_inside,
            Press::Up => false,
            Press::Drag | Press::WheelUp | Press::WheelDown => was_held,
        };
        if is_inside || goes_on {
            let at = Position::new(
                at.x.clamp(body.x, body.right().saturating_sub(1).max(body.x)),
                at.y.clamp(body.y, body.bottom().saturating_sub(1).max(body.y)),
            );
            let click = Click { at, what };
            let acts = self.with_view(profile, |view, cx| view.click(click, cx));
            self.acts(acts.unwrap_or_default());
        }
    }

    fn live_news(&mut self, profile: Option<&Profile>, news: LiveNews) {
        let LiveNews::Grown(state) = news;
        // Data that can't grow any more is not held back.
        if self.paused && !state.ended.is_empty() {
            self.paused = false;
            self.lens.hold(None);
        }
        if let Some(profile) = profile.filter(|_| !self.paused) {
            self.banner = open::banner(profile, Some(&state));
            self.has_grown = true;
        }
        self.debt = match state.ended.is_empty() {
            true => self.debt.saturating_sub(PAID),
            // The last time that it grows is shown at once.
            false => Duration::ZERO,
        };
        self.live = Some(state);
    }

    /// Turns to the profile as it has grown, once all that is shown was answered about it as
    /// it was: asked anew each second, what takes longer than that would never be answered.
    /// And what takes long is asked for the less often.
    /// Returns whether it did.
    fn grow(&mut self, profile: Option<&Profile>) -> bool {
        let is_shown = |slot: &Slot| match slot {
            Slot::Summary => true,
            Slot::View(id, _) => *id == self.current,
        };
        let is_asking = self.running.keys().any(is_shown);
        let Some(profile) = profile.filter(|_| self.has_grown && !self.paused && !is_asking) else {
            return false;
        };
        if !self.debt.is_zero() {
            return false;
        }
        self.has_grown = false;
        self.generation += 1;
        self.bounds = open::bounds(profile, self.live.as_ref().map(|live| live.until));
        self.follow_span();
        true
    }

    /// Moves the window along, where only the last seconds are shown.
    fn follow_span(&mut self) {
        if let Some(seconds) = self.span {
            let (begin, end) = self.bounds;
            let from = end.0.saturating_sub(seconds.saturating_mul(1_000_000_000));
            let window = (TimeNs(from.max(begin.0)), TimeNs(end.0.saturating_add(1)));
            self.lens.narrow(Narrow::Window(Some(window)));
        }
    }

    /// What was typed as an answer to a question of ours.
    fn told(&mut self, profile: Option<&Profile>, ask: Ask, text: &str, effects: &mut Vec<Effect>) {
        let Some(profile) = profile else {
            return;
        };
        match ask {
            Ask::Export => self.export_to(profile, text, effects),
            Ask::Mark => effects.push(Effect::Live(super::live::LiveOrder::Mark(text.to_owned()))),
            Ask::Save if text.is_empty() => {}
            Ask::Save => {
                self.quit_asked = true;
                effects.push(Effect::Live(super::live::LiveOrder::Save(text.into())));
            }
            Ask::Names => {
                let names = [text.trim().to_owned()];
                let names = names.into_iter().filter(|name| !name.is_empty());
                self.narrow(Narrow::Names(names.collect()));
            }
            Ask::Window => match open::parse_window(text, self.bounds) {
                Some(window) => self.narrow(Narrow::Window(Some(window))),
                None => self.message = format!("`{text}` is no window: give two seconds, as 1.5-3"),
            },
        }
    }

    /// Does what a view wants done.
    fn acts(&mut self, acts: Vec<Act>) {
        let left = self.history.left();
        for act in acts {
            match act {
                Act::Narrow(narrow) => self.narrow(narrow),
                Act::Annotate(entry) => {
                    self.history.leave(self.spot());
                    self.subject = Some(entry);
                    self.current = ViewId::Method;
                }
                Act::Show(id) => self.show(id),
                Act::Say(text) => self.message = text,
            }
        }
        self.history.join(left);
    }

    fn show(&mut self, id: ViewId) {
        if id != self.current {
            self.history.leave(self.spot());
            self.current = id;
        }
    }

    fn narrow(&mut self, narrow: Narrow) {
        let before = self.spot();
        let window = self.lens.window();
        if self.lens.narrow(narrow) {
            self.history.leave(before);
            // Another window is one that does not move along.
            if self.lens.window() != window {
                self.span = None;
            }
        }
    }
}
