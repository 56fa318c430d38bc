//! Charts on the screen: axis, activity, threads, lanes, cursor.

use super::lanes::{Glyph, Lane};
use super::{Span, Timeline, layout};
use crate::present::names::{region_letter, thread_name};
use crate::present::numbers::ratio;
use crate::present::text;
use crate::queries::by_region;
use crate::queries::time_grid::Grid;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use crate::tui::widgets::chart::{Chart, TimeAxis, is_in};
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_records::SampleClock;
use vmscope_symbolizer::ThreadId;

/// Unit of the activity's height.
pub(super) fn unit(cx: &Cx<'_>) -> &'static str {
    let session = cx.profile.trace.session.as_ref();
    match session.map(|session| session.clock) {
        Some(SampleClock::Wall) => "threads",
        _ => "CPUs",
    }
}

/// Round number of at least `most`, less 10 % sampling noise.
fn round_up(most: f64) -> f64 {
    let mut power = 1.0;
    loop {
        for times in [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0] {
            let round: f64 = power * times;
            if round.fract() == 0.0 && most <= round * 1.1 {
                return round;
            }
        }
        power *= 10.0;
        if power > 1e18 {
            return power;
        }
    }
}

/// Samples per column at full height, and the height's label.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are below 2^52"
)]
fn scale(cx: &Cx<'_>, grid: &Grid, most: u64) -> (f64, String) {
    let per_cpu = grid.column_ns() as f64 / by_region::period_ns(cx.profile) as f64;
    if per_cpu < 4.0 {
        // Columns are too short for CPU use.
        let top = round_up(most as f64);
        return (top, format!("{top} samples"));
    }
    let top = round_up(most as f64 / per_cpu);
    let unit = match top > 1.0 {
        true => unit(cx),
        false => unit(cx).trim_end_matches('s'),
    };
    (top * per_cpu, format!("{top} {unit}"))
}

