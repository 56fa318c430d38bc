//! Overview: subject, limits on the accuracy, time by region, entry and thread.

mod head;
mod lists;
mod panels;
mod places;
mod shown;
mod strip;
#[cfg(test)]
mod tests;
mod vm;

use super::{Act, Click, Cx, Find, Press, View};
use crate::present::document::Document;
use crate::queries::overview::{Overview as Digest, overview};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::pane::Pane;
use crate::tui::widgets::search::Search;
use panels::has_name;
use places::{Places, places};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use strip::Strip;
use vmscope_symbolizer::compilers::Compilers;
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{EntryId, Region, Stop, Summary, ThreadId};

/// List with the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Panel {
    #[default]
    Regions,
    Entries,
    Threads,
}

#[derive(Clone, Debug, Default)]
pub struct Overview {
    panel: Panel,
    region: Option<Region>,
    entry: Option<EntryId>,
    thread: Option<ThreadId>,
    entries: ListState,
    threads: ListState,
    digest: Fetched<(), Digest>,
    strip: Fetched<usize, Strip>,
    compilers: Fetched<(), Option<Compilers>>,
    search: Search,
}

impl Overview {
    fn places(&self, area: Rect) -> Places {
        let digest = self.digest.get();
        let truth = digest.map_or(3, |digest| digest.truth.len().max(1));
        let regions = digest.map_or(0, |digest| digest.regions.len());
        let tells = self.compilers.get().is_some_and(Option::is_some)
            || digest.is_some_and(|digest| {
                let mut regions = digest.regions.iter().map(|(region, ..)| *region);
                digest.collections.tells
                    || !digest.figures.is_empty()
                    || regions.any(|region| region == Region::Gc)
            });
        places(area, truth, regions, tells)
    }
}

