//! Lines below the plot: ranges, names, details.

use super::names;
use super::pane::put;
use super::plot::Plot;
use super::plot_drawn::{LEFT, RIGHT, chart};
use crate::present::numbers::{bytes, count, percent, ratio, some};
use crate::present::text::{name, width as width_of};
use crate::queries::address_columns::{Columns, Piece};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

impl Plot {
    pub(super) fn draw_below(
        &self,
        ground: &ZoneSamples,
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

    /// Draws names in two rows, most samples first.
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

    fn told(&self, ground: &ZoneSamples, columns: &Columns, cx: &Cx<'_>) -> String {
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
        let mut text = format!(
            " {:#x} +{}: {}, {}",
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
        if let Some(stretch) = stretch {
            let range = names::of_stretch(stretch, &ground.layout.residencies, cx);
            text.push_str(&format!(" ({range})"));
        }
        text
    }
}

/// Draws names and shares of ranges, most samples first; leaves out names wider than their range.
fn draw_labels(
    ground: &ZoneSamples,
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
    let mut taken = vec![false; width];
    for (samples, piece) in pieces {
        let Some(stretch) = ground.addresses.stretches.get(piece.stretch) else {
            continue;
        };
        let share = ratio(samples, ground.addresses.total) * 100.0;
        let whole = names::of_stretch(stretch, &ground.layout.residencies, cx);
        let short = names::short(&whole);
        let brief = format!("{short} {share:.0}%");
        let texts = [
            (format!("{whole} {share:.0}%"), piece.width),
            (brief.clone(), piece.width),
            // Below neighbours with fewer samples.
            (brief, width),
            (short.to_owned(), piece.width),
        ];
        let fitting = texts.into_iter().find_map(|(text, most)| {
            let wide = width_of(&text);
            let last = (piece.column + piece.width).saturating_sub(wide);
            let from = [piece.column, last].into_iter().find(|&from| {
                // A blank separates names.
                let around = taken.get(from.saturating_sub(1)..(from + wide + 1).min(width));
                from + wide <= width && around.is_some_and(|around| !around.contains(&true))
            });
            from.filter(|_| wide <= most).map(|from| (text, from))
        });
        let Some((text, from)) = fitting else {
            continue;
        };
        if let Some(own) = taken.get_mut(from..from + width_of(&text)) {
            own.fill(true);
        }
        if let Ok(column) = u16::try_from(from) {
            let style = cx.theme.style(Role::Strong);
            put(buffer, (chart.x + column, y), &text, width, style);
        }
    }
}
