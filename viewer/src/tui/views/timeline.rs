//! The recording over time: activity by region, threads, collections, code, marks and
//! losses, in equal columns; a window chosen here is the filter of all views.
//!
//! The chart shows the whole recording, or what was zoomed into, whichever window is
//! chosen: the window is marked in it.

mod chart;
mod draw;
pub(super) mod lanes;
mod layout;
mod moves;
mod nearest;
mod picture;
mod rows;
#[cfg(test)]
mod tests;
mod words;

use super::{Act, Choice, Click, Cx, Find, View, threads};
use crate::present::document::{Axis, Chart, Document, Part, Table, Value};
use crate::present::names::region_name;
use crate::present::names::role_name;
use crate::queries::time_grid::Grid;
use crate::queries::timeline::{Activity, Listed, Rows};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::Search;
use lanes::{Lanes, times};
use layout::Layout;
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Filter, Region, Stop};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Select, &[ch('v')], "select", "begin a selection at the cursor: moving extends it, Enter makes it the window of all views, Esc gives it up; dragging does the same"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "nearer", "nearer, at the cursor; also the wheel"),
    own(Command::ZoomOut, &[ch('-')], "further", "further away, up to the whole recording"),
    own(Command::NextHot, &[ch('}')], "next event", "to the next collection or mark"),
    own(Command::PreviousHot, &[ch('{')], "", "to the collection or mark before"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "earlier by a quarter of what is shown"),
    own(Command::Later, &[ch('.'), ch('>')], "", "later by a quarter of what is shown"),
    own(Command::Mode, &[ch('m')], "window", "show the window alone, or the whole recording again"),
    own(Command::Toggle, &[ch(' ')], "", "include this thread, or leave it out, in all views; Enter takes it alone"),
];

const HEIGHTS: u16 = 0;
const WHOLE: u16 = 1;

/// Which part of the recording is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Span {
    /// All of it.
    #[default]
    Whole,
    /// The window of the filters.
    Window,
    /// A part that was zoomed into.
    Part(TimeNs, TimeNs),
}

/// A column's time: from its left to its right edge.
type Column = (TimeNs, TimeNs);

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    span: Span,
    /// The time that the cursor is at; its column is that of the time.
    cursor: Option<TimeNs>,
    /// Where a selection began.
    anchor: Option<Column>,
    /// Where the mouse was pressed.
    pressed: Option<Column>,
    list: ListState,
    /// The thread that is selected.
    chosen: Option<u32>,
    /// Whether thread rows are heights, not letters.
    heights: bool,
    activity: Fetched<(Grid, Filter), Activity>,
    listed: Fetched<Filter, Listed>,
    rows: Fetched<(Grid, Filter, Vec<u32>), Rows>,
    lanes: Fetched<(Grid, Filter), Lanes>,
    search: Search,
}

impl Timeline {
    /// All that there is to be shown.
    fn bounds(cx: &Cx<'_>) -> (TimeNs, TimeNs) {
        let (from, to) = cx.kept();
        (from, TimeNs(to.0.saturating_add(1)))
    }

    fn lane_count(&self) -> usize {
        self.lanes.get().map_or(0, |lanes| lanes.lanes.len())
    }

    fn layout(&self, area: Rect) -> Layout {
        let threads = self.listed.get().map_or(0, |listed| listed.threads.len());
        Layout::of(area, self.lane_count(), threads)
    }

    /// The columns that are shown.
    fn grid(&self, cx: &Cx<'_>, area: Rect) -> Grid {
        let bounds = Self::bounds(cx);
        let columns = self.layout(area).columns;
        let (from, to) = match self.span {
            Span::Whole => bounds,
            Span::Window => cx.filters.window().unwrap_or(bounds),
            Span::Part(from, to) => (from, to),
        };
        // A damaged recording may begin at any time, the last one there is too.
        let from = from.min(TimeNs(bounds.1.0.saturating_sub(1))).max(bounds.0);
        let to = to.min(bounds.1).max(TimeNs(from.0.saturating_add(1)));
        Grid { from, to, columns }
    }

    /// The column of the cursor.
    fn at(&self, grid: &Grid) -> usize {
        self.cursor.map_or(0, |time| grid.column_of(time))
    }

    fn column(grid: &Grid, column: usize) -> Column {
        (grid.edge(column), grid.edge(column + 1))
    }

    /// What is selected.
    fn selection(&self, grid: &Grid) -> Option<(TimeNs, TimeNs)> {
        let (from, to) = self.anchor?;
        let now = Self::column(grid, self.at(grid));
        Some((from.min(now.0), to.max(now.1)))
    }

    /// The threads whose rows are on the screen.
    fn visible(&self, layout: &Layout) -> Vec<(u32, u64, bool)> {
        let Some(listed) = self.listed.get() else {
            return Vec::new();
        };
        let height = usize::from(layout.threads.height);
        let top = self.list.top(listed.threads.len(), height);
        let rows = listed.threads.iter().enumerate().skip(top).take(height);
        rows.map(|(row, &(thread, samples))| (thread, samples, row < listed.included))
            .collect()
    }

    fn select_row(&mut self, row: usize, cx: &Cx<'_>) {
        let height = usize::from(self.layout(cx.area).threads.height);
        let count = self.listed.get().map_or(0, |listed| listed.threads.len());
        self.list.select(row, count, height);
        self.note_chosen();
    }

    fn note_chosen(&mut self) {
        let listed = self.listed.get();
        let row = listed.and_then(|listed| listed.threads.get(self.list.selected()));
        self.chosen = row.map(|(thread, _)| *thread);
    }
}

