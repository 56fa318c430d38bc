//! The map: which zone, which time and which cell is looked at.

use super::cells::{self, Cells, Wanted};
use super::map_drawn::{self, Grid, Places};
use super::{Ground, names};
use crate::report::words::ratio;
use crate::tui::jobs::{Answer, Fetched, Question, Stamp};
use crate::tui::keys::Command;
use crate::tui::lens::Narrow;
use crate::tui::shown::{Cell, Part, Shown, Table};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press};
use crate::tui::widgets::search::Search;
use vmscope_records::{ConstituentKind, ProcessKey, TimeNs};
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::zone::{Life, ZoneRange};

/// Steps through the whole time.
const STEPS: u64 = 50;

/// A hot cell has this part of the hottest one's samples.
const HOT: f64 = 0.25;

const BY_CHANGES: u16 = 0;
const AS_HEAT: u16 = 1;
const FIRST_ZONE: u16 = 10;

/// So many zones can be chosen in the palette.
const MAX_CHOICES: u16 = 1_000;

/// The map.
#[derive(Debug, Default)]
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
    pub fn zone<'a>(&self, ground: &'a Ground) -> Option<&'a ZoneRange> {
        let chosen = self
            .zone
            .and_then(|zone| cells::zone_of(&ground.lives, zone));
        chosen.or_else(|| {
            let samples = |zone: &ZoneRange| map_drawn::samples_of(zone, ground);
            let zones = ground.lives.zones().iter();
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

    pub fn ask(&mut self, ground: &Ground, cx: &Cx<'_>) -> Option<Question> {
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
        self.cells
            .ask(2, key, Stamp::default(), move |profile, stop| {
                Cells::of(profile, &ground, &wanted, stop)
            })
    }

    /// Returns the number of the ground that the cells are made from.
    pub fn take(&mut self, answer: Option<Answer>) -> Option<u64> {
        self.cells.take(answer);
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
    pub fn here<'a>(&self, ground: &'a Ground, cx: &Cx<'_>) -> Vec<&'a Life> {
        let Some(zone) = self.zone(ground) else {
            return Vec::new();
        };
        let grid = self.grid(zone, cx);
        let start = self.cursor(zone, &grid);
        let end = start.saturating_add(grid.bytes);
        let there = ground.lives.at(zone, self.drawn_time(zone, &grid, cx));
        let here = there.filter(|(life, _)| life.start < end && start < life.end);
        here.map(|(life, _)| life)
            .filter(|life| {
                let code = life.constituent(&cx.profile.trace);
                code.is_some_and(|code| code.kind != ConstituentKind::Free)
            })
            .collect()
    }

    /// The constituent with most samples in the cursor's cell, else the largest.
    pub fn chosen<'a>(&self, ground: &'a Ground, cx: &Cx<'_>) -> Option<&'a Life> {
        let here = self.here(ground, cx);
        let zone = self.zone(ground)?;
        let key = |life: &&&Life| (map_drawn::samples_in(zone, life, ground), life.size());
        here.iter().max_by_key(key).copied()
    }

    /// What the cursor's cell is, where nothing is told to lie in it.
    pub fn gap(&self, ground: &Ground, cx: &Cx<'_>) -> &'static str {
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

    /// The entry of a constituent's own samples; `None` where it has none.
    fn entry(life: &Life, cx: &Cx<'_>) -> Option<EntryId> {
        let code = life.constituent(&cx.profile.trace)?;
        let kind = EntryKind::Code(code.kind.clone());
        let entries = cx.profile.entries.iter().zip(0..);
        let mut fitting = entries.filter(|(entry, _)| {
            entry.kind == kind && entry.name == code.name && entry.tier == code.tier
        });
        fitting.next().map(|(_, id)| id)
    }

    fn on_entry(&self, ground: &Ground, cx: &Cx<'_>, then: impl Fn(EntryId) -> Act) -> Vec<Act> {
        let Some(life) = self.chosen(ground, cx) else {
            return vec![Act::Say(format!("this is {}", self.gap(ground, cx)))];
        };
        let entry = Self::entry(life, cx);
        vec![entry.map_or_else(
            || Act::Say("no sample fell on it, so there is nothing to open".to_owned()),
            then,
        )]
    }

    fn step_time(&mut self, back: bool, ground: &Ground, cx: &Cx<'_>) -> Vec<Act> {
        let Some(zone) = self.zone(ground) else {
            return Vec::new();
        };
        let now = self.time(cx);
        let to = if self.by_changes {
            let lives = ground.lives.in_zone(zone).iter();
            let times = lives.flat_map(|life| [Some(life.from), life.until]);
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
            return vec![Act::Say(format!("this is the {end} of it"))];
        };
        self.before = Some(now);
        self.time = Some(to);
        Vec::new()
    }

    fn next_zone(&mut self, back: bool, ground: &Ground) {
        let zones = ground.lives.zones();
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

    /// Zooms out by one step; whether it was zoomed in.
    pub fn zoom_back(&mut self) -> bool {
        let was_zoomed = self.zoom > 0;
        self.zoom = self.zoom.saturating_sub(1);
        was_zoomed
    }

    /// Moves the cursor by so many bytes, within the zone.
    fn walk(&mut self, zone: &ZoneRange, grid: &Grid, back: bool, bytes: u64) {
        let now = self.cursor(zone, grid);
        let to = if back {
            now.saturating_sub(bytes)
        } else {
            now.saturating_add(bytes)
        };
        self.at = Some(to.clamp(zone.start, zone.end.saturating_sub(1)));
    }

    pub fn act(&mut self, command: Command, ground: &Ground, cx: &Cx<'_>) -> Vec<Act> {
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
            Command::ZoomIn if grid.bytes > map_drawn::LEAST_BYTES => {
                self.at = Some(self.cursor(&zone, &grid));
                self.zoom += 1;
            }
            Command::ZoomIn => return vec![Act::Say("this is as near as it gets".to_owned())],
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
                self.choose(ground.lives.zones().get(at));
            }
            Command::NextHot => self.hot(&zone, &grid, false, cx),
            Command::PreviousHot => self.hot(&zone, &grid, true, cx),
            Command::Cancel => self.before = None,
            Command::Open => return self.on_entry(ground, cx, Act::Annotate),
            Command::Only => {
                let only = |entry| Act::Narrow(Narrow::Entries(vec![entry]));
                return self.on_entry(ground, cx, only);
            }
            _ => {}
        }
        Vec::new()
    }

    /// How time is stepped through.
    pub fn steps(&self) -> &'static str {
        if self.by_changes {
            "from change to change"
        } else {
            "by a fiftieth of the time"
        }
    }

    /// To the next hot cell of those on the screen.
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

    pub fn click(&mut self, click: Click, ground: &Ground, cx: &Cx<'_>) -> Vec<Act> {
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

    pub fn find(&mut self, pattern: &str, find: Find, ground: &Ground, cx: &Cx<'_>) -> bool {
        let Some(zone) = self.zone(ground) else {
            return pattern.is_empty();
        };
        let hex = pattern.strip_prefix("0x");
        if let Some(address) = hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
            let is_in = (zone.start..zone.end).contains(&address);
            self.at = if is_in { Some(address) } else { self.at };
            return is_in;
        }
        let there: Vec<&Life> = (ground.lives.at(zone, self.time(cx)))
            .map(|(life, _)| life)
            .collect();
        let at = self.at.unwrap_or(zone.start);
        let now = there.partition_point(|life| life.start <= at);
        let now = now.saturating_sub(1);
        let found = (self.search).find(pattern, find, there.len(), now, |row, text| {
            let code = there.get(row);
            let code = code.and_then(|life| life.constituent(&cx.profile.trace));
            code.is_some_and(|code| text.is_in(&code.name))
        });
        found.select(|row| self.at = there.get(row).map(|life| life.start))
    }

    pub fn choices(&self, ground: &Ground, cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: String| Choice { text, number };
        let step = if self.by_changes {
            "step by a fiftieth of the time"
        } else {
            "step from change to change"
        };
        let heat = if self.as_heat {
            "cells show what they are"
        } else {
            "cells show their samples as digits"
        };
        let mut choices = vec![
            choice(BY_CHANGES, step.to_owned()),
            choice(AS_HEAT, heat.to_owned()),
        ];
        // A palette has no room for more, nor have the numbers.
        let numbers = FIRST_ZONE..FIRST_ZONE + MAX_CHOICES;
        for (zone, number) in ground.lives.zones().iter().zip(numbers) {
            let name = names::of_zone(zone.process, zone.start, &ground.lives, cx);
            choices.push(choice(number, format!("map of {name}")));
        }
        choices
    }

    pub fn shown(&self, ground: &Ground, cx: &Cx<'_>) -> Shown {
        let only_text = |text: &str| Shown {
            title: "Code zone".to_owned(),
            parts: vec![Part::Text(vec![text.to_owned()])],
        };
        let Some(zone) = self.zone(ground) else {
            return only_text(map_drawn::NO_ZONE);
        };
        let Some((of, cells)) = self.fitting(zone, &self.grid(zone, cx), cx) else {
            return only_text("What is in the code zone is not yet worked out.");
        };
        let time = of.time;
        let heads = ["kind", ">constituents", ">bytes", ">samples"];
        let mut kinds = Table::new("", &heads);
        for total in &cells.totals {
            kinds.rows.push(vec![
                Cell::Text(cells::name_of(&total.sort)),
                Cell::Count(total.count),
                Cell::Bytes(total.bytes),
                Cell::Count(total.samples),
            ]);
        }
        for (_, name, gaps) in map_drawn::gaps_of(cells) {
            kinds.rows.push(vec![
                Cell::Text(name.to_owned()),
                Cell::Count(gaps.count),
                Cell::Bytes(gaps.bytes),
                Cell::Empty,
            ]);
        }
        let heads = [
            "name", "kind", "tier", "from", "to", ">bytes", ">since", ">samples",
        ];
        let mut table = Table::new("", &heads);
        for (life, _) in ground.lives.at(zone, time) {
            let Some(code) = life.constituent(&cx.profile.trace) else {
                continue;
            };
            table.rows.push(vec![
                Cell::Text(code.name.clone()),
                Cell::Text(map_drawn::kind_of(&code.kind)),
                Cell::Text(code.tier.clone()),
                Cell::Text(format!("{:#x}", life.start)),
                Cell::Text(format!("{:#x}", life.end)),
                Cell::Bytes(life.size()),
                Cell::Seconds(cx.seconds(life.from)),
                Cell::Count(map_drawn::samples_in(zone, life, ground)),
            ]);
        }
        let name = names::of_zone(zone.process, zone.start, &ground.lives, cx);
        Shown {
            title: format!("The {name} at {:.3} s", cx.seconds(time)),
            parts: vec![Part::Table(kinds), Part::Table(table)],
        }
    }
}
