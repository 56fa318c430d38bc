//! The views: one file each. A view knows the profile and the filters, nothing of
//! terminals, files or processes; it draws as a pure function of what it holds.

mod callers;
mod collector;
mod empty;
mod hot;
mod method;
mod overview;
mod threads;
mod timeline;
mod truth;
mod zone;

use super::event::Effect;
use super::filter_state::{FilterChange, FilterState};
use super::jobs::{Question, QuestionId, Stamp};
use super::keys::{Binding, Command};
use super::theme::Theme;
use crate::annotate::source::Source;
use crate::present::document::Document;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Profile, Stop, Summary};

/// The views, in the order of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViewId {
    /// What this recording is and where its time went.
    Overview,
    /// All entries.
    Hot,
    /// One method.
    Method,
    /// Over time.
    Timeline,
    /// By address.
    Zone,
    /// Collections.
    Collector,
    /// Who calls whom.
    Callers,
    /// Threads.
    Threads,
    /// What limits it.
    Truth,
}

impl ViewId {
    /// All, in the order of their keys.
    pub const ALL: [ViewId; 9] = [
        ViewId::Overview,
        ViewId::Hot,
        ViewId::Method,
        ViewId::Timeline,
        ViewId::Zone,
        ViewId::Collector,
        ViewId::Callers,
        ViewId::Threads,
        ViewId::Truth,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ViewId::Overview => "Overview",
            ViewId::Hot => "Hot list",
            ViewId::Method => "Method",
            ViewId::Timeline => "Timeline",
            ViewId::Zone => "Zone",
            ViewId::Collector => "Collector",
            ViewId::Callers => "Callers",
            ViewId::Threads => "Threads",
            ViewId::Truth => "Truth",
        }
    }

    /// The same in at most eight columns, for tabs where there is little room.
    pub const fn short(self) -> &'static str {
        match self {
            ViewId::Hot => "Hot",
            ViewId::Timeline => "Time",
            ViewId::Collector => "GC",
            other => other.name(),
        }
    }

    /// A new view.
    pub fn make(self) -> Box<dyn View> {
        match self {
            ViewId::Overview => Box::new(overview::Overview::default()),
            ViewId::Hot => Box::new(hot::Hot::default()),
            ViewId::Method => Box::new(method::Method::default()),
            ViewId::Timeline => Box::new(timeline::Timeline::default()),
            ViewId::Zone => Box::new(zone::Zone::default()),
            ViewId::Collector => Box::new(collector::Collector::default()),
            ViewId::Callers => Box::new(callers::Callers::default()),
            ViewId::Threads => Box::new(threads::Threads::default()),
            ViewId::Truth => Box::new(truth::Truth::default()),
        }
    }
}

/// What all views are given.
#[derive(Clone, Copy, Debug)]
pub struct Cx<'a> {
    /// What is shown.
    pub profile: &'a Profile,
    /// The filters.
    pub filters: &'a FilterState,
    /// The newest summary, which may be of older filters; `None` before the first.
    pub summary: Option<&'a Arc<Summary>>,
    /// What questions are asked about.
    pub stamp: Stamp,
    /// What the newest summary was asked about.
    pub summed: Stamp,
    /// When the recording begins: what times are counted from.
    pub begin: TimeNs,
    /// When it ends, or until when it is shown.
    pub end: TimeNs,
    /// The entry that was opened last.
    pub subject: Option<EntryId>,
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// Where the view is drawn.
    pub area: Rect,
}

/// What views are given, kept for work that is done elsewhere.
#[derive(Clone, Debug)]
pub struct KeptCx {
    filters: FilterState,
    summary: Option<Arc<Summary>>,
    stamp: Stamp,
    summed: Stamp,
    begin: TimeNs,
    end: TimeNs,
    subject: Option<EntryId>,
    theme: Theme,
    area: Rect,
}

impl KeptCx {
    /// The same again, of the profile, which may have grown since.
    pub fn cx<'a>(&'a self, profile: &'a Profile) -> Cx<'a> {
        Cx {
            profile,
            filters: &self.filters,
            summary: self.summary.as_ref(),
            stamp: self.stamp,
            summed: self.summed,
            begin: self.begin,
            end: self.end,
            subject: self.subject,
            theme: &self.theme,
            area: self.area,
        }
    }
}

