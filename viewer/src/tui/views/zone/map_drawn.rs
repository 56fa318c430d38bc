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

use super::cells::{Cells, Gaps, Total, Wanted, name_of};
use super::map::Map;
use super::plot_drawn::put;
use super::{Ground, names};
use crate::report::words::{bytes, count, percent, ratio, some};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::say;
use crate::tui::widgets::text::{name, right};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use vmscope_records::ConstituentKind;
use vmscope_symbolizer::addresses::Owner;
use vmscope_symbolizer::zone::{Life, ZoneRange};

/// A cell is no smaller.
pub const LEAST_BYTES: u64 = 16;

/// Said where there is no zone.
pub const NO_ZONE: &str = "This recording has no code zone: nothing told what is in generated \
    code. Native programs have none; of a JVM, `vmscope attach PID` reads it, and V8 tells it when \
    `vmscope record -- node FILE` starts it. m shows samples by address.";

/// What stands for space that the VM tells to be free, and for what nobody told of.
const FREE: char = '.';
const UNTOLD: char = ':';

/// Left of the cells: their address; right of them: the row's samples.
const LEFT: u16 = 10;
const RIGHT: u16 = 14;
/// Screens as wide as this have the kinds at the side.
const WIDE: u16 = 120;
const SIDE: u16 = 50;
const ABOVE: u16 = 1;
const BELOW: u16 = 5;
/// Before the time line.
const TIME: u16 = 12;

/// Where the map's parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// The cells alone.
    pub map: Rect,
    /// The time line.
    pub line: Rect,
    /// The kinds, where there is room at the side.
    pub side: Option<Rect>,
}

impl Places {
    /// In an area.
    pub fn of(area: Rect) -> Self {
        let side = (area.width >= WIDE).then(|| Rect {
            x: area.right().saturating_sub(SIDE),
            width: SIDE,
            ..area
        });
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

/// How a zone is laid out on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The address of the first cell on the screen.
    pub first: u64,
    /// Bytes of a cell.
    pub bytes: u64,
    /// Cells in a row.
    pub columns: u16,
    /// Rows on the screen.
    pub rows: u16,
}

impl Grid {
    /// All of the zone, or with `zoom` a part of it around `at`.
    pub fn of(zone: &ZoneRange, map: Rect, zoom: u32, at: u64) -> Self {
        let cells = (u64::from(map.width) * u64::from(map.height)).max(1);
        let size = zone.end - zone.start;
        let whole = size.div_ceil(cells).max(LEAST_BYTES);
        let whole = whole.checked_next_power_of_two().unwrap_or(1 << 63);
        // Three quarters of that, where it is enough: less of the screen stays empty.
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

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.bytes.saturating_mul(u64::from(self.columns)).max(1)
    }

    /// How many cells are on the screen.
    pub fn cells(&self, zone: &ZoneRange) -> usize {
        let left = (zone.end.saturating_sub(self.first)).div_ceil(self.bytes);
        let room = usize::from(self.columns) * usize::from(self.rows);
        usize::try_from(left).unwrap_or(usize::MAX).min(room)
    }

