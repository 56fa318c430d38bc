//! Collections as a table and over time, distribution of pauses, details of the selected collection.

mod chart;
mod empty;
mod head;
mod inside;
mod page;
pub(super) mod pauses;
mod places;
mod shown;
#[cfg(test)]
mod tests;
mod windows;

use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::present::document::Document;
use crate::queries::collection::{Inside, inside_of};
use crate::queries::collections::{Collections, Key, Row, collections};
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::widgets::data_table::{Clicked, DataTable};
use crate::tui::widgets::pane::Pane;
use page::Page;
use places::WIDE;
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_symbolizer::Stop;

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "chart/pauses/inside", "above the table: chart, pauses, or details of the selected collection"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "reverse the sort order"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "previous collection; with a window filter, its window"),
    own(Command::Later, &[ch('.'), ch('>')], "", "next collection; with a window filter, its window"),
];

/// Pane above the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Chart,
    Pauses,
    Inside,
}

type Table = DataTable<usize, Key>;

/// The view.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    table: Table,
    form: Form,
    /// Whether a pane covers the table on small screens.
    instead: bool,
    all: Fetched<(), Collections>,
    inside: Fetched<Key, Inside>,
}

impl Collector {
    /// Selected collection.
    fn row(&self) -> Option<&Row> {
        let row = self.table.selected()?;
        self.all.get()?.rows.get(row)
    }

    /// Calls the table with data and height; `None` before the first answer.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let height = Table::height(self.places(cx.area).table);
        let page = Page::of(cx, self.all.get()?);
        Some(call(&mut self.table, &page, height))
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
        let is_done = self.with_table(cx, |table, page, height| table.act(command, page, height));
        if is_done == Some(true) {
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
                // The table follows the last pane.
                self.instead = !has_both && self.form != Form::Inside;
                // Wide screens always show the chart.
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
            Command::Own(line) => {
                self.with_table(cx, |table, page, height| table.choose(page, line, height));
                Vec::new()
            }
            Command::Earlier => self.neighbour(false, cx),
            Command::Later => self.neighbour(true, cx),
            _ => Vec::new(),
        }
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let places = self.places(cx.area);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        let mut panes = places.panes.iter();
        let pane = panes.find(|(_, area)| is_press && area.contains(click.at));
        if let Some(&(Form::Chart, area)) = pane {
            let all = self.all.get();
            let near = all.and_then(|all| chart::at(all, cx.theme, area, click.at.x));
            if let Some(key) = near {
                self.with_table(cx, |table, page, height| {
                    table.select_key(page, &key, height)
                });
            }
            return match click.what {
                Press::Double => self.act(Command::Open, cx),
                _ => Vec::new(),
            };
        }
        let is_wheel = matches!(click.what, Press::WheelUp | Press::WheelDown);
        let is_hidden = !places.has_both && self.instead;
        if !is_wheel && (is_hidden || !places.table.contains(click.at)) {
            return Vec::new();
        }
        let clicked = self.with_table(cx, |table, page, _| table.click(click, page, places.table));
        match clicked {
            Some(Clicked::Row { twice: true, .. }) => self.act(Command::Open, cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let filter = cx.filters.filter().clone();
        // Needs a summary of these filters.
        let summary = cx.summary.filter(|_| cx.summed.filters == cx.stamp.filters);
        if let Some(summary) = summary.map(Arc::clone) {
            let filter = filter.clone();
            let window = cx.window();
            questions.extend(self.all.ask((), cx.summed, move |profile, stop| {
                let mut all = collections(profile, &filter, &summary, stop)?;
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
        if self.all.take(ended) {
            self.with_table(cx, |table, page, height| table.arrange(page, height));
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let found = self.with_table(cx, |table, page, height| {
            table.find(pattern, find, page, height)
        });
        found == Some(true)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(all) = self.all.get() else {
            return;
        };
        let theme = cx.theme;
        if all.rows.is_empty() {
            return empty::draw(cx, all, area, frame);
        }
        let places = self.places(area);
        let pane = |area| Pane { theme, area };
        head::draw(cx, all, &pane(places.head), frame);
        for (form, area) in places.panes {
            match form {
                Form::Chart => chart::draw(cx, all, self.row().map(|row| row.key), area, frame),
                Form::Pauses => pauses::draw(all, &pane(area), frame),
                Form::Inside => inside::draw(cx, self.row(), self.inside.get(), &pane(area), frame),
            }
        }
        if places.has_both || !self.instead {
            let page = Page::of(cx, all);
            self.table.draw(&page, theme, frame, places.table);
        }
    }

    fn shown(&self, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        let all = self.all.get().cloned().unwrap_or_default();
        let page = Page::of(cx, &all);
        let table = Table::export(&page, self.table.visible(), stop)?;
        let inside = self.row().zip(self.inside.get());
        Some(shown::shown(cx, &all, table, inside))
    }

    fn choices(&self, cx: &Cx<'_>) -> Vec<Choice> {
        let all = self.all.get();
        all.map_or_else(Vec::new, |all| Table::choices(&Page::of(cx, all), 0))
    }

    fn crumb(&self, cx: &Cx<'_>) -> String {
        let all = self.all.get();
        all.map_or_else(String::new, |all| self.table.crumb(&Page::of(cx, all)))
    }

    fn is_pending(&self) -> bool {
        self.all.is_pending() || self.inside.is_pending()
    }
}
