//! The listing on the screen: the numbers of all versions together or of one, or of several
//! side by side, in front of one text.

use super::items::{Item, What};
use super::listing::Listing;
use super::plan::{ALONE, BETWEEN, Fields, MOVED, Plan, Shape};
use super::sides::{Here, Side};
use crate::annotate::layout::Bracket;
use crate::present::numbers::{count, ratio};
use crate::present::text;
use crate::queries::method::Pieces;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// The samples of a line that are shown.
#[derive(Clone, Copy, Debug)]
struct Figures {
    samples: u64,
    /// What shares are of.
    whole: u64,
    /// Most samples of one line.
    most: u64,
    error: Option<f64>,
    mark: &'static str,
}

impl Figures {
    fn share(self) -> f64 {
        ratio(self.samples, self.whole)
    }
}

/// The error of the share of so many samples at a line: what is known of a place is that of
/// its own.
pub fn error_of(item: &Item, here: Here, samples: u64) -> Option<f64> {
    let is_of = !matches!(item.what, What::Place) || samples == here.own;
    here.error.filter(|_| is_of && samples > 0)
}

impl Listing {
    /// Writes what the versions side by side are called above their columns; the second one
    /// is that which steps change.
    pub fn draw_labels(
        &self,
        shape: Shape<'_>,
        labels: &[(String, String)],
        frame: &mut Frame<'_>,
        area: Rect,
    ) {
        let plan = self.plan(shape.sides.len(), self.shows_machine(shape, area), area);
        let width = plan.fields.width();
        for (at, (short, long)) in labels.iter().enumerate() {
            let room = width.saturating_sub(1);
            let label = if text::width(long) + 2 <= room {
                long
            } else {
                short
            };
            let (label, role) = match at {
                1 => (format!("[{}]", text::line(label, room - 2)), Role::Selected),
                _ => (format!(" {}", text::line(label, room - 1)), Role::Strong),
            };
            let left = u16::try_from(at * (width + BETWEEN)).unwrap_or(u16::MAX);
            let here = Rect {
                x: area.x.saturating_add(left),
                width: area.width.saturating_sub(left),
                ..area
            };
            frame.render_widget(Line::styled(label, shape.theme.style(role)), here);
        }
    }

    /// Draws it.
    pub fn draw(&self, shape: Shape<'_>, list: ListState, frame: &mut Frame<'_>, area: Rect) {
        let machine = self.shows_machine(shape, area);
        let drawn = match shape.sides {
            [] => Drawn {
                listing: self,
                shape,
                plan: Plan {
                    sides: 1,
                    fields: Fields {
                        machine: if machine { ALONE.machine } else { 0 },
                        ..ALONE
                    },
                    moved: false,
                },
                bracket: self.any(|item| item.bracket != Bracket::None),
                line: self.any(|item| item.line.is_some()),
            },
            sides => Drawn {
                listing: self,
                shape,
                plan: self.plan(sides.len(), machine, area),
                bracket: self.any(|item| item.bracket != Bracket::None),
                line: self.has_lines(area),
            },
        };
        let columns = drawn.columns();
        let stretch = columns.len().saturating_sub(1);
        let fitting = table::fitting(&columns, stretch, usize::from(area.width));
        let room = fitting.last().map_or(0, |&(_, width)| width);
        let look = Look {
            theme: shape.theme,
            columns: &columns,
            stretch,
            sorted: None,
            rows: self.visible.len(),
            list,
        };
        table::draw(look, frame, area, |index| {
            let item = self.visible.get(index).and_then(|&at| self.items.get(at));
            item.map_or_else(Vec::new, |item| drawn.pieces(item, room))
        });
    }

    fn any(&self, is: impl Fn(&Item) -> bool) -> bool {
        self.items.iter().any(is)
    }

