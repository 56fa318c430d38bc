//! Views, one file each. A view knows profile and filters, not terminals, files or processes;
//! drawing is a pure function of its state.

mod callers;
mod collector;
mod documents;
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
use super::view_id::ViewId;
use crate::annotate::source::Source;
use crate::lifetimes::cache::LifetimesCache;
use crate::present::document::Document;
use crate::queries::inclusive::StackCache;
use documents::Documents;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{EntryId, Profile, Stop, Summary};

/// New view.
pub fn make(id: ViewId) -> Box<dyn View> {
    match id {
        ViewId::Overview => Box::new(overview::Overview::default()),
        ViewId::Hot => Box::new(hot::Hot::default()),
        ViewId::Method => Box::new(method::Method::default()),
        ViewId::Timeline => Box::new(timeline::Timeline::default()),
        ViewId::Zone => Box::new(zone::Zone::default()),
        ViewId::Collector => Box::new(collector::Collector::default()),
        ViewId::Callers => Box::new(callers::Callers::default()),
        ViewId::Threads => Box::new(threads::Threads::default()),
        ViewId::Truth => Box::new(truth::Truth::default()),
        ViewId::Costs => Box::new(Documents::new(documents::Subject::Costs)),
        ViewId::Lifetimes => Box::new(Documents::new(documents::Subject::Lifetimes)),
    }
}

/// Context of a view.
#[derive(Clone, Copy, Debug)]
pub struct Cx<'a> {
    pub profile: &'a Profile,
    pub filters: &'a FilterState,
    /// Newest summary, possibly of older filters; `None` before the first.
    pub summary: Option<&'a Arc<Summary>>,
    /// Version for new questions.
    pub stamp: Stamp,
    /// Version of the summary.
    pub summed: Stamp,
    /// Start of the recording: zero of all displayed times.
    pub begin: TimeNs,
    /// End of the recording, or of the displayed part.
    pub end: TimeNs,
    /// Entry opened last.
    pub subject: Option<EntryId>,
    /// Stacks of a finished recording, shared by views.
    pub stacks: &'a StackCache,
    /// Lifetimes in a finished recording, shared by views.
    pub lifetimes: &'a LifetimesCache,
    /// Terminal capabilities.
    pub theme: &'a Theme,
    /// Area of the view.
    pub area: Rect,
}

/// Owned context without profile, for background work.
#[derive(Clone, Debug)]
pub struct KeptCx {
    filters: FilterState,
    summary: Option<Arc<Summary>>,
    stamp: Stamp,
    summed: Stamp,
    begin: TimeNs,
    end: TimeNs,
    subject: Option<EntryId>,
    stacks: StackCache,
    lifetimes: LifetimesCache,
    theme: Theme,
    area: Rect,
}

impl KeptCx {
    /// Context with a profile, which may have grown.
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
            stacks: &self.stacks,
            lifetimes: &self.lifetimes,
            theme: &self.theme,
            area: self.area,
        }
    }
}

impl Cx<'_> {
    /// Owned copy without profile, for background work.
    pub fn keep(&self) -> KeptCx {
        KeptCx {
            filters: self.filters.clone(),
            summary: self.summary.cloned(),
            stamp: self.stamp,
            summed: self.summed,
            begin: self.begin,
            end: self.end,
            subject: self.subject,
            stacks: self.stacks.clone(),
            lifetimes: self.lifetimes.clone(),
            theme: *self.theme,
            area: self.area,
        }
    }

    /// Time range of kept samples; live profiles drop old samples.
    pub fn kept(&self) -> (TimeNs, TimeNs) {
        let from = self.profile.time_buckets.kept_from();
        let from = from.map_or(self.begin, |from| from.clamp(self.begin, self.end));
        (from, self.end)
    }

    /// Chosen window, or the whole recording.
    pub fn window(&self) -> (TimeNs, TimeNs) {
        self.filters.window().unwrap_or((self.begin, self.end))
    }

    /// Chosen window, or the time range of kept samples.
    pub fn kept_window(&self) -> (TimeNs, TimeNs) {
        self.filters.window().unwrap_or(self.kept())
    }

    /// Seconds since the start of the recording.
    pub fn seconds(&self, time: TimeNs) -> f64 {
        time.since(self.begin).as_secs_f64()
    }
}

/// Request of a view to the UI.
#[derive(Debug)]
pub enum Act {
    FilterChange(FilterChange),
    /// Show an entry in the method view.
    Annotate(EntryId),
    Show(ViewId),
    /// Show a message in the bottom line.
    Say(String),
}

/// Mouse event in a view's area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Click {
    /// Screen position inside the view's area.
    pub at: Position,
    pub what: Press,
}

/// Kind of mouse event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    Down,
    /// Second click at the same position soon after the first: works as Enter.
    Double,
    /// Move with a held button.
    Drag,
    /// Button release.
    Up,
    /// Wheel away from the user.
    WheelUp,
    /// Wheel towards the user.
    WheelDown,
}

/// Start of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// From the search's origin: the user is typing the pattern.
    Here,
    /// After the selected row.
    Next,
    /// Before the selected row.
    Previous,
    /// Back to the search's origin: the user cancelled the search.
    Restore,
}

/// Palette line of a single view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Text: `sort by name`.
    pub text: String,
    /// Number of the resulting [`Command::Own`].
    pub number: u16,
}

/// A view. Methods change only the view, never the outside. Copies are cheap: they share answers
/// ([`super::jobs::Fetched`]).
pub trait View: Send {
    /// Copy for background work.
    fn copied(&self) -> Box<dyn View>;

    /// Keys of this view, beside the global keys.
    fn bindings(&self) -> &'static [Binding] {
        &[]
    }

    /// Executes a command.
    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act>;

    /// Undoes one of the view's own steps (a zoom). Returns `false` without such a step; the UI
    /// then goes back in its history.
    fn back(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Redoes one of the view's own steps; `false` without such a step.
    fn forward(&mut self, _cx: &Cx<'_>) -> bool {
        false
    }

    /// Handles a mouse event.
    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act>;

    /// New questions. The UI calls this after every event, with the newest filters.
    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question>;

    /// Receives the end of a question: an answer ([`Fetched::take`]), or a stop.
    ///
    /// [`Fetched::take`]: super::jobs::Fetched::take
    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>);

    /// New effects; called like [`View::questions`].
    fn effects(&mut self, _cx: &Cx<'_>) -> Vec<Effect> {
        Vec::new()
    }

    /// Receives a requested source file, or a sentence about its absence.
    fn source(&mut self, _name: &str, _source: Result<Source, String>, _cx: &Cx<'_>) {}

    /// Searches for `pattern` in any letter case and selects the match; `false` without a match. An
    /// empty pattern ends the search.
    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool;

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect);

    /// Complete contents for copying and exporting. Long work: a copy of the view runs it in the
    /// background. `None` after a stop.
    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document>;

    /// Palette lines of this view.
    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        Vec::new()
    }

    /// Breadcrumb text: `grouped by class`; may be empty.
    fn crumb(&self, _cx: &Cx<'_>) -> String {
        String::new()
    }

    /// Whether the newest question awaits its answer.
    fn is_pending(&self) -> bool;
}
