//! Recording over time in equal columns: activity by region, threads, collections, code, marks,
//! losses. A window selected here becomes the filter of all views.
//!
//! The chart shows the whole recording or a zoomed part; it marks the window of the filters.

mod drawn;
mod exported;
pub(super) mod lanes;
mod layout;
mod moves;
#[cfg(test)]
mod tests;
mod words;

use super::{Act, Choice, Click, Cx, Find, View, threads};
use crate::present::document::Document;
use crate::queries::time_grid::Grid;
use crate::queries::timeline::{Activity, Listed, Rows};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::search::Search;
use lanes::Lanes;
use layout::Layout;
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Filter, Stop, ThreadId};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Select, &[ch('v')], "select", "start a selection at the cursor: move to extend it, Enter makes it the window of all views, Esc cancels; or drag with the mouse"),
    own(Command::ZoomIn, &[ch('+'), ch('=')], "zoom in", "zoom in at the cursor (also the wheel)"),
    own(Command::ZoomOut, &[ch('-')], "zoom out", "zoom out, up to the whole recording"),
    own(Command::NextHot, &[ch('}')], "next event", "next collection or mark"),
    own(Command::PreviousHot, &[ch('{')], "", "previous collection or mark"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "scroll back by a quarter of the screen"),
    own(Command::Later, &[ch('.'), ch('>')], "", "scroll on by a quarter of the screen"),
    own(Command::Mode, &[ch('m')], "window", "show only the window, or the whole recording"),
    own(Command::Toggle, &[ch(' ')], "", "include or exclude this thread in all views; Enter keeps only this thread"),
];

const HEIGHTS: u16 = 0;
const WHOLE: u16 = 1;

/// Visible part of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Span {
    #[default]
    Whole,
    /// Window of the filters.
    Window,
    /// Zoomed part.
    Part(TimeNs, TimeNs),
}

/// Times of a column's left and right edge.
type Column = (TimeNs, TimeNs);

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    span: Span,
    cursor: Option<TimeNs>,
    /// Start of the selection.
    anchor: Option<Column>,
    /// Column of the mouse press.
    pressed: Option<Column>,
    list: ListState,
    /// Selected thread.
    chosen: Option<ThreadId>,
    /// Whether thread rows show heights instead of letters.
    heights: bool,
    activity: Fetched<(Grid, Filter), Activity>,
    listed: Fetched<Filter, Listed>,
    rows: Fetched<(Grid, Filter, Vec<ThreadId>), Rows>,
    lanes: Fetched<(Grid, Filter), Lanes>,
    search: Search,
}

impl Timeline {
    /// Limits of zoom and scroll.
    fn bounds(cx: &Cx<'_>) -> (TimeNs, TimeNs) {
        let (from, to) = cx.kept();
        (from, TimeNs(to.0.saturating_add(1)))
    }

    /// Threads with samples over the whole recording.
    fn threads(&self) -> &[(ThreadId, u64)] {
        self.listed.get().map_or(&[], |listed| &listed.threads)
    }

    fn layout(&self, cx: &Cx<'_>) -> Layout {
        let lanes = self.lanes.get().map_or(0, |lanes| lanes.lanes.len());
        Layout::of(cx.area, lanes, self.threads().len())
    }

    fn grid(&self, cx: &Cx<'_>) -> Grid {
        let bounds = Self::bounds(cx);
        let (from, to) = match self.span {
            Span::Whole => bounds,
            Span::Window => cx.filters.window().unwrap_or(bounds),
            Span::Part(from, to) => (from, to),
        };
        // Damaged recordings may begin at the last instant.
        let from = from.min(TimeNs(bounds.1.0.saturating_sub(1))).max(bounds.0);
        let to = to.min(bounds.1).max(TimeNs(from.0.saturating_add(1)));
        let columns = usize::from(cx.area.width - layout::gutter(cx.area));
        Grid { from, to, columns }
    }

    /// Column of the cursor.
    fn at(&self, grid: &Grid) -> usize {
        self.cursor.map_or(0, |time| grid.column_of(time))
    }

    fn column(grid: &Grid, column: usize) -> Column {
        (grid.edge(column), grid.edge(column + 1))
    }

    fn selection(&self, grid: &Grid) -> Option<Column> {
        let (from, to) = self.anchor?;
        let now = Self::column(grid, self.at(grid));
        Some((from.min(now.0), to.max(now.1)))
    }

    /// Visible threads: id, samples, whether the filter includes the thread.
    fn visible(&self, height: usize) -> impl Iterator<Item = (ThreadId, u64, bool)> {
        let included = self.listed.get().map_or(0, |listed| listed.included);
        let top = self.list.top(self.threads().len(), height);
        let rows = self.threads().iter().enumerate().skip(top).take(height);
        rows.map(move |(row, &(thread, samples))| (thread, samples, row < included))
    }

