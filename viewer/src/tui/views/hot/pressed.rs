//! The mouse in the list and in the matrix.

use super::grid::{self, GridBy};
use super::grid_height;
use super::nested_drawn::sorts_at;
use super::state::height;
use super::{Act, Click, Cx, Hot};
use crate::tui::keys::Command;
use crate::tui::views::{Press, View};

impl Hot {
    /// In the list.
    pub(super) fn pressed_in_list(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let line = click.at.y.saturating_sub(cx.area.y);
        let x = click.at.x.saturating_sub(cx.area.x);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        if line == 0 && is_press {
            // The second press of a double click is none of its own: it would turn the order.
            if click.what == Press::Down {
                self.sort_by_heading(x, cx);
            }
            return Vec::new();
        }
        let line = usize::from(line.saturating_sub(1));
        let height = height(cx.area);
        if line >= height && is_press {
            return Vec::new();
        }
        let is_row = self.list.press(click.what, line, self.rows.len(), height);
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    /// In the matrix.
    pub(super) fn pressed_in_matrix(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let line = click.at.y.saturating_sub(cx.area.y);
        let x = click.at.x.saturating_sub(cx.area.x);
        let is_press = matches!(click.what, Press::Down | Press::Double);
        let Some(matrix) = self.matrix.get() else {
            return Vec::new();
        };
        let rows = self.grid.rows();
        let height = grid_height(cx.area);
        let column = self.grid.column_at(matrix, cx.area.width, x);
        if line < grid::HEAD {
            if let Some(column) = column.filter(|_| is_press) {
                self.grid.column = column;
                self.grid.by = if column == 0 {
                    GridBy::Sum
                } else {
                    GridBy::Column
                };
                self.grid.arrange(matrix, height);
            }
            return Vec::new();
        }
        let line = usize::from(line - grid::HEAD);
        if line >= height && is_press {
            return Vec::new();
        }
        let is_row = self.grid.list.press(click.what, line, rows, height);
        if let Some(column) = column.filter(|_| is_row) {
            self.grid.column = column;
        }
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    /// In the matrix, one side in the other.
    pub(super) fn pressed_in_nested(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let is_press = matches!(click.what, Press::Down | Press::Double);
        let Some(line) = click.at.y.checked_sub(cx.area.y + 1) else {
            // The second press of a double click is none of its own: it would turn the order.
            if click.what == Press::Down {
                self.sort_nested_by_heading(click.at.x.saturating_sub(cx.area.x), cx);
            }
            return Vec::new();
        };
        let (line, height) = (usize::from(line), height(cx.area));
        if line >= height && is_press {
            return Vec::new();
        }
        let rows = self.nested.rows.len();
        let is_row = self.nested.list.press(click.what, line, rows, height);
        if is_row && click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn sort_nested_by_heading(&mut self, x: u16, cx: &Cx<'_>) {
        let Some(matrix) = self.matrix.get() else {
            return;
        };
        let way = self.grid.way(matrix);
        if let Some(by) = sorts_at(way, cx.area.width, x) {
            let reversed = self.nested.by == by && !self.nested.reversed;
            self.nested.sort_by(by, reversed, way, height(cx.area));
        }
    }
}
