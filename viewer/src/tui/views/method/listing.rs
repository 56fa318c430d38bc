//! The listing as a table: one text, and before it the figures of all versions together, of the
//! chosen version, or of versions side by side.

use super::items::{Counts, Item, What};
use super::sides::Side;
use crate::annotate::layout::Bracket;
use crate::present::document::Value;
use crate::present::numbers::{count, ratio};
use crate::present::text;
use crate::queries::method::Pieces;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::data_table::{Column, DataTable, Piece, Room, Rows};
use crate::tui::widgets::search::Finder;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use std::borrow::Cow;
use std::ops::Range;

/// A line is hot from this fraction (1/50) of its version's samples, or as the hottest line.
const HOT_SHARE: u64 = 50;

/// Inlined code starts expanded from this fraction (1/100) of the method's samples.
const OPEN_SHARE: u64 = 100;

/// Minimum screen width at which machine code has a column without a key press.
const WIDE: u16 = 110;

/// Maximum number of versions side by side.
const MAX_SIDES: usize = 8;

/// Minimum width of the text beside versions.
const TEXT_BESIDE: usize = 22;

// Columns of all versions together, and of each side; `SEPARATOR` stands between sides.
const SEPARATOR: usize = 0;
const SHARE: usize = 1;
const ERROR: usize = 2;
const BAR: usize = 3;
const SAMPLES: usize = 4;
const OWN: usize = 5;
const MARK: usize = 6;
const MACHINE: usize = 7;
const GROUP_COLUMNS: usize = 8;

// Columns behind the last group.
const MOVED: usize = 0;
const CALLED: usize = 1;
const BRACKET: usize = 2;
const NUMBER: usize = 3;
const LINE: usize = 4;
const PLACE: usize = 5;

/// Table of the listing: indices of [`Item`]s by [`Item::id`].
pub type Table = DataTable<usize, u64>;

/// Data of the table.
#[derive(Debug)]
pub struct Page<'a> {
    /// All lines.
    pub items: &'a [Item],
    /// Samples of the method, the base of shares.
    pub samples: u64,
    /// Samples of the hottest line.
    pub most: u64,
    /// Title of the line numbers: `pc` or `line`.
    pub number: &'static str,
    /// Versions side by side with their names; empty for one listing.
    pub sides: Vec<(String, &'a Side)>,
    /// Whether the user switched machine code on (narrow screens) or off (wide screens).
    pub machine: bool,
}

/// Figures of a line in one version.
#[derive(Clone, Copy, Debug)]
struct Figures {
    samples: u64,
    share: f64,
    /// Share of the hottest line's samples, 0 to 1.
    heat: f64,
    error: Option<f64>,
    mark: &'static str,
}

impl<'a> Page<'a> {
    /// Whether any line has machine code.
    pub fn has_machine(&self) -> bool {
        match self.sides.as_slice() {
            [] => self.items.iter().any(|item| !item.machine.is_empty()),
            sides => sides.iter().any(|(_, side)| !side.machine.is_empty()),
        }
    }

    /// Whether machine code has a column on a screen.
    pub fn shows_machine(&self, width: u16) -> bool {
        self.has_machine() && (width >= WIDE) != self.machine
    }

    /// Number of versions that fit side by side: 2 to [`MAX_SIDES`].
    pub fn room_for_sides(&self, versions: usize, has_machine: bool, width: u16) -> usize {
        let machine = if has_machine && (width >= WIDE) != self.machine {
            15
        } else {
            0
        };
        // Share, error, mark, separator; what moved, number, source line, text.
        let (each, rest) = (8 + 6 + 2 + 2 + machine, 8 + 9 + 6 + TEXT_BESIDE);
        let fitting = usize::from(width).saturating_sub(rest) / each;
        fitting.min(versions).clamp(2, MAX_SIDES)
    }

    /// Hot lines of any visible version.
    pub fn hot(&self) -> Vec<usize> {
        let wholes: Vec<_> = self
            .on_screen()
            .map(|group| (group, self.whole(group)))
            .collect();
        let is_hot = |at: &usize| {
            wholes.iter().any(|&(group, (samples, most))| {
                let own = self.counts(group, &self.items[*at]).own;
                own >= samples.div_ceil(HOT_SHARE).min(most).max(1)
            })
        };
        (0..self.items.len()).filter(is_hot).collect()
    }

    /// A line with the lines around it, outermost first.
    pub fn path(&self, at: usize) -> Vec<usize> {
        let mut path = vec![at];
        let mut depth = self.items[at].depth;
        for outer in (0..at).rev() {
            if self.items[outer].depth < depth {
                depth = self.items[outer].depth;
                path.push(outer);
            }
        }
        path.reverse();
        path
    }

