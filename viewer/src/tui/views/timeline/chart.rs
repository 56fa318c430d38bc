//! Activity by region, as columns.

use super::draw::{put, x_of};
use super::layout::Layout;
use super::{Span as Shows, Timeline};
use crate::queries::by_region::{self};
use crate::queries::time_grid::Grid;
use crate::tui::theme::{Colors, Role};
use crate::tui::views::Cx;
use crate::tui::views::empty::{no_samples, say};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_records::SampleClock;
use vmscope_symbolizer::Region;

/// What the height of the activity counts.
pub(super) fn unit(cx: &Cx<'_>) -> &'static str {
    let session = cx.profile.trace.session.as_ref();
    match session.map(|session| session.clock) {
        Some(SampleClock::Wall) => "threads",
        _ => "CPUs",
    }
}

/// What stands for full height: so many samples in a column, and how that is called.
struct Scale {
    samples: f64,
    top: String,
}

/// A round number that is not much less than `most`.
fn round_up(most: f64) -> f64 {
    let mut power = 1.0;
    loop {
        for times in [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0] {
            let round: f64 = power * times;
            // What is above by a tenth is chance: samples come at random.
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

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and nanoseconds are below 2^52"
)]
fn scale(cx: &Cx<'_>, grid: &Grid, most: u64) -> Scale {
    let period = by_region::period_ns(cx.profile);
    let per_cpu = grid.column_ns() as f64 / period as f64;
    if per_cpu < 4.0 {
        // Too short to tell how busy it was.
        let top = round_up(most as f64);
        return Scale {
            samples: top,
            top: format!("{top} samples"),
        };
    }
    let top = round_up(most as f64 / per_cpu);
    let unit = if top > 1.0 {
        unit(cx)
    } else {
        unit(cx).trim_end_matches('s')
    };
    Scale {
        samples: top * per_cpu,
        top: format!("{top} {unit}"),
    }
}

impl Timeline {
    /// Why there is nothing in what is shown, and the key that shows more.
    fn nothing(&self, cx: &Cx<'_>, grid: &Grid) -> String {
        let threads = self.listed.get().map_or(&[][..], |listed| &listed.threads);
        if threads.is_empty() || self.span == Shows::Whole {
            return no_samples(cx);
        }
        let (from, to) = (cx.seconds(grid.from), cx.seconds(grid.to));
        let key = match self.span {
            Shows::Window => "m shows the whole time, x removes the window",
            _ => "- shows more of it",
        };
        format!("No samples from {from:.3} to {to:.3} s: {key}.")
    }

    /// A column's samples by region; `None` where they are not known yet.
    pub(super) fn regions(&self, grid: &Grid, column: usize) -> Option<(&[u64], Option<f64>)> {
        let activity = self.activity.get()?;
        let column = grid.column_in(&activity.grid, column)?;
        let promised = activity.promised.as_ref();
        let promised = promised.and_then(|all| all.get(column).copied());
        Some((activity.columns.column(column), promised))
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rows of a terminal, counts below 2^52"
    )]
    pub(super) fn draw_activity(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        grid: &Grid,
    ) {
        let Some(activity) = self.activity.get() else {
            return;
        };
        let theme = cx.theme;
        let area = layout.activity;
        let old = activity.grid;
        let all = (0..old.columns).map(|at| activity.columns.column(at).iter().sum());
        let most: u64 = all.max().unwrap_or(0);
        if most == 0 {
            let at = Rect {
                x: layout.left,
                width: area.right().saturating_sub(layout.left),
                ..area
            };
            return say(&self.nothing(cx, grid), cx, frame, at);
        }
        let scale = scale(cx, &old, most);
        let dim = theme.style(Role::Dim);
        let title = theme.style(Role::Title);
        self.name(
            frame,
            layout,
            area.y,
            Line::styled(scale.top, title).right_aligned(),
        );
        if area.height > 2 {
            let words = Line::styled("activity", dim);
            self.name(frame, layout, area.y + 1, words);
            let zero = Line::styled("0", dim).right_aligned();
            self.name(frame, layout, area.bottom().saturating_sub(1), zero);
        }
        let window = cx.filters.window();
        let window = window.and_then(|(from, to)| grid.columns_of(from, to));
        for column in 0..grid.columns {
            let Some((counts, _)) = self.regions(grid, column) else {
                continue;
            };
            let total: u64 = counts.iter().sum();
            let height = total as f64 / scale.samples * f64::from(area.height);
            let height = height.min(f64::from(area.height));
            let full = (height + 1e-9).floor() as usize;
            let rest = height - full as f64;
            let outside = window.is_some_and(|(first, last)| !(first..=last).contains(&column));
            let style = |region: Region| {
                theme.style(if outside {
                    Role::Dim
                } else {
                    Role::Region(region)
                })
            };
            let cells = full + usize::from(rest > 0.0);
            let x = x_of(layout, column);
            let stack = by_region::stacked(counts, cells);
            for (at, region) in stack.into_iter().enumerate() {
                let Some(y) = u16::try_from(at)
                    .ok()
                    .and_then(|at| area.bottom().checked_sub(at + 1))
                else {
                    break;
                };
                // Without colours the sign has to say what it is.
                let is_part = at >= full && theme.colors != Colors::None && rest < 0.95;
                if is_part {
                    put(frame.buffer_mut(), x, y, theme.column(rest), style(region));
                } else if at < full || rest >= 0.5 || full == 0 {
                    put(frame.buffer_mut(), x, y, theme.fill(region), style(region));
                }
            }
        }
    }
}
