//! Screen layout of the map.

use super::pane::side;
use ratatui::layout::{Position, Rect};
use vmscope_symbolizer::zone::ZoneRange;

/// Minimum size of a cell, in bytes.
pub const LEAST_BYTES: u64 = 16;
/// Left of the cells: their address; right of them: the row's samples.
pub const LEFT: u16 = 10;
const RIGHT: u16 = 14;
/// Width of the legend on wide screens.
const SIDE: u16 = 47;
const ABOVE: u16 = 1;
const BELOW: u16 = 5;
/// Before the time line.
pub const TIME: u16 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// The cells alone.
    pub map: Rect,
    pub line: Rect,
    /// Legend of kinds, on wide screens.
    pub side: Option<Rect>,
}

impl Places {
    pub fn of(area: Rect) -> Self {
        let side = side(area, SIDE);
        let wide = side.map_or(area.width, |side| side.x.saturating_sub(area.x + 1));
        // A whole number of eights: addresses at the left are round.
        let room = wide.saturating_sub(LEFT + RIGHT);
        Places {
            map: Rect {
                x: area.x + LEFT,
                y: area.y + ABOVE,
                width: (room / 8 * 8).max(1),
                height: area.height.saturating_sub(ABOVE + BELOW).max(1),
            },
            line: Rect {
                x: area.x + TIME,
                y: area.bottom().saturating_sub(3).max(area.y),
                width: wide.saturating_sub(TIME + 2).max(1),
                height: 1,
            },
            side,
        }
    }
}

/// Cells of a zone on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Address of the first visible cell.
    pub first: u64,
    pub bytes: u64,
    pub columns: u16,
    pub rows: u16,
}

impl Grid {
    /// Shows the whole zone; with `zoom`, a part around `at`.
    pub fn of(zone: &ZoneRange, map: Rect, zoom: u32, at: u64) -> Self {
        let cells = (u64::from(map.width) * u64::from(map.height)).max(1);
        let size = zone.end - zone.start;
        let whole = size.div_ceil(cells).max(LEAST_BYTES);
        let whole = whole.checked_next_power_of_two().unwrap_or(1 << 63);
        // Three quarters, if enough: less screen stays empty.
        let less = whole / 4 * 3;
        let whole = if less >= LEAST_BYTES && less >= size.div_ceil(cells) {
            less
        } else {
            whole
        };
        let bytes = whole.checked_shr(zoom).unwrap_or(0).max(LEAST_BYTES);
        let row = bytes.saturating_mul(u64::from(map.width)).max(1);
        let rows = size.div_ceil(row);
        let at = at.clamp(zone.start, zone.end.saturating_sub(1)) - zone.start;
        let most = rows.saturating_sub(u64::from(map.height));
        let top = (at / row)
            .saturating_sub(u64::from(map.height) / 2)
            .min(most);
        Grid {
            first: zone.start + top * row,
            bytes,
            columns: map.width,
            rows: map.height,
        }
    }

    pub fn row_bytes(&self) -> u64 {
        self.bytes.saturating_mul(u64::from(self.columns)).max(1)
    }

    pub fn cells(&self, zone: &ZoneRange) -> usize {
        let left = (zone.end.saturating_sub(self.first)).div_ceil(self.bytes);
        let room = usize::from(self.columns) * usize::from(self.rows);
        usize::try_from(left).unwrap_or(usize::MAX).min(room)
    }

    /// Address of a cell at a screen position.
    pub fn address(&self, zone: &ZoneRange, map: Rect, at: Position) -> Option<u64> {
        if !map.contains(at) {
            return None;
        }
        let (row, column) = (u64::from(at.y - map.y), u64::from(at.x - map.x));
        let cell = row * u64::from(self.columns) + column;
        let address = self.first.saturating_add(self.bytes.saturating_mul(cell));
        (address < zone.end).then_some(address)
    }
}