    /// Number of column groups: all versions together, then each side. Beside sides the first
    /// group is in exports only.
    fn groups(&self) -> usize {
        1 + self.sides.len()
    }

    /// Groups on the screen.
    fn on_screen(&self) -> Range<usize> {
        usize::from(!self.sides.is_empty())..self.groups()
    }

    /// The version of a group; `None` for all together.
    fn side(&self, group: usize) -> Option<&'a Side> {
        let at = group.checked_sub(1)?;
        Some(self.sides[at].1)
    }

    fn counts(&self, group: usize, item: &Item) -> Counts {
        match self.side(group) {
            Some(side) => side.counts(item),
            None => item.counts,
        }
    }

    /// Samples of a version, samples of its hottest line.
    fn whole(&self, group: usize) -> (u64, u64) {
        match self.side(group) {
            Some(side) => (side.samples, side.most),
            None => (self.samples, self.most),
        }
    }

    fn machine_of(&self, group: usize, item: &'a Item) -> Option<&'a Pieces> {
        match self.side(group) {
            Some(side) => side.machine.get(&item.id),
            None => Some(&item.machine).filter(|pieces| !pieces.is_empty()),
        }
    }

    /// Figures on the screen: an expanded line shows its own samples, its children the rest.
    fn figures(&self, group: usize, item: &Item, is_expanded: bool) -> Figures {
        let counts = self.counts(group, item);
        let (whole, most) = self.whole(group);
        let is_own = is_expanded && item.what == What::Place;
        let samples = if is_own { counts.own } else { counts.all };
        Figures {
            samples,
            share: ratio(samples, whole),
            heat: ratio(samples, most).min(1.0),
            error: error_of(item, counts, samples),
            mark: counts.mark,
        }
    }

    fn machine_text(&self, group: usize, item: &Item, width: usize) -> String {
        match (self.machine_of(group, item), self.side(group)) {
            (Some(pieces), _) => machine_text(pieces, width),
            // The version's map lacks this callee: called, or never reached.
            (None, Some(side))
                if matches!(item.what, What::Callee(_)) && !side.machine.is_empty() =>
            {
                "no code".to_owned()
            }
            _ => String::new(),
        }
    }

    /// Difference between the shares of the second and the first version in percent points, with
    /// a sign where it exceeds both errors.
    fn moved(&self, item: &Item, room: &Room<'_>) -> Vec<Piece> {
        if self.sides.len() < 2 {
            return Piece::cell(Role::Text, "");
        }
        let [before, after] = [1, 2].map(|group| self.figures(group, item, room.is_expanded));
        if before.samples + after.samples == 0 {
            return Piece::cell(Role::Text, "");
        }
        let moved = after.share - before.share;
        let error = |group: usize, figures: Figures| match figures.samples {
            0 => self.counts(group, item).error,
            _ => figures.error,
        };
        let error = error(1, before).zip(error(2, after));
        let is_sure = error.is_some_and(|(a, b)| moved.abs() > a.hypot(b));
        let (sign, role) = match is_sure {
            false => (" ", Role::Dim),
            true if moved > 0.0 => (room.theme.sign("▲", "^"), Role::Strong),
            true => (room.theme.sign("▼", "v"), Role::Strong),
        };
        let points = format!("{:+.1}", moved * 100.0);
        let points = points.replace("-0.0", "0.0").replace("+0.0", "0.0");
        Piece::cell(role, format!("{points}{sign}"))
    }

    /// Columns of one group; side names distinguish versions in exports.
    fn group_columns(&self, group: usize, width: u16, columns: &mut Vec<Column>) {
        let is_single = self.sides.is_empty();
        let machine = match (self.shows_machine(width), is_single) {
            (false, _) => 0,
            (true, true) => 18,
            (true, false) => 14,
        };
        let (bar, samples_rank, bar_rank, error_rank) = if is_single {
            (8, 3, 2, 5)
        } else {
            (4, 7, 5, 2)
        };
        let separator = usize::from(group > 1);
        let mut all = [
            Column::left("", "", separator),
            Column::right("share", "share", 7),
            Column::right("±", "error", 5).rank(error_rank),
            Column::left("", "", bar).rank(bar_rank),
            Column::right("samples", "samples", 7).rank(samples_rank),
            Column::right("", "own samples", 0),
            Column::left("", "mark", 1),
            Column::left("machine code", "machine code", machine),
        ];
        let is_on = self.on_screen().contains(&group);
        let name = group.checked_sub(1).map(|at| &self.sides[at].0);
        for column in &mut all {
            column.width = if is_on { column.width } else { 0 };
            if let Some(name) = name.filter(|_| !column.name.is_empty()) {
                column.name = Cow::Owned(format!("{name}: {}", column.name));
            }
        }
        columns.extend(all);
    }

    /// Draws the names of versions side by side above their columns. Keys change the second.
    pub fn draw_labels(
        &self,
        labels: &[(String, String)],
        theme: &Theme,
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        for (at, (short, long)) in labels.iter().enumerate() {
            let from = |side: usize| {
                let share = (side + 1) * GROUP_COLUMNS + SHARE;
                Table::place_of(self, share, area.width).map(|(from, _)| from)
            };
            let Some(left) = from(at) else {
                continue;
            };
            // Without brackets, separator and a blank.
            let end = from(at + 1).unwrap_or(usize::from(area.width));
            let room = end.saturating_sub(left + 5);
            let label = if text::width(long) <= room {
                long
            } else {
                short
            };
            let (label, role) = match at {
                1 => (format!("[{}]", text::line(label, room)), Role::Selected),
                _ => (format!(" {}", text::line(label, room + 1)), Role::Strong),
            };
            let left = u16::try_from(left).unwrap_or(u16::MAX);
            let here = Rect {
                x: area.x.saturating_add(left),
                width: area.width.saturating_sub(left),
                ..area
            };
            frame.render_widget(Line::styled(label, theme.style(role)), here);
        }
    }
}