impl View for Overview {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let (panel, now) = (self.panel, self.selected(self.panel));
        let panels = self.panels(cx);
        let height = panels.iter().find(|(one, _)| *one == panel);
        let height = height.map_or(1, |(_, area)| usize::from(area.height).saturating_sub(1));
        let mut list = match panel {
            Panel::Regions => ListState::default(),
            Panel::Entries => self.entries,
            Panel::Threads => self.threads,
        };
        let count = self.count(cx, panel);
        list.select(now, count, height);
        if list.act(command, count, height) {
            self.select(panel, list.selected(), cx);
            return Vec::new();
        }
        match command {
            Command::Left => self.step(false, cx),
            Command::Right => self.step(true, cx),
            Command::Only => return self.only(cx),
            Command::Open if panel == Panel::Entries => {
                let entry = self.digest.get().and_then(|digest| digest.entries.get(now));
                return entry.map(|one| Act::Annotate(one.0)).into_iter().collect();
            }
            // A region or thread: its entries. One step of the history undoes both.
            Command::Open => {
                let shown = Act::Show(super::ViewId::Hot);
                return self.only(cx).into_iter().chain([shown]).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let places = self.places(cx.area);
        if click.what == Press::Double && places.truth.contains(click.at) {
            return vec![Act::Show(super::ViewId::Truth)];
        }
        if click.what == Press::Double && places.collector.contains(click.at) {
            return vec![Act::Show(super::ViewId::Collector)];
        }
        let panels = self.panels(cx);
        let hit = panels.into_iter().find(|(_, area)| area.contains(click.at));
        let Some((panel, area)) = hit else {
            return Vec::new();
        };
        let line = usize::from(click.at.y - area.y);
        let height = usize::from(area.height).saturating_sub(1);
        let count = self.count(cx, panel);
        let row = match click.what {
            Press::WheelUp => Some(self.selected(panel).saturating_sub(1)),
            Press::WheelDown => Some(self.selected(panel) + 1),
            Press::Down | Press::Double => line.checked_sub(1).and_then(|line| match panel {
                Panel::Regions => {
                    lists::region_at(self.digest.get()?, height, self.selected(panel), line)
                }
                Panel::Entries => Some(self.entries.top(count, height) + line),
                Panel::Threads => Some(self.threads.top(count, height) + line),
            }),
            Press::Drag | Press::Up => None,
        };
        let is_row = row.is_some_and(|row| row < count);
        if let Some(row) = row {
            self.select(panel, row, cx);
        }
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let summary = cx.summary.filter(|_| cx.summed.filters == cx.stamp.filters);
        if let Some(summary) = summary.map(Arc::clone) {
            let filter = cx.filters.filter().clone();
            questions.extend(self.digest.ask((), cx.summed, move |profile, stop| {
                overview(profile, &filter, &summary, stop)
            }));
        }
        let filter = cx.filters.filter().clone();
        let window = cx.kept_window();
        let columns = usize::from(cx.area.width.saturating_sub(strip::BESIDE)).clamp(1, 1_000);
        // The stamp covers a growing window.
        let stamp: Stamp = cx.stamp;
        questions.extend(self.strip.ask(columns, stamp, move |profile, stop| {
            let what = ColumnsOf {
                window,
                columns,
                by: By::Regions,
            };
            let columns = Columns::of(profile, &what, &filter, stop)?;
            Some(Strip { window, columns })
        }));
        let filter = cx.filters.filter().clone();
        questions.extend(self.compilers.ask((), cx.stamp, move |profile, stop| {
            if profile.trace.compilations.is_empty() {
                return Some(None);
            }
            Some(Some(Compilers::of(profile, &filter, stop)?))
        }));
        questions
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        self.strip.take(ended);
        self.compilers.take(ended);
        if !self.digest.take(ended) {
            return;
        }
        // The selection follows entry and thread.
        let digest = self.digest.get();
        let entry = digest.and_then(|digest| {
            let mut entries = digest.entries.iter();
            entries.position(|one| Some(one.0) == self.entry)
        });
        let threads = cx.summary.map(|summary: &Arc<Summary>| &summary.threads);
        let thread =
            threads.and_then(|all| all.iter().position(|one| Some(one.thread) == self.thread));
        let places = self.places(cx.area);
        let rows = |area: Rect| usize::from(area.height.saturating_sub(1));
        let (entries, threads) = (
            self.count(cx, Panel::Entries),
            self.count(cx, Panel::Threads),
        );
        self.entries.keep(entry, entries, rows(places.entries));
        self.threads.keep(thread, threads, rows(places.threads));
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        // Searches start in the entries, unless the threads have the focus.
        if self.panel == Panel::Regions && !pattern.is_empty() {
            self.panel = Panel::Entries;
        }
        let panel = self.panel;
        let (count, now) = (self.count(cx, panel), self.selected(panel));
        let digest = self.digest.get();
        let found = (self.search).find(pattern, find, count, now, |row, text| {
            has_name(digest, panel, cx, row, text)
        });
        found.select(|row| self.select(panel, row, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let places = self.places(area);
        let pane = |area: Rect| Pane {
            theme: cx.theme,
            area,
        };
        head::draw(cx, &pane(places.head), frame);
        self.draw_strip(cx, places.strip, frame);
        let Some(digest) = self.digest.get() else {
            return;
        };
        head::truth(digest, &pane(places.truth), frame);
        let marked = |panel: Panel| (self.panel == panel, self.selected(panel));
        let regions = marked(Panel::Regions);
        lists::regions(
            (digest, cx.profile.is_native()),
            regions,
            &pane(places.regions),
            frame,
        );
        let list = (self.panel == Panel::Entries, self.entries);
        lists::entries(cx, digest, list, &pane(places.entries), frame);
        if places.threads.height > 1 {
            let list = (self.panel == Panel::Threads, self.threads);
            lists::threads(cx, list, &pane(places.threads), frame);
        }
        if places.collector.height > 0 {
            vm::collector(digest, &pane(places.collector), frame);
        }
        if places.compilers.height > 0 {
            let told = self.compilers.get().and_then(Option::as_ref);
            let dropped = cx.profile.time_buckets.dropped();
            vm::compilers(told, dropped, &pane(places.compilers), frame);
        }
        if places.figures.height > 0 {
            vm::vm_figures(digest, &pane(places.figures), frame);
        }
    }

    fn shown(&self, cx: &Cx<'_>, _stop: &Stop) -> Option<Document> {
        let digest = self.digest.get().cloned().unwrap_or_default();
        let told = self.compilers.get().and_then(Option::as_ref);
        let strip = self.strip.get().cloned().unwrap_or_default();
        Some(shown::shown(cx, &digest, told, &strip))
    }

    fn is_pending(&self) -> bool {
        self.digest.is_pending() || self.strip.is_pending() || self.compilers.is_pending()
    }
}
