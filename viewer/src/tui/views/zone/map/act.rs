//! The map as a pane: keys, mouse, search, palette.

use super::Map;
use crate::present::document::Document;
use crate::present::numbers::ratio;
use crate::queries::zone_cells::{Cells, Wanted};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::zone::map_grid::{self, Grid, Places};
use crate::tui::views::zone::names;
use crate::tui::views::zone::pane::{HOT, MAX_CHOICES, Pane};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_records::TimeNs;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::zone::{Residency, ZoneRange};

/// Steps through the whole time.
const STEPS: u64 = 50;

const BY_CHANGES: u16 = 0;
const AS_HEAT: u16 = 1;
const FIRST_ZONE: u16 = 10;

impl Map {
    /// Entry with a constituent's samples, if any.
    fn entry(residency: &Residency, cx: &Cx<'_>) -> Option<EntryId> {
        let code = residency.constituent(&cx.profile.trace)?;
        let kind = EntryKind::Code(code.kind.clone());
        let entries = cx.profile.entries.enumerated();
        let mut fitting = entries.filter(|(_, entry)| {
            entry.kind == kind && entry.name == code.name && entry.tier == code.tier
        });
        fitting.next().map(|(id, _)| id)
    }

    fn on_entry(
        &self,
        ground: &ZoneSamples,
        cx: &Cx<'_>,
        then: impl Fn(EntryId) -> Act,
    ) -> Vec<Act> {
        let Some(residency) = self.chosen(ground, cx) else {
            return vec![Act::Say(format!("this is {}", self.gap(ground, cx)))];
        };
        let entry = Self::entry(residency, cx);
        vec![entry.map_or_else(
            || Act::Say("no samples in this code: nothing to open".to_owned()),
            then,
        )]
    }

    fn step_time(&mut self, back: bool, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act> {
        let Some(zone) = self.zone(ground) else {
            return Vec::new();
        };
        let now = self.time(cx);
        let to = if self.by_changes {
            let residencies = ground.layout.residencies.in_zone(zone).iter();
            let times = residencies.flat_map(|residency| [Some(residency.from), residency.until]);
            let times = times.flatten();
            let inside = times.filter(|time| (cx.begin..=cx.end).contains(time));
            if back {
                inside.filter(|time| *time < now).max()
            } else {
                inside.filter(|time| *time > now).min()
            }
        } else {
            let step = (cx.end.since(cx.begin).0 / STEPS).max(1);
            let to = if back {
                TimeNs(now.0.saturating_sub(step)).max(cx.begin)
            } else {
                TimeNs(now.0.saturating_add(step)).min(cx.end)
            };
            (to != now).then_some(to)
        };
        let Some(to) = to else {
            let end = if back { "beginning" } else { "end" };
            return vec![Act::Say(format!("this is the {end} of the recording"))];
        };
        self.before = Some(now);
        self.time = Some(to);
        Vec::new()
    }

    fn next_zone(&mut self, back: bool, ground: &ZoneSamples) {
        let zones = ground.layout.residencies.zones();
        let shown = self.zone(ground);
        let now = zones.iter().position(|zone| Some(zone) == shown);
        let count = zones.len().max(1);
        let by = if back { count - 1 } else { 1 };
        let next = zones.get((now.unwrap_or(0) + by) % count);
        self.choose(next);
    }

    fn choose(&mut self, zone: Option<&ZoneRange>) {
        self.zone = zone.map(|zone| (zone.process, zone.start));
        (self.at, self.zoom, self.before) = (None, 0, None);
    }

    /// Moves the cursor by bytes, within the zone.
    fn walk(&mut self, zone: &ZoneRange, grid: &Grid, back: bool, bytes: u64) {
        let now = self.cursor(zone, grid);
        let to = if back {
            now.saturating_sub(bytes)
        } else {
            now.saturating_add(bytes)
        };
        self.at = Some(to.clamp(zone.start, zone.end.saturating_sub(1)));
    }

    /// Name of the time steps.
    pub fn steps(&self) -> &'static str {
        if self.by_changes {
            "steps from change to change"
        } else {
            "steps of 2% of the time"
        }
    }