impl Rows for Page<'_> {
    type Row = usize;
    type Key = u64;

    fn columns(&self, width: u16) -> Vec<Column> {
        let mut columns = Vec::new();
        for group in 0..self.groups() {
            self.group_columns(group, width, &mut columns);
        }
        let any = |is: fn(&Item) -> bool| self.items.iter().any(is);
        let numbers = self.items.iter().map(|item| item.number.len());
        let number = numbers.max().unwrap_or(0).clamp(self.number.len(), 8);
        let bracket = usize::from(any(|item| item.bracket != Bracket::None));
        let line = if any(|item| item.line.is_some()) {
            5
        } else {
            0
        };
        let has_calls = self.sides.is_empty() && any(|item| item.called > 0);
        let (called, name_of_called) = match has_calls {
            true => (8, "samples in callees"),
            false => (0, ""),
        };
        let (moved, line_rank, text) = match self.sides.len() {
            0 => (0, 4, 24),
            _ => (7, 6, TEXT_BESIDE),
        };
        columns.extend([
            Column::right("+/- pp", "", moved).rank(1),
            Column::right("callees", name_of_called, called).rank(1),
            Column::left("", "", bracket),
            Column::right(self.number, self.number, number),
            Column::right("line", "line", line).rank(line_rank),
            Column::left("", "place", text),
        ]);
        columns
    }

    fn stretch(&self) -> usize {
        self.groups() * GROUP_COLUMNS + PLACE
    }

    fn sorts(&self) -> Vec<usize> {
        Vec::new()
    }

    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        let (from, depth) = match parent {
            None => (0, 0),
            Some(parent) => (parent + 1, self.items[parent].depth + 1),
        };
        let inside = (from..self.items.len()).take_while(|&at| self.items[at].depth >= depth);
        inside.filter(|&at| self.items[at].depth == depth).collect()
    }

    fn can_open(&self, row: usize) -> bool {
        self.items[row].has_children
    }

    fn is_tree(&self) -> bool {
        self.items.iter().any(|item| item.has_children)
    }

    fn is_open_at_first(&self, row: usize) -> bool {
        let Item { what, counts, .. } = &self.items[row];
        let inside = match what {
            What::Place => counts.all.saturating_sub(counts.own),
            _ => counts.all,
        };
        inside.saturating_mul(OPEN_SHARE) >= self.samples
    }

    fn key(&self, row: usize) -> u64 {
        self.items[row].id
    }

    /// Exported cell: samples of a line include its children. Source text from files of this
    /// machine is on the screen only.
    fn value(&self, row: usize, column: usize) -> Value {
        let item = &self.items[row];
        let (group, column) = (column / GROUP_COLUMNS, column % GROUP_COLUMNS);
        if group == self.groups() {
            let number = |number: Option<u64>| number.map_or(Value::Empty, Value::Count);
            return match column {
                CALLED => number(Some(item.called).filter(|called| *called > 0)),
                NUMBER => number(item.number.parse().ok()),
                LINE => number(item.line.map(u64::from)),
                _ => Value::Text(item.exported()),
            };
        }
        let counts = self.counts(group, item);
        let counted = |n: u64| if n > 0 { Value::Count(n) } else { Value::Empty };
        match column {
            SHARE if counts.all == 0 => Value::Empty,
            SHARE => Value::Share(ratio(counts.all, self.whole(group).0)),
            ERROR => {
                let error = error_of(item, counts, counts.all);
                error.map_or(Value::Empty, Value::Share)
            }
            SAMPLES => counted(counts.all),
            OWN => counted(counts.own),
            MARK => Value::Text(counts.mark.to_owned()),
            _ => {
                let pieces = self.machine_of(group, item);
                let text = pieces.map(|pieces| machine_text(pieces, usize::MAX));
                Value::Text(text.unwrap_or_default())
            }
        }
    }

    fn cell(&self, row: usize, column: usize, room: &Room<'_>) -> Vec<Piece> {
        let item = &self.items[row];
        let (group, column) = (column / GROUP_COLUMNS, column % GROUP_COLUMNS);
        if group == self.groups() {
            let role = match item.what {
                What::Heading => Role::Strong,
                What::Callee(_) | What::Place if item.counts.all + item.called > 0 => Role::Text,
                _ => Role::Dim,
            };
            return match column {
                MOVED => self.moved(item, room),
                CALLED if item.called == 0 => Piece::cell(Role::Text, ""),
                CALLED => Piece::cell(Role::Text, count(item.called)),
                BRACKET => Piece::cell(
                    Role::Dim,
                    match item.bracket {
                        Bracket::None => "",
                        Bracket::First => room.theme.sign("╭", "/"),
                        Bracket::Inside => room.theme.sign("│", "|"),
                        Bracket::Last => room.theme.sign("╰", "\\"),
                    },
                ),
                NUMBER => Piece::cell(role, item.number.clone()),
                LINE => {
                    let line = item.line.map(|line| line.to_string());
                    Piece::cell(Role::Dim, line.unwrap_or_default())
                }
                _ => {
                    let sign = match item.what {
                        What::Callee(_) => room.theme.sign("↳ ", "> "),
                        _ => "",
                    };
                    Piece::cell(
                        role,
                        text::line(&format!("{sign}{}", item.text), room.width),
                    )
                }
            };
        }
        let figures = self.figures(group, item, room.is_expanded);
        let heat = Role::Heat(figures.heat);
        let (role, text) = match column {
            SEPARATOR => (Role::Dim, room.theme.sign("│", "|").to_owned()),
            MACHINE => (Role::Dim, self.machine_text(group, item, room.width)),
            _ if figures.samples == 0 => (Role::Text, String::new()),
            SHARE => (heat, format!("{:.2}%", figures.share * 100.0)),
            ERROR => {
                let error = figures.error.map(|error| format!("{:.2}", error * 100.0));
                (Role::Dim, error.unwrap_or_default())
            }
            BAR => (heat, room.theme.bar(figures.heat, room.width)),
            SAMPLES => (Role::Text, count(figures.samples)),
            _ => (Role::Warning, figures.mark.to_owned()),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        let item = &self.items[row];
        text.is_in(&item.text) || text.is(&item.number)
    }
}

