//! A list that can be walked: which row is selected, and which is the first on the
//! screen. It knows how many rows there are, not what they are.

use crate::tui::keys::Command;
use crate::tui::views::Press;

/// Rows that the wheel moves by.
const WHEEL: usize = 3;

/// Where in a list one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListState {
    selected: usize,
    top: usize,
}

impl ListState {
    /// The row that is selected; it may be behind the end of a list that became shorter.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// The first row on a screen of `height` rows of a list of `rows`. Pure: the same
    /// whenever it is drawn.
    pub fn top(&self, rows: usize, height: usize) -> usize {
        let selected = self.selected.min(rows.saturating_sub(1));
        let height = height.max(1);
        let most = rows.saturating_sub(height);
        // As little away from where it was as shows the selected row.
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

    /// Keeps what was selected so, in a list that has become another: it is at `found` now.
    /// Where it is gone, what has come to its place is selected.
    pub fn keep(&mut self, found: Option<usize>, rows: usize, height: usize) {
        self.select(found.unwrap_or(self.selected), rows, height);
    }

    /// Moves as a command says; whether it is one that moves.
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

    /// Takes a click on the `line`th line of the list on the screen, or the wheel; whether
    /// it selects a row.
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
