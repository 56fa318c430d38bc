//! Collections over time: duration on a logarithmic scale, kind, heap after the collection.

use crate::present::numbers::{brief, bytes_short};
use crate::queries::collections::{Collections, Key};
use crate::queries::time_grid::Grid;
use crate::tui::theme::{Role, Theme};
use crate::tui::views::Cx;
use crate::tui::widgets::chart::Chart;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;
use ratatui::layout::Rect;

/// Widths of the left and the right scale.
const LEFT: u16 = 9;
const RIGHT: u16 = 7;

/// Chart below the heading; its last row is the time axis.
fn chart(theme: &Theme, area: Rect) -> Chart<'_> {
    let plot = Rect {
        y: area.y + area.height.min(1),
        width: area.width.saturating_sub(RIGHT),
        height: area.height.saturating_sub(1),
        ..area
    };
    Chart::new(theme, plot, LEFT)
}

/// Columns of time over the window.
pub fn grid(all: &Collections, columns: usize) -> Grid {
    let (from, to) = all.window;
    Grid { from, to, columns }
}

/// Collection nearest to a screen column.
pub fn at(all: &Collections, theme: &Theme, area: Rect, x: u16) -> Option<Key> {
    let chart = chart(theme, area);
    let grid = grid(all, chart.columns());
    let x = usize::from(x.saturating_sub(chart.plot.x));
    let distance = |time| grid.column_of(time).abs_diff(x);
    let near = all.rows.iter().min_by_key(|row| distance(row.time))?;
    Some(near.key)
}

/// Draws the chart.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rows of a screen"
)]
pub fn draw(
    cx: &Cx<'_>,
    all: &Collections,
    selected: Option<Key>,
    area: Rect,
    frame: &mut Frame<'_>,
) {
    let theme = cx.theme;
    let pane = Pane { theme, area };
    let legend = all.kinds.iter().take(6).map(|(kind, letter, count)| {
        let kind = if kind.is_empty() { "(no kind)" } else { kind };
        format!("{letter} {kind} {count}  ")
    });
    let legend: String = legend.collect();
    let line = theme.sign("─", "-");
    pane.heading(frame, "Duration, log", &format!("{legend}{line} heap left"));
    let chart = chart(theme, area);
    let rows = chart.rows().saturating_sub(1);
    if chart.columns() < 4 || rows == 0 {
        return;
    }
    let lengths = || all.rows.iter().filter_map(|row| row.length());
    let (Some(shortest), Some(longest)) = (lengths().min(), lengths().max()) else {
        let text = "no collection was observed from begin to end".to_owned();
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    };
    let log = |ns: u64| (ns.max(1) as f64).ln();
    let span = log(longest) - log(shortest);
    let row_at = |share: f64| ((1.0 - share) * (rows - 1) as f64).round() as usize;
    let grid = grid(all, chart.columns());
    let heap = all.heap();
    if heap > 0 {
        let afters = all.rows.iter().filter_map(|row| {
            let after = row.after? as f64 / heap as f64;
            Some((grid.column_of(row.time), row_at(after)))
        });
        let mut afters = afters.peekable();
        while let Some((from, row)) = afters.next() {
            let to = afters.peek().map_or(grid.columns, |next| next.0);
            let text = line.repeat(to.saturating_sub(from));
            chart.text(frame, row, from, &text, Role::Dim);
        }
        let right = Rect {
            x: chart.plot.right() + 1,
            width: RIGHT - 1,
            ..chart.plot
        };
        let right = Pane { theme, area: right };
        right.line(frame, rows - 1, &[(Role::Dim, "0".to_owned())]);
        right.line(frame, 0, &[(Role::Dim, bytes_short(heap))]);
    }
    // Short bars last: within a column, no bar hides another's top.
    let mut bars: Vec<_> = all.rows.iter().collect();
    bars.sort_by_key(|row| std::cmp::Reverse(row.length()));
    let stem = if theme.unicode { '│' } else { '|' };
    let mut has_stem = vec![false; grid.columns];
    for row in bars {
        let column = grid.column_of(row.time);
        let is_selected = selected == Some(row.key);
        let Some(length) = row.length() else {
            chart.put(frame, rows - 1, column, '?', Role::Warning);
            continue;
        };
        let share = match span > 0.0 {
            true => (log(length) - log(shortest)) / span,
            false => 0.5,
        };
        let role = match is_selected {
            true => Role::Selected,
            false => Role::Heat(share),
        };
        let top = row_at(share);
        if let Some(has_stem) = has_stem.get_mut(column).filter(|has| !**has || is_selected) {
            *has_stem = true;
            (top + 1..rows).for_each(|at| chart.put(frame, at, column, stem, role));
        }
        chart.put(frame, top, column, all.letter(&row.kind), role);
    }
    let middle = f64::midpoint(log(shortest), log(longest)).exp() as u64;
    let scale = [(0, longest), (rows - 1, shortest), (rows / 2, middle)];
    let labels = if shortest < longest { 3 } else { 2 };
    for (row, ns) in scale.into_iter().take(labels.min(rows)) {
        chart.scale(frame, row, &brief(ns), Role::Dim);
    }
    let (from, to) = all.window;
    let ends = [from, to].map(|time| format!("{:.3} s", cx.seconds(time)));
    chart.ends(frame, rows, [&ends[0], &ends[1]]);
}
