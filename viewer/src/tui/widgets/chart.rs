//! Chart of equal columns: plot, gutter of labels at the left, sparkline, stacked bar, time axis with
//! brush.

use crate::present::text;
use crate::queries::by_region;
use crate::queries::time_grid::{Grid, step};
use crate::tui::theme::{Colors, Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Region;

/// Minimum number of columns between two labels of a time axis.
const TICK: u64 = 12;

/// Columns of a plot, both inclusive.
pub type Marked = Option<(usize, usize)>;

/// Whether a column is marked.
pub fn is_in(marked: Marked, column: usize) -> bool {
    marked.is_some_and(|(first, last)| (first..=last).contains(&column))
}

/// Plot and gutter. Rows count from the top.
#[derive(Clone, Copy, Debug)]
pub struct Chart<'a> {
    /// Terminal capabilities.
    pub theme: &'a Theme,
    /// Area without the gutter.
    pub plot: Rect,
    /// Width of the gutter; its last column stays blank.
    pub gutter: u16,
}

impl<'a> Chart<'a> {
    /// Chart in an area.
    pub fn new(theme: &'a Theme, area: Rect, gutter: u16) -> Self {
        let gutter = gutter.min(area.width);
        let (x, width) = (area.x + gutter, area.width - gutter);
        let plot = Rect { x, width, ..area };
        Chart {
            theme,
            plot,
            gutter,
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.plot.width.into()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.plot.height.into()
    }

    /// Column at a screen position.
    pub fn column_at(&self, x: u16) -> Option<usize> {
        let column = usize::from(x.checked_sub(self.plot.x)?);
        (column < self.columns()).then_some(column)
    }

    fn cell(&self, row: usize, column: usize) -> Option<(u16, u16)> {
        let (x, y) = (u16::try_from(column).ok()?, u16::try_from(row).ok()?);
        let is_inside = x < self.plot.width && y < self.plot.height;
        is_inside.then(|| (self.plot.x + x, self.plot.y + y))
    }

    /// Draws a character; skips positions outside the plot.
    pub fn put(&self, frame: &mut Frame<'_>, row: usize, column: usize, sign: char, role: Role) {
        let at = self.cell(row, column);
        if let Some(cell) = at.and_then(|at| frame.buffer_mut().cell_mut(at)) {
            cell.set_char(sign).set_style(self.theme.style(role));
        }
    }

    /// Draws a text of narrow characters.
    pub fn text(&self, frame: &mut Frame<'_>, row: usize, column: usize, text: &str, role: Role) {
        for (c, column) in text.chars().zip(column..) {
            self.put(frame, row, column, c, role);
        }
    }

    /// Draws texts at the left and the right end of a row.
    pub fn ends(&self, frame: &mut Frame<'_>, row: usize, [from, to]: [&str; 2]) {
        self.text(frame, row, 0, from, Role::Dim);
        let last = self.columns().saturating_sub(to.len());
        self.text(frame, row, last.max(from.len()), to, Role::Dim);
    }

    /// Draws a label in the gutter.
    pub fn label(&self, frame: &mut Frame<'_>, row: usize, text: &str, role: Role) {
        self.in_gutter(frame, row, Line::styled(text, self.theme.style(role)));
    }

    /// Draws a right-aligned label in the gutter.
    pub fn scale(&self, frame: &mut Frame<'_>, row: usize, text: &str, role: Role) {
        let line = Line::styled(text, self.theme.style(role));
        self.in_gutter(frame, row, line.right_aligned());
    }

    fn in_gutter(&self, frame: &mut Frame<'_>, row: usize, line: Line<'_>) {
        if let Some((_, y)) = self.cell(row, 0) {
            let width = self.gutter.saturating_sub(1);
            let area = Rect::new(self.plot.x - self.gutter, y, width, 1);
            frame.render_widget(line, area.intersection(frame.area()));
        }
    }

    /// Number of columns that a label may take.
    pub fn label_width(&self) -> usize {
        self.gutter.saturating_sub(1).into()
    }

    /// Changes the style of a column.
    pub fn highlight(&self, frame: &mut Frame<'_>, column: usize, style: Style) {
        for at in (0..self.rows()).filter_map(|row| self.cell(row, column)) {
            if let Some(cell) = frame.buffer_mut().cell_mut(at) {
                cell.set_style(style);
            }
        }
    }

    /// Draws a bar of the regions' shares from the bottom up, `share` (0 to 1) of the plot high.
    /// `look`: a region's fill sign and style.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rows of a terminal"
    )]
    pub fn bar(
        &self,
        frame: &mut Frame<'_>,
        column: usize,
        share: f64,
        counts: &[u64],
        look: impl Fn(Region) -> (char, Role),
    ) {
        let height = share.clamp(0.0, 1.0) * self.rows() as f64;
        let full = (height + 1e-9).floor() as usize;
        let rest = height - full as f64;
        let stack = by_region::stacked(counts, full + usize::from(rest > 0.0));
        for ((at, region), row) in stack.into_iter().enumerate().zip((0..self.rows()).rev()) {
            let (fill, role) = look(region);
            // Terminals without colours need the region's own sign.
            let is_part = at >= full && self.theme.colors != Colors::None && rest < 0.95;
            if is_part {
                let sign = self.theme.column(rest);
                self.put(frame, row, column, sign, role);
            } else if at < full || rest >= 0.5 || full == 0 {
                self.put(frame, row, column, fill, role);
            }
        }
    }
}

