//! State of the map: zone, time, cursor.

mod act;
mod shown;

use super::map_grid::{Grid, Places};
use crate::queries::zone_cells::{Cells, Wanted, zone_of};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::jobs::Fetched;
use crate::tui::views::Cx;
use crate::tui::widgets::search::Search;
use vmscope_records::{ConstituentKind, ProcessKey, TimeNs};
use vmscope_symbolizer::zone::{Residency, ZoneRange};

/// Message for recordings without a zone.
pub const NO_ZONE: &str = "This recording has no code zone (no reports of JIT code). `vmscope \
                           attach PID` records the code zone of a JVM, `vmscope record -- node \
                           FILE` that of V8; native programs have none. m shows samples by \
                           address.";

#[derive(Clone, Debug, Default)]
pub struct Map {
    zone: Option<(ProcessKey, u64)>,
    /// Chosen time; `None` for the end of the window.
    time: Option<TimeNs>,
    /// Time before the last step.
    before: Option<TimeNs>,
    by_changes: bool,
    /// Whether cells show heat as digits.
    pub(super) as_heat: bool,
    /// How often a cell's bytes were halved.
    zoom: u32,
    /// Cursor address.
    at: Option<u64>,
    search: Search,
    pub(super) cells: Fetched<Wanted, (ZoneSamples, Cells)>,
}

impl Map {
    /// The chosen zone, else the zone with most samples.
    pub fn zone<'a>(&self, ground: &'a ZoneSamples) -> Option<&'a ZoneRange> {
        let chosen = self
            .zone
            .and_then(|zone| zone_of(&ground.layout.residencies, zone));
        chosen.or_else(|| ground.hottest_zone())
    }

    /// Time on the screen.
    pub fn time(&self, cx: &Cx<'_>) -> TimeNs {
        let (from, to) = cx.window();
        // A window's end is exclusive.
        let last = TimeNs(to.0.saturating_sub(1)).max(from);
        self.time
            .unwrap_or(last)
            .clamp(cx.begin, cx.end.max(cx.begin))
    }

    pub fn grid(&self, zone: &ZoneRange, cx: &Cx<'_>) -> Grid {
        let at = self.at.unwrap_or(zone.start);
        Grid::of(zone, Places::of(cx.area).map, self.zoom, at)
    }

    /// Start address of the cursor's cell.
    pub fn cursor(&self, zone: &ZoneRange, grid: &Grid) -> u64 {
        let at = self.at.unwrap_or(zone.start);
        let inside = at.clamp(zone.start, zone.end.saturating_sub(1)) - zone.start;
        zone.start + inside / grid.bytes * grid.bytes
    }

    /// The newest answer, if computed for the current layout: other cells would have wrong
    /// addresses.
    pub fn fitting(&self, zone: &ZoneRange, grid: &Grid, cx: &Cx<'_>) -> Option<(&Wanted, &Cells)> {
        let (of, _) = self.cells.answered()?;
        let fits = of.zone == (zone.process, zone.start)
            && (of.first, of.bytes, of.cells) == (grid.first, grid.bytes, grid.cells(zone))
            && of.line.2 == usize::from(Places::of(cx.area).line.width);
        let cells = self.cells.get().filter(|_| fits);
        cells.map(|(_, cells)| (of, cells))
    }

    /// Time of the drawn cells; before an answer, the wanted time.
    fn drawn_time(&self, zone: &ZoneRange, grid: &Grid, cx: &Cx<'_>) -> TimeNs {
        let fitting = self.fitting(zone, grid, cx);
        fitting.map_or_else(|| self.time(cx), |(of, _)| of.time)
    }

    /// Residencies in the cursor's cell, by address.
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

    /// Constituent with most samples in the cursor's cell; among equals, the largest.
    pub fn chosen<'a>(&self, ground: &'a ZoneSamples, cx: &Cx<'_>) -> Option<&'a Residency> {
        let here = self.here(ground, cx);
        let zone = self.zone(ground)?;
        let key =
            |residency: &&&Residency| (ground.in_residency(zone, residency), residency.size());
        here.iter().max_by_key(key).copied()
    }

    /// Name of an unoccupied cell.
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
            "space without a report from the VM"
        }
    }
}
