//! Lines in a rectangle: what views that are made of several parts are drawn with.

use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// A rectangle with the theme it is drawn in.
#[derive(Clone, Copy, Debug)]
pub struct Pane<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// Where it is.
    pub area: Rect,
}

/// A piece of a line: text and what it is.
pub type Bit = (Role, String);

impl Pane<'_> {
    /// How many columns it has.
    pub fn columns(&self) -> usize {
        usize::from(self.area.width)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Writes a line, cut off where the pane ends; lines outside of it are left out.
    pub fn line(&self, frame: &mut Frame<'_>, row: usize, bits: &[Bit]) {
        self.marked(frame, row, bits, false);
    }

    /// The same, marked as selected where it is.
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

    /// Writes its heading in its first row, with a remark behind it.
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

/// An area cut in two: so many columns to the left, a blank one, the rest.
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

/// An area cut in two: so many rows above, the rest.
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
