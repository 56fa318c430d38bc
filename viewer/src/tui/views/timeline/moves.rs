//! Going along the time: zoom, pan, what is selected, the mouse.

use super::nearest::nearest;
use super::{Span, Timeline};
use crate::tui::filter_state::FilterChange;
use crate::tui::keys::Command;
use crate::tui::views::{Act, Click, Cx, Press, View};
use vmscope_records::TimeNs;

impl Timeline {
    /// Shows a part, or the whole where that is all.
    fn show(&mut self, part: (TimeNs, TimeNs), cx: &Cx<'_>) {
        self.span = if part == Self::bounds(cx) {
            Span::Whole
        } else {
            Span::Part(part.0, part.1)
        };
    }

    pub(super) fn zoom(&mut self, is_in: bool, time: TimeNs, cx: &Cx<'_>) {
        let grid = self.grid(cx, cx.area);
        self.show(grid.zoomed(is_in, time, Self::bounds(cx)), cx);
    }

    /// Later by so many columns; what is shown moves along where the cursor would leave it.
    pub(super) fn step(&mut self, by: i64, cx: &Cx<'_>) {
        let grid = self.grid(cx, cx.area);
        let at = i64::try_from(self.at(&grid)).unwrap_or(0) + by;
        let last = i64::try_from(grid.columns.saturating_sub(1)).unwrap_or(0);
        if (0..=last).contains(&at) {
            self.cursor = Some(grid.edge(usize::try_from(at).unwrap_or(0)));
            return;
        }
        self.pan(if at < 0 { -1 } else { 1 }, 2, cx);
        let grid = self.grid(cx, cx.area);
        let now = self.cursor.unwrap_or(grid.from);
        let time = i128::from(now.0) + i128::from(by) * i128::from(grid.column_ns());
        let time = u64::try_from(time.max(0)).unwrap_or(u64::MAX);
        let last = grid.edge(grid.columns.saturating_sub(1));
        self.cursor = Some(TimeNs(time).clamp(grid.from, last));
    }

    /// Earlier or later by a part of what is shown.
    pub(super) fn pan(&mut self, direction: i128, parts: u64, cx: &Cx<'_>) {
        let grid = self.grid(cx, cx.area);
        let by = i128::from(grid.span() / parts.max(1)) * direction;
        let moved = grid.moved(by, Self::bounds(cx));
        if moved != (grid.from, grid.to) {
            self.show(moved, cx);
        }
    }

    /// The first or the last column; of the recording, where it is there already.
    pub(super) fn show_end(&mut self, is_last: bool, cx: &Cx<'_>) {
        for _ in 0..2 {
            let grid = self.grid(cx, cx.area);
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
            let moved = grid.moved(if is_last { far } else { -far }, Self::bounds(cx));
            if moved != (grid.from, grid.to) {
                self.show(moved, cx);
            }
        }
    }

    pub(super) fn jump(&mut self, is_next: bool, cx: &Cx<'_>) -> Vec<Act> {
        let grid = self.grid(cx, cx.area);
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

    /// Makes what is selected the window; with one already chosen, what both have in
    /// common, where there is any.
    pub(super) fn narrow(&mut self, cx: &Cx<'_>) -> Vec<Act> {
        let grid = self.grid(cx, cx.area);
        let Some((from, to)) = self.selection(&grid) else {
            return Vec::new();
        };
        self.anchor = None;
        let older = cx.filters.window().unwrap_or((from, to));
        let common = (from.max(older.0), to.min(older.1));
        let window = if common.0 < common.1 {
            common
        } else {
            (from, to)
        };
        vec![Act::FilterChange(FilterChange::Window(Some(window)))]
    }

    pub(super) fn clicked(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let layout = self.layout(cx.area);
        let grid = self.grid(cx, cx.area);
        let column = click.at.x.checked_sub(layout.left).map(usize::from);
        let column = column.filter(|column| *column < grid.columns);
        let row = layout.thread_at(click.at.y);
        let top = self.list.top(
            self.listed.get().map_or(0, |listed| listed.threads.len()),
            usize::from(layout.threads.height),
        );
        match click.what {
            Press::WheelUp | Press::WheelDown => {
                let is_up = click.what == Press::WheelUp;
                match (row, column) {
                    (None, Some(column)) => self.zoom(is_up, grid.edge(column), cx),
                    _ => {
                        let command = if is_up { Command::Up } else { Command::Down };
                        return self.act(command, cx);
                    }
                }
            }
            Press::Down => {
                if let Some(row) = row {
                    self.select_row(top + row, cx);
                }
                self.anchor = None;
                self.pressed = column.map(|column| Self::column(&grid, column));
                if let Some(column) = column {
                    self.cursor = Some(grid.edge(column));
                }
            }
            Press::Double => match (row, column) {
                (Some(row), _) => {
                    self.select_row(top + row, cx);
                    return self.act(Command::Only, cx);
                }
                (None, Some(column)) => self.zoom(true, grid.edge(column), cx),
                (None, None) => {}
            },
            Press::Drag => {
                if let (Some(pressed), Some(last)) = (self.pressed, grid.columns.checked_sub(1)) {
                    let column = usize::from(click.at.x.saturating_sub(layout.left)).min(last);
                    let edge = grid.edge(column);
                    if self.anchor.is_some() || edge != pressed.0 {
                        self.anchor = Some(pressed);
                        self.cursor = Some(edge);
                    }
                }
            }
            Press::Up => {
                let dragged = self.pressed.take().is_some() && self.anchor.is_some();
                if dragged {
                    return self.narrow(cx);
                }
            }
        }
        Vec::new()
    }
}
