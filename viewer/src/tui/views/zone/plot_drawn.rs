//! The plot on the screen:
//!
//! ```text
//! 97.35% of 12,564 samples · 5 of 7 ranges                ranges           samples
//!  713 █     ╭──────── 100%                               + libjvm.so        5,123
//!      █   ╭─╯▄  █                                        - libc.so.6          311
//!    0 █▁▂─╯▃██▂▁█   0%
//!      libjvm.so 41% code zone 51%
//!      G1ParScan…     OrderBook.match
//!           ▲
//! 0x7fa000080040-0x7fa000080080, 64 B: 713 samples, 5.67%, most in OrderBook.match
//! ```

use super::columns::{Columns, Piece};
use super::plot::Plot;
use super::{Ground, names};
use crate::report::words::{bytes, count, percent, ratio, some};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::widgets::table::{self, Col, Look, Piece as Cell};
use crate::tui::widgets::text::{line, name, right, width as width_of};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use vmscope_symbolizer::Region;

/// Left of the chart: how many samples; right of it: the integral.
const LEFT: u16 = 8;
const RIGHT: u16 = 5;
/// Screens as wide as this have the ranges at the side, in so many columns.
const WIDE: u16 = 120;
const SIDE: u16 = 44;
/// Rows above and below the chart.
const ABOVE: u16 = 1;
const BELOW: u16 = 5;

const COLUMNS: [Col; 5] = [
    Col::new("", 1, false, 0),
    Col::new("range", 12, false, 0),
    Col::new("size", 8, true, 1),
    Col::new("samples", 9, true, 0),
    Col::new("share", 7, true, 0),
];

/// The chart alone.
fn chart(area: Rect) -> Rect {
    let side = if area.width >= WIDE { SIDE + 1 } else { 0 };
    Rect {
        x: area.x + LEFT,
        y: area.y + ABOVE,
        width: area.width.saturating_sub(LEFT + RIGHT + side),
        height: area.height.saturating_sub(ABOVE + BELOW),
    }
}

/// The list at the side; `None` where there is no room.
fn side(area: Rect) -> Option<Rect> {
    (area.width >= WIDE).then(|| Rect {
        x: area.right().saturating_sub(SIDE),
        width: SIDE,
        ..area
    })
}

/// How many columns the chart has.
pub fn width(area: Rect) -> usize {
    usize::from(chart(area).width)
}

/// What was clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A column of the chart, or what stands below it.
    Column(usize),
    /// A row of the list.
    Row(usize),
    /// Nothing.
    Nothing,
}

/// What is at a place.
pub fn hit(at: Position, area: Rect) -> Hit {
    if let Some(side) = side(area).filter(|side| side.contains(at)) {
        let row = at.y.checked_sub(side.y + 1);
        return row.map_or(Hit::Nothing, |row| Hit::Row(usize::from(row)));
    }
    let chart = chart(area);
    match at.x.checked_sub(chart.x) {
        Some(column) if column < chart.width && at.y >= chart.y => Hit::Column(usize::from(column)),
        _ => Hit::Nothing,
    }
}

/// Puts a text on the screen, cut off at the area's end.
pub fn put(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, columns: usize, style: Style) {
    if buffer.area.contains(Position::new(x, y)) {
        let columns = columns.min(usize::from(buffer.area.right() - x));
        buffer.set_stringn(x, y, line(text, columns), columns, style);
    }
}

impl Plot {
    pub fn draw(&self, ground: &Ground, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let all = &ground.addresses;
        if all.stretches.is_empty() {
            return empty(ground, cx, frame, area);
        }
        let Some(columns) = self.columns.get() else {
            return;
        };
        let chart = chart(area).intersection(frame.area());
        self.draw_head(ground, columns, cx, frame, area);
        if chart.height > 0 {
            self.draw_scale(columns, cx, frame.buffer_mut(), chart);
            self.draw_bars(columns, cx, frame.buffer_mut(), chart);
            draw_integral(columns, cx, frame.buffer_mut(), chart);
        }
        self.draw_below(ground, columns, cx, frame.buffer_mut(), area);
        if let Some(side) = side(area) {
            self.draw_list(ground, cx, frame, side);
        }
    }

