//! The map on the screen:
//!
//! ```text
//! code zone 1 of 3: 0x7fa000000000 +1.0 MiB, 1 cell = 1.0 KiB
//! +000000 IIISSSSSSSSAA...................................    739 █▏
//! +040000 1111CC+1-...
//! 1 methods C1  2 methods C2  I interpreter  . free
//! 312 KiB used, 712 KiB free in 9 gaps, the largest 200 KiB
//! 8.420 s ────▁─▂────●─────
//! OrderBook.match, methods C2, 0x7fa000080040 +896 B, since 2.310 s
//! ```

use super::map::{Map, NO_ZONE};
use super::map_below::draw_kinds;
use super::map_grid::{Grid, LEFT, Places};
use super::names;
use super::pane::put;
use crate::present::numbers::{bytes, count, ratio};
use crate::present::text::right;
use crate::queries::zone_cells::{Cell, Cells, FREE, UNTOLD};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::say;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use vmscope_symbolizer::zone::ZoneRange;

impl Map {
    pub fn draw_map(&self, ground: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(zone) = self.zone(ground) else {
            return say(NO_ZONE, cx, frame, area);
        };
        let places = Places::of(area);
        let grid = self.grid(zone, cx);
        let buffer = frame.buffer_mut();
        self.draw_head(zone, &grid, ground, cx, buffer, (area, &places));
        let Some((of, cells)) = self.fitting(zone, &grid, cx) else {
            return;
        };
        self.draw_cells(zone, &grid, cells, cx, buffer, places.map);
        self.draw_below((of, cells), ground, cx, buffer, (area, &places));
        if let Some(side) = places.side {
            draw_kinds(cells, cx, buffer, side);
        }
    }

    fn draw_head(
        &self,
        zone: &ZoneRange,
        grid: &Grid,
        ground: &ZoneSamples,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        (area, places): (Rect, &Places),
    ) {
        let zones = ground.layout.residencies.zones().len();
        let of = if zones > 1 {
            format!(" of {zones} (b: next)")
        } else {
            String::new()
        };
        let text = format!(
            " {}{of}: {:#x} +{}, 1 cell = {}",
            names::of_zone(zone.process, zone.start, &ground.layout.residencies, cx),
            zone.start,
            bytes(zone.end - zone.start),
            bytes(grid.bytes),
        );
        let room = places.side.map_or(area.width, |side| side.x - area.x);
        let style = cx.theme.style(Role::Title);
        put(buffer, (area.x, area.y), &text, usize::from(room), style);
    }

    fn draw_cells(
        &self,
        zone: &ZoneRange,
        grid: &Grid,
        cells: &Cells,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        map: Rect,
    ) {
        let theme = cx.theme;
        let dim = theme.style(Role::Dim);
        let cursor = self.cursor(zone, grid).saturating_sub(grid.first) / grid.bytes;
        let most = cells
            .cells
            .iter()
            .map(|cell| cell.samples)
            .max()
            .unwrap_or(0);
        let rows = || cells.cells.chunks(usize::from(grid.columns).max(1));
        let sum = |row: &[Cell]| row.iter().map(|cell| cell.samples).sum::<u64>();
        let hottest = rows().map(sum).max().unwrap_or(0);
        for (row, (y, number)) in rows().zip((map.y..map.bottom()).zip(0u64..)) {
            let inside = grid.first - zone.start + grid.row_bytes().saturating_mul(number);
            let left = map.x.saturating_sub(LEFT);
            put(buffer, (left, y), &format!(" +{inside:06x}"), 10, dim);
            let first = number * u64::from(grid.columns);
            for (cell, (x, index)) in row.iter().zip((map.x..map.right()).zip(first..)) {
                let heat = ratio(cell.samples, most);
                let letter = cell.sort.and_then(|sort| cells.totals.get(sort));
                let gap = if cell.free { FREE } else { UNTOLD };
                let letter = letter.map_or(gap, |total| total.letter);
                let sign = match (cell.came, cell.went) {
                    (true, _) => '+',
                    (false, true) => '-',
                    _ if self.as_heat && cell.samples > 0 => digit(heat),
                    _ if self.as_heat => ' ',
                    _ => letter,
                };
                let role = if cell.came || cell.went {
                    Role::Key
                } else if cell.samples > 0 {
                    Role::Heat(heat)
                } else if cell.sort.is_some() {
                    Role::Text
                } else {
                    Role::Dim
                };
                let mut style = theme.style(role);
                if cell.samples > 0 {
                    style = style.add_modifier(ratatui::style::Modifier::UNDERLINED);
                }
                if index == cursor {
                    style = style.patch(theme.style(Role::Selected));
                    style = style.add_modifier(ratatui::style::Modifier::REVERSED);
                }
                let mut place = [0; 4];
                put(buffer, (x, y), sign.encode_utf8(&mut place), 1, style);
            }
            let samples = sum(row);
            if samples > 0 {
                let text = right(&count(samples), 8);
                put(buffer, (map.right(), y), &text, 8, theme.style(Role::Text));
                let share = ratio(samples, hottest);
                let bar = theme.bar(share, 5);
                let style = theme.style(Role::Heat(share));
                put(buffer, (map.right() + 9, y), &bar, 5, style);
            }
        }
    }
}

/// Heat as a digit, 1 to 9.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a digit"
)]
fn digit(heat: f64) -> char {
    let digit = (heat.clamp(0.0, 1.0) * 9.0).ceil().max(1.0) as u32;
    char::from_digit(digit, 10).unwrap_or('9')
}