/// Error of a line's share; a place's error applies to own samples only.
fn error_of(item: &Item, counts: Counts, samples: u64) -> Option<f64> {
    let is_known = item.what != What::Place || samples == counts.own;
    counts.error.filter(|_| is_known && samples > 0)
}

/// Machine code ranges in at most `width` columns: all ranges, or the first range and a count.
fn machine_text(pieces: &Pieces, width: usize) -> String {
    let one = |(start, end): &(u32, u32)| format!("+{start:x}-{end:x}");
    let all: Vec<String> = pieces.iter().map(one).collect();
    let whole = all.join(" ");
    let (Some(first), Some((start, _))) = (all.first(), pieces.first()) else {
        return whole;
    };
    let more = pieces.len() - 1;
    let first_and_more = format!("{first} & {more}");
    match () {
        () if whole.len() <= width => whole,
        () if first_and_more.len() <= width => first_and_more,
        () => format!("+{start:x}.. & {more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_that_does_not_fit_is_counted() {
        let pieces = vec![(0x1493, 0x15a2), (0x1600, 0x1610), (0x1700, 0x1710)];
        let text = |columns| machine_text(&pieces, columns);
        assert_eq!(text(99), "+1493-15a2 +1600-1610 +1700-1710");
        assert_eq!(text(14), "+1493-15a2 & 2");
        assert_eq!(text(12), "+1493.. & 2");
    }
}