    fn text_of(&self, theme: &Theme, item: &Item) -> String {
        let indent = "  ".repeat(item.depth.min(16));
        let fold = match (item.has_children, self.is_open(item)) {
            (true, true) => theme.sign("▾ ", "- "),
            (true, false) => theme.sign("▸ ", "+ "),
            (false, _) if item.depth > 0 => "  ",
            (false, _) => "",
        };
        let inlined = match item.what {
            What::Callee(_) => theme.sign("↳ ", "> "),
            _ => "",
        };
        format!("{indent}{fold}{inlined}{}", item.text)
    }
}

/// A listing while it is drawn.
struct Drawn<'a> {
    listing: &'a Listing,
    shape: Shape<'a>,
    plan: Plan,
    bracket: bool,
    line: bool,
}

impl Drawn<'_> {
    fn columns(&self) -> Vec<Col> {
        let mut columns = Vec::new();
        for side in 0..self.shape.sides.len().max(1) {
            if side > 0 {
                columns.push(Col::new("", BETWEEN - 1, false, 0));
            }
            self.plan.fields.columns(&mut columns);
        }
        if self.plan.moved {
            columns.push(Col::new("moved", MOVED - 1, true, 0));
        }
        if self.bracket {
            columns.push(Col::new("", 1, false, 0));
        }
        let number = self.listing.number_width(self.shape.number);
        columns.push(Col::new(self.shape.number, number, true, 0));
        if self.line {
            columns.push(Col::new("line", 5, true, 4));
        }
        let text = if self.shape.sides.is_empty() { 24 } else { 8 };
        columns.push(Col::new("", text, false, 0));
        columns
    }

    fn pieces(&self, item: &Item, room: usize) -> Vec<Piece> {
        let theme = self.shape.theme;
        let mut pieces = Vec::new();
        if self.shape.sides.is_empty() {
            let machine = machine_text(&item.machine, self.plan.fields.machine);
            self.numbers(self.of_all(item), machine, &mut pieces);
        }
        for (at, side) in self.shape.sides.iter().enumerate() {
            if at > 0 {
                pieces.push(Piece::of(Role::Dim, theme.sign("│", "|")));
            }
            let machine = self.machine_of(side, item);
            self.numbers(self.of_side(side, item), machine, &mut pieces);
        }
        if self.plan.moved {
            pieces.push(self.moved(item));
        }
        if self.bracket {
            let bracket = match item.bracket {
                Bracket::None => "",
                Bracket::First => theme.sign("╭", "/"),
                Bracket::Inside => theme.sign("│", "|"),
                Bracket::Last => theme.sign("╰", "\\"),
            };
            pieces.push(Piece::of(Role::Dim, bracket));
        }
        let has_samples = self.of_all(item).samples > 0;
        let role = match item.what {
            What::Heading => Role::Strong,
            What::Callee(_) | What::Place if has_samples => Role::Text,
            _ => Role::Dim,
        };
        pieces.push(Piece::of(role, item.number.clone()));
        if self.line {
            let line = item.line.map_or_else(String::new, |line| line.to_string());
            pieces.push(Piece::of(Role::Dim, line));
        }
        let text = text::line(&self.listing.text_of(theme, item), room);
        pieces.push(Piece::of(role, text));
        pieces
    }

    fn of_all(&self, item: &Item) -> Figures {
        let here = Here {
            own: item.own,
            all: item.all,
            mark: item.mark,
            error: item.error,
        };
        let listing = self.listing;
        self.figures(item, here, (listing.samples, listing.most))
    }

    fn of_side(&self, side: &Side, item: &Item) -> Figures {
        self.figures(item, side.here(item), (side.samples, side.most))
    }

    fn figures(&self, item: &Item, here: Here, (whole, most): (u64, u64)) -> Figures {
        let samples = self.listing.shown_of(item, here.own, here.all);
        Figures {
            samples,
            whole,
            most,
            error: error_of(item, here, samples),
            mark: here.mark,
        }
    }

    /// Share, error, bar, samples, mark and machine code.
    fn numbers(&self, figures: Figures, machine: String, pieces: &mut Vec<Piece>) {
        let fields = self.plan.fields;
        // A line's heat is its place's; a method's that was inlined, the sum of its own.
        let hot = ratio(figures.samples, figures.most).min(1.0);
        let heat = Role::Heat(hot);
        let only = |text: String| {
            if figures.samples > 0 {
                text
            } else {
                String::new()
            }
        };
        let share = format!("{:.2}%", figures.share() * 100.0);
        pieces.push(Piece::of(heat, only(share)));
        if fields.error {
            let error = figures.error.map(|error| format!("{:.2}", error * 100.0));
            pieces.push(Piece::of(Role::Dim, only(error.unwrap_or_default())));
        }
        if fields.bar > 0 {
            let bar = self.shape.theme.bar(hot, fields.bar);
            pieces.push(Piece::of(heat, only(bar)));
        }
        if fields.samples {
            pieces.push(Piece::text(only(count(figures.samples))));
        }
        pieces.push(Piece::of(Role::Warning, only(figures.mark.to_owned())));
        if fields.machine > 0 {
            pieces.push(Piece::of(Role::Dim, machine));
        }
    }

    fn machine_of(&self, side: &Side, item: &Item) -> String {
        match side.machine.get(&item.id) {
            Some(pieces) => machine_text(pieces, self.plan.fields.machine),
            // It has a map, with nothing of it: it is called, or never comes to be.
            None if matches!(item.what, What::Callee(_)) && !side.machine.is_empty() => {
                "no code".to_owned()
            }
            None => String::new(),
        }
    }

    /// By how many percent points the share of the second version is above that of the first,
    /// with a sign where that is more than their errors.
    fn moved(&self, item: &Item) -> Piece {
        let [first, second, ..] = self.shape.sides else {
            return Piece::text("");
        };
        let (before, after) = (self.of_side(first, item), self.of_side(second, item));
        if before.samples + after.samples == 0 {
            return Piece::text("");
        }
        let moved = after.share() - before.share();
        let known = |side: &Side, figures: Figures| match figures.samples {
            0 => side.here(item).error,
            _ => figures.error,
        };
        let error = known(first, before).zip(known(second, after));
        let is_sure = error.is_some_and(|(a, b)| moved.abs() > a.hypot(b));
        let theme = self.shape.theme;
        let (sign, role) = match is_sure {
            false => (" ", Role::Dim),
            true if moved > 0.0 => (theme.sign("▲", "^"), Role::Strong),
            true => (theme.sign("▼", "v"), Role::Strong),
        };
        let points = format!("{:+.1}", moved * 100.0);
        let points = points.replace("-0.0", "0.0").replace("+0.0", "0.0");
        Piece::of(role, format!("{points}{sign}"))
    }
}

/// Pieces of machine code in at most so many columns: the first, or where it begins, and how
/// many more.
pub fn machine_text(pieces: &Pieces, columns: usize) -> String {
    let one = |(start, end): &(u32, u32)| format!("+{start:x}-{end:x}");
    let all: Vec<String> = pieces.iter().map(one).collect();
    let whole = all.join(" ");
    if whole.len() <= columns {
        return whole;
    }
    let more = pieces.len().saturating_sub(1);
    let first = all.first().cloned().unwrap_or_default();
    let first_and_more = format!("{first} & {more}");
    match pieces.first() {
        Some((start, _)) if first_and_more.len() > columns => format!("+{start:x}.. & {more}"),
        _ => first_and_more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_says_how_much_is_left_out() {
        let pieces = vec![(0x1493, 0x15a2), (0x1600, 0x1610), (0x1700, 0x1710)];
        let text = |columns| machine_text(&pieces, columns);
        assert_eq!(text(99), "+1493-15a2 +1600-1610 +1700-1710");
        assert_eq!(text(14), "+1493-15a2 & 2");
        assert_eq!(text(12), "+1493.. & 2");
    }
}
