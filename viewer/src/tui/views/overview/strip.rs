//! CPU use over time.

use super::Overview;
use crate::present::names::region_letter;
use crate::present::numbers::ratio;
use crate::queries::by_region;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::chart::Chart;
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::time_buckets::Columns;

/// Columns beside the chart: gutter and margin.
pub(super) const BESIDE: u16 = GUTTER + 1;
const GUTTER: u16 = 5;

/// Window, and samples by column and region.
#[derive(Clone, Debug, Default)]
pub(super) struct Strip {
    pub(super) window: (TimeNs, TimeNs),
    pub(super) columns: Columns,
}

impl Strip {
    pub(super) fn len(&self) -> usize {
        self.columns.samples.len() / self.columns.groups.max(1)
    }
}

impl Overview {
    /// Draws a sparkline; below it, with room, the dominant regions' letters and the window's ends.
    pub(super) fn draw_strip(&self, cx: &Cx<'_>, area: Rect, frame: &mut Frame<'_>) {
        let Some(strip) = self.strip.get() else {
            return;
        };
        let width = (usize::from(GUTTER) + strip.len()).min(area.width.into());
        let width = u16::try_from(width).unwrap_or(area.width);
        let chart = Chart::new(cx.theme, Rect { width, ..area }, GUTTER);
        chart.label(frame, 0, " CPU", Role::Dim);
        let sum = |column| strip.columns.column(column).iter().sum::<u64>();
        let most = (0..strip.len()).map(sum).max().unwrap_or(0);
        for column in (0..strip.len()).filter(|column| sum(*column) > 0) {
            let region = by_region::dominant(strip.columns.column(column));
            let region = region.unwrap_or(Region::Unknown);
            let sign = cx.theme.column(ratio(sum(column), most));
            chart.put(frame, 0, column, sign, Role::Region(region));
            let letter = region_letter(region, cx.profile.is_native());
            chart.put(frame, 1, column, letter, Role::Dim);
        }
        let (from, to) = strip.window;
        let ends = [from, to].map(|time| format!("{:.1} s", cx.seconds(time)));
        chart.ends(frame, 2, [&ends[0], &ends[1]]);
    }
}
