//! How busy the CPUs are over time, in a line.

use super::Overview;
use crate::present::names::region_letter;
use crate::present::numbers::ratio;
use crate::queries::by_region;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::{Bit, Pane};
use ratatui::Frame;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Region;
use vmscope_symbolizer::time_buckets::Columns;

/// CPU use over time: the window, and samples by column and region.
#[derive(Clone, Debug, Default)]
pub(super) struct Strip {
    pub(super) window: (TimeNs, TimeNs),
    pub(super) columns: Columns,
}

impl Overview {
    /// A line (and letters and a scale, where there are three): how busy the CPUs are, by the region
    /// with most samples.
    pub(super) fn draw_strip(&self, cx: &Cx<'_>, pane: &Pane<'_>, frame: &mut Frame<'_>) {
        let Some(strip) = self.strip.get() else {
            return;
        };
        let columns = strip.columns.samples.len() / strip.columns.groups.max(1);
        let sums = (0..columns).map(|column| strip.columns.column(column).iter().sum::<u64>());
        let most = sums.max().unwrap_or(0);
        let mut bits: Vec<Bit> = vec![(Role::Dim, " CPU ".to_owned())];
        let mut letters = " ".repeat(5);
        for column in 0..columns {
            let counts = strip.columns.column(column);
            let sum: u64 = counts.iter().sum();
            let region = by_region::dominant(counts).unwrap_or(Region::Unknown);
            let sign = pane.theme.column(ratio(sum, most));
            let role = Role::Region(region);
            match bits.last_mut() {
                Some((last, text)) if *last == role => text.push(sign),
                _ => bits.push((role, sign.to_string())),
            }
            letters.push(if sum > 0 { region_letter(region) } else { ' ' });
        }
        pane.line(frame, 0, &bits);
        pane.line(frame, 1, &[(Role::Dim, letters)]);
        let (from, to) = strip.window;
        let (from, to) = (cx.seconds(from), cx.seconds(to));
        let (from, to) = (format!("{from:.1} s"), format!("{to:.1} s"));
        let gap = columns.saturating_sub(from.len() + to.len());
        let scale = format!("     {from}{}{to}", " ".repeat(gap));
        pane.line(frame, 2, &[(Role::Dim, scale)]);
    }
}
