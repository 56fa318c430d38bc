//! The map: which zone, which time and which cell is looked at.

mod act;
mod shown;

use super::map_drawn;
use super::map_grid::{Grid, Places};
use crate::queries::zone_cells::ZoneSamples;
use crate::queries::zone_cells::{Cells, Wanted, zone_of};
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::views::Cx;
use crate::tui::widgets::search::Search;
use vmscope_records::{ConstituentKind, ProcessKey, TimeNs};
use vmscope_symbolizer::zone::{Residency, ZoneRange};

/// The map.
#[derive(Clone, Debug, Default)]
pub struct Map {
    zone: Option<(ProcessKey, u64)>,
    /// When; at the end of what is shown where it was not chosen.
    time: Option<TimeNs>,
    /// The time before the last step.
    before: Option<TimeNs>,
    by_changes: bool,
    /// Whether cells are digits of heat.
    pub(super) as_heat: bool,
    /// How often a cell's bytes were halved.
    zoom: u32,
    /// The address of the cursor.
    at: Option<u64>,
    search: Search,
    pub(super) cells: Fetched<Wanted, Cells>,
}

impl Map {
    /// The zone that is shown: the one chosen, else that with most samples.
    pub fn zone<'a>(&self, ground: &'a ZoneSamples) -> Option<&'a ZoneRange> {
        let chosen = self
            .zone
            .and_then(|zone| zone_of(&ground.layout.residencies, zone));
        chosen.or_else(|| {
            let samples = |zone: &ZoneRange| map_drawn::samples_of(zone, ground);
            let zones = ground.layout.residencies.zones().iter();
            zones.max_by_key(|zone| (samples(zone), zone.end - zone.start))
        })
    }

    /// The time that is shown.
    pub fn time(&self, cx: &Cx<'_>) -> TimeNs {
        let (from, to) = cx.window();
        // The window ends before the instant that it is named by.
        let last = TimeNs(to.0.saturating_sub(1)).max(from);
        self.time
            .unwrap_or(last)
            .clamp(cx.begin, cx.end.max(cx.begin))
    }

    /// How the zone is laid out on the screen.
    pub fn grid(&self, zone: &ZoneRange, cx: &Cx<'_>) -> Grid {
        let at = self.at.unwrap_or(zone.start);
        Grid::of(zone, Places::of(cx.area).map, self.zoom, at)
    }

    /// The address of the cursor's cell.
    pub fn cursor(&self, zone: &ZoneRange, grid: &Grid) -> u64 {
        let at = self.at.unwrap_or(zone.start);
        let inside = at.clamp(zone.start, zone.end.saturating_sub(1)) - zone.start;
        zone.start + inside / grid.bytes * grid.bytes
    }

    pub fn ask(&mut self, ground: &ZoneSamples, cx: &Cx<'_>) -> Option<Question> {
        let zone = self.zone(ground)?;
        let grid = self.grid(zone, cx);
        let columns = usize::from(Places::of(cx.area).line.width);
        let wanted = Wanted {
            ground: ground.number,
            zone: (zone.process, zone.start),
            time: self.time(cx),
            before: self.before,
            first: grid.first,
            bytes: grid.bytes,
            cells: grid.cells(zone),
            line: (cx.begin, cx.end, columns),
        };
        let (key, ground) = (wanted.clone(), ground.clone());
        self.cells.ask(key, Stamp::default(), move |profile, stop| {
            Cells::of(profile, &ground, &wanted, stop)
        })
    }

    /// Returns, of a new answer, the number of the ground that the cells are made from.
    pub fn take(&mut self, ended: QuestionId) -> Option<u64> {
        if !self.cells.take(ended) {
            return None;
        }
        self.cells.answered().map(|(wanted, _)| wanted.ground)
    }

    /// The cells with what they answer, where that is what is laid out now: others would
    /// stand at wrong addresses.
    pub fn fitting(&self, zone: &ZoneRange, grid: &Grid, cx: &Cx<'_>) -> Option<(&Wanted, &Cells)> {
        let (of, _) = self.cells.answered()?;
        let fits = of.zone == (zone.process, zone.start)
            && (of.first, of.bytes, of.cells) == (grid.first, grid.bytes, grid.cells(zone))
            && of.line.2 == usize::from(Places::of(cx.area).line.width);
        self.cells.get().filter(|_| fits).map(|cells| (of, cells))
    }

    /// The time of the cells that are drawn; the one wanted where there are none.
    fn drawn_time(&self, zone: &ZoneRange, grid: &Grid, cx: &Cx<'_>) -> TimeNs {
        let fitting = self.fitting(zone, grid, cx);
        fitting.map_or_else(|| self.time(cx), |(of, _)| of.time)
    }

    pub fn is_pending(&self) -> bool {
        self.cells.is_pending()
    }

    /// What lies in the cursor's cell, by address.
    pub fn here<'a>(&self, ground: &'a ZoneSamples, cx: &Cx<'_>) -> Vec<&'a Residency> {
        let Some(zone) = self.zone(ground) else {
            return Vec::new();
        };
        let grid = self.grid(zone, cx);
        let start = self.cursor(zone, &grid);
        let end = start.saturating_add(grid.bytes);
        let there = ground
            .layout
            .residencies
            .at(zone, self.drawn_time(zone, &grid, cx));
        let here = there.filter(|(residency, _)| residency.start < end && start < residency.end);
        here.map(|(residency, _)| residency)
            .filter(|residency| {
                let code = residency.constituent(&cx.profile.trace);
                code.is_some_and(|code| code.kind != ConstituentKind::Free)
            })
            .collect()
    }

    /// The constituent with most samples in the cursor's cell, else the largest.
    pub fn chosen<'a>(&self, ground: &'a ZoneSamples, cx: &Cx<'_>) -> Option<&'a Residency> {
        let here = self.here(ground, cx);
        let zone = self.zone(ground)?;
        let key = |residency: &&&Residency| {
            (
                map_drawn::samples_in(zone, residency, ground),
                residency.size(),
            )
        };
        here.iter().max_by_key(key).copied()
    }

    /// What the cursor's cell is, where nothing is told to lie in it.
    pub fn gap(&self, ground: &ZoneSamples, cx: &Cx<'_>) -> &'static str {
        let cell = self.zone(ground).and_then(|zone| {
            let grid = self.grid(zone, cx);
            let (of, cells) = self.fitting(zone, &grid, cx)?;
            let inside = self.cursor(zone, &grid).checked_sub(of.first)? / of.bytes;
            cells.cells.get(usize::try_from(inside).ok()?)
        });
        if cell.is_some_and(|cell| cell.free) {
            "free space"
        } else {
            "space that nobody told of"
        }
    }

    /// Zooms out by one step; whether it was zoomed in.
    pub fn zoom_back(&mut self) -> bool {
        let was_zoomed = self.zoom > 0;
        self.zoom = self.zoom.saturating_sub(1);
        was_zoomed
    }
}
