//! Where the parts of the timeline are.

use ratatui::layout::Rect;

/// The parts, from top to bottom.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The first column of the charts; what is left of it are their names.
    pub left: u16,
    /// How many columns the charts have.
    pub columns: usize,
    /// The axis: seconds, and the ruler beneath.
    pub axis: Rect,
    /// Activity by region.
    pub activity: Rect,
    /// Rows of threads.
    pub threads: Rect,
    /// What happened.
    pub lanes: Rect,
    /// What is at the cursor.
    pub cursor: Rect,
    /// What the signs mean.
    pub legend: Rect,
}

impl Layout {
    /// In the room there is, for so many lanes and threads.
    pub fn of(area: Rect, lanes: usize, threads: usize) -> Self {
        let gutter = (area.width / 6).clamp(10, 26).min(area.width);
        let columns = area.width.saturating_sub(gutter);
        let cursor = if area.height < 18 { 1 } else { 2 };
        let rest = area.height.saturating_sub(2 + cursor + 1);
        let least = (rest / 3).clamp(2, 12);
        let lanes = u16::try_from(lanes).unwrap_or(u16::MAX);
        let threads = u16::try_from(threads).unwrap_or(u16::MAX).max(1);
        let lanes = lanes.min(rest.saturating_sub(least + threads.min(rest / 3)));
        let threads = threads.min(rest.saturating_sub(least + lanes));
        // What room is left makes the chart finer, up to a point.
        let activity = rest.saturating_sub(lanes + threads).clamp(least, 20);
        let mut y = area.y;
        let mut take = |height: u16| {
            let part = Rect { y, height, ..area }.intersection(area);
            y = y.saturating_add(height);
            part
        };
        let (axis, activity) = (take(2), take(activity));
        let (threads, lanes) = (take(threads), take(lanes));
        y = y.max(area.bottom().saturating_sub(cursor + 1));
        let mut take = |height: u16| {
            let part = Rect { y, height, ..area }.intersection(area);
            y = y.saturating_add(height);
            part
        };
        let (cursor, legend) = (take(cursor), take(1));
        Layout {
            left: area.x + gutter,
            columns: usize::from(columns),
            axis,
            activity,
            threads,
            lanes,
            cursor,
            legend,
        }
    }

    /// The row of a thread at a line of the screen.
    pub fn thread_at(&self, y: u16) -> Option<usize> {
        let inside = (self.threads.top()..self.threads.bottom()).contains(&y);
        inside.then(|| usize::from(y - self.threads.y))
    }
}
