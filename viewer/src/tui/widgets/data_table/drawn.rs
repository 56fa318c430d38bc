//! Drawing a table.

use super::{Column, DataTable, Room, Rows, RowsOf, Sort, Visible};
use crate::present::shorten::labels;
use crate::present::text;
use crate::tui::theme::{Role, Theme};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::hash::Hash;

impl<Row: Copy, Key: Clone + Eq + Hash> DataTable<Row, Key> {
    /// Draws the table.
    pub fn draw(
        &self,
        data: &impl RowsOf<Row, Key>,
        theme: &Theme,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        if area.height == 0 {
            return;
        }
        let columns = data.columns(area.width);
        let on = fitted(data, area.width);
        let shown: Vec<usize> = on.iter().map(|(column, ..)| *column).collect();
        let marked = self.marked(data, &columns, &shown);
        let mut heads = Vec::new();
        for &(at, _, width) in &on {
            let Some(column) = columns.get(at) else {
                continue;
            };
            let arrow = match marked {
                Some((marked, down)) if marked == at => match down {
                    true => theme.sign("▾", "v"),
                    false => theme.sign("▴", "^"),
                },
                _ => "",
            };
            let head = set(&format!("{}{arrow}", column.title), width, column.right);
            heads.push(Span::styled(head, theme.style(Role::Title)));
            heads.push(Span::raw(" "));
        }
        let line = |y: u16| Rect {
            y,
            height: 1,
            ..area
        };
        frame.render_widget(Line::from(heads), line(area.y));
        let top = self.list.top(self.rows.len(), Self::height(area));
        let selected = self.list.selected().min(self.rows.len().saturating_sub(1));
        let rows = || {
            let rows = self.rows.iter().enumerate().skip(top);
            rows.zip(area.y + 1..area.bottom())
        };
        let names = on.iter().find(|(at, ..)| *at == data.tree_column());
        let names = names.map(|&(_, _, width)| {
            let names = rows().map(|((_, row), _)| {
                let prefix = row_prefix(data, row, width, theme);
                let name = data.name(row.row, &shown).unwrap_or_default();
                (name, width.saturating_sub(text::width(&prefix)))
            });
            labels(&names.collect::<Vec<_>>())
        });
        let names = names.unwrap_or_default();
        for (line_of_row, ((index, row), y)) in rows().enumerate() {
            let base = match index == selected {
                true => theme.style(Role::Selected),
                false => Style::new(),
            };
            let mut spans = Vec::new();
            for &(at, _, width) in &on {
                let Some(column) = columns.get(at) else {
                    continue;
                };
                let prefix = match at == data.tree_column() {
                    true => row_prefix(data, row, width, theme),
                    false => String::new(),
                };
                let room = Room {
                    theme,
                    width: width.saturating_sub(text::width(&prefix)),
                    is_expanded: row.open == Some(true),
                    label: names.get(line_of_row).map_or("", String::as_str),
                };
                let mut cell = data.cell(row.row, at, &room);
                if let [one] = cell.as_mut_slice() {
                    one.text = set(&format!("{prefix}{}", one.text), width, column.right);
                }
                let used: usize = cell.iter().map(|piece| text::width(&piece.text)).sum();
                // The selection style covers whole rows, over the style of each piece.
                let styled = cell.into_iter().map(|piece| {
                    let style = theme.style(piece.role);
                    let style = if index == selected {
                        style.patch(base)
                    } else {
                        style
                    };
                    Span::styled(piece.text, style)
                });
                spans.extend(styled);
                spans.push(Span::styled(
                    " ".repeat((width + 1).saturating_sub(used)),
                    base,
                ));
            }
            frame.render_widget(Line::from(spans).style(base), line(y));
        }
    }

