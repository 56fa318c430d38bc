//! Areas of the view.

use super::{Collector, Form};
use crate::tui::widgets::pane::{below, beside};
use ratatui::layout::Rect;

/// Minimum width for a pane beside the chart.
pub(super) const WIDE: u16 = 110;

/// Areas.
pub(super) struct Places {
    pub(super) head: Rect,
    pub(super) panes: Vec<(Form, Rect)>,
    /// Also set while a pane covers the table.
    pub(super) table: Rect,
    /// Whether panes and table fit together.
    pub(super) has_both: bool,
}

impl Collector {
    pub(super) fn places(&self, area: Rect) -> Places {
        let (head, rest) = below(area, 2);
        let height = match area.height {
            0..=15 => 0,
            16..=29 => 9,
            height => (height / 3).min(18),
        };
        let (top, mut table) = below(rest, height);
        let (left, right) = beside(top, area.width * 11 / 20);
        let panes = if height == 0 {
            let pane = self.instead.then_some((self.form, rest));
            pane.into_iter().collect()
        } else if area.width < WIDE {
            vec![(self.form, top)]
        } else if area.width >= 160 && table.height > 16 {
            let inside;
            (table, inside) = beside(table, area.width * 13 / 20);
            vec![
                (Form::Chart, left),
                (Form::Pauses, right),
                (Form::Inside, inside),
            ]
        } else if self.form == Form::Inside {
            vec![(Form::Chart, left), (Form::Inside, right)]
        } else {
            vec![(Form::Chart, left), (Form::Pauses, right)]
        };
        Places {
            head,
            panes,
            table,
            has_both: height > 0,
        }
    }
}