    fn draw_head(
        &self,
        ground: &Ground,
        columns: &Columns,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let all = &ground.addresses;
        let mut shown: Vec<usize> = columns.pieces.iter().map(|piece| piece.stretch).collect();
        shown.dedup();
        let shown = shown.len();
        let mut text = format!(
            " {} of {}, {shown} of {}",
            percent(ratio(columns.samples, all.total)),
            some(all.total, "sample", "samples"),
            some(all.stretches.len() as u64, "range", "ranges"),
        );
        if self.is_zoomed() {
            text.push_str(", zoomed");
        }
        if columns.undrawn.0 > 0 {
            let (ranges, samples) = columns.undrawn;
            text.push_str(&format!(
                ", no room for {ranges} with {}",
                some(samples, "sample", "samples")
            ));
        }
        if all.nowhere > 0 {
            text.push_str(&format!(", {} without an address", count(all.nowhere)));
        }
        if all.forgotten > 0 {
            text.push_str(&format!(", {} older ones not kept", count(all.forgotten)));
        }
        let room = chart(area).width + LEFT + RIGHT;
        let style = cx.theme.style(Role::Title);
        put(
            frame.buffer_mut(),
            (area.x, area.y),
            &text,
            usize::from(room),
            style,
        );
    }

    fn draw_scale(&self, columns: &Columns, cx: &Cx<'_>, buffer: &mut Buffer, chart: Rect) {
        let dim = cx.theme.style(Role::Dim);
        let left = usize::from(LEFT) - 1;
        let most = count(columns.most());
        let last = chart.bottom() - 1;
        let x = chart.x - LEFT;
        put(buffer, (x, chart.y), &right(&most, left), left, dim);
        put(buffer, (x, last), &right("0", left), left, dim);
        let scale = usize::from(RIGHT);
        put(buffer, (chart.right(), chart.y), " 100%", scale, dim);
        put(buffer, (chart.right(), last), "   0%", scale, dim);
        if chart.height >= 7 {
            let middle = chart.y + chart.height / 2;
            put(buffer, (chart.right(), middle), "  50%", scale, dim);
        }
    }

    fn draw_bars(&self, columns: &Columns, cx: &Cx<'_>, buffer: &mut Buffer, chart: Rect) {
        let most = columns.most();
        let (cursor, selection) = (self.cursor(), self.selection());
        let rows = f64::from(chart.height);
        for (bar, (x, at)) in columns.bars.iter().zip((chart.x..chart.right()).zip(0..)) {
            let Some(bar) = bar else {
                for y in chart.top()..chart.bottom() {
                    let gap = cx.theme.sign("┊", ":");
                    put(buffer, (x, y), gap, 1, cx.theme.style(Role::Dim));
                }
                continue;
            };
            let entry = bar
                .top
                .and_then(|(id, _)| cx.profile.entries.get(id as usize));
            let region = entry.map_or(Region::Unknown, |entry| entry.region);
            let mut style = cx.theme.style(Role::Region(region));
            let selected = selection.is_some_and(|(from, to)| (from..=to).contains(&at));
            if selected || cursor == Some(at) {
                style = style.patch(cx.theme.style(Role::Selected));
            }
            let height = ratio(bar.samples, most) * rows;
            for (y, level) in (chart.top()..chart.bottom()).rev().zip(0u16..) {
                let part = (height - f64::from(level)).clamp(0.0, 1.0);
                // More than nothing shows as something, in the lowest row.
                let sign = if level > 0 && part < 1.0 / 16.0 {
                    ' '
                } else {
                    cx.theme.column(part)
                };
                let mut place = [0; 4];
                put(buffer, (x, y), sign.encode_utf8(&mut place), 1, style);
            }
        }
    }

