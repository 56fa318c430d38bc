//! Collections over time: how long each took, by kind, and the heap that was left.

use crate::present::numbers::{brief, bytes_short};
use crate::present::text;
use crate::queries::collections::{Collections, Key};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::pane::Pane;
use ratatui::Frame;
use vmscope_records::TimeNs;

/// Columns of the scale at the left, and of the one at the right.
const LEFT: usize = 8;
const RIGHT: usize = 6;

/// The columns and rows between the scales.
pub fn plot(pane: &Pane<'_>) -> (usize, usize) {
    let columns = pane.columns().saturating_sub(LEFT + RIGHT + 2);
    (columns, pane.rows().saturating_sub(2))
}

/// The column of a time.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "columns of a screen, nanoseconds below 2^52"
)]
pub fn column_of(time: TimeNs, (from, to): (TimeNs, TimeNs), columns: usize) -> usize {
    let share = time.since(from).0 as f64 / to.since(from).0.max(1) as f64;
    ((share * columns as f64) as usize).min(columns.saturating_sub(1))
}

/// The collection that a column of the screen is nearest to.
pub fn at(all: &Collections, pane: &Pane<'_>, x: u16) -> Option<Key> {
    let (columns, _) = plot(pane);
    let x = usize::from(x.saturating_sub(pane.area.x)).saturating_sub(LEFT + 1);
    let distance = |time| column_of(time, all.window, columns).abs_diff(x);
    let near = all.rows.iter().min_by_key(|row| distance(row.time))?;
    Some(near.key)
}

/// How high a length is drawn, 0 to 1: by its logarithm.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds below 2^52")]
fn height(length: u64, (shortest, longest): (u64, u64)) -> f64 {
    let log = |ns: u64| (ns.max(1) as f64).ln();
    let span = log(longest) - log(shortest);
    if span > 0.0 {
        (log(length) - log(shortest)) / span
    } else {
        0.5
    }
}

/// Draws it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "rows of a screen"
)]
pub fn draw(
    cx: &Cx<'_>,
    all: &Collections,
    selected: Option<Key>,
    pane: &Pane<'_>,
    frame: &mut Frame<'_>,
) {
    let (columns, rows) = plot(pane);
    let legend = all.kinds.iter().take(6).map(|(kind, letter, count)| {
        let kind = if kind.is_empty() { "(no kind)" } else { kind };
        format!("{letter} {kind} {count}")
    });
    let legend = legend.collect::<Vec<_>>().join("  ");
    let line = cx.theme.sign("─", "-");
    pane.heading(
        frame,
        "Duration, log",
        &format!("{legend}  {line} heap left"),
    );
    if columns < 4 || rows == 0 {
        return;
    }
    let lengths = || all.rows.iter().filter_map(|row| row.length());
    let (Some(shortest), Some(longest)) = (lengths().min(), lengths().max()) else {
        return pane.line(
            frame,
            1,
            &[(Role::Dim, "of none both ends were observed".to_owned())],
        );
    };
    let bounds = (shortest, longest);
    let heap = all.rows.iter().filter_map(|row| row.before.max(row.after));
    let heap = heap.max().unwrap_or(0);
    let row_at = |share: f64| ((1.0 - share) * (rows - 1) as f64).round() as usize;
    let mut grid = vec![vec![(' ', Role::Text); columns]; rows];
    let mut put = |row: usize, column: usize, sign: char, role: Role| {
        if let Some(cell) = grid.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = (sign, role);
        }
    };
    let mut in_time: Vec<_> = all.rows.iter().collect();
    in_time.sort_by_key(|row| row.time);
    if heap > 0 {
        let told = in_time.iter().filter_map(|row| {
            let after = row.after? as f64 / heap as f64;
            Some((column_of(row.time, all.window, columns), row_at(after)))
        });
        let told: Vec<(usize, usize)> = told.collect();
        let sign = line.chars().next().unwrap_or('-');
        for (index, &(from, row)) in told.iter().enumerate() {
            let to = told.get(index + 1).map_or(columns, |next| next.0);
            (from..to).for_each(|column| put(row, column, sign, Role::Dim));
        }
    }
    // What is shorter comes later: no bar hides another's top, unless they are in one column.
    in_time.sort_by_key(|row| std::cmp::Reverse(row.length()));
    let stem = cx.theme.sign("│", "|").chars().next().unwrap_or('|');
    let mut tops = vec![None; columns];
    for row in in_time {
        let column = column_of(row.time, all.window, columns);
        let is_selected = selected == Some(row.key);
        let letter = all.letter(&row.kind);
        let Some(length) = row.length() else {
            put(rows - 1, column, '?', Role::Warning);
            continue;
        };
        let share = height(length, bounds);
        let top = row_at(share);
        let role = if is_selected {
            Role::Selected
        } else {
            Role::Heat(share)
        };
        if let Some(slot) = tops.get_mut(column)
            && (slot.is_none() || is_selected)
        {
            *slot = Some(top);
            (top + 1..rows).for_each(|at| put(at, column, stem, role));
        }
        put(top, column, letter, role);
    }
    let middle = ((shortest.max(1) as f64).ln() + (longest.max(1) as f64).ln()) / 2.0;
    let middle = middle.exp() as u64;
    for (index, cells) in grid.into_iter().enumerate() {
        let left = match index {
            0 => brief(longest),
            _ if index + 1 == rows => brief(shortest),
            _ if index == rows / 2 && shortest < longest => brief(middle),
            _ => String::new(),
        };
        let right = match index {
            0 if heap > 0 => bytes_short(heap),
            _ if index + 1 == rows && heap > 0 => "0".to_owned(),
            _ => String::new(),
        };
        let mut bits = vec![(Role::Dim, format!("{} ", text::right(&left, LEFT)))];
        for (sign, role) in cells {
            match bits.last_mut() {
                Some((last, text)) if *last == role => text.push(sign),
                _ => bits.push((role, sign.to_string())),
            }
        }
        bits.push((Role::Dim, format!(" {right}")));
        pane.line(frame, index + 1, &bits);
    }
    let (from, to) = all.window;
    let (from, to) = (cx.seconds(from), cx.seconds(to));
    let (from, to) = (format!("{from:.3} s"), format!("{to:.3} s"));
    let gap = columns.saturating_sub(from.len() + to.len());
    let axis = format!("{}{from}{}{to}", " ".repeat(LEFT + 1), " ".repeat(gap));
    pane.line(frame, rows + 1, &[(Role::Dim, axis)]);
}
