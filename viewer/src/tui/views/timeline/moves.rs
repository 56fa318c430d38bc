//! Zoom, scroll, selection, next event, mouse.

use super::lanes::{collection_in_words, times};
use super::{Column, Span, Timeline, layout};
use crate::queries::collections::takes_process;
use crate::tui::filter_state::FilterChange;
use crate::tui::keys::Command;
use crate::tui::views::{Act, Click, Cx, Press, View};
use crate::tui::widgets::chart::Chart;
use vmscope_records::TimeNs;

impl Timeline {
    fn show(&mut self, part: (TimeNs, TimeNs), cx: &Cx<'_>) {
        self.span = match part == Self::bounds(cx) {
            true => Span::Whole,
            false => Span::Part(part.0, part.1),
        };
    }

    pub(super) fn zoom(&mut self, is_in: bool, time: TimeNs, cx: &Cx<'_>) {
        self.show(self.grid(cx).zoomed(is_in, time, Self::bounds(cx)), cx);
    }

    /// Moves the cursor by columns, and scrolls at the edges.
    pub(super) fn step(&mut self, by: i64, cx: &Cx<'_>) {
        let grid = self.grid(cx);
        let at = i64::try_from(self.at(&grid)).unwrap_or(0) + by;
        if let Some(at) = usize::try_from(at).ok().filter(|at| *at < grid.columns) {
            self.cursor = Some(grid.edge(at));
            return;
        }
        self.pan(if at < 0 { -1 } else { 1 }, 2, cx);
        let grid = self.grid(cx);
        let now = self.cursor.unwrap_or(grid.from);
        let time = i128::from(now.0) + i128::from(by) * i128::from(grid.column_ns());
        let time = u64::try_from(time.max(0)).unwrap_or(u64::MAX);
        let last = grid.edge(grid.columns.saturating_sub(1));
        self.cursor = Some(TimeNs(time).clamp(grid.from, last));
    }

    fn scroll(&mut self, by: i128, cx: &Cx<'_>) {
        let grid = self.grid(cx);
        let moved = grid.moved(by, Self::bounds(cx));
        if moved != (grid.from, grid.to) {
            self.show(moved, cx);
        }
    }

    /// Scrolls by a fraction of the visible part.
    pub(super) fn pan(&mut self, direction: i128, parts: u64, cx: &Cx<'_>) {
        let by = self.grid(cx).span() / parts.max(1);
        self.scroll(i128::from(by) * direction, cx);
    }

    /// Moves the cursor to the first or last visible column; from there, to the recording's.
    pub(super) fn show_end(&mut self, is_last: bool, cx: &Cx<'_>) {
        for _ in 0..2 {
            let grid = self.grid(cx);
            let column = if is_last {
                grid.columns.saturating_sub(1)
            } else {
                0
            };
            let time = Some(grid.edge(column));
            if self.cursor != time {
                self.cursor = time;
                return;
            }
            let far = i128::from(u64::MAX);
            self.scroll(if is_last { far } else { -far }, cx);
        }
    }

    pub(super) fn jump(&mut self, is_next: bool, cx: &Cx<'_>) -> Vec<Act> {
        let grid = self.grid(cx);
        let now = Self::column(&grid, self.at(&grid));
        let Some((time, text)) = nearest(cx, now, is_next) else {
            let side = if is_next { "after" } else { "before" };
            return vec![Act::Say(format!("no collection or mark {side} the cursor"))];
        };
        self.cursor = Some(time);
        if !grid.has(time) {
            let half = i128::from(time.0) - i128::from(grid.from.0) - i128::from(grid.span() / 2);
            self.show(grid.moved(half, Self::bounds(cx)), cx);
        }
        vec![Act::Say(text)]
    }

    /// Makes the selection the window, or its intersection with an overlapping window.
    pub(super) fn narrow(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let Some((from, to)) = self.selection(&self.grid(cx)) else {
            return Vec::new();
        };
        self.anchor = None;
        let older = cx.filters.window().unwrap_or((from, to));
        let common = Some((from.max(older.0), to.min(older.1)));
        let window = common.filter(|(from, to)| from < to).or(Some((from, to)));
        vec![Act::FilterChange(FilterChange::Window(window))]
    }

    pub(super) fn clicked(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let rows = self.layout(cx).threads;
        let grid = self.grid(cx);
        let chart = Chart::new(cx.theme, cx.area, layout::gutter(cx.area));
        let column = chart.column_at(click.at.x);
        let line = (rows.top()..rows.bottom()).contains(&click.at.y);
        let line = line.then(|| usize::from(click.at.y - rows.y));
        if let (Some(line), Press::Down | Press::Double) = (line, click.what) {
            self.with_list(cx, |list, count, height| {
                list.select(list.top(count, height) + line, count, height);
            });
        }
        match (click.what, column) {
            (Press::WheelUp | Press::WheelDown, Some(column)) if line.is_none() => {
                self.zoom(click.what == Press::WheelUp, grid.edge(column), cx);
            }
            (Press::WheelUp, _) => return self.act(Command::Up, cx),
            (Press::WheelDown, _) => return self.act(Command::Down, cx),
            (Press::Down, column) => {
                self.anchor = None;
                self.pressed = column.map(|column| Self::column(&grid, column));
                self.cursor = self.pressed.map(|(from, _)| from).or(self.cursor);
            }
            (Press::Double, _) if line.is_some() => return self.act(Command::Only, cx),
            (Press::Double, Some(column)) => self.zoom(true, grid.edge(column), cx),
            (Press::Drag, _) if grid.columns > 0 => {
                let column = usize::from(click.at.x.saturating_sub(chart.plot.x));
                let edge = grid.edge(column.min(grid.columns - 1));
                let pressed = self.pressed;
                if pressed.is_some_and(|(from, _)| self.anchor.is_some() || edge != from) {
                    (self.anchor, self.cursor) = (pressed, Some(edge));
                }
            }
            (Press::Up, _) if self.pressed.take().is_some() => return self.narrow(cx),
            _ => {}
        }
        Vec::new()
    }
}

/// Next collection or mark from `after` on, or last one before `before`.
fn nearest(cx: &Cx<'_>, (before, after): Column, is_next: bool) -> Option<(TimeNs, String)> {
    let trace = &cx.profile.trace;
    let takes = takes_process(cx.profile, cx.filters.filter());
    let collections = trace.collections.iter().filter(|one| takes(one.process));
    let collections = collections.filter_map(|one| Some((times(one)?.0, Ok(one))));
    let marks = trace.marks.iter().map(|mark| (mark.time, Err(mark)));
    let distance = |time: TimeNs| match is_next {
        // A live profile may hold later events than the screen.
        true => (time >= after && time <= cx.end).then(|| time.since(after)),
        false => (time < before).then(|| before.since(time)),
    };
    let events = collections.chain(marks);
    let events = events.filter_map(|(time, event)| Some((distance(time)?, time, event)));
    let (_, time, event) = events.min_by_key(|(distance, ..)| *distance)?;
    Some((
        time,
        match event {
            Ok(one) => collection_in_words(one, times(one)?, cx.begin),
            Err(mark) => format!("mark: {}", mark.text),
        },
    ))
}
