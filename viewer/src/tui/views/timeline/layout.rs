//! Areas of the timeline, from top to bottom.

use ratatui::layout::Rect;

/// Areas, each with its gutter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub axis: Rect,
    pub activity: Rect,
    pub threads: Rect,
    pub lanes: Rect,
    /// Words about the cursor or the selection.
    pub cursor: Rect,
    pub legend: Rect,
}

/// Width of the labels left of the charts.
pub fn gutter(area: Rect) -> u16 {
    (area.width / 6).clamp(10, 26).min(area.width)
}

impl Layout {
    /// Layout for a number of lanes and threads.
    pub fn of(area: Rect, lanes: usize, threads: usize) -> Self {
        let cursor = if area.height < 18 { 1 } else { 2 };
        let rest = area.height.saturating_sub(2 + cursor + 1);
        let least = (rest / 3).clamp(2, 12);
        let lanes = u16::try_from(lanes).unwrap_or(u16::MAX);
        let threads = u16::try_from(threads).unwrap_or(u16::MAX).max(1);
        let lanes = lanes.min(rest.saturating_sub(least + threads.min(rest / 3)));
        let threads = threads.min(rest.saturating_sub(least + lanes));
        // Spare rows make the chart finer, up to 20.
        let activity = rest.saturating_sub(lanes + threads).clamp(least, 20);
        let mut y = area.y;
        let mut take = |height: u16, from: u16| {
            y = y.max(from);
            let part = Rect { y, height, ..area }.intersection(area);
            y = y.saturating_add(height);
            part
        };
        Layout {
            axis: take(2, 0),
            activity: take(activity, 0),
            threads: take(threads, 0),
            lanes: take(lanes, 0),
            cursor: take(cursor, area.bottom().saturating_sub(cursor + 1)),
            legend: take(1, 0),
        }
    }
}
