//! Where the parts of the view are.

use super::{Collector, Form};
use crate::tui::widgets::pane::{below, beside};
use ratatui::layout::Rect;

/// From so many columns on the chart has something beside it.
pub(super) const WIDE: u16 = 110;

/// Where the parts are.
pub(super) struct Places {
    pub(super) head: Rect,
    pub(super) parts: Vec<(Form, Rect)>,
    /// Also where a part is there instead of it: what is selected stays so.
    pub(super) table: Rect,
    /// Whether there is room for a part and the table.
    pub(super) has_both: bool,
}

impl Collector {
    pub(super) fn places(&self, area: Rect) -> Places {
        let (head, rest) = below(area, area.height.min(2));
        let top = match area.height {
            0..=15 => 0,
            16..=29 => 9,
            height => (height / 3).min(18),
        };
        let has_both = top > 0;
        if !has_both {
            let parts = self.instead.then_some((self.form, rest));
            return Places {
                head,
                parts: parts.into_iter().collect(),
                table: rest,
                has_both,
            };
        }
        let (top, rest) = below(rest, top);
        let mut parts = Vec::new();
        let mut table = rest;
        if area.width < WIDE {
            parts.push((self.form, top));
        } else {
            let (left, right) = beside(top, area.width * 11 / 20);
            parts.push((Form::Chart, left));
            if area.width >= 160 && rest.height > 16 {
                parts.push((Form::Pauses, right));
                let (left, right) = beside(rest, area.width * 13 / 20);
                table = left;
                parts.push((Form::Inside, right));
            } else {
                let form = match self.form {
                    Form::Inside => Form::Inside,
                    _ => Form::Pauses,
                };
                parts.push((form, right));
            }
        }
        parts.retain(|(_, area)| area.height > 0);
        Places {
            head,
            parts,
            table,
            has_both,
        }
    }
}