    /// Visible column that shows the sort order, and whether greatest values come first.
    fn marked(
        &self,
        data: &impl RowsOf<Row, Key>,
        columns: &[Column],
        shown: &[usize],
    ) -> Option<(usize, bool)> {
        let (column, reversed) = self.sorted(data);
        if columns.get(column)?.sort == Sort::No {
            return None;
        }
        let is_like = |at: &usize| {
            let other = columns.get(*at);
            *at == column || other.is_some_and(|other| other.sort == Sort::Like(column))
        };
        let itself = shown.iter().find(|at| **at == column);
        let at = itself.or_else(|| shown.iter().find(|at| is_like(at)))?;
        let falls = columns
            .get(column)
            .is_some_and(|one| one.sort == Sort::Down);
        Some((*at, falls != reversed))
    }
}

/// Visible columns: index, distance from the left, width.
pub(super) fn fitted<D: Rows>(data: &D, width: u16) -> Vec<(usize, usize, usize)> {
    let mut from = 0;
    let columns = data.columns(width);
    let fitting = fitting(&columns, data.stretch(), usize::from(width));
    let placed = fitting.into_iter().map(|(at, width)| {
        let place = (at, from, width);
        from += width + 1;
        place
    });
    placed.collect()
}

/// Columns that fit `room`, with widths; column `stretch` takes spare width.
pub(super) fn fitting(columns: &[Column], stretch: usize, room: usize) -> Vec<(usize, usize)> {
    let on_screen = columns.iter().enumerate();
    let on_screen = on_screen.filter(|(_, column)| column.width > 0);
    let mut kept: Vec<(usize, &Column)> = on_screen.collect();
    let needed = |kept: &[(usize, &Column)]| -> usize {
        kept.iter().map(|(_, column)| column.width + 1).sum()
    };
    while needed(&kept) > room + 1 {
        match kept.iter().map(|(_, column)| column.rank).max() {
            None | Some(0) => break,
            Some(last) => kept.retain(|(_, column)| column.rank < last),
        }
    }
    let left = (room + 1).saturating_sub(needed(&kept));
    let widths = kept.into_iter().map(|(at, column)| {
        let more = if at == stretch { left } else { 0 };
        (at, column.width + more)
    });
    widths.collect()
}

/// Prefix of a row's name; empty in a list.
fn row_prefix<D: Rows>(data: &D, row: &Visible<D::Row>, width: usize, theme: &Theme) -> String {
    match data.is_tree() {
        true => prefix((row.depth, data.indent()), row.open, width, theme),
        false => String::new(),
    }
}

/// Prefix of a name in a tree: indent and sign.
fn prefix(
    (depth, indent): (usize, usize),
    open: Option<bool>,
    room: usize,
    theme: &Theme,
) -> String {
    let sign = match open {
        Some(true) => theme.sign("▾ ", "- "),
        Some(false) => theme.sign("▸ ", "+ "),
        None => "  ",
    };
    let blanks = indent * depth;
    if blanks <= room / 3 {
        return format!("{}{sign}", " ".repeat(blanks));
    }
    // Deep rows show their depth as a number instead of an indent.
    let depth = depth.to_string();
    let blanks = (room / 3).saturating_sub(depth.len() + 1);
    format!("{}{depth}:{sign}", " ".repeat(blanks))
}

fn set(text: &str, width: usize, right: bool) -> String {
    if right {
        text::right(text, width)
    } else {
        text::name(text, width)
    }
}

/// Draws a line below a table; returns the table's area.
pub fn footer(words: &str, theme: &Theme, frame: &mut Frame<'_>, area: Rect) -> Rect {
    let words = text::line(&format!(" {words}"), usize::from(area.width));
    let bottom = Rect {
        y: area.bottom().saturating_sub(1),
        height: area.height.min(1),
        ..area
    };
    frame.render_widget(Line::styled(words, theme.style(Role::Dim)), bottom);
    above_footer(area)
}

/// Area of a table above its bottom line.
pub fn above_footer(area: Rect) -> Rect {
    Rect {
        height: area.height.saturating_sub(1),
        ..area
    }
}