    /// Calls the thread list with the number of threads and its height.
    fn with_list<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut ListState, usize, usize) -> T,
    ) -> T {
        let height = self.layout(cx).threads.height.into();
        let count = self.threads().len();
        let done = call(&mut self.list, count, height);
        let row = self.threads().get(self.list.selected());
        self.chosen = row.map(|(thread, _)| *thread);
        done
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
        let grid = self.grid(cx);
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
            Command::Mode if self.span != Span::Whole => self.span = Span::Whole,
            Command::Mode if cx.filters.window().is_some() => self.span = Span::Window,
            Command::Mode => {
                let text = "no window: v starts a selection";
                return vec![Act::Say(text.to_owned())];
            }
            Command::Own(HEIGHTS) => self.heights ^= true,
            Command::Own(WHOLE) => self.span = Span::Whole,
            Command::Toggle | Command::Open | Command::Only => match self.chosen {
                Some(thread) if command == Command::Toggle => {
                    return threads::toggle(cx, &[thread]);
                }
                Some(thread) => return threads::only(&[thread]),
                None => {}
            },
            _ => {
                self.with_list(cx, |list, rows, height| list.act(command, rows, height));
            }
        }
        Vec::new()
    }

    fn back(&mut self, cx: &Cx<'_>) -> bool {
        let Span::Part(from, to) = self.span else {
            return false;
        };
        // Around a visible cursor, as zooming out by key.
        let middle = TimeNs(from.0 + to.since(from).0 / 2);
        let inside = self.cursor.filter(|time| (from..to).contains(time));
        self.zoom(false, inside.unwrap_or(middle), cx);
        true
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        self.clicked(click, cx)
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        // Answers do not depend on the window.
        let filters = 0;
        let stamp = Stamp {
            filters,
            ..cx.stamp
        };
        let filter = cx.filters.any_time();
        let (grid, begin) = (self.grid(cx), cx.begin);
        let key = (grid, filter.clone());
        let [of, of_listed, of_lanes, of_rows] = [(); 4].map(|()| filter.clone());
        let activity = self.activity.ask(key.clone(), stamp, move |profile, stop| {
            Activity::of(profile, grid, &of, stop)
        });
        let listed = self
            .listed
            .ask(filter.clone(), stamp, move |profile, stop| {
                Listed::of(profile, &of_listed, stop)
            });
        let lanes = self.lanes.ask(key, stamp, move |profile, stop| {
            Lanes::of(profile, grid, &of_lanes, begin, stop)
        });
        let mut questions: Vec<Question> =
            [activity, listed, lanes].into_iter().flatten().collect();
        // Visible threads follow from the list.
        let is_listed = self.listed.answered() == Some(&(filter.clone(), stamp));
        if is_listed && !Activity::has_threads(cx.profile, grid) {
            let visible = self.visible(self.layout(cx).threads.height.into());
            let included = visible.filter(|(_, _, included)| *included);
            let threads: Vec<ThreadId> = included.map(|(thread, ..)| thread).collect();
            let key = (grid, filter, threads.clone());
            questions.extend(self.rows.ask(key, stamp, move |profile, stop| {
                Rows::of(profile, grid, threads, &of_rows, stop)
            }));
        }
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.activity.take(ended);
        self.rows.take(ended);
        self.lanes.take(ended);
        if self.listed.take(ended) {
            let chosen = |(thread, _): &(ThreadId, u64)| Some(*thread) == self.chosen;
            let row = self.threads().iter().position(chosen);
            self.with_list(cx, |list, rows, height| list.keep(row, rows, height));
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let listed = self.listed.get().map_or(&[][..], |listed| &listed.threads);
        let now = self.list.selected();
        let found = (self.search).find(pattern, find, listed.len(), now, |row, text| {
            let thread = listed.get(row);
            thread.is_some_and(|(thread, _)| threads::matches(cx.profile, *thread, text))
        });
        found.select(|row| self.with_list(cx, |list, rows, height| list.select(row, rows, height)))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, _area: Rect) {
        self.draw_all(cx, frame);
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.exported(cx, stop)
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let form = if self.heights { "letters" } else { "heights" };
        let texts = [
            (HEIGHTS, format!("timeline: thread rows as {form}")),
            (WHOLE, "timeline: the whole recording".to_owned()),
        ];
        texts.map(|(number, text)| Choice { text, number }).into()
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        match self.span {
            Span::Window if cx.filters.window().is_some() => "only the window".to_owned(),
            Span::Whole | Span::Window => String::new(),
            Span::Part(..) => {
                let grid = self.grid(cx);
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