    /// The address of the cell at a place on the screen.
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

/// A zone's samples.
pub fn samples_of(zone: &ZoneRange, ground: &Ground) -> u64 {
    let owner = Owner::Zone(zone.process, zone.start);
    let mut stretches = ground.addresses.stretches.iter();
    let found = stretches.find(|one| one.owner == owner);
    found.map_or(0, |one| one.samples())
}

/// The samples of a constituent at its place.
pub fn samples_in(zone: &ZoneRange, life: &Life, ground: &Ground) -> u64 {
    let owner = Owner::Zone(zone.process, zone.start);
    let mut stretches = ground.addresses.stretches.iter();
    let Some(stretch) = stretches.find(|one| one.owner == owner) else {
        return 0;
    };
    let points = stretch.points(life.start..life.end).iter();
    let own = points.filter(|point| point.code == Some(life.code));
    own.map(|point| point.samples).sum()
}

/// A kind's name, of one.
pub fn kind_of(kind: &ConstituentKind) -> String {
    match kind {
        ConstituentKind::Other(name) => name.clone(),
        other => {
            let entry = vmscope_symbolizer::profile::EntryKind::Code(other.clone());
            crate::report::kind_name(&entry).to_owned()
        }
    }
}

impl Map {
    pub fn draw(&self, ground: &Ground, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
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
        ground: &Ground,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        (area, places): (Rect, &Places),
    ) {
        let zones = ground.lives.zones().len();
        let of = if zones > 1 {
            format!(" of {zones} (b: next)")
        } else {
            String::new()
        };
        let text = format!(
            " {}{of}: {:#x} +{}, 1 cell = {}",
            names::of_zone(zone.process, zone.start, &ground.lives, cx),
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
        let sum = |row: &[super::cells::Cell]| row.iter().map(|cell| cell.samples).sum::<u64>();
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

    fn draw_below(
        &self,
        (of, cells): (&Wanted, &Cells),
        ground: &Ground,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        (area, places): (Rect, &Places),
    ) {
        let theme = cx.theme;
        let room = places.side.map_or(area.width, |side| side.x - area.x);
        let room = usize::from(room);
        let y = places.map.bottom();
        let text = if places.side.is_some() {
            let gaps = gaps_of(cells).map(|(sign, name, _)| format!("{sign} is {name}, "));
            let gaps: String = gaps.collect();
            format!(" {gaps}+ came, - went since the step before; underlined has samples")
        } else {
            let piece = |total: &Total| format!("{} {}", total.letter, name_of(&total.sort));
            let pieces: Vec<String> = cells.totals.iter().map(piece).collect();
            let gaps = gaps_of(cells).map(|(sign, name, _)| format!("  {sign} {name}"));
            let gaps: String = gaps.collect();
            format!(" {}{gaps}  + came - went", pieces.join("  "))
        };
        put(buffer, (area.x, y), &text, room, theme.style(Role::Dim));
        let mut text = format!(" {} used", bytes(cells.used));
        for (_, name, gaps) in gaps_of(cells) {
            let pieces = some(gaps.count, "gap", "gaps");
            text.push_str(&format!(", {} {name} in {pieces}", bytes(gaps.bytes)));
            if gaps.count > 1 {
                text.push_str(&format!(", largest {}", bytes(gaps.largest)));
            }
        }
        let constituents = cells.totals.iter().map(|total| total.count).sum();
        text.push_str(&format!(", {} pieces", count(constituents)));
        if cells.maybe > 0 {
            text.push_str(&format!(" ({} not certain)", count(cells.maybe)));
        }
        if let (compactions, Some(last)) = cells.compactions {
            let times = some(compactions, "time", "times");
            let last = cx.seconds(last);
            text.push_str(&format!(", moved {times}, last at {last:.3} s"));
        }
        if let Some(zone) = self.zone(ground) {
            text.push_str(&forks(zone));
        }
        put(
            buffer,
            (area.x, y + 1),
            &text,
            room,
            theme.style(Role::Text),
        );
        draw_line((of, cells), cx, buffer, (area, places));
        let (first, second) = self.told((of, cells), ground, cx);
        let y = places.line.y;
        put(
            buffer,
            (area.x, y + 1),
            &first,
            room,
            theme.style(Role::Strong),
        );
        put(
            buffer,
            (area.x, y + 2),
            &second,
            room,
            theme.style(Role::Text),
        );
    }

    /// What is under the cursor, in two lines.
    fn told(
        &self,
        (of, cells): (&Wanted, &Cells),
        ground: &Ground,
        cx: &Cx<'_>,
    ) -> (String, String) {
        let changed = if cells.came + cells.went > 0 {
            format!(
                "; since the step before {} came, {} went",
                cells.came, cells.went
            )
        } else {
            String::new()
        };
        let Some((zone, life)) = self.zone(ground).zip(self.chosen(ground, cx)) else {
            let what = self.gap(ground, cx);
            return (format!(" {what}{changed}"), String::new());
        };
        let Some(code) = life.constituent(&cx.profile.trace) else {
            return (String::new(), String::new());
        };
        let others = self.here(ground, cx).len().saturating_sub(1);
        let more = if others > 0 {
            format!(", and {} here", some(others as u64, "other", "others"))
        } else {
            String::new()
        };
        let called = if code.name.is_empty() {
            "(no name)"
        } else {
            &code.name
        };
        let tier = if code.tier.is_empty() {
            String::new()
        } else {
            format!(" {}", code.tier)
        };
        let first = format!(" {called}: {}{tier}{more}{changed}", kind_of(&code.kind));
        let samples = samples_in(zone, life, ground);
        let since = if life.from <= cx.begin {
            "since before the beginning".to_owned()
        } else {
            let age = of.time.since(life.from).as_secs_f64();
            format!("since {:.3} s (for {age:.3} s)", cx.seconds(life.from))
        };
        let until = life.until.map_or_else(String::new, |until| {
            let how = if life.replaced { "replaced" } else { "gone" };
            format!(", {how} at {:.3} s", cx.seconds(until))
        });
        let second = format!(
            " {:#x} +{}, {}, {}, {since}{until}",
            life.start,
            bytes(life.size()),
            some(samples, "sample", "samples"),
            percent(ratio(samples, ground.addresses.total)),
        );
        (first, second)
    }
}

/// The kinds of space that nothing is told to lie on, as far as there is any: sign, name,
/// how much.
pub fn gaps_of(cells: &Cells) -> impl Iterator<Item = (char, &'static str, Gaps)> {
    let all = [
        (FREE, "free", cells.free),
        (UNTOLD, "not told", cells.untold),
    ];
    all.into_iter().filter(|(.., gaps)| gaps.count > 0)
}

/// What is said of code that forked processes have in common.
fn forks(zone: &ZoneRange) -> String {
    match (zone.forks, zone.is_forked) {
        (0, false) => String::new(),
        (0, true) => ", without what its parent handed on".to_owned(),
        (forks, _) => {
            let forks = some(forks.into(), "forked process", "forked processes");
            format!(", with the samples of {forks} in it")
        }
    }
}

/// Heat as a digit from 1 to 9.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a digit"
)]
fn digit(heat: f64) -> char {
    let digit = (heat.clamp(0.0, 1.0) * 9.0).ceil().max(1.0) as u32;
    char::from_digit(digit, 10).unwrap_or('9')
}

fn draw_line(
    (of, cells): (&Wanted, &Cells),
    cx: &Cx<'_>,
    buffer: &mut Buffer,
    (area, places): (Rect, &Places),
) {
    let theme = cx.theme;
    let seconds = format!(" {:>8.3} s", cx.seconds(of.time));
    let line = places.line;
    let style = theme.style(Role::Key);
    put(buffer, (area.x, line.y), &seconds, usize::from(TIME), style);
    let (from, to, _) = of.line;
    let span = u128::from(to.since(from).0).max(1);
    let last = u128::from(line.width.saturating_sub(1));
    let now = u128::from(of.time.since(from).0) * last / span;
    let most = cells.line.iter().copied().max().unwrap_or(0);
    for (x, at) in (line.x..line.right()).zip(0usize..) {
        let changes = cells.line.get(at).copied().unwrap_or(0);
        let mut place = [0; 4];
        let (sign, role) = if at as u128 == now {
            (theme.sign("●", "O"), Role::Key)
        } else if changes > 0 {
            let column = theme.column(ratio(changes, most));
            (&*column.encode_utf8(&mut place), Role::Text)
        } else {
            (theme.sign("─", "-"), Role::Dim)
        };
        put(buffer, (x, line.y), sign, 1, theme.style(role));
    }
}

fn draw_kinds(cells: &Cells, cx: &Cx<'_>, buffer: &mut Buffer, area: Rect) {
    let theme = cx.theme;
    let columns = usize::from(area.width);
    let row = |what: &str, pieces: &str, bytes: &str, samples: &str| {
        let room = columns.saturating_sub(7 + 9 + 9);
        format!(
            "{}{}{}{}",
            name(what, room),
            right(pieces, 7),
            right(bytes, 9),
            right(samples, 9)
        )
    };
    let head = row("", "pieces", "bytes", "samples");
    let mut lines = vec![(head, Role::Title)];
    for total in &cells.totals {
        let what = format!("{} {}", total.letter, name_of(&total.sort));
        let text = row(
            &what,
            &count(total.count),
            &bytes(total.bytes),
            &count(total.samples),
        );
        lines.push((text, Role::Text));
    }
    for (sign, name, gaps) in gaps_of(cells) {
        let what = format!("{sign} {name}");
        let text = row(&what, &count(gaps.count), &bytes(gaps.bytes), "");
        lines.push((text, Role::Dim));
    }
    for ((text, role), y) in lines.into_iter().zip(area.y..area.bottom()) {
        put(buffer, (area.x, y), &text, columns, theme.style(role));
    }
}
