//! The list on the screen.

use super::drawn::{self, Page};
use super::order::By;
use super::{Cx, Hot};
use crate::present::text;
use crate::tui::jobs::Stamp;
use crate::tui::theme::Role;
use crate::tui::widgets::table;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

impl Hot {
    /// What is drawn.
    pub(super) fn page<'a>(&'a self, cx: &Cx<'a>) -> Option<Page<'a>> {
        let of = |stamp: Option<Stamp>| stamp.filter(|_| self.order.has_errors());
        let of_listing = of(self.listing.answered().map(|(_, stamp)| *stamp));
        let of_errors = of(self.errors.answered().map(|(_, stamp)| *stamp));
        // Those of other samples say nothing.
        let errors = self.errors.get().filter(|_| of_listing == of_errors);
        Some(Page {
            profile: cx.profile,
            listing: self.listing.get()?,
            errors: errors.map_or(&[], |errors| errors.as_slice()),
            theme: cx.theme,
        })
    }

    /// Sorts by the column at a place of the heading.
    pub(super) fn sort_by_heading(&mut self, x: u16, cx: &Cx<'_>) {
        let (whats, columns) = drawn::columns(cx.area.width);
        let fitting = table::fitting(&columns, name_at(whats), usize::from(cx.area.width));
        let mut left = 0;
        for (at, width) in fitting {
            if (left..=left + width).contains(&usize::from(x)) {
                if let Some(by) = whats.get(at).and_then(|what| what.by()) {
                    self.order.reversed = self.order.by == by && !self.order.reversed;
                    self.order.by = by;
                }
                return;
            }
            left += width + 1;
        }
    }

    /// Draws it.
    pub(super) fn draw_list(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(page) = self.page(cx) else {
            return;
        };
        let (whats, columns) = drawn::columns(area.width);
        let stretch = name_at(whats);
        let fitting = table::fitting(&columns, stretch, usize::from(area.width));
        let by = page.listing.order.by;
        // Of several, the one that is a number or a word.
        let is_sorted = |what: &drawn::What| match by {
            By::Share => *what == drawn::What::Share,
            by => what.by() == Some(by),
        };
        let look = table::Look {
            theme: cx.theme,
            columns: &columns,
            stretch,
            sorted: whats
                .iter()
                .position(is_sorted)
                .map(|at| (at, page.listing.order.reversed)),
            rows: self.rows.len(),
            list: self.list,
        };
        let above = Rect {
            height: area.height.saturating_sub(1),
            ..area
        };
        table::draw(look, frame, above, |index| {
            let row = self.rows.get(index);
            row.map_or_else(Vec::new, |row| page.pieces(row, whats, &fitting))
        });
        if let Some(row) = self.selected() {
            let details = format!(" {}", page.details(row));
            let details = text::line(&details, usize::from(area.width));
            let bottom = Rect {
                y: area.bottom().saturating_sub(1),
                height: area.height.min(1),
                ..area
            };
            frame.render_widget(Line::styled(details, cx.theme.style(Role::Dim)), bottom);
        }
    }
}

fn name_at(whats: &[drawn::What]) -> usize {
    let at = whats.iter().position(|what| *what == drawn::What::Name);
    at.unwrap_or(0)
}