    fn draw_below(
        &self,
        ground: &Ground,
        columns: &Columns,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        area: Rect,
    ) {
        let chart = chart(area);
        let y = chart.bottom();
        let theme = cx.theme;
        draw_labels(ground, columns, cx, buffer, (chart, y));
        self.draw_names(columns, cx, buffer, (chart, y + 1));
        let cursor = self.cursor();
        if let Some(column) = cursor.and_then(|at| u16::try_from(at).ok()) {
            let sign = theme.sign("▲", "^");
            let style = theme.style(Role::Key);
            put(buffer, (chart.x + column, y + 3), sign, 1, style);
        }
        let text = self.told(ground, columns, cx);
        let columns = usize::from(chart.width + LEFT + RIGHT);
        let style = theme.style(Role::Text);
        put(buffer, (area.x, y + 4), &text, columns, style);
    }

    /// Names in two rows, those with most samples first, as far as there is room.
    fn draw_names(
        &self,
        columns: &Columns,
        cx: &Cx<'_>,
        buffer: &mut Buffer,
        (chart, y): (Rect, u16),
    ) {
        let width = usize::from(chart.width);
        let mut taken = [vec![false; width + 1], vec![false; width + 1]];
        for one in &columns.names {
            let text = names::of_entry(one.entry, cx);
            let text = name(&text, width_of(&text).min(24));
            let wide = width_of(&text);
            let from = one.column.saturating_sub(wide / 2);
            let from = from.min(width.saturating_sub(wide));
            let rows = taken.iter_mut().zip(0u16..);
            for (row, below) in rows {
                let to = (from + wide + 1).min(row.len());
                let Some(room) = row.get_mut(from..to) else {
                    break;
                };
                if room.iter().any(|taken| *taken) {
                    continue;
                }
                room.fill(true);
                let heat = ratio(one.samples, columns.samples);
                let style = cx.theme.style(Role::Heat(heat * 4.0));
                if let Ok(column) = u16::try_from(from) {
                    put(buffer, (chart.x + column, y + below), &text, wide, style);
                }
                break;
            }
        }
    }

    /// What there is under the cursor, or selected.
    fn told(&self, ground: &Ground, columns: &Columns, cx: &Cx<'_>) -> String {
        let total = ground.addresses.total;
        let selection = self.selection().filter(|(from, to)| from < to);
        if let Some((from, to)) = selection {
            let bars = || columns.bars.get(from..=to).into_iter().flatten().flatten();
            let samples: u64 = bars().map(|bar| bar.samples).sum();
            let start = bars().next().map_or(0, |bar| bar.start);
            let end = bars().last().map_or(0, |bar| bar.end);
            return format!(
                " selected {start:#x}-{end:#x}: {}, {}; Enter zooms",
                some(samples, "sample", "samples"),
                percent(ratio(samples, total))
            );
        }
        let bar = self.cursor().and_then(|at| columns.bars.get(at)?.as_ref());
        let Some(bar) = bar else {
            return String::new();
        };
        let piece = columns.pieces.get(bar.piece);
        let stretch = piece.and_then(|piece| ground.addresses.stretches.get(piece.stretch));
        let range = stretch.map_or_else(String::new, |stretch| {
            format!(" in {}", names::of_stretch(stretch, &ground.lives, cx))
        });
        let mut text = format!(
            " {:#x} +{}{range}: {}, {}",
            bar.start,
            bytes(bar.end - bar.start),
            some(bar.samples, "sample", "samples"),
            percent(ratio(bar.samples, total))
        );
        if let Some((entry, most)) = bar.top {
            let share = if most == bar.samples {
                "all".to_owned()
            } else {
                count(most)
            };
            text.push_str(&format!(", {share} in {}", names::of_entry(entry, cx)));
        }
        text
    }

