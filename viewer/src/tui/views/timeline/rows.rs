//! Rows over time: threads, and what happened.

use super::Timeline;
use super::draw::{put, x_of};
use super::lanes::{Glyph, Lane};
use super::layout::Layout;
use crate::present::names::region_letter;
use crate::present::names::thread_name;
use crate::present::numbers::ratio;
use crate::present::text;
use crate::queries::by_region::{self};
use crate::queries::time_grid::Grid;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use ratatui::Frame;
use ratatui::text::Line;

impl Timeline {
    /// A thread's samples by region in a column; none where they are not known yet.
    fn regions_of(&self, grid: &Grid, thread: u32, column: usize) -> &[u64] {
        let activity = self.activity.get();
        let of_all = activity.and_then(|all| all.of_thread(grid, thread, column));
        let rows = self.rows.get();
        of_all
            .or_else(|| rows.map(|rows| rows.at(grid, thread, column)))
            .unwrap_or_default()
    }

    pub(super) fn draw_threads(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        grid: &Grid,
    ) {
        let theme = cx.theme;
        let period = by_region::period_ns(cx.profile);
        let visible = self.visible(layout);
        let total = self.listed.get().map_or(0, |listed| {
            let included = listed.threads.iter().take(listed.included);
            included.map(|(_, samples)| samples).sum()
        });
        let width = usize::from(layout.left.saturating_sub(layout.axis.x + 1));
        for ((thread, samples, included), y) in visible.into_iter().zip(layout.threads.y..) {
            let Some(one) = cx.profile.trace.threads.get(thread as usize) else {
                continue;
            };
            let is_chosen = self.chosen == Some(thread);
            let base = if is_chosen {
                theme.style(Role::Selected)
            } else {
                theme.style(if included { Role::Text } else { Role::Dim })
            };
            let sign = match (is_chosen, included) {
                (true, _) => ">",
                (false, true) => " ",
                (false, false) => "-",
            };
            let share = if width >= 18 && included {
                format!(" {:3.0}%", ratio(samples, total) * 100.0)
            } else {
                String::new()
            };
            let room = width.saturating_sub(1 + share.len());
            let name = text::name(&thread_name(&one.thread), room);
            let words = format!("{sign}{name}{share}");
            self.name(frame, layout, y, Line::styled(words, base));
            let ended = one.end.as_ref().filter(|end| !end.alive);
            let ended = ended.map(|end| end.time);
            for column in (0..grid.columns).filter(|_| included) {
                let counts = self.regions_of(grid, thread, column);
                let samples: u64 = counts.iter().sum();
                let is_there = one.thread.time < grid.edge(column + 1)
                    && ended.is_none_or(|ended| ended >= grid.edge(column));
                let (c, role) = match by_region::dominant(counts) {
                    None if is_there => (if theme.unicode { '·' } else { '.' }, Role::Dim),
                    None => (' ', Role::Dim),
                    Some(region) => {
                        let share = by_region::activity(samples, period, grid.column_ns());
                        let letter = region_letter(region);
                        let letter = if share < 0.5 {
                            letter.to_ascii_lowercase()
                        } else {
                            letter
                        };
                        let c = if self.heights {
                            theme.column(share)
                        } else {
                            letter
                        };
                        (c, Role::Region(region))
                    }
                };
                let x = x_of(layout, column);
                put(frame.buffer_mut(), x, y, c, theme.style(role));
            }
        }
    }

    /// Returns how many there is no room for.
    pub(super) fn draw_lanes(
        &self,
        cx: &Cx<'_>,
        frame: &mut Frame<'_>,
        layout: &Layout,
        grid: &Grid,
    ) -> usize {
        let Some(lanes) = self.lanes.get() else {
            return 0;
        };
        let room = usize::from(layout.lanes.height);
        let mut ranks: Vec<(u8, usize)> =
            lanes.lanes.iter().map(|lane| lane.rank).zip(0..).collect();
        ranks.sort_unstable();
        let mut kept: Vec<usize> = ranks.iter().take(room).map(|(_, at)| *at).collect();
        kept.sort_unstable();
        let kept = kept.into_iter().filter_map(|at| lanes.lanes.get(at));
        let width = usize::from(layout.left.saturating_sub(layout.axis.x + 1));
        for (lane, y) in kept.zip(layout.lanes.y..) {
            let style = cx.theme.style(lane.role);
            let label = text::name(&lane.label, width);
            self.name(frame, layout, y, Line::styled(label, style));
            for column in 0..grid.columns {
                let c = glyph(cx, lane, grid.column_in(&lanes.grid, column));
                if let Some(c) = c {
                    put(frame.buffer_mut(), x_of(layout, column), y, c, style);
                }
            }
        }
        lanes.lanes.len().saturating_sub(room)
    }
}

fn glyph(cx: &Cx<'_>, lane: &Lane, column: Option<usize>) -> Option<char> {
    match *lane.cells.get(column?)? {
        Glyph::None => None,
        Glyph::Char(c) if c.is_ascii() || cx.theme.unicode => Some(c),
        Glyph::Char(_) => Some('?'),
        Glyph::Sign(unicode, ascii) => Some(if cx.theme.unicode { unicode } else { ascii }),
        Glyph::Height(share) => Some(cx.theme.column(share)),
    }
}