    /// Moves to the next hot visible cell.
    fn hot(&mut self, zone: &ZoneRange, grid: &Grid, back: bool, cx: &Cx<'_>) {
        let Some((_, cells)) = self.fitting(zone, grid, cx) else {
            return;
        };
        let most = cells.cells.iter().map(|cell| cell.samples).max();
        let most = most.unwrap_or(0);
        let inside = self.cursor(zone, grid).saturating_sub(grid.first);
        let now = usize::try_from(inside / grid.bytes).unwrap_or(0);
        let is_hot = |at: &usize| {
            let cell = cells.cells.get(*at);
            cell.is_some_and(|cell| cell.samples > 0 && ratio(cell.samples, most) >= HOT)
        };
        let found = if back {
            (0..now).rev().find(is_hot)
        } else {
            (now + 1..cells.cells.len()).find(is_hot)
        };
        if let Some(found) = found {
            self.at = Some(grid.first + grid.bytes * found as u64);
        }
    }
}

impl Pane for Map {
    fn crumb(&self) -> &'static str {
        "code zone"
    }

    fn missing(&self) -> (&'static [Command], &'static str) {
        (
            &[Command::Select, Command::Toggle],
            "this key is for the plot: m shows it",
        )
    }

    fn act(&mut self, command: Command, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act> {
        let Some(zone) = self.zone(ground).cloned() else {
            return Vec::new();
        };
        let grid = self.grid(&zone, cx);
        let row = grid.row_bytes();
        let page = row.saturating_mul(u64::from(grid.rows).max(2) / 2);
        match command {
            Command::Left => self.walk(&zone, &grid, true, grid.bytes),
            Command::Right => self.walk(&zone, &grid, false, grid.bytes),
            Command::Up => self.walk(&zone, &grid, true, row),
            Command::Down => self.walk(&zone, &grid, false, row),
            Command::PageUp | Command::HalfUp => self.walk(&zone, &grid, true, page),
            Command::PageDown | Command::HalfDown => self.walk(&zone, &grid, false, page),
            Command::First => self.at = Some(zone.start),
            Command::Last => self.at = Some(zone.end.saturating_sub(1)),
            Command::ZoomIn if grid.bytes > map_grid::LEAST_BYTES => {
                self.at = Some(self.cursor(&zone, &grid));
                self.zoom += 1;
            }
            Command::ZoomIn => return vec![Act::Say("no further zoom".to_owned())],
            Command::ZoomOut => {
                self.zoom_back();
            }
            Command::Earlier => return self.step_time(true, ground, cx),
            Command::Later => return self.step_time(false, ground, cx),
            Command::Sort | Command::Own(BY_CHANGES) => {
                self.by_changes = !self.by_changes;
                return vec![Act::Say(format!("steps go {}", self.steps()))];
            }
            Command::Own(AS_HEAT) => self.as_heat = !self.as_heat,
            Command::Group => self.next_zone(false, ground),
            Command::GroupBack => self.next_zone(true, ground),
            Command::Own(number) => {
                let at = usize::from(number.saturating_sub(FIRST_ZONE));
                self.choose(ground.layout.residencies.zones().get(at));
            }
            Command::NextHot => self.hot(&zone, &grid, false, cx),
            Command::PreviousHot => self.hot(&zone, &grid, true, cx),
            Command::Cancel => self.before = None,
            Command::Open => return self.on_entry(ground, cx, Act::Annotate),
            Command::Only => {
                let only = |entry| Act::FilterChange(FilterChange::Entries(vec![entry]));
                return self.on_entry(ground, cx, only);
            }
            _ => {}
        }
        Vec::new()
    }

    fn zoom_back(&mut self) -> bool {
        let was_zoomed = self.zoom > 0;
        self.zoom = self.zoom.saturating_sub(1);
        was_zoomed
    }

    fn click(&mut self, click: Click, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act> {
        let Some(zone) = self.zone(ground).cloned() else {
            return Vec::new();
        };
        let places = Places::of(cx.area);
        let grid = self.grid(&zone, cx);
        match click.what {
            Press::WheelUp => self.walk(&zone, &grid, true, grid.row_bytes()),
            Press::WheelDown => self.walk(&zone, &grid, false, grid.row_bytes()),
            Press::Down | Press::Drag if places.line.contains(click.at) => {
                let span = u128::from(cx.end.since(cx.begin).0);
                let part = u128::from(click.at.x - places.line.x);
                let of = u128::from(places.line.width.saturating_sub(1)).max(1);
                let inside = u64::try_from(span * part / of).unwrap_or(0);
                let to = TimeNs(cx.begin.0.saturating_add(inside));
                self.before = Some(self.time(cx));
                self.time = Some(to);
            }
            Press::Down | Press::Double => {
                if let Some(address) = grid.address(&zone, places.map, click.at) {
                    self.at = Some(address);
                    if click.what == Press::Double {
                        return self.act(Command::Open, ground, cx);
                    }
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn ask(&mut self, ground: &ZoneSamples, cx: &Cx<'_>) -> Option<Question> {
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
            let cells = Cells::of(profile, &ground, &wanted, stop)?;
            Some((ground, cells))
        })
    }

    fn take(&mut self, ended: QuestionId) {
        self.cells.take(ended);
    }

    fn is_pending(&self) -> bool {
        self.cells.is_pending()
    }

    fn samples(&self) -> Option<&ZoneSamples> {
        self.cells.get().map(|(samples, _)| samples)
    }

    fn find(&mut self, pattern: &str, find: Find, ground: &ZoneSamples, cx: &Cx<'_>) -> bool {
        let Some(zone) = self.zone(ground) else {
            return pattern.is_empty();
        };
        let hex = pattern.strip_prefix("0x");
        if let Some(address) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            let is_in = (zone.start..zone.end).contains(&address);
            self.at = if is_in { Some(address) } else { self.at };
            return is_in;
        }
        let there: Vec<&Residency> = (ground.layout.residencies.at(zone, self.time(cx)))
            .map(|(residency, _)| residency)
            .collect();
        let at = self.at.unwrap_or(zone.start);
        let now = there.partition_point(|residency| residency.start <= at);
        let now = now.saturating_sub(1);
        let found = (self.search).find(pattern, find, there.len(), now, |row, text| {
            let code = there.get(row);
            let code = code.and_then(|residency| residency.constituent(&cx.profile.trace));
            code.is_some_and(|code| text.is_in(&code.name))
        });
        found.select(|row| self.at = there.get(row).map(|residency| residency.start))
    }

    fn draw(&self, ground: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_map(ground, cx, frame, area);
    }

    fn shown(&self, ground: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.tables(ground, cx, stop)
    }

    fn choices(&self, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: String| Choice { text, number };
        let step = if self.by_changes {
            "step by 2% of the time"
        } else {
            "step from change to change"
        };
        let heat = if self.as_heat {
            "cells show kinds of code"
        } else {
            "cells show samples as digits"
        };
        let mut choices = vec![
            choice(BY_CHANGES, step.to_owned()),
            choice(AS_HEAT, heat.to_owned()),
        ];
        // Palette length and choice numbers are limited.
        let numbers = FIRST_ZONE..FIRST_ZONE + MAX_CHOICES;
        for (zone, number) in ground.layout.residencies.zones().iter().zip(numbers) {
            let name = names::of_zone(zone.process, zone.start, &ground.layout.residencies, cx);
            choices.push(choice(number, format!("map of {name}")));
        }
        choices
    }
}
