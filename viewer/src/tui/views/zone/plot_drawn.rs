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

use super::pane::{put, side};
use super::plot::Plot;
use super::ranges::{Ranges, Table};
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text::right;
use crate::queries::address_columns::Columns;
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use vmscope_symbolizer::Region;

/// Width of the sample scale at the left, of the integral's scale at the right.
pub(super) const LEFT: u16 = 8;
pub(super) const RIGHT: u16 = 5;
/// Width of the list on wide screens.
const SIDE: u16 = 44;
/// Rows above and below the chart.
const ABOVE: u16 = 1;
const BELOW: u16 = 5;

pub(super) fn chart(area: Rect) -> Rect {
    let side = list(area).map_or(0, |side| side.width + 1);
    Rect {
        x: area.x + LEFT,
        y: area.y + ABOVE,
        width: area.width.saturating_sub(LEFT + RIGHT + side),
        height: area.height.saturating_sub(ABOVE + BELOW),
    }
}

/// The list of ranges; `None` on a narrow screen.
pub fn list(area: Rect) -> Option<Rect> {
    side(area, SIDE)
}

/// Number of chart columns.
pub fn width(area: Rect) -> usize {
    usize::from(chart(area).width)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Chart column, also from the lines below.
    Column(usize),
    /// List of ranges, with its area.
    Ranges(Rect),
    Nothing,
}

/// Target of a click.
pub fn hit(at: Position, area: Rect) -> Hit {
    if let Some(side) = list(area).filter(|side| side.contains(at)) {
        return Hit::Ranges(side);
    }
    let chart = chart(area);
    match at.x.checked_sub(chart.x) {
        Some(column) if column < chart.width && at.y >= chart.y => Hit::Column(usize::from(column)),
        _ => Hit::Nothing,
    }
}

impl Plot {
    pub fn draw_plot(&self, ground: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let all = &ground.addresses;
        if all.stretches.is_empty() {
            return empty(ground, cx, frame, area);
        }
        let Some(columns) = self.columns() else {
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
        if let Some(side) = list(area) {
            let ranges = Ranges {
                plot: self,
                samples: ground,
                cx,
            };
            let table = self.table(&ranges, Table::height(side));
            table.draw(&ranges, cx.theme, frame, side);
        }
    }

    fn draw_head(
        &self,
        ground: &ZoneSamples,
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
                ", {ranges} with {} not drawn (no room)",
                some(samples, "sample", "samples")
            ));
        }
        if all.nowhere > 0 {
            text.push_str(&format!(", {} without an address", count(all.nowhere)));
        }
        if all.dropped > 0 {
            text.push_str(&format!(
                ", {} older samples not stored",
                count(all.dropped)
            ));
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
            let region = bar.top.map(|(id, _)| cx.profile.entries[id].region);
            let region = region.unwrap_or(Region::Unknown);
            let mut style = cx.theme.style(Role::Region(region));
            let selected = selection.is_some_and(|(from, to)| (from..=to).contains(&at));
            if selected || cursor == Some(at) {
                style = style.patch(cx.theme.style(Role::Selected));
            }
            let height = ratio(bar.samples, most) * rows;
            for (y, level) in (chart.top()..chart.bottom()).rev().zip(0u16..) {
                let part = (height - f64::from(level)).clamp(0.0, 1.0);
                // A bar with any samples has a visible lowest row.
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
}

/// Draws the integral, a rising line over the bars.
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

fn empty(ground: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
    let all = &ground.addresses;
    let text = if all.total > 0 {
        format!(
            "None of the {} has a recorded address: not running, doubtful, or in unreported \
             memory.",
            some(all.total, "sample", "samples")
        )
    } else {
        no_samples(cx)
    };
    say(&text, cx, frame, area);
}
