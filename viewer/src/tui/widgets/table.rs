//! A table of which only the rows on the screen are made: lists have a hundred thousand.

use super::list::ListState;
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A column on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Col {
    /// Its heading.
    pub name: &'static str,
    /// How many columns of the terminal; of the one that takes what is left, the least.
    pub width: usize,
    /// Whether its cells are set flush right.
    pub right: bool,
    /// Narrower screens leave it out: those with the greatest number first; 0 never.
    pub rank: u8,
}

impl Col {
    /// A column; see the fields.
    pub const fn new(name: &'static str, width: usize, right: bool, rank: u8) -> Self {
        Col {
            name,
            width,
            right,
            rank,
        }
    }
}

/// A piece of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The text; cut or padded to its column.
    pub text: String,
    /// How it is drawn.
    pub role: Role,
}

impl Piece {
    /// Ordinary text.
    pub fn text(text: impl Into<String>) -> Self {
        Piece {
            text: text.into(),
            role: Role::Text,
        }
    }

    /// Text with a role.
    pub fn of(role: Role, text: impl Into<String>) -> Self {
        Piece {
            text: text.into(),
            role,
        }
    }
}

/// Which of the columns fit, with their widths: the first column without a fixed width
/// (the one with the lowest rank and `right` unset) is not special; `stretch` takes what is
/// left.
pub fn fitting(columns: &[Col], stretch: usize, room: usize) -> Vec<(usize, usize)> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let needed = |kept: &[usize]| -> usize {
        let widths = kept.iter().filter_map(|&at| columns.get(at));
        widths.map(|column| column.width + 1).sum()
    };
    while needed(&kept) > room + 1 {
        let rank = |at: usize| columns.get(at).map_or(0, |column| column.rank);
        let last = kept.iter().copied().max_by_key(|&at| (rank(at), at));
        match last.filter(|&at| rank(at) > 0) {
            Some(last) => kept.retain(|&at| at != last),
            None => break,
        }
    }
    let left = (room + 1).saturating_sub(needed(&kept));
    let widths = kept.iter().filter_map(|&at| {
        let width = columns.get(at)?.width;
        Some((at, if at == stretch { width + left } else { width }))
    });
    widths.collect()
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What the terminal can show.
    pub theme: &'a Theme,
    /// Its columns.
    pub columns: &'a [Col],
    /// Which of them takes what room is left.
    pub stretch: usize,
    /// Which of them it is sorted by, and whether that is the other way round.
    pub sorted: Option<(usize, bool)>,
    /// How many rows it has in all.
    pub rows: usize,
    /// Where in it one is.
    pub list: ListState,
}

/// How many rows a table shows in an area: all but the heading.
pub fn height(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

/// Draws a table; `row` makes a row's pieces, one for each column.
pub fn draw(
    look: Look<'_>,
    frame: &mut Frame<'_>,
    area: Rect,
    mut row: impl FnMut(usize) -> Vec<Piece>,
) {
    let fitting = fitting(look.columns, look.stretch, usize::from(area.width));
    let mut heads = Vec::new();
    for &(at, width) in &fitting {
        let Some(column) = look.columns.get(at) else {
            continue;
        };
        let arrow = match look.sorted {
            Some((sorted, false)) if sorted == at => look.theme.sign("▾", "v"),
            Some((sorted, true)) if sorted == at => look.theme.sign("▴", "^"),
            _ => "",
        };
        let head = format!("{}{arrow}", column.name);
        let head = set(&head, width, column.right);
        heads.push(Span::styled(head, look.theme.style(Role::Title)));
        heads.push(Span::raw(" "));
    }
    let line = |y: u16| Rect {
        y,
        height: 1,
        ..area
    };
    if area.height > 0 {
        frame.render_widget(Line::from(heads), line(area.y));
    }
    let height = height(area);
    let top = look.list.top(look.rows, height);
    let selected = look.list.selected().min(look.rows.saturating_sub(1));
    for (index, y) in (top..look.rows).zip(area.y + 1..area.bottom()) {
        let is_selected = index == selected;
        let base = if is_selected {
            look.theme.style(Role::Selected)
        } else {
            Style::new()
        };
        let pieces = row(index);
        let mut spans = Vec::new();
        for &(at, width) in &fitting {
            let (Some(column), Some(piece)) = (look.columns.get(at), pieces.get(at)) else {
                continue;
            };
            let style = look.theme.style(piece.role);
            // What is selected is marked as a whole, whatever its pieces are.
            let style = if is_selected {
                style.patch(base)
            } else {
                style
            };
            spans.push(Span::styled(set(&piece.text, width, column.right), style));
            spans.push(Span::styled(" ", base));
        }
        frame.render_widget(Line::from(spans).style(base), line(y));
    }
}

fn set(text: &str, width: usize, right: bool) -> String {
    if right {
        text::right(text, width)
    } else {
        text::name(text, width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_screens_lose_the_least_important_columns() {
        let col = |width, rank| Col::new("", width, false, rank);
        let columns = [col(10, 0), col(20, 2), col(8, 1), col(5, 0)];
        let names = |room| -> Vec<usize> {
            fitting(&columns, 0, room)
                .into_iter()
                .map(|(at, _)| at)
                .collect()
        };
        assert_eq!(names(100), [0, 1, 2, 3]);
        assert_eq!(names(30), [0, 2, 3]);
        assert_eq!(names(20), [0, 3]);
        assert_eq!(names(3), [0, 3]);
        let total: usize = fitting(&columns, 0, 100)
            .iter()
            .map(|(_, width)| width + 1)
            .sum();
        assert_eq!(total, 101);
    }
}
