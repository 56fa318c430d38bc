//! Lines of text in a rectangle, for views with several parts.

use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Rectangle with its theme.
#[derive(Clone, Copy, Debug)]
pub struct Pane<'a> {
    /// Terminal capabilities.
    pub theme: &'a Theme,
    /// Position and size.
    pub area: Rect,
}

/// Piece of a line: style and text.
pub type Bit = (Role, String);

impl Pane<'_> {
    /// Width in columns.
    pub fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    /// Height in rows.
    pub fn rows(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Writes a line, cut at the pane's edge; skips lines outside the pane.
    pub fn line(&self, frame: &mut Frame<'_>, row: usize, bits: &[Bit]) {
        self.marked(frame, row, bits, false);
    }

    /// Writes a line, marked if selected.
    pub fn marked(&self, frame: &mut Frame<'_>, row: usize, bits: &[Bit], selected: bool) {
        let Some(at) = self.row(row) else {
            return;
        };
        let mut left = self.columns();
        let mut spans = Vec::with_capacity(bits.len());
        for (role, bit) in bits {
            let bit = text::line(bit, left);
            left = left.saturating_sub(text::width(&bit));
            let style = self.theme.style(*role);
            let style = if selected {
                style.patch(self.theme.style(Role::Selected))
            } else {
                style
            };
            spans.push(Span::styled(bit, style));
        }
        let line = Line::from(spans);
        let line = if selected {
            line.style(self.theme.style(Role::Selected))
        } else {
            line
        };
        frame.render_widget(line, at);
    }

    /// Writes a heading and a remark in the first row.
    pub fn heading(&self, frame: &mut Frame<'_>, title: &str, remark: &str) {
        let bits = [
            (Role::Title, title.to_owned()),
            (Role::Dim, format!("  {remark}")),
        ];
        self.line(frame, 0, &bits);
    }

    fn row(&self, row: usize) -> Option<Rect> {
        let row = u16::try_from(row).ok()?;
        (row < self.area.height).then(|| Rect {
            y: self.area.y + row,
            height: 1,
            ..self.area
        })
    }
}

/// Splits an area: left part of a given width, a blank column, right part.
pub fn beside(area: Rect, columns: u16) -> (Rect, Rect) {
    let left = columns.min(area.width);
    let right = (left + 2).min(area.width);
    (
        Rect {
            width: left,
            ..area
        },
        Rect {
            x: area.x + right,
            width: area.width - right,
            ..area
        },
    )
}

/// Splits an area: top part of a given height, bottom part.
pub fn below(area: Rect, rows: u16) -> (Rect, Rect) {
    let above = rows.min(area.height);
    (
        Rect {
            height: above,
            ..area
        },
        Rect {
            y: area.y + above,
            height: area.height - above,
            ..area
        },
    )
}