impl Cx<'_> {
    /// All but the profile, for work that is done elsewhere.
    pub fn keep(&self) -> KeptCx {
        KeptCx {
            filters: self.filters.clone(),
            summary: self.summary.cloned(),
            stamp: self.stamp,
            summed: self.summed,
            begin: self.begin,
            end: self.end,
            subject: self.subject,
            theme: *self.theme,
            area: self.area,
        }
    }

    /// The time of which samples are kept: all, but for a live profile's older ones.
    pub fn kept(&self) -> (TimeNs, TimeNs) {
        let from = self.profile.time_buckets.kept_from();
        let from = from.map_or(self.begin, |from| from.clamp(self.begin, self.end));
        (from, self.end)
    }

    /// The window that is shown: the one chosen, or all.
    pub fn window(&self) -> (TimeNs, TimeNs) {
        self.filters.window().unwrap_or((self.begin, self.end))
    }

    /// The window that charts of samples show: the one chosen, or all that is kept.
    pub fn kept_window(&self) -> (TimeNs, TimeNs) {
        self.filters.window().unwrap_or(self.kept())
    }

    /// Seconds since the recording's beginning.
    pub fn seconds(&self, time: TimeNs) -> f64 {
        time.since(self.begin).as_secs_f64()
    }
}

/// What a view wants done outside itself.
#[derive(Debug)]
pub enum Act {
    /// Change the filters of all views.
    FilterChange(FilterChange),
    /// Show an entry in the method view.
    Annotate(EntryId),
    /// Show another view.
    Show(ViewId),
    /// Say something at the bottom.
    Say(String),
}

/// A mouse event in a view's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Click {
    /// Where, on the screen; it lies in the view's area.
    pub at: Position,
    /// What.
    pub what: Press,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// A click.
    Down,
    /// A second click at the same place soon after: as Enter.
    Double,
    /// Moved with the button held.
    Drag,
    /// The button was let go.
    Up,
    /// The wheel, away from the user.
    WheelUp,
    /// The wheel, towards the user.
    WheelDown,
}

/// Where to search from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// From where the search began on, while the pattern is typed.
    Here,
    /// After what is selected.
    Next,
    /// Before it.
    Previous,
}

/// A line of the palette that only one view has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What it says: `sort by name`.
    pub text: String,
    /// What the view is asked for when it is chosen: [`Command::Own`] with that number.
    pub number: u16,
}

/// A view. All methods but [`View::draw`] and those that only tell something may change
/// it; none does anything outside. It is a value: what was worked out is shared by its
/// copies ([`super::jobs::Fetched`]), so that one costs little.
pub trait View: Send {
    /// A copy of it, for what takes long and is done elsewhere.
    fn copied(&self) -> Box<dyn View>;

    /// Its own keys, beside those that work everywhere.
    fn bindings(&self) -> &'static [Binding] {
        &[]
    }

    /// Does what a command asks for.
    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act>;

    /// Goes back by one of the view's own steps (a zoom); whether there was one. Else what
    /// was shown before is shown.
    fn back(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Goes forward again by such a step; whether there was one.
    fn forward(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Takes the mouse.
    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act>;

    /// What has to be worked out now that was not asked before; asked after every event,
    /// with the newest filters.
    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question>;

    /// One of the view's questions has ended: there is an answer ([`Fetched::take`]), or it was
    /// stopped.
    ///
    /// [`Fetched::take`]: super::jobs::Fetched::take
    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>);

    /// What has to be done outside now that was not asked for before; asked after every
    /// event, as [`View::questions`].
    fn effects(&mut self, _cx: &Cx<'_>) -> Vec<Effect> {
        Vec::new()
    }

    /// Takes a source file that it asked for, or a sentence why there is none.
    fn source(&mut self, _name: &str, _source: Result<Source, String>, _cx: &Cx<'_>) {}

    /// Searches for `pattern` (any case) and selects what it finds; whether there is any.
    /// An empty pattern ends the search.
    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool;

    /// Draws it.
    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect);

    /// What it shows, whole, for copying and exporting. May take long, so that a copy of the
    /// view is asked off the drawing thread; `None` where it was stopped.
    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document>;

    /// What the palette offers for this view alone.
    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        Vec::new()
    }

    /// What of the view is part of the breadcrumb: `grouped by class`; may be empty.
    fn crumb(&self, _cx: &Cx<'_>) -> String {
        String::new()
    }

    /// Whether an answer that it shows is not the newest question's.
    fn is_pending(&self) -> bool;
}
