//! Cursor of a list: selected row and first visible row. The list's contents stay with its owner.

use crate::tui::keys::Command;
use crate::tui::views::Press;

/// Rows per wheel step.
const WHEEL: usize = 3;

/// Selected row and first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListState {
    selected: usize,
    top: usize,
}

impl ListState {
    /// Selected row; may exceed a list that became shorter.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// First visible row of a list with `rows` rows on a screen of `height` rows. Pure function of
    /// the state.
    pub fn top(&self, rows: usize, height: usize) -> usize {
        let selected = self.selected.min(rows.saturating_sub(1));
        let height = height.max(1);
        let most = rows.saturating_sub(height);
        // Smallest scroll that shows the selected row.
        let top = self
            .top
            .min(selected)
            .max((selected + 1).saturating_sub(height));
        top.min(most)
    }

    /// Selects a row.
    pub fn select(&mut self, row: usize, rows: usize, height: usize) {
        self.selected = row.min(rows.saturating_sub(1));
        self.top = self.top(rows, height);
    }

    /// Keeps the selection after a change of the list: `found` is its new index. Without one, the
    /// row at the old index is selected.
    pub fn keep(&mut self, found: Option<usize>, rows: usize, height: usize) {
        self.select(found.unwrap_or(self.selected), rows, height);
    }

    /// Executes a move command; `false` for other commands.
    pub fn act(&mut self, command: Command, rows: usize, height: usize) -> bool {
        let now = self.selected.min(rows.saturating_sub(1));
        let page = height.saturating_sub(1).max(1);
        let half = (height / 2).max(1);
        let row = match command {
            Command::Up => now.saturating_sub(1),
            Command::Down => now.saturating_add(1),
            Command::PageUp => now.saturating_sub(page),
            Command::PageDown => now.saturating_add(page),
            Command::HalfUp => now.saturating_sub(half),
            Command::HalfDown => now.saturating_add(half),
            Command::First => 0,
            Command::Last => rows.saturating_sub(1),
            _ => return false,
        };
        self.select(row, rows, height);
        true
    }

    /// Handles a click on visible line `line`, or the wheel; returns `true` after a selection.
    pub fn press(&mut self, press: Press, line: usize, rows: usize, height: usize) -> bool {
        match press {
            Press::WheelUp => {
                self.select(self.selected.saturating_sub(WHEEL), rows, height);
                false
            }
            Press::WheelDown => {
                self.select(self.selected.saturating_add(WHEEL), rows, height);
                false
            }
            Press::Down | Press::Double => {
                let row = self.top(rows, height) + line;
                let is_row = row < rows;
                if is_row {
                    self.select(row, rows, height);
                }
                is_row
            }
            Press::Drag | Press::Up => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_always_on_the_screen() {
        let mut list = ListState::default();
        for (command, selected, top) in [
            (Command::Up, 0, 0),
            (Command::Down, 1, 0),
            (Command::PageDown, 10, 1),
            (Command::Last, 99, 90),
            (Command::Down, 99, 90),
            (Command::PageUp, 90, 90),
            (Command::Up, 89, 89),
            (Command::HalfDown, 94, 89),
            (Command::First, 0, 0),
        ] {
            assert!(list.act(command, 100, 10));
            assert_eq!(
                (list.selected(), list.top(100, 10)),
                (selected, top),
                "{command:?}"
            );
        }
        assert!(!list.act(Command::Sort, 100, 10));
    }

    #[test]
    fn a_list_that_became_shorter_has_its_end_on_the_screen() {
        let mut list = ListState::default();
        list.act(Command::Last, 100, 10);
        assert_eq!(list.top(5, 10), 0);
        assert_eq!(list.top(0, 10), 0);
        list.act(Command::Up, 5, 10);
        assert_eq!(list.selected(), 3);
    }
}
