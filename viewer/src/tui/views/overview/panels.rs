//! Lists with keyboard focus: regions, entries, threads.

use super::{Overview, Panel};
use crate::present::names::region_name;
use crate::queries::overview::Overview as Digest;
use crate::tui::filter_state::FilterChange;
use crate::tui::views::{Act, Cx, threads};
use crate::tui::widgets::search::Finder;
use ratatui::layout::Rect;

/// Whether a row matches a search.
pub(super) fn has_name(
    digest: Option<&Digest>,
    panel: Panel,
    cx: &Cx<'_>,
    row: usize,
    text: &mut Finder,
) -> bool {
    match panel {
        Panel::Regions => {
            let region = digest.and_then(|digest| digest.regions.get(row));
            region.is_some_and(|one| text.is_in(region_name(one.0, cx.profile.is_native())))
        }
        Panel::Entries => {
            let entry = digest.and_then(|digest| digest.entries.get(row));
            let entry = entry.map(|one| &cx.profile.entries[one.0]);
            entry.is_some_and(|entry| text.is_in_words(&[&entry.name, &entry.tier]))
        }
        Panel::Threads => {
            let thread = cx.summary.and_then(|summary| summary.threads.get(row));
            thread.is_some_and(|one| threads::matches(cx.profile, one.thread, text))
        }
    }
}

impl Overview {
    pub(super) fn count(&self, cx: &Cx<'_>, panel: Panel) -> usize {
        match panel {
            Panel::Regions => self.digest.get().map_or(0, |digest| digest.regions.len()),
            Panel::Entries => self.digest.get().map_or(0, |digest| digest.entries.len()),
            Panel::Threads => cx.summary.map_or(0, |summary| summary.threads.len()),
        }
    }

    /// Selected row of a list.
    pub(super) fn selected(&self, panel: Panel) -> usize {
        match panel {
            Panel::Regions => {
                let regions = self
                    .digest
                    .get()
                    .into_iter()
                    .flat_map(|digest| &digest.regions);
                let mut regions = regions.map(|(region, ..)| Some(*region));
                regions
                    .position(|region| region == self.region)
                    .unwrap_or(0)
            }
            Panel::Entries => self.entries.selected(),
            Panel::Threads => self.threads.selected(),
        }
    }

    pub(super) fn select(&mut self, panel: Panel, row: usize, cx: &Cx<'_>) {
        let count = self.count(cx, panel);
        let places = self.places(cx.area);
        let rows = |area: Rect| usize::from(area.height.saturating_sub(1));
        self.panel = panel;
        match panel {
            Panel::Regions => {
                let regions = self.digest.get().map(|digest| &digest.regions);
                let row = row.min(count.saturating_sub(1));
                self.region = regions.and_then(|all| all.get(row)).map(|one| one.0);
            }
            Panel::Entries => {
                self.entries.select(row, count, rows(places.entries));
                let entries = self.digest.get().map(|digest| &digest.entries);
                let row = self.entries.selected();
                self.entry = entries.and_then(|all| all.get(row)).map(|one| one.0);
            }
            Panel::Threads => {
                self.threads.select(row, count, rows(places.threads));
                let row = self.threads.selected();
                let threads = cx.summary.map(|summary| &summary.threads);
                self.thread = threads.and_then(|all| all.get(row)).map(|one| one.thread);
            }
        }
    }

    pub(super) fn panels(&self, cx: &Cx<'_>) -> Vec<(Panel, Rect)> {
        let places = self.places(cx.area);
        let panels = [
            (Panel::Regions, places.regions),
            (Panel::Entries, places.entries),
            (Panel::Threads, places.threads),
        ];
        let is_there = |(_, area): &(Panel, Rect)| area.width > 0 && area.height > 1;
        panels.into_iter().filter(is_there).collect()
    }

    /// Moves the focus to the neighbouring list.
    pub(super) fn step(&mut self, right: bool, cx: &Cx<'_>) {
        let panels = self.panels(cx);
        let now = panels.iter().position(|(panel, _)| *panel == self.panel);
        let now = now.unwrap_or(0);
        let next = if right {
            now + 1
        } else {
            now.saturating_sub(1)
        };
        if let Some(&(panel, _)) = panels.get(next) {
            self.select(panel, self.selected(panel), cx);
        }
    }

    pub(super) fn only(&self, cx: &Cx<'_>) -> Vec<Act> {
        let row = self.selected(self.panel);
        let digest = self.digest.get();
        let narrow = match self.panel {
            Panel::Regions => {
                let region = digest.and_then(|digest| digest.regions.get(row));
                region.map(|one| FilterChange::Regions(vec![one.0]))
            }
            Panel::Entries => {
                let entry = digest.and_then(|digest| digest.entries.get(row));
                entry.map(|one| FilterChange::Entries(vec![one.0]))
            }
            Panel::Threads => {
                let thread = cx.summary.and_then(|summary| summary.threads.get(row));
                thread.map(|one| FilterChange::Threads(Some([one.thread].into_iter().collect())))
            }
        };
        narrow.into_iter().map(Act::FilterChange).collect()
    }
}