impl View for Timeline {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let grid = self.grid(cx, cx.area);
        let cursor = *self.cursor.get_or_insert(grid.from);
        match command {
            Command::Left => self.step(-1, cx),
            Command::Right => self.step(1, cx),
            Command::First => self.show_end(false, cx),
            Command::Last => self.show_end(true, cx),
            Command::Earlier => self.pan(-1, 4, cx),
            Command::Later => self.pan(1, 4, cx),
            Command::ZoomIn => self.zoom(true, cursor, cx),
            Command::ZoomOut => self.zoom(false, cursor, cx),
            Command::NextHot => return self.jump(true, cx),
            Command::PreviousHot => return self.jump(false, cx),
            Command::Select => {
                let begun = Self::column(&grid, self.at(&grid));
                self.anchor = self.anchor.is_none().then_some(begun);
            }
            Command::Cancel => (self.anchor, self.pressed) = (None, None),
            Command::Open if self.anchor.is_some() => return self.narrow(cx),
            Command::Mode => match (self.span, cx.filters.window()) {
                (Span::Whole, Some(_)) => self.span = Span::Window,
                (Span::Whole, None) => {
                    let text = "no window is chosen: v begins a selection".to_owned();
                    return vec![Act::Say(text)];
                }
                _ => self.span = Span::Whole,
            },
            Command::Own(HEIGHTS) => self.heights ^= true,
            Command::Own(WHOLE) => self.span = Span::Whole,
            Command::Toggle => {
                if let Some(thread) = self.chosen {
                    return threads::toggle(cx, &[thread]);
                }
            }
            Command::Open | Command::Only => {
                if let Some(thread) = self.chosen {
                    return threads::only(&[thread]);
                }
            }
            _ => {
                let height = usize::from(self.layout(cx.area).threads.height);
                let rows = self.listed.get().map_or(0, |listed| listed.threads.len());
                if self.list.act(command, rows, height) {
                    self.note_chosen();
                }
            }
        }
        Vec::new()
    }

    fn back(&mut self, cx: &Cx<'_>) -> bool {
        let Span::Part(from, to) = self.span else {
            return false;
        };
        // Around the cursor where it is on the screen, as zooming out by keys.
        let middle = TimeNs(from.0 + to.since(from).0 / 2);
        let inside = self.cursor.filter(|time| (from..to).contains(time));
        self.zoom(false, inside.unwrap_or(middle), cx);
        true
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        self.clicked(click, cx)
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        // The window changes nothing that is asked: it is only marked.
        let stamp = Stamp {
            filters: 0,
            ..cx.stamp
        };
        let filter = cx.filters.any_time();
        let grid = self.grid(cx, cx.area);
        let layout = self.layout(cx.area);
        let mut questions = Vec::new();
        let of = filter.clone();
        questions.extend(
            self.activity
                .ask((grid, filter.clone()), stamp, move |profile, stop| {
                    Activity::of(profile, grid, &of, stop)
                }),
        );
        let of = filter.clone();
        questions.extend(
            self.listed
                .ask(filter.clone(), stamp, move |profile, stop| {
                    Listed::of(profile, &of, stop)
                }),
        );
        let (of, begin) = (filter.clone(), cx.begin);
        questions.extend(
            self.lanes
                .ask((grid, filter.clone()), stamp, move |profile, stop| {
                    Lanes::of(profile, grid, &of, begin, stop)
                }),
        );
        // Which threads there are rows of is known by the list.
        if Activity::has_threads(cx.profile, grid)
            || self.listed.answered() != Some(&(filter.clone(), stamp))
        {
            return questions;
        }
        let visible = self.visible(&layout).into_iter();
        let threads: Vec<u32> = visible
            .filter(|(_, _, included)| *included)
            .map(|(thread, ..)| thread)
            .collect();
        let (key, of) = ((grid, filter.clone(), threads.clone()), filter);
        questions.extend(self.rows.ask(key, stamp, move |profile, stop| {
            Rows::of(profile, grid, threads, &of, stop)
        }));
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.activity.take(ended);
        self.rows.take(ended);
        self.lanes.take(ended);
        if self.listed.take(ended) {
            let rows = self.listed.get().map(|listed| listed.threads.as_slice());
            let mut rows = rows.unwrap_or_default().iter();
            let row = rows.position(|(thread, _)| Some(*thread) == self.chosen);
            let height = usize::from(self.layout(cx.area).threads.height);
            let count = self.listed.get().map_or(0, |listed| listed.threads.len());
            self.list.keep(row, count, height);
            self.note_chosen();
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let rows = self.listed.get().map_or(&[][..], |listed| &listed.threads);
        let now = self.list.selected();
        let found = (self.search).find(pattern, find, rows.len(), now, |row, text| {
            let thread = rows.get(row).map(|(thread, _)| *thread);
            thread.is_some_and(|thread| threads::matches(cx.profile, thread, text))
        });
        found.select(|row| self.select_row(row, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_all(cx, frame, area);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        picture::shown(self, cx, stop)
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: &str| Choice {
            text: text.to_owned(),
            number,
        };
        let form = if self.heights { "letters" } else { "heights" };
        vec![
            choice(HEIGHTS, &format!("timeline: thread rows as {form}")),
            choice(WHOLE, "timeline: the whole recording"),
        ]
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let grid = self.grid(cx, cx.area);
        match self.span {
            Span::Whole => String::new(),
            Span::Window if cx.filters.window().is_some() => "the window alone".to_owned(),
            Span::Window => String::new(),
            Span::Part(..) => {
                let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
                format!("zoomed to {from:.3}-{to:.3} s")
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.activity.is_pending()
            || self.listed.is_pending()
            || self.rows.is_pending()
            || self.lanes.is_pending()
    }
}