    fn draw_list(&self, ground: &Ground, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let all = &ground.addresses;
        let height = table::height(area);
        let mut list = crate::tui::widgets::list::ListState::default();
        let rows = all.stretches.len();
        list.select(self.listed(ground).unwrap_or(0), rows, height);
        let look = Look {
            theme: cx.theme,
            columns: &COLUMNS,
            stretch: 1,
            sorted: None,
            rows,
            list,
        };
        table::draw(look, frame, area, |index| {
            let Some(stretch) = all.stretches.get(index) else {
                return Vec::new();
            };
            let is_in = self.includes(stretch.owner);
            let role = if is_in { Role::Text } else { Role::Dim };
            let share = ratio(stretch.samples(), all.total);
            vec![
                Cell::of(role, if is_in { "+" } else { "-" }),
                Cell::of(role, names::of_stretch(stretch, &ground.lives, cx)),
                Cell::of(role, bytes(stretch.size())),
                Cell::of(role, count(stretch.samples())),
                Cell::of(Role::Heat(share), percent(share)),
            ]
        });
    }
}

/// The ranges' names with their shares, those with most samples first: a range that is too
/// narrow for its name has none.
fn draw_labels(
    ground: &Ground,
    columns: &Columns,
    cx: &Cx<'_>,
    buffer: &mut Buffer,
    (chart, y): (Rect, u16),
) {
    let mut samples = vec![0; columns.pieces.len()];
    for bar in columns.bars.iter().flatten() {
        if let Some(slot) = samples.get_mut(bar.piece) {
            *slot += bar.samples;
        }
    }
    let mut pieces: Vec<(u64, &Piece)> = samples.into_iter().zip(&columns.pieces).collect();
    pieces.sort_by_key(|(samples, piece)| (std::cmp::Reverse(*samples), piece.column));
    let width = usize::from(chart.width);
    // Between two names there is a blank.
    let mut taken = vec![false; width + 1];
    for (samples, piece) in pieces {
        let Some(stretch) = ground.addresses.stretches.get(piece.stretch) else {
            continue;
        };
        let share = ratio(samples, ground.addresses.total) * 100.0;
        let whole = names::of_stretch(stretch, &ground.lives, cx);
        let short = names::short(&whole);
        let texts = [
            format!("{whole} {share:.0}%"),
            format!("{short} {share:.0}%"),
            short.to_owned(),
        ];
        let fitting = texts.into_iter().find(|text| {
            let wide = width_of(text);
            let room = taken.get(piece.column..piece.column + wide + 1);
            // It may end above the gap behind its range.
            wide <= piece.width + 1 && room.is_some_and(|room| !room.contains(&true))
        });
        let (Some(text), Ok(column)) = (fitting, u16::try_from(piece.column)) else {
            continue;
        };
        let end = piece.column + width_of(&text) + 1;
        let before = piece.column.saturating_sub(1);
        if let Some(room) = taken.get_mut(before..end) {
            room.fill(true);
        }
        let style = cx.theme.style(Role::Strong);
        put(buffer, (chart.x + column, y), &text, width, style);
    }
}

/// The integral as a line over the bars: it only rises.
fn draw_integral(columns: &Columns, cx: &Cx<'_>, buffer: &mut Buffer, chart: Rect) {
    let style = cx.theme.style(Role::Strong);
    let top = f64::from(chart.height.saturating_sub(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a row of the chart"
    )]
    let row = |share: f64| (share.clamp(0.0, 1.0) * top).round() as u16;
    let mut before = 0;
    let last = chart.bottom().saturating_sub(1);
    for (share, x) in columns.integral().into_iter().zip(chart.x..chart.right()) {
        let now = row(share);
        for level in before..=now {
            let sign = match (level == before, level == now) {
                (true, true) => cx.theme.sign("─", "-"),
                (true, false) => cx.theme.sign("╯", "/"),
                (false, true) => cx.theme.sign("╭", "/"),
                (false, false) => cx.theme.sign("│", "|"),
            };
            put(buffer, (x, last.saturating_sub(level)), sign, 1, style);
        }
        before = now;
    }
}

/// Why there is nothing to be seen.
fn empty(ground: &Ground, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
    let all = &ground.addresses;
    let text = if all.total > 0 {
        format!(
            "None of the {} has an address that the recording keeps: they are not running, \
             doubtful, or in memory that nobody told of.",
            some(all.total, "sample", "samples")
        )
    } else {
        no_samples(cx)
    };
    say(&text, cx, frame, area);
}
