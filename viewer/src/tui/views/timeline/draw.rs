//! The timeline on the screen.

use super::Timeline;
use super::layout::Layout;
use crate::present::text;
use crate::queries::time_grid::{Grid, step};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use vmscope_records::TimeNs;

/// The least columns between two numbers of the axis.
const TICK: u64 = 12;

pub(super) fn put(buffer: &mut Buffer, x: u16, y: u16, c: char, style: Style) {
    if let Some(cell) = buffer.cell_mut((x, y)) {
        cell.set_char(c).set_style(style);
    }
}

/// The screen's column of a column of the charts.
pub(super) fn x_of(layout: &Layout, column: usize) -> u16 {
    let column = u16::try_from(column).unwrap_or(u16::MAX);
    layout.left.saturating_add(column)
}

impl Timeline {
    pub(super) fn draw_all(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let layout = self.layout(area);
        let grid = self.grid(cx, area);
        if grid.columns == 0 {
            return;
        }
        self.draw_axis(cx, frame, &layout, &grid);
        self.draw_activity(cx, frame, &layout, &grid);
        self.draw_threads(cx, frame, &layout, &grid);
        let hidden = self.draw_lanes(cx, frame, &layout, &grid);
        self.draw_cursor(cx, frame, &layout, &grid);
        self.draw_words(cx, frame, &layout, &grid);
        self.draw_legend(cx, frame, &layout, hidden);
    }

    pub(super) fn name(&self, frame: &mut Frame<'_>, layout: &Layout, y: u16, line: Line<'_>) {
        let width = layout.left.saturating_sub(layout.axis.x + 1);
        let area = Rect::new(layout.axis.x, y, width, 1);
        frame.render_widget(line, area.intersection(frame.area()));
    }

    fn draw_axis(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        if layout.axis.height < 2 {
            return;
        }
        let theme = cx.theme;
        let dim = theme.style(Role::Dim);
        let title = Line::styled("seconds", theme.style(Role::Title));
        self.name(frame, layout, layout.axis.y, title);
        let (ns, digits) = step(grid.column_ns().saturating_mul(TICK));
        let words = match grid.column_ns() {
            ns @ 0..1_000 => format!("{ns} ns/col"),
            ns @ 1_000..1_000_000 => format!("{} us/col", ns / 1000),
            _ => format!("{}/col", super::lanes::ms(grid.column_ns())),
        };
        self.name(
            frame,
            layout,
            layout.axis.y + 1,
            Line::styled(text::line(&words, usize::from(layout.left) - 1), dim),
        );
        let window = cx.filters.window();
        let window = window.and_then(|(from, to)| grid.columns_of(from, to));
        let selection = self.selection(grid);
        let selection = selection.and_then(|(from, to)| grid.columns_of(from, to));
        let inside = |span: Option<(usize, usize)>, column: usize| {
            span.is_some_and(|(first, last)| (first..=last).contains(&column))
        };
        let ruler = layout.axis.y + 1;
        let sign = |frame: &mut Frame<'_>, column, (unicode, ascii), role| {
            let sign = if theme.unicode { unicode } else { ascii };
            let (x, style) = (x_of(layout, column), theme.style(role));
            put(frame.buffer_mut(), x, ruler, sign, style);
        };
        for column in 0..grid.columns {
            if inside(selection, column) {
                sign(frame, column, ('≈', '~'), Role::Match);
            } else if inside(window, column) {
                sign(frame, column, ('═', '='), Role::Chip);
            } else {
                sign(frame, column, ('─', '-'), Role::Dim);
            }
        }
        let offset = grid.from.since(cx.begin).0;
        let mut tick = offset.div_ceil(ns).saturating_mul(ns);
        let mut free = 0;
        for _ in 0..grid.columns {
            let time = TimeNs(cx.begin.0.saturating_add(tick));
            if !grid.has(time) {
                break;
            }
            let column = grid.column_of(time);
            if !inside(selection, column) && !inside(window, column) {
                sign(frame, column, ('┴', '+'), Role::Dim);
            }
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a recording")]
            let label = format!("{:.*}", digits, tick as f64 / 1e9);
            if column >= free && column + label.len() <= grid.columns {
                let style = theme.style(Role::Text);
                for (at, c) in label.chars().enumerate() {
                    put(
                        frame.buffer_mut(),
                        x_of(layout, column + at),
                        layout.axis.y,
                        c,
                        style,
                    );
                }
                free = column + label.len() + 1;
            }
            tick = tick.saturating_add(ns);
        }
        if let Some((first, last)) = window {
            sign(frame, first, ('╞', '['), Role::Chip);
            sign(frame, last, ('╡', ']'), Role::Chip);
        }
        sign(frame, self.at(grid), ('▼', 'v'), Role::Key);
    }

    /// Marks the cursor's column.
    fn draw_cursor(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, layout: &Layout, grid: &Grid) {
        if self.cursor.is_none_or(|cursor| !grid.has(cursor)) {
            return;
        }
        let x = x_of(layout, self.at(grid));
        let style = cx.theme.style(Role::Selected);
        let bottom = layout.lanes.bottom().max(layout.threads.bottom());
        for y in layout.activity.y..bottom {
            if let Some(cell) = frame.buffer_mut().cell_mut((x, y)) {
                cell.set_style(style);
            }
        }
    }
}