impl Timeline {
    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>) {
        let (layout, grid) = (self.layout(cx), self.grid(cx));
        if grid.columns == 0 {
            return;
        }
        let chart = |area: Rect| Chart::new(cx.theme, area, layout::gutter(cx.area));
        let columns = |span: Option<_>| span.and_then(|(from, to)| grid.columns_of(from, to));
        let axis = TimeAxis {
            grid,
            begin: cx.begin,
            window: columns(cx.filters.window()),
            selection: columns(self.selection(&grid)),
            cursor: self.at(&grid),
        };
        axis.draw(&chart(layout.axis), frame);
        self.draw_activity(cx, &chart(layout.activity), &axis, frame);
        self.draw_threads(cx, &chart(layout.threads), &grid, frame);
        let hidden = self.draw_lanes(&chart(layout.lanes), &grid, frame);
        if self.cursor.is_some_and(|cursor| grid.has(cursor)) {
            let style = cx.theme.style(Role::Selected);
            for area in [layout.activity, layout.threads, layout.lanes] {
                chart(area).highlight(frame, axis.cursor, style);
            }
        }
        self.draw_words(cx, frame, layout.cursor, &grid);
        self.draw_legend(cx, frame, &layout, hidden);
    }

    /// Reason for an empty chart, and the key that shows more.
    fn nothing(&self, cx: &Cx<'_>, grid: &Grid) -> String {
        let key = match self.span {
            _ if self.threads().is_empty() => return no_samples(cx),
            Span::Whole => return no_samples(cx),
            Span::Window => "m shows the whole recording, x removes the window",
            Span::Part(..) => "- zooms out",
        };
        let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
        format!("No samples from {from:.3} to {to:.3} s: {key}.")
    }

    /// Samples of a column by region, and promised samples; `None` before the answer.
    pub(super) fn regions(&self, grid: &Grid, column: usize) -> Option<(&[u64], Option<f64>)> {
        let activity = self.activity.get()?;
        let column = grid.column_in(&activity.grid, column)?;
        let promised = activity.promised.as_ref();
        let promised = promised.and_then(|all| all.get(column).copied());
        Some((activity.columns.column(column), promised))
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are below 2^52")]
    fn draw_activity(
        &self,
        cx: &Cx<'_>,
        chart: &Chart<'_>,
        axis: &TimeAxis,
        frame: &mut Frame<'_>,
    ) {
        let Some(activity) = self.activity.get() else {
            return;
        };
        let of_column = |column| activity.columns.column(column).iter().sum();
        let most: u64 = (0..activity.grid.columns).map(of_column).max().unwrap_or(0);
        if most == 0 {
            return say(&self.nothing(cx, &axis.grid), cx, frame, chart.plot);
        }
        let (samples, top) = scale(cx, &activity.grid, most);
        chart.scale(frame, 0, &top, Role::Title);
        if chart.rows() > 2 {
            chart.label(frame, 1, "activity", Role::Dim);
            chart.scale(frame, chart.rows() - 1, "0", Role::Dim);
        }
        let is_native = cx.profile.is_native();
        for column in 0..chart.columns() {
            let Some((counts, _)) = self.regions(&axis.grid, column) else {
                continue;
            };
            let share = counts.iter().sum::<u64>() as f64 / samples;
            let is_outside = axis.window.is_some() && !is_in(axis.window, column);
            chart.bar(frame, column, share, counts, |region| {
                let role = match is_outside {
                    true => Role::Dim,
                    false => Role::Region(region),
                };
                (cx.theme.fill(region, is_native), role)
            });
        }
    }

    /// Samples of a thread by region; empty before the answer.
    fn regions_of(&self, grid: &Grid, thread: ThreadId, column: usize) -> &[u64] {
        let activity = self.activity.get();
        let of_all = activity.and_then(|all| all.of_thread(grid, thread, column));
        let of_visible = || Some(self.rows.get()?.at(grid, thread, column));
        of_all.or_else(of_visible).unwrap_or_default()
    }

    fn draw_threads(&self, cx: &Cx<'_>, chart: &Chart<'_>, grid: &Grid, frame: &mut Frame<'_>) {
        let theme = cx.theme;
        let period = by_region::period_ns(cx.profile);
        let included = self.listed.get().map_or(0, |listed| listed.included);
        let total = self.threads().iter().take(included).map(|(_, n)| n).sum();
        let width = chart.label_width();
        for (row, (thread, samples, included)) in self.visible(chart.rows()).enumerate() {
            let one = &cx.profile.trace.threads[thread];
            let (sign, role) = match (self.chosen == Some(thread), included) {
                (true, _) => (">", Role::Selected),
                (false, true) => (" ", Role::Text),
                (false, false) => ("-", Role::Dim),
            };
            let share = match width >= 18 && included {
                true => format!(" {:3.0}%", ratio(samples, total) * 100.0),
                false => String::new(),
            };
            let name = text::name(
                &thread_name(&one.thread),
                width.saturating_sub(1 + share.len()),
            );
            chart.label(frame, row, &format!("{sign}{name}{share}"), role);
            let ended = one.end.as_ref().filter(|end| !end.alive);
            let ended = ended.map(|end| end.time);
            for column in (0..grid.columns).filter(|_| included) {
                let counts = self.regions_of(grid, thread, column);
                let is_there = one.thread.time < grid.edge(column + 1)
                    && ended.is_none_or(|ended| ended >= grid.edge(column));
                let share = by_region::activity(counts.iter().sum(), period, grid.column_ns());
                let (c, role) = match by_region::dominant(counts) {
                    None if !is_there => (' ', Role::Dim),
                    None => (if theme.unicode { '·' } else { '.' }, Role::Dim),
                    Some(region) => {
                        let c = match region_letter(region, cx.profile.is_native()) {
                            _ if self.heights => theme.column(share),
                            letter if share < 0.5 => letter.to_ascii_lowercase(),
                            letter => letter,
                        };
                        (c, Role::Region(region))
                    }
                };
                chart.put(frame, row, column, c, role);
            }
        }
    }

    /// Returns the number of lanes that do not fit.
    fn draw_lanes(&self, chart: &Chart<'_>, grid: &Grid, frame: &mut Frame<'_>) -> usize {
        let Some(all) = self.lanes.get() else {
            return 0;
        };
        let mut kept: Vec<usize> = (0..all.lanes.len()).collect();
        kept.sort_by_key(|&at| all.lanes.get(at).map(|lane| lane.rank));
        kept.truncate(chart.rows());
        kept.sort_unstable();
        let kept = kept.into_iter().filter_map(|at| all.lanes.get(at));
        for (row, lane) in kept.enumerate() {
            let label = text::name(&lane.label, chart.label_width());
            chart.label(frame, row, &label, lane.role);
            for column in 0..grid.columns {
                let at = grid.column_in(&all.grid, column);
                if let Some(c) = at.and_then(|at| glyph(chart, lane, at)) {
                    chart.put(frame, row, column, c, lane.role);
                }
            }
        }
        all.lanes.len().saturating_sub(chart.rows())
    }
}

fn glyph(chart: &Chart<'_>, lane: &Lane, column: usize) -> Option<char> {
    match *lane.cells.get(column)? {
        Glyph::None => None,
        Glyph::Sign(unicode, ascii) => Some(if chart.theme.unicode { unicode } else { ascii }),
        Glyph::Height(share) => Some(chart.theme.column(share)),
    }
}
