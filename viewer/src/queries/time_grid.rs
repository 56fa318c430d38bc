//! Equal columns of time, with zoom and scroll.

use vmscope_records::TimeNs;

/// Minimum duration of a column.
const LEAST_NS: u64 = 1_000;

/// Part of a recording in equal columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    /// Left edge.
    pub from: TimeNs,
    /// Right edge.
    pub to: TimeNs,
    /// Number of columns.
    pub columns: usize,
}

impl Grid {
    /// Left edge of a column; `columns` yields the right edge.
    pub fn edge(&self, column: usize) -> TimeNs {
        let part = u128::from(self.span()) * column as u128 / (self.columns as u128).max(1);
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        TimeNs(self.from.0.saturating_add(part))
    }

    /// All edges.
    pub fn edges(&self) -> Vec<TimeNs> {
        (0..=self.columns).map(|column| self.edge(column)).collect()
    }

    /// Duration in ns.
    pub fn span(&self) -> u64 {
        self.to.since(self.from).0
    }

    /// Column duration in ns, at least 1.
    pub fn column_ns(&self) -> u64 {
        (self.span() / (self.columns as u64).max(1)).max(1)
    }

    /// Whether the grid contains an instant.
    pub fn has(&self, time: TimeNs) -> bool {
        self.from <= time && time < self.to
    }

    /// Column of an instant, or the nearest column.
    pub fn column_of(&self, time: TimeNs) -> usize {
        let last = self.columns.saturating_sub(1);
        let offset = u128::from(time.since(self.from.min(time)).0);
        if time <= self.from {
            return 0;
        }
        let column = offset * self.columns as u128 / u128::from(self.span().max(1));
        let column = usize::try_from(column).unwrap_or(last).min(last);
        // Edges are rounded down: an instant at an edge belongs to the right column.
        if column < last && self.edge(column + 1) <= time {
            column + 1
        } else {
            column
        }
    }

    /// Columns that overlap a span; `None` outside the grid.
    pub fn columns_of(&self, from: TimeNs, to: TimeNs) -> Option<(usize, usize)> {
        if to < self.from || from >= self.to || self.columns == 0 {
            return None;
        }
        let last = TimeNs(to.0.saturating_sub(1)).max(from);
        Some((self.column_of(from), self.column_of(last)))
    }

    /// Column of grid `other` at the middle of a column of this grid.
    pub fn column_in(&self, other: &Grid, column: usize) -> Option<usize> {
        if self == other {
            return Some(column);
        }
        let (from, to) = (self.edge(column), self.edge(column + 1));
        let middle = TimeNs(from.0 + to.since(from).0 / 2);
        other.has(middle).then(|| other.column_of(middle))
    }

    /// Zooms by a factor of two around `time`, within `bounds`.
    pub fn zoomed(&self, is_in: bool, time: TimeNs, bounds: (TimeNs, TimeNs)) -> (TimeNs, TimeNs) {
        let most = bounds.1.since(bounds.0).0;
        let least = (self.columns as u64).saturating_mul(LEAST_NS).min(most);
        let span = if is_in {
            // Rounded up, so that zooming out reverses zooming in.
            self.span().div_ceil(2)
        } else {
            self.span().saturating_mul(2)
        };
        let span = span.clamp(least, most.max(least));
        let before = u128::from(time.since(self.from.min(time)).0) * u128::from(span)
            / u128::from(self.span().max(1));
        let before = u64::try_from(before).unwrap_or(0).min(span);
        within(time.0.saturating_sub(before), span, bounds)
    }

    /// Scrolls by a number of ns.
    pub fn moved(&self, by: i128, bounds: (TimeNs, TimeNs)) -> (TimeNs, TimeNs) {
        let from = (i128::from(self.from.0) + by).max(0);
        let from = u64::try_from(from).unwrap_or(u64::MAX);
        within(from, self.span(), bounds)
    }
}

/// Span of equal length within the bounds, nearest to `from`.
fn within(from: u64, span: u64, bounds: (TimeNs, TimeNs)) -> (TimeNs, TimeNs) {
    let latest = bounds.1.0.saturating_sub(span).max(bounds.0.0);
    let from = from.clamp(bounds.0.0, latest);
    (
        TimeNs(from),
        TimeNs(from.saturating_add(span).min(bounds.1.0)),
    )
}

/// Step of an axis: 1, 2 or 5 times a power of ten, at least `least` ns; and digits of its labels
/// in seconds.
pub fn step(least: u64) -> (u64, usize) {
    let mut power = 1u64;
    let mut digits = 9;
    loop {
        for times in [1, 2, 5] {
            let step = power.saturating_mul(times);
            if step >= least || step == u64::MAX {
                return (step, digits);
            }
        }
        power = power.saturating_mul(10);
        digits = usize::saturating_sub(digits, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: (TimeNs, TimeNs) = (TimeNs(1_000), TimeNs(1_000_001_000));

    #[test]
    fn an_edge_is_in_its_own_column() {
        for columns in [1, 7, 64, 187] {
            for span in [1, 10, 999, 20_000_000_001] {
                let grid = Grid {
                    from: TimeNs(5),
                    to: TimeNs(5 + span),
                    columns,
                };
                for column in 0..columns {
                    let edge = grid.edge(column);
                    let found = grid.column_of(edge);
                    assert_eq!(grid.edge(found), edge, "{columns} {span} {column}");
                }
                assert_eq!(grid.column_of(TimeNs(0)), 0);
                assert_eq!(grid.column_of(TimeNs(u64::MAX)), columns - 1);
            }
        }
    }

    #[test]
    fn zooming_keeps_what_is_under_the_cursor() {
        let grid = Grid {
            from: BOUNDS.0,
            to: BOUNDS.1,
            columns: 100,
        };
        let time = grid.edge(25);
        let (from, to) = grid.zoomed(true, time, BOUNDS);
        assert_eq!(to.since(from).0, 500_000_000);
        let nearer = Grid { from, to, ..grid };
        assert_eq!(nearer.column_of(time), 25);
        assert_eq!(nearer.zoomed(false, time, BOUNDS), BOUNDS);
        let mut least = grid;
        for _ in 0..60 {
            (least.from, least.to) = least.zoomed(true, time, BOUNDS);
        }
        assert_eq!(least.column_ns(), LEAST_NS);
        assert!(least.has(time));
        assert_eq!(nearer.moved(-1_000_000_000, BOUNDS).0, BOUNDS.0);
        assert_eq!(nearer.moved(i128::from(u64::MAX), BOUNDS).1, BOUNDS.1);
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(step(1_300_000_000), (2_000_000_000, 0));
        assert_eq!(step(2_000_001), (5_000_000, 3));
        assert_eq!(step(100_000_000), (100_000_000, 1));
        assert_eq!(step(u64::MAX).0, u64::MAX);
    }
}