/// Time axis: labels above a ruler with ticks, brushes and cursor.
#[derive(Clone, Copy, Debug)]
pub struct TimeAxis {
    /// Columns.
    pub grid: Grid,
    /// Zero of the labels.
    pub begin: TimeNs,
    /// Window of the filters.
    pub window: Marked,
    /// Selection.
    pub selection: Marked,
    /// Cursor.
    pub cursor: usize,
}

impl TimeAxis {
    /// Draws the axis in the first two rows of a chart.
    pub fn draw(&self, chart: &Chart<'_>, frame: &mut Frame<'_>) {
        if chart.rows() < 2 {
            return;
        }
        let grid = &self.grid;
        let (ns, digits) = step(grid.column_ns().saturating_mul(TICK));
        chart.label(frame, 0, "seconds", Role::Title);
        let words = match grid.column_ns() {
            ns @ 0..1_000 => format!("{ns} ns/col"),
            ns @ 1_000..1_000_000 => format!("{} us/col", ns / 1000),
            ns => format!("{}/col", ms(ns)),
        };
        let words = text::line(&words, chart.label_width());
        chart.label(frame, 1, &words, Role::Dim);
        let put = |frame: &mut Frame<'_>, column, (unicode, ascii), role| {
            let sign = if chart.theme.unicode { unicode } else { ascii };
            chart.put(frame, 1, column, sign, role);
        };
        for column in 0..grid.columns {
            let (sign, role) = match column {
                _ if is_in(self.selection, column) => (('≈', '*'), Role::Match),
                _ if is_in(self.window, column) => (('═', '='), Role::Chip),
                _ => (('─', '-'), Role::Dim),
            };
            put(frame, column, sign, role);
        }
        let mut tick = grid
            .from
            .since(self.begin)
            .0
            .div_ceil(ns)
            .saturating_mul(ns);
        let mut free = 0;
        for _ in 0..grid.columns {
            let time = TimeNs(self.begin.0.saturating_add(tick));
            if !grid.has(time) {
                break;
            }
            let column = grid.column_of(time);
            if !is_in(self.selection, column) && !is_in(self.window, column) {
                put(frame, column, ('┴', '+'), Role::Dim);
            }
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a recording")]
            let label = format!("{:.*}", digits, tick as f64 / 1e9);
            if column >= free && column + label.len() <= grid.columns {
                chart.text(frame, 0, column, &label, Role::Text);
                free = column + label.len() + 1;
            }
            tick = tick.saturating_add(ns);
        }
        if let Some((first, last)) = self.window {
            put(frame, first, ('╞', '['), Role::Chip);
            put(frame, last, ('╡', ']'), Role::Chip);
        }
        put(frame, self.cursor, ('▼', 'v'), Role::Key);
    }
}

/// Milliseconds with one decimal.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a recording")]
pub fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}
