//! What is at the cursor or selected, in words; what the signs mean.

use super::chart::unit;
use super::layout::Layout;
use super::{Column, Timeline};
use crate::present::names::{region_letter, region_name};
use crate::present::numbers::{count, ratio, some};
use crate::present::text;
use crate::queries::by_region::{self, ByRegion};
use crate::queries::time_grid::Grid;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::Region;

impl Timeline {
    /// What is at the cursor, or selected, in words.
    pub(super) fn draw_words(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        grid: &Grid,
    ) {
        let width = usize::from(layout.cursor.width);
        let line = |at: u16| Rect {
            y: layout.cursor.y + at,
            height: layout.cursor.height.min(1),
            ..layout.cursor
        };
        let at = self.at(grid);
        let (role, words) = match self.selection(grid) {
            Some(selected) => (Role::Match, self.selected_words(cx, grid, selected)),
            None => {
                let whole = self.column_words(cx, grid, at, 12);
                let words = if text::width(&whole) >= width {
                    self.column_words(cx, grid, at, 4)
                } else {
                    whole
                };
                (Role::Text, words)
            }
        };
        let words = text::line(&format!(" {words}"), width);
        let first = Line::styled(words, cx.theme.style(role));
        frame.render_widget(first, line(0).intersection(frame.area()));
        if layout.cursor.height < 2 {
            return;
        }
        let lanes = self.lanes.get();
        let notes = lanes.and_then(|lanes| {
            let column = grid.column_in(&lanes.grid, at)?;
            lanes.notes.get(column)
        });
        let notes = notes.map_or_else(String::new, |notes| notes.join("; "));
        let words = text::line(&format!(" {notes}"), width);
        let second = Line::styled(words, cx.theme.style(Role::Strong));
        frame.render_widget(second, line(1).intersection(frame.area()));
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts and nanoseconds are below 2^52"
    )]
    fn column_words(&self, cx: &Cx<'_>, grid: &Grid, at: usize, letters: usize) -> String {
        let (from, to): Column = Self::column(grid, at);
        let digits = if grid.column_ns() < 1_000_000 { 6 } else { 3 };
        let mut words = format!("{:.*} s", digits, cx.seconds(from));
        let Some((counts, promised)) = self.regions(grid, at) else {
            return words;
        };
        let samples: u64 = counts.iter().sum();
        let period = by_region::period_ns(cx.profile);
        let ns = to.since(from).0;
        if ns >= period.saturating_mul(4) {
            let busy = samples as f64 * period as f64 / ns as f64;
            words += &format!("  {busy:.2} {}", unit(cx));
        }
        words += &format!("  {}", some(samples, "sample", "samples"));
        // CPU time is read some times a second: of less than a second little is known.
        if let Some(promised) = promised.filter(|_| ns >= 1_000_000_000) {
            words += &format!(" of ~{promised:.0} promised");
        }
        let mut regions: Vec<(u64, Region)> = counts.iter().copied().zip(Region::ALL).collect();
        regions.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        for (count, region) in regions.into_iter().filter(|(count, _)| *count > 0) {
            let share = ratio(count, samples) * 100.0;
            words += &format!("  {} {share:.0}%", short(region, letters));
        }
        words
    }

    fn selected_words(&self, cx: &Cx<'_>, grid: &Grid, (from, to): Column) -> String {
        let columns = grid.columns_of(from, to);
        let mut sum = ByRegion::default();
        for column in columns.map_or(0..0, |(first, last)| first..last + 1) {
            if let Some((counts, _)) = self.regions(grid, column) {
                by_region::add(&mut sum, counts);
            }
        }
        let samples = some(sum.iter().sum(), "sample", "samples");
        let length = super::lanes::ms(to.since(from).0);
        let (from, to) = (cx.seconds(from), cx.seconds(to));
        format!(
            "selected {from:.3}-{to:.3} s ({length}), {samples}: Enter takes it as the window, Esc gives up"
        )
    }

    pub(super) fn draw_legend(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        hidden: usize,
    ) {
        let theme = cx.theme;
        let mut sum = ByRegion::default();
        if let Some(activity) = self.activity.get() {
            for column in 0..activity.grid.columns {
                by_region::add(&mut sum, activity.columns.column(column));
            }
        }
        let total = sum.iter().sum();
        let width = usize::from(layout.legend.width);
        let mut note = match hidden {
            0 => String::new(),
            n => format!(" +{n} rows"),
        };
        if cx.profile.time_buckets.dropped() > 0 {
            note += &format!(" from {:.0} s", cx.seconds(cx.kept().0));
        }
        let sizes = [(12, true), (12, false), (4, false)];
        let of_size = |(letters, shares): (usize, bool)| -> Vec<Span<'static>> {
            let regions = Region::ALL
                .into_iter()
                .zip(sum)
                .filter(|(_, count)| *count > 0);
            let mut spans = Vec::new();
            for (region, n) in regions {
                let (fill, letter) = (theme.fill(region), region_letter(region));
                let sign = if fill == letter {
                    format!(" {letter}")
                } else {
                    format!(" {fill}{letter}")
                };
                spans.push(Span::styled(sign, theme.style(Role::Region(region))));
                let name: String = short(region, letters).to_owned();
                let share = match shares {
                    true => format!(" {:.0}%", ratio(n, total) * 100.0),
                    false => String::new(),
                };
                spans.push(Span::raw(format!(" {name}{share} ")));
            }
            spans
        };
        let needed = |spans: &[Span<'_>]| -> usize { spans.iter().map(Span::width).sum() };
        let all = sizes.into_iter().map(of_size);
        let mut last = Vec::new();
        for spans in all {
            let fits = needed(&spans) + text::width(&note) <= width;
            last = spans;
            if fits {
                break;
            }
        }
        let left = width.saturating_sub(needed(&last) + text::width(&note));
        last.push(Span::styled(note, theme.style(Role::Warning)));
        let threads = self.listed.get().map_or(0, |listed| listed.threads.len());
        let rows = usize::from(layout.threads.height);
        if threads > rows {
            let words = format!(" {rows} of {} threads", count(threads as u64));
            if words.len() <= left {
                last.push(Span::styled(words, theme.style(Role::Dim)));
            }
        }
        frame.render_widget(Line::from(last), layout.legend.intersection(frame.area()));
    }
}

/// A region's name, in few letters where there is little room.
fn short(region: Region, letters: usize) -> &'static str {
    if letters > 4 {
        return region_name(region);
    }
    match region {
        Region::Generated => "gen",
        Region::Interpreter => "int",
        Region::Gc => "coll",
        Region::Compiler => "comp",
        Region::Vm => "VM",
        Region::Library => "lib",
        Region::Kernel => "kern",
        Region::Idle => "idle",
        Region::Unknown => "unk",
    }
}
