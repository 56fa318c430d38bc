//! The collector: its collections as a table and over time, its pauses as a distribution,
//! and what is inside the collection that is selected.

mod chart;
mod empty;
mod inside;
mod listed;
pub(super) mod pauses;
mod places;
pub(super) mod rows;
mod shown;
#[cfg(test)]
mod tests;
mod told;
mod windows;

use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::tui::document::Document;
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::pane::Pane;
use crate::tui::widgets::search::Search;
use crate::tui::widgets::table::{self};
use inside::{Inside, inside_of};
use places::WIDE;
use ratatui::Frame;
use ratatui::layout::Rect;
use rows::{By, Collections, Key, Row, collections_of};
use std::sync::Arc;
use vmscope_symbolizer::Stop;

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "chart/pauses/inside", "above the table: the chart, the pauses, what is inside the selected one"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "the other way round"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "the collection before in time; its window, where one is chosen"),
    own(Command::Later, &[ch('.'), ch('>')], "", "the collection after it in time; its window, where one is chosen"),
];

/// What is shown above the table where there is room for one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Chart,
    Pauses,
    Inside,
}

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    by: By,
    reverse: bool,
    form: Form,
    /// Where there is no room above the table: that the part is there instead of it.
    instead: bool,
    list: ListState,
    selected: Option<Key>,
    all: Fetched<(By, bool), Collections>,
    inside: Fetched<Key, Inside>,
    search: Search,
}

impl Collector {
    fn rows(&self) -> &[Row] {
        self.all.get().map_or(&[], |all| all.rows.as_slice())
    }

    fn row(&self) -> Option<&Row> {
        self.rows().get(self.list.selected())
    }

    fn select(&mut self, index: usize, cx: &Cx<'_>) {
        let height = table::height(self.places(cx.area).table);
        self.list.select(index, self.rows().len(), height);
        self.selected = self.row().map(|row| row.key);
    }
}

impl View for Collector {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let height = table::height(self.places(cx.area).table);
        let rows = self.rows().len();
        if self.list.act(command, rows, height) {
            self.selected = self.row().map(|row| row.key);
            return Vec::new();
        }
        match command {
            Command::Open | Command::Only => self.row().map_or_else(Vec::new, Self::window_of),
            Command::Mode => {
                let has_both = self.places(cx.area).has_both;
                if !has_both && !self.instead {
                    self.instead = true;
                    return Vec::new();
                }
                // The table comes after the last part.
                self.instead = !has_both && self.form != Form::Inside;
                // Where the chart is always there, it has no turn.
                let both = has_both && cx.area.width >= WIDE;
                self.form = match self.form {
                    Form::Chart if both => Form::Inside,
                    Form::Inside if both => Form::Pauses,
                    Form::Chart => Form::Pauses,
                    Form::Pauses => Form::Inside,
                    Form::Inside => Form::Chart,
                };
                Vec::new()
            }
            Command::Sort => {
                let now = By::ALL.iter().position(|by| *by == self.by).unwrap_or(0);
                self.by = By::ALL.get(now + 1).copied().unwrap_or_default();
                Vec::new()
            }
            Command::Own(number) => {
                let by = By::ALL.get(usize::from(number));
                self.by = by.copied().unwrap_or(self.by);
                Vec::new()
            }
            Command::Reverse => {
                self.reverse = !self.reverse;
                Vec::new()
            }
            Command::Earlier => self.neighbour(false, cx),
            Command::Later => self.neighbour(true, cx),
            _ => Vec::new(),
        }
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let places = self.places(cx.area);
        let on_chart = places
            .parts
            .iter()
            .find(|(_, area)| area.contains(click.at));
        if let Some(&(Form::Chart, area)) = on_chart
            && matches!(click.what, Press::Down | Press::Double)
        {
            let theme = cx.theme;
            let all = self.all.get();
            let near = all.and_then(|all| chart::at(all, &Pane { theme, area }, click.at.x));
            let index = near.and_then(|key| self.rows().iter().position(|row| row.key == key));
            if let Some(index) = index {
                self.select(index, cx);
            }
        } else {
            let (rows, height) = (self.rows().len(), table::height(places.table));
            let is_wheel = matches!(click.what, Press::WheelUp | Press::WheelDown);
            let line = click.at.y.checked_sub(places.table.y + 1);
            let is_hidden = !places.has_both && self.instead;
            let is_out = line.is_none() || !places.table.contains(click.at);
            if !is_wheel && (is_hidden || is_out) {
                return Vec::new();
            }
            let line = usize::from(line.unwrap_or(0));
            let is_row = self.list.press(click.what, line, rows, height);
            self.selected = self.row().map(|row| row.key);
            if !is_row {
                return Vec::new();
            }
        }
        if click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let filter = cx.filters.filter().clone();
        // Asked anew when there is another summary, and not before that is of these filters.
        let summary = cx.summary.filter(|_| cx.summed.filters == cx.stamp.filters);
        if let Some(summary) = summary.map(Arc::clone) {
            let (filter, order) = (filter.clone(), (self.by, self.reverse));
            let window = cx.window();
            questions.extend(self.all.ask(order, cx.summed, move |profile, stop| {
                let mut all = collections_of(profile, &filter, &summary, order, stop)?;
                all.window = window;
                Some(all)
            }));
        }
        if let Some(key) = self.row().map(|row| row.key) {
            questions.extend(self.inside.ask(key, cx.stamp, move |profile, stop| {
                inside_of(profile, &filter, key, stop)
            }));
        }
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.inside.take(ended);
        if !self.all.take(ended) {
            return;
        }
        let found = self
            .rows()
            .iter()
            .position(|row| Some(row.key) == self.selected);
        let height = table::height(self.places(cx.area).table);
        self.list.keep(found, self.rows().len(), height);
        self.selected = self.row().map(|row| row.key);
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let rows = self.all.get().map_or(&[][..], |all| &all.rows);
        let now = self.list.selected();
        let found = (self.search).find(pattern, find, rows.len(), now, |row, text| {
            let row = rows.get(row);
            row.is_some_and(|row| text.is_in_words(&[&row.kind, &row.cause, &row.collector]))
        });
        found.select(|row| self.select(row, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(all) = self.all.get() else {
            return;
        };
        let theme = cx.theme;
        if all.rows.is_empty() {
            return empty::draw(cx, all, &Pane { theme, area }, frame);
        }
        let places = self.places(area);
        let head = Pane {
            theme,
            area: places.head,
        };
        Self::head(cx, all, &head, frame);
        for (form, area) in places.parts {
            let pane = Pane { theme, area };
            match form {
                Form::Chart => chart::draw(cx, all, self.row().map(|row| row.key), &pane, frame),
                Form::Pauses => pauses::draw(all, &pane, frame),
                Form::Inside => inside::draw(cx, self.row(), self.inside.get(), &pane, frame),
            }
        }
        if places.has_both || !self.instead {
            self.table(cx, frame, places.table);
        }
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let all = self.all.get().cloned().unwrap_or_default();
        shown::shown(cx, &all, self.row(), self.inside.get(), stop)
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let choices = By::ALL.into_iter().zip(0..).map(|(by, number)| Choice {
            text: format!("sort by {}", by.name()),
            number,
        });
        choices.collect()
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        match (self.by, self.reverse) {
            (By::Time, false) => String::new(),
            (by, false) => format!("by {}", by.name()),
            (by, true) => format!("by {}, reversed", by.name()),
        }
    }

    fn is_pending(&self) -> bool {
        self.all.is_pending() || self.inside.is_pending()
    }
}
